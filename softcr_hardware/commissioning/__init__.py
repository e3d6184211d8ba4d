"""Commissioning a bench: its steps, what leads through them, what they find and write."""

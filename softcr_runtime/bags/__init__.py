"""Bags: written by a running system, on virtual time or by hand, and read again."""

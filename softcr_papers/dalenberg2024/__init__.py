"""Dalenberg: adaptive control of tendon-driven arms of constant curvature."""

"""`softcr doctor`: what stands in the way of a run, and what mends it."""

from softcr_tools.doctor.command import main

__all__ = ["main"]

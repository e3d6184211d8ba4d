"""`softcr experiment 1`: the linearised rod beside the rod."""

from softcr_tools.experiments.linear.command import main

__all__ = ["main"]

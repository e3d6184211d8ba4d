"""`softcr experiment 3 ... 6`: the control experiments of Licher et al. 2025."""

from softcr_tools.experiments.tracking.command import main

__all__ = ["main"]

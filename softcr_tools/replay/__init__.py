"""`softcr replay`: a recorded run again, through estimator and controller or onto the wire."""

from softcr_tools.replay.command import main

__all__ = ["main"]

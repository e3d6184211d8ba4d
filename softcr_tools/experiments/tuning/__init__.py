"""`softcr tune`: numbers of filter and controllers, found on plants that are not the model."""

from softcr_tools.experiments.tuning.command import main

__all__ = ["main"]

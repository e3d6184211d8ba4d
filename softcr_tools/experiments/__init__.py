"""`softcr experiment`: the published experiments again, on our plants, in one form of table."""

from softcr_tools.experiments.command import main

__all__ = ["main"]

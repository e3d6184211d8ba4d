"""`softcr experiment bench`: what each figure of a bench costs the tip, on virtual time."""

from softcr_tools.experiments.bench.command import main

__all__ = ["main"]

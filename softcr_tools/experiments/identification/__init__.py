"""`softcr experiment identification`: a hidden robot's parameters from its recordings."""

from softcr_tools.experiments.identification.command import main

__all__ = ["main"]

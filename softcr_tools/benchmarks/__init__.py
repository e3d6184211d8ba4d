"""`softcr bench`: rod, filter and controller measured beside their rivals, in one run."""

from softcr_tools.benchmarks.command import main

__all__ = ["main"]

"""`softcr experiment apcc-...`: the simulations and experiments of Dalenberg's thesis."""

from softcr_tools.experiments.apcc.command import main

__all__ = ["main"]

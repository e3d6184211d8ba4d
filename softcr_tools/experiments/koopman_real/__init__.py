"""`softcr experiment koopman-real`: the Koopman model fitted to a real pneumatic arm."""

from softcr_tools.experiments.koopman_real.command import main

__all__ = ["main"]

"""`softcr experiment cc-ukf`: Table II of Mehl et al. on our Cosserat rod."""

from softcr_tools.experiments.cc_ukf.command import main

__all__ = ["main"]

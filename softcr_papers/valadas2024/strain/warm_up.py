"""The kernels of strain models as a set, see `softcr_models.warm_up`."""

from pathlib import Path

from softcr_models.warm_up import Part
from softcr_papers.valadas2024.strain.kernel import kernels

KERNELS = (Part("strain", kernels, 14.5, sources=(Path(__file__).parent,)),)

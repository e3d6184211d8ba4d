"""The kernels of constant curvature as a set, see `softcr_models.warm_up`."""

from pathlib import Path

from softcr_models.warm_up import Part
from softcr_papers.constant_curvature.kernel import kernels

PARTS = (Part("constant_curvature", kernels, 28.0, sources=(Path(__file__).parent,)),)

"""Lazy loader of the compiled reference solvers, see `room_kernels`."""

from pathlib import Path
from types import ModuleType

from softcr_models.room_kernels import kernels_of
from softcr_papers.pawlowski2019 import lie

_INLINED = Path(lie.__file__).parent, Path(__file__).parent / "numbers.py"


def statics_kernels() -> ModuleType:
    """The compiled statics."""
    return kernels_of("softcr_papers.pawlowski2019.reference.compiled_statics", *_INLINED)


def explicit_kernels() -> ModuleType:
    """The compiled explicit integrator."""
    return kernels_of("softcr_papers.pawlowski2019.reference.compiled_explicit", *_INLINED)


def kirchhoff_kernels() -> ModuleType:
    """The compiled explicit integrator without shear and stretch."""
    return kernels_of("softcr_papers.pawlowski2019.reference.compiled_kirchhoff", *_INLINED)


def implicit_kernels() -> ModuleType:
    """The compiled implicit integrator."""
    return kernels_of("softcr_papers.pawlowski2019.reference.compiled_implicit", *_INLINED)

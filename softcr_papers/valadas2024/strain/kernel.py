"""Lazy loader of the compiled kernels of strain models, as `constant_curvature.kernel`."""

from types import ModuleType

import numpy as np

from softcr_models.room_kernels import kernels_of


def kernels() -> ModuleType:
    """The compiled kernels, compiled or loaded."""
    return kernels_of("softcr_papers.valadas2024.strain.compiled")


def rows(values: np.ndarray) -> np.ndarray:
    """Values (..., k) as the contiguous float64 rows (R, k) that a kernel takes."""
    array = np.ascontiguousarray(values, dtype=float)
    flat = array.reshape(-1, array.shape[-1])
    return flat if flat.flags.carray else flat.copy()

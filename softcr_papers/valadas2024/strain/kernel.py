"""Lazy loader of the compiled kernels of strain models, as `constant_curvature.kernel`."""

import fcntl
import functools
import importlib
from types import ModuleType

import numpy as np

from softcr_models.kernel_cache import cache_directory


@functools.cache
def kernels() -> ModuleType:
    """The compiled kernels, compiled or loaded by one process at a time."""
    import softcr_models.rod.compilation  # noqa: F401  (tells numba where kernels are kept)

    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "strain.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed
        return importlib.import_module("softcr_papers.valadas2024.strain.compiled")


def rows(values: np.ndarray) -> np.ndarray:
    """Values (..., k) as the contiguous float64 rows (R, k) that a kernel takes."""
    array = np.ascontiguousarray(values, dtype=float)
    flat = array.reshape(-1, array.shape[-1])
    return flat if flat.flags.carray else flat.copy()

"""Modules that compile kernels while they are imported, by one process at a time.

Nothing imports such a module but `loaded`, when the first of its kernels is called.
"""

import fcntl
import functools
import importlib
from types import ModuleType

from softcr_models.kernel_cache import cache_directory


@functools.cache
def loaded(module: str) -> ModuleType:
    """A module by its name, compiled or loaded.

    Numba keeps the parts of a compiled kernel in files of their own. When two processes compile at
    the same time, as the nodes of a system do after an update, the parts they leave behind do not
    fit, and every later process crashes. So one compiles, and the others wait and load.
    """
    import softcr_models.rod.compilation  # noqa: F401  (tells numba where kernels are kept)

    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / f"{module}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed
        return importlib.import_module(module)

"""Constant-curvature models: kinematics of any number of sections, dynamics of one section.

Numba keeps the parts of a compiled kernel in files of their own. When two processes compile at the
same time, as the nodes of a system do after an update, the parts they leave behind do not fit, and
every later process crashes. So one compiles, at import, and the others wait and load.
"""

import fcntl
from pathlib import Path

import numba

_cache = Path(numba.config.CACHE_DIR or ".")  # set by softcr_models
_cache.mkdir(parents=True, exist_ok=True)
with open(_cache / "constant_curvature.lock", "w") as _lock:
    fcntl.flock(_lock, fcntl.LOCK_EX)  # let go when the file is closed
    import softcr_models.constant_curvature.kernel  # noqa: F401

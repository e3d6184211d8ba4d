"""Where compiled kernels are kept, and how they are compiled.

Numba's own cache notices neither edits in imported modules nor a read-only installation.
Here the folder's name is a digest of everything the machine
code depends on, so a stale kernel cannot be loaded and every process after the first starts in a
fraction of a second.
"""

import hashlib
import os
from pathlib import Path

import llvmlite
import llvmlite.binding
import numba

from softcr_models.rod.float_flags import SAFE_FLAGS
from softcr_models.rod.inner import KernelCompiler

COMPILE_OPTIONS = {
    "cache": True,
    "fastmath": set(SAFE_FLAGS),
    "error_model": "numpy",
    "nogil": True,
    "pipeline_class": KernelCompiler,
}


def lane_counts() -> tuple[int, int]:
    """Lanes that pay on this processor, for (float64, float32); (1, 1) is the scalar fallback."""
    if os.environ.get("SOFTCR_SCALAR_KERNELS"):
        return 1, 1
    try:
        import softcr_models.rod.simd  # noqa: F401  (its registration is what may fail)
    except (ImportError, AttributeError):
        return 1, 1
    features = llvmlite.binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 8, 16
    if features.get("avx2"):
        return 8, 8
    return 4, 4


def cache_directory() -> Path:
    """Folder of the compiled kernels of this version on this processor."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        # path and time too: numba itself looks at them, and would compile again in silence
        digest.update(f"{source} {source.stat().st_mtime_ns}".encode())
        digest.update(source.read_bytes())
    digest.update(f"{numba.__version__} {llvmlite.__version__}".encode())
    digest.update(f"{llvmlite.binding.get_host_cpu_name()} {lane_counts()}".encode())
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "softcr" / "kernels" / digest.hexdigest()[:16]


if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = str(cache_directory())
# a call of the OpenMP layer costs 2 to 4 us, one of numba's own workqueue layer 50 to 60 us
numba.config.THREADING_LAYER_PRIORITY = ["omp", "tbb", "workqueue"]
# LLVM's loop vectoriser only gets in the way of loops over six components: the scalar step takes
# 22.3 us with it and 16.6 us without, lanes gain 6 to 9 %
numba.config.LOOP_VECTORIZE = False

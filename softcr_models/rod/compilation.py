"""How kernels are compiled.

Numba's own cache notices neither edits in imported modules nor a read-only installation. Here the
folder's name is a digest of everything the machine code depends on, see `kernel_cache`, so a stale
kernel cannot be loaded and every process after the first starts in a fraction of a second.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numba.core.event

from softcr_models.kernel_cache import cache_directory
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


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Keep the kernels that are decorated in the block in a folder of their own."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)  # read while a function is decorated
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


class _Announcing(numba.core.event.Listener):
    """Says once in a process that a kernel of ours is compiled, which takes long."""

    def on_start(self, event: Any) -> None:
        """See numba; it is told only of what no cache has."""
        global ANNOUNCES_NOTHING
        module = str(event.data["dispatcher"].py_func.__module__)
        if module.startswith("softcr_") and not ANNOUNCES_NOTHING:
            ANNOUNCES_NOTHING = True
            line = "softcr: compiling kernels, once on this machine: this takes a minute or two"
            print(line, file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """See numba."""


ANNOUNCES_NOTHING = False
"""Whether the line about compiling was said, or is somebody else's to say."""

numba.core.event.register("numba:compile", _Announcing())
numba.config.CACHE_DIR = str(cache_directory())
# a call of the OpenMP layer costs 2 to 4 us, one of numba's own workqueue layer 50 to 60 us
numba.config.THREADING_LAYER_PRIORITY = ["omp", "tbb", "workqueue"]
# LLVM's loop vectoriser only gets in the way of loops over six components: the scalar step takes
# 22.3 us with it and 16.6 us without, lanes gain 6 to 9 %
numba.config.LOOP_VECTORIZE = False


class _Threads:
    """Of parallel kernels. GNU's OpenMP does not survive a fork: numba ends a child that calls it.

    Attributes:
        started: whether this process has called a parallel kernel.
        lost: whether a process did that this one was forked from.
    """

    started = False
    lost = False

    @classmethod
    def after_fork(cls) -> None:
        """In the child."""
        cls.lost = cls.lost or cls.started


os.register_at_fork(after_in_child=_Threads.after_fork)


def may_use_threads() -> bool:
    """Whether a parallel kernel may be called now: not in a process that was forked from one that
    had called one. Who gets yes is taken to call it."""
    _Threads.started = _Threads.started or not _Threads.lost
    return not _Threads.lost

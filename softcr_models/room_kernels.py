"""How the kernels of the fast cycle are compiled, and where the machine code is kept.

Numba's own cache does not notice an edit of a function that another file calls. Here the folder's
name is a digest of every module of the rooms with such kernels, so that none of an older version
is ever loaded.

What is called in the fast cycle fills arrays that it is given: one that it made itself would be
handed to Python with its type unpickled, which costs more than many a kernel.
"""

import fcntl
import functools
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba

from softcr_models.kernel_cache import cache_directory
from softcr_models.rod.compilation import kept_in
from softcr_models.rod.inner import KernelCompiler

_ROOMS = ("softcr_hardware", "softcr_simulation")


@functools.cache
def _folder() -> Path:
    digest = hashlib.sha256()
    packages = Path(__file__).parents[1]
    for source in sorted(each for room in _ROOMS for each in (packages / room).glob("**/*.py")):
        if b"compiled" in (content := source.read_bytes()):
            digest.update(f"{source} {source.stat().st_mtime_ns}".encode())
            digest.update(content)
    folder = cache_directory() / f"fast_{digest.hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def compiled(function: Callable[..., Any]) -> Any:
    """Compile at the first call; strict floating point, for NaN has a meaning in these kernels."""
    with kept_in(_folder()):
        return numba.njit(
            cache=True, error_model="numpy", nogil=True, pipeline_class=KernelCompiler
        )(function)


@contextmanager
def one_compiles() -> Iterator[None]:
    """Of several processes one compiles the kernels that are first called in the block, and the
    others wait and load: parts that two leave behind at the same time do not fit each other."""
    with open(_folder() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed
        yield

"""How kernels outside the rod are compiled, and where their machine code is kept.

Numba's own cache does not notice an edit of a function that another file calls. Here the name of
each folder is a digest of every text with such kernels, so that none of an older version is ever
loaded.

Numba keeps the parts of a compiled kernel in files of their own. When two processes compile at the
same time, as the nodes of a system do after an update, the parts they leave behind do not fit, and
every later process crashes. So one compiles, and the others wait and load.

What is called in the fast cycle fills arrays that it is given: one that it made itself would be
handed to Python with its type unpickled, which costs more than many a kernel.
"""

import fcntl
import functools
import hashlib
import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from softcr_models.kernel_cache import cache_directory

_PACKAGES = Path(__file__).parents[1]
_ROOMS = ("softcr_hardware", "softcr_simulation")


@functools.cache
def kernels_of(module: str, *others: Path) -> ModuleType:
    """A module that compiles while it is imported; call it before a loop that must not wait.

    Nothing else may import it: this function compiles it in one process at a time, or loads it.

    Args:
        module: its name.
        others: files and folders, beside its own folder, with texts that its kernels are made of.
    """
    from softcr_models.rod.compilation import kept_in

    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    folder = _folder(module.rpartition(".")[0], b"numba", (Path(spec.origin).parent, *others))
    with _one_compiles(folder), kept_in(folder):
        return importlib.import_module(module)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile at the first call; strict floating point, for NaN has a meaning in these kernels."""
    import numba

    from softcr_models.rod.compilation import kept_in
    from softcr_models.rod.inner import KernelCompiler

    with kept_in(_folder_of_rooms()):
        return numba.njit(
            cache=True, error_model="numpy", nogil=True, pipeline_class=KernelCompiler
        )(function)


@contextmanager
def one_compiles() -> Iterator[None]:
    """Of several processes one compiles the `compiled` kernels that are first called in the block,
    and the others wait and load."""
    with _one_compiles(_folder_of_rooms()):
        yield


@functools.cache
def _folder_of_rooms() -> Path:
    return _folder("fast", b"compiled", tuple(_PACKAGES / room for room in _ROOMS))


def _folder(name: str, word: bytes, sources: Iterable[Path]) -> Path:
    """The folder of kernels; its name has a digest of the files, and of those in the folders that
    have the word."""
    digest = hashlib.sha256()
    for source in sources:
        for file in sorted(source.rglob("*.py")) if source.is_dir() else (source,):
            content = file.read_bytes()
            if word in content or file == source:
                # path and time too: numba itself looks at them
                digest.update(f"{file} {file.stat().st_mtime_ns}".encode())
                digest.update(content)
    folder = cache_directory() / f"{name}_{digest.hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _one_compiles(folder: Path) -> Iterator[None]:
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed
        yield

"""Lazy loader of the compiled reference solvers; see `constant_curvature.kernel`, its twin.

Their kernels inline functions of other files, whose edits numba's cache does not see, so the cache
lies in a folder whose name is a digest of all of them.
"""

import fcntl
import functools
import hashlib
import importlib
from pathlib import Path
from types import ModuleType

from softcr_models import lie
from softcr_models.kernel_cache import cache_directory


@functools.cache
def statics_kernels() -> ModuleType:
    """The compiled statics, compiled or loaded by one process at a time."""
    return _loaded("compiled_statics")


@functools.cache
def explicit_kernels() -> ModuleType:
    """The compiled explicit integrator."""
    return _loaded("compiled_explicit")


@functools.cache
def kirchhoff_kernels() -> ModuleType:
    """The compiled explicit integrator without shear and stretch."""
    return _loaded("compiled_kirchhoff")


@functools.cache
def implicit_kernels() -> ModuleType:
    """The compiled implicit integrator."""
    return _loaded("compiled_implicit")


def _loaded(name: str) -> ModuleType:
    from softcr_models.rod import compilation, simd  # tells numba where kernels are kept

    outer = cache_directory()
    outer.mkdir(parents=True, exist_ok=True)
    with open(outer / "reference.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed
        with compilation.kept_in(outer / f"reference-{_digest(simd.__file__)}"):
            return importlib.import_module(f"softcr_papers.pawlowski2019.reference.{name}")


def _digest(simd: str) -> str:
    here, below = Path(__file__).parent, Path(lie.__file__).parent
    texts = [*here.glob("compiled_*.py"), here / "section_kernels.py", here / "numbers.py"]
    digest = hashlib.sha256()
    for source in sorted([*texts, *below.glob("*.py"), Path(simd)]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]

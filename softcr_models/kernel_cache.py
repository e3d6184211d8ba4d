"""Where compiled kernels, and other results that are computed once per machine, are kept.

This module imports neither numba nor a kernel, so that a command can say where the kernels are
without loading or compiling one.
"""

import functools
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from softcr_models.errors import UserError

_VARIABLES = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")


def cache_home() -> Path:
    """The folder `softcr` in which everything that is cached lies.

    It lies below the first folder that can be written among `$XDG_CACHE_HOME`, `$NUMBA_CACHE_DIR`
    and `~/.cache`. Where none of them can be, as in a container without a home directory, it lies
    in `$XDG_RUNTIME_DIR` or in a private folder among the temporary files. A warning on stderr
    then says so, and `XDG_CACHE_HOME` is set for this process and those that it starts.

    Raises:
        UserError: no folder can be written.
    """
    return _found(*(os.environ.get(name, "") for name in _VARIABLES))


def cache_directory() -> Path:
    """The folder of the compiled kernels of this version on this processor.

    Raises:
        UserError: no folder can be written.
    """
    return cache_home() / "kernels" / _version()


@functools.cache
def _version() -> str:
    """A digest of everything that the machine code depends on."""
    import llvmlite.binding

    digest = hashlib.sha256()
    for source in sorted((Path(__file__).parent / "rod").glob("*.py")):
        # path and time too: numba itself looks at them, and would compile again in silence
        digest.update(f"{source} {source.stat().st_mtime_ns}".encode())
        digest.update(source.read_bytes())
    digest.update(f"{version('numba')} {version('llvmlite')}".encode())
    features = llvmlite.binding.get_host_cpu_features().flatten()
    digest.update(f"{llvmlite.binding.get_host_cpu_name()} {features}".encode())
    digest.update(os.environ.get("SOFTCR_SCALAR_KERNELS", "").encode())
    return digest.hexdigest()[:16]


@functools.cache
def _found(xdg: str, numba: str) -> Path:
    wanted = [Path(each).absolute() for each in (xdg, numba) if each]
    wanted += [home / ".cache"] if (home := home_directory()) else []
    for base in wanted:
        if can_be_written(base / "softcr"):
            return base / "softcr"
    said = ", ".join(map(str, wanted)) or "there is no home directory"
    for base in _temporary():
        if can_be_written(base / "softcr"):
            print(
                f"softcr: warning: the cache of compiled kernels cannot be written ({said}); "
                f"{base} is used instead: set XDG_CACHE_HOME to a folder that stays",
                file=sys.stderr,
                flush=True,
            )
            os.environ["XDG_CACHE_HOME"] = str(base)
            os.environ.setdefault("MPLCONFIGDIR", str(base / "matplotlib"))  # for its fonts
            return base / "softcr"
    raise UserError(
        f"the cache of compiled kernels cannot be written ({said}, {tempfile.gettempdir()}): set "
        "XDG_CACHE_HOME to a folder that can"
    )


def home_directory() -> Path | None:
    """The user's home directory, which need not be there; None where nobody says which it is."""
    try:
        return Path.home()
    except RuntimeError:  # a user id that has neither $HOME nor an entry in the user database
        return None


def can_be_written(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _temporary() -> Iterator[Path]:
    """Folders that only this user can write: what lies in them is loaded as machine code."""
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(runtime).absolute()
    try:
        folder = Path(tempfile.gettempdir()) / f"softcr-{os.geteuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022:
        yield folder

"""The version of the code that a result depends on."""

import hashlib
import importlib.util
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

from softcr_models.files.config import config_directory

_ROOMS = (
    "softcr_models", "softcr_runtime", "softcr_control", "softcr_estimation", "softcr_simulation",
    "softcr_hardware", "softcr_papers",
)  # fmt: skip
_NUMBERS = ("numpy", "scipy", "numba")
"""Packages whose versions change last digits."""


@cache
def code_version(file: Path) -> str:
    """A digest of everything a study's result depends on beside its settings.

    Args:
        file: of the study. Files beside it and those of the frame of studies and of its loops
            count, other studies do not.

    Returns:
        16 hexadecimal digits: the same wherever the same code is installed.
    """
    digest = hashlib.sha256(platform.python_version().encode())
    for package in _NUMBERS:
        digest.update(version(package).encode())
    for room in _ROOMS:
        _add(digest, _folder(room), "**/*.py")
    for folder in ("frame", "loops"):
        _add(digest, _folder("softcr_studies") / folder, "*.py")
    for name in ("robots", "controllers"):
        _add(digest, config_directory() / name, "*.yaml")
    if _folder("softcr_studies") in file.parents:
        _add(digest, file.parent, "*.py")
    else:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _add(digest: "hashlib._Hash", folder: Path, pattern: str) -> None:
    for path in sorted(folder.glob(pattern)):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(path.read_bytes())


def _folder(package: str) -> Path:
    """Of a package's source; it is not imported."""
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent

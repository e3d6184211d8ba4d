"""Files that are read whole, and so must be regular and small: of `config/`, of users, of bags."""

import json
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from softcr_models.errors import UserError

LARGEST = 16 << 20
"""Of a file that is read whole [byte]."""


LARGEST_ARRAYS = 256 << 20
"""Of all arrays of a file together, unpacked [byte]."""


def content_of(path: Path, largest: int = LARGEST) -> bytes:
    """The bytes of a file.

    Args:
        path: of a regular file; a device or a pipe would never end.
        largest: size that is allowed [byte].

    Raises:
        UserError: it is no regular file, or larger.
        OSError: it cannot be read.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for its writer
    with open(number, "rb") as file:
        _require(path, os.fstat(number), largest)
        return file.read(largest + 1)[:largest]


def regular(path: Path, largest: int) -> Path:
    """The path, for readers that open a file themselves.

    Args:
        path: of a regular file; a device or a pipe would never end.
        largest: size that is allowed [byte].

    Raises:
        UserError: it is no regular file, or larger.
        OSError: there is none.
    """
    _require(path, os.stat(path), largest)
    return path


def _require(path: Path, about: os.stat_result, largest: int) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise UserError(f"{path}: is no regular file")
    if about.st_size > largest:
        raise UserError(f"{path}: has {about.st_size} bytes, allowed are {largest}")


def parsed_json(text: str | bytes) -> Any:
    """What a text in JSON says.

    Raises:
        ValueError: it is none, or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file of numpy's (.npz), without what is pickled.

    Raises:
        UserError: it is no regular file, or larger than `LARGEST_ARRAYS`.
        ValueError: it is none, holds objects, or unpacks to more than `LARGEST_ARRAYS`.
        OSError: it cannot be read.
    """
    try:
        with zipfile.ZipFile(regular(path, LARGEST_ARRAYS)) as archive:
            size = sum(each.file_size for each in archive.infolist())
        if size > LARGEST_ARRAYS:
            raise ValueError(f"it unpacks to {size} bytes, allowed are {LARGEST_ARRAYS}")
        with np.load(path, allow_pickle=False) as content:
            found = {name: content[name] for name in content.files}
    except (zipfile.BadZipFile, MemoryError) as error:  # an array may say that it has any shape
        raise ValueError(str(error) or "an array is too large") from None
    if not all(isinstance(value, np.ndarray) for value in found.values()):
        raise ValueError("it holds something that is no array")
    return found

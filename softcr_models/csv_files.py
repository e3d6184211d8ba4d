"""CSV files of samples: columns by name, numbers that are finite, or one clear line."""

import csv
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from softcr_models.errors import UserError


def read_columns(path: Path, known: Callable[[str], bool]) -> dict[str, np.ndarray]:
    """Columns (T,) by name, of a file with a line of names and a line per sample.

    Args:
        path: of the file.
        known: whether a column of this name is read; the others hold NaN.

    Raises:
        UserError: the file cannot be read, or holds what is not a number.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if any(cell.strip() for cell in line)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: cannot be read: {reason}") from None
    if len(lines) < 2:
        raise UserError(f"{path}: needs a line of column names and a line per sample")
    names = [cell.strip() for cell in lines[0]]
    if len(set(names)) < len(names):
        raise UserError(f"{path}: a column name stands twice in {', '.join(names)}")
    values = np.full((len(lines) - 1, len(names)), np.nan)
    for row, line in enumerate(lines[1:]):
        where = f"{path}, line {row + 2}"
        if len(line) != len(names):
            raise UserError(f"{where}: {len(line)} cells, must be {len(names)}")
        for column, (name, cell) in enumerate(zip(names, line, strict=True)):
            if known(name):
                values[row, column] = _number(cell, f"{where}: {name}")
    return dict(zip(names, values.T, strict=True))


def _number(cell: str, what: str) -> float:
    with suppress(ValueError):
        if math.isfinite(value := float(cell)):
            return value
    raise UserError(f"{what} = {cell.strip()!r}: must be a finite number")

"""CSV files of samples: columns by name, numbers that are finite, or one clear line.

Programs disagree on what such a file is, so the encoding, the separator and the decimal sign are
found from the file itself.
"""

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from softcr_models.errors import UserError
from softcr_models.files.number_types import number_in
from softcr_models.files.small_files import LARGEST_ARRAYS, content_of

_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_SEPARATORS = (",", ";", "\t", "|", " ")
UNITS: dict[str, dict[str, float]] = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "m": {"m": 1.0, "mm": 1e-3, "cm": 1e-2},
    "rad": {"rad": 1.0, "deg": math.pi / 180.0},
    "Pa": {"Pa": 1.0, "kPa": 1e3, "MPa": 1e6, "bar": 1e5, "mbar": 1e2, "psi": 6894.757293168},
    "N": {"N": 1.0, "mN": 1e-3},
    "N m": {"N m": 1.0, "Nm": 1.0, "N mm": 1e-3, "Nmm": 1e-3, "mN m": 1e-3, "mNm": 1e-3},
    "-": {"-": 1.0},
}
"""SI unit -> units of the same quantity, and what one of each is in SI."""
_COMMENTS = ("#", "%", "//")
_HEAD = 100  # lines among which the line of names is looked for
_MISSING = ("", "nan", "na", "n/a", "null")


class _Line(NamedTuple):
    number: int
    cells: list[str]


def read_columns(
    path: Path, unit_of: Callable[[str], str | None], *, gaps: bool = False
) -> dict[str, np.ndarray]:
    """Columns (T,) by name, of a file with a line of names and a line per sample.

    The file may be UTF-8, UTF-16, UTF-32 or Windows-1252 text. Its cells are separated by commas,
    semicolons, tabs, bars or spaces, and may be quoted; decimals have a point or a comma. The line
    of names is the one that holds most of the known ones, and may be a comment; what stands above
    it, and other comments (#, %, //), are passed over. A name may be followed by its unit, as in
    `tip_x [mm]` or `pressure_1 (kPa)`: the column is then converted to SI.

    Args:
        path: of the file.
        unit_of: the SI unit of a column of this name, a key of `UNITS`; None where no such column
            is read, which then holds NaN.
        gaps: whether a cell may be empty or "nan", which is then NaN.

    Raises:
        UserError: the file cannot be read, a cell of a known column is not a finite number, or its
            unit is another quantity's.
    """
    lines = _text(path).splitlines()
    sheet = _sheet(path, lines, *_head(path, lines, unit_of))
    read = [name for name in sheet.names if unit_of(name) is not None]
    table = dict.fromkeys(sheet.names, np.full(len(sheet.rows), np.nan))
    for name, values in sheet.numbers(read, gaps=gaps).items():
        table[name] = _scale(path, name, sheet.units[name], unit_of(name)) * values
    return table


class Sheet(NamedTuple):
    """Cells of a file.

    Attributes:
        path: of the file.
        names: of the columns, without units.
        units: by name, as the file has them; empty where it tells none.
        rows: lines of cells, as many as names.
    """

    path: Path
    names: tuple[str, ...]
    units: Mapping[str, str]
    rows: Sequence[_Line]

    def texts(self, name: str) -> list[str]:
        """The cells of a column."""
        place = self.names.index(name)
        return [line.cells[place].strip() for line in self.rows]

    def numbers(self, names: Sequence[str], *, gaps: bool) -> dict[str, np.ndarray]:
        """Columns (T,) by name, in the units of the file; with `gaps` a cell may be empty or "nan".

        Raises:
            UserError: a cell is not a finite number.
        """
        places = {name: self.names.index(name) for name in names}
        values = {name: np.full(len(self.rows), np.nan) for name in names}
        signs: dict[str, str] = {}
        for row, line in enumerate(self.rows):
            where = f"{self.path}, line {line.number}"
            for name, place in places.items():
                cell = line.cells[place].strip()
                if gaps and cell.lower() in _MISSING:
                    continue
                for sign in set(".,").intersection(cell):
                    signs.setdefault(sign, f"{where}: {name} = {cell!r}")
                values[name][row] = _number(cell, f"{where}: {name}")
        if len(signs) > 1:
            raise UserError(
                f"{signs[',']} has a decimal comma, but other cells have a decimal point"
            )
        return values


def read_sheet(path: Path) -> Sheet:
    """The cells of a file of any columns, see `read_columns`.

    The line of names is the last one above the first line of numbers that has as many cells;
    columns without such a line are called column_1, column_2 and so on.

    Raises:
        UserError: the file cannot be read, or holds no line of numbers.
    """
    lines = _text(path).splitlines()
    place, separator, width = _first_sample(path, lines)
    allowed = {width, len(_cells(lines[place], separator))}
    for head in range(place - 1, -1, -1):
        cells = _trimmed(_cells(_bare(lines[head]), separator))
        if len(cells) in allowed and not _holds_numbers(cells):
            return _sheet(path, lines, head, separator)
    return _sheet(path, lines, place - 1, separator, width)


def _first_sample(path: Path, lines: Sequence[str]) -> tuple[int, str, int]:
    """The first line of numbers, what separates its cells, and how many there are."""
    for place, line in enumerate(lines):
        cells = {each: _trimmed(_cells(line, each)) for each in _SEPARATORS}
        widths = {each: len(found) for each, found in cells.items() if _holds_numbers(found)}
        if not line.strip().startswith(_COMMENTS) and max(widths.values(), default=0) > 1:
            separator = max(widths, key=lambda each: widths[each])
            return place, separator, widths[separator]
    raise UserError(f"{path}: holds no line of numbers")


def _holds_numbers(cells: Sequence[str]) -> bool:
    """Whether the cells are those of a sample: mostly numbers, or absent."""
    there = [cell.strip() for cell in cells if cell.strip().lower() not in _MISSING]
    return 2 * sum(_is_number(each) for each in there) > len(cells)


def _is_number(cell: str) -> bool:
    with suppress(UserError):
        _number(cell, "")
        return True
    return False


def _trimmed(cells: list[str]) -> list[str]:
    """Without empty cells at the end, as spreadsheets add them."""
    while cells and not cells[-1].strip():
        cells = cells[:-1]
    return cells


def _sheet(path: Path, lines: Sequence[str], head: int, separator: str, unnamed: int = 0) -> Sheet:
    """The cells below the line of names; a file without one has so many columns."""
    cells = [f"column_{place + 1}" for place in range(unnamed)]
    if not unnamed:
        cells = _trimmed([each.strip() for each in _cells(_bare(lines[head]), separator)])
    told = [_name_and_unit(cell) for cell in cells]
    names = tuple(name for name, _ in told)
    if len(set(names)) < len(names):
        raise UserError(f"{path}: a column name stands twice in {', '.join(names)}")
    rows = list(_rows(lines, head + 1, separator))
    if not rows:
        raise UserError(f"{path}: needs a line of column names and a line per sample")
    for line in rows:
        if len(line.cells) < len(names) or any(map(str.strip, line.cells[len(names) :])):
            hint = ""
            if separator == "," and len(line.cells) > len(names):
                hint = "; decimal commas need quotes, or semicolons between the cells"
            raise UserError(
                f"{path}, line {line.number}: {len(line.cells)} cells, must be {len(names)}{hint}"
            )
    return Sheet(path, names, dict(told), rows)


def _text(path: Path) -> str:
    try:
        content = content_of(path, LARGEST_ARRAYS)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "")
    if not encoding and b"\0" in content[:200]:
        encoding = "utf-16-be" if content[:1] == b"\0" else "utf-16-le"
    for candidate in (encoding,) if encoding else ("utf-8", "cp1252"):
        with suppress(UnicodeDecodeError):
            text = content.decode(candidate)
            if "\0" not in text:
                return text
    raise UserError(f"{path}: cannot be read: it is no text")


def _name_and_unit(cell: str) -> tuple[str, str]:
    """The name of a column and the unit behind it; an empty unit where there is none."""
    for begin, end in ("[]", "()"):
        if cell.endswith(end) and begin in cell:
            name, _, unit = cell[:-1].rpartition(begin)
            return name.strip(), unit.strip() or "-"
    return cell, ""


def _scale(path: Path, name: str, told: str, unit: str | None) -> float:
    """From the unit that is told behind a column's name to that of SI."""
    allowed = UNITS[unit or "-"]
    if told and told not in allowed:
        cell = f"{name} [{told}]"
        raise UserError(f"{path}: column {cell!r}: the unit must be {' or '.join(allowed)}")
    return allowed[told] if told else 1.0


def _head(
    path: Path, lines: Sequence[str], unit_of: Callable[[str], str | None]
) -> tuple[int, str]:
    """The line of names, and what separates its cells: what yields most of the known names."""

    def names(place: int, separator: str) -> int:
        cells = _cells(_bare(lines[place]), separator)
        return sum(unit_of(_name_and_unit(each.strip())[0]) is not None for each in cells)

    places = range(min(len(lines), _HEAD))
    found = {(place, each): names(place, each) for place in places for each in _SEPARATORS}
    best = max(found, key=lambda each: found[each], default=(0, ","))
    if found.get(best):
        return best
    first = next((line.strip() for line in lines if line.strip()), "")
    if not first:
        raise UserError(f"{path}: is empty; needs a line of column names and a line per sample")
    raise UserError(
        f"{path}: no line holds a column name that is known; the first line is {first[:60]!r}"
    )


def _bare(line: str) -> str:
    """Without the marks of a comment."""
    return line.lstrip("#%/ ")


def _rows(lines: Sequence[str], begin: int, separator: str) -> Iterator[_Line]:
    """Lines of samples; trailing empty cells are left out, as spreadsheets add them."""
    for place in range(begin, len(lines)):
        line = lines[place]
        if line.strip().startswith(_COMMENTS):
            continue
        cells = _cells(line, separator)
        if any(cell.strip() for cell in cells):
            yield _Line(place + 1, cells)


def _cells(line: str, separator: str) -> list[str]:
    if separator == " ":
        return line.split()
    try:
        return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return [line]


def _number(cell: str, what: str) -> float:
    plain = cell.replace(",", ".") if cell.count(",") == 1 and "." not in cell else cell
    with suppress(ValueError):
        if math.isfinite(value := number_in(plain)):
            return value
    raise UserError(f"{what} = {cell!r}: must be a finite number")

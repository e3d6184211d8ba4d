"""What somebody recorded, as tables of columns: CSV files, arrays of numpy, bags of any topics."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_models.files.csv_files import read_sheet
from softcr_models.files.small_files import arrays_of
from softcr_runtime.bags.message_bytes import decoded, is_known
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import Signal

_NUMBERED = re.compile(r"(?P<name>[A-Za-z]+)_?(?P<trial>\d+)")
_PREFIXED = re.compile(r"(?P<trial>.+)_(?P<name>[^_]+)")
_MOST_COLUMNS = 200  # of a message: more are of a picture or a cloud


@dataclass(frozen=True, eq=False)
class Table:
    """One recording, or one trial of a file.

    Attributes:
        source: where from, for the eyes of a person.
        columns: (T,) numbers by name, in the units of the file; NaN where nothing was recorded.
        units: by name, those that the file tells.
        numbers: that stand beside the columns, such as a rate.
        own: columns at stamps of their own, of a bag; the others share their rows.
        texts: (T,) cells by name, of columns of a CSV file.
    """

    source: str
    columns: Mapping[str, np.ndarray]
    units: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    own: Mapping[str, Signal] = field(default_factory=dict)
    texts: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns, in the order of the file."""
        return (*self.columns, *self.own)


def read_tables(path: Path, trial: str = "") -> dict[str, Table]:
    """The trials of a file by name; of a file that is one recording, its stem.

    Args:
        path: of a CSV file, of arrays (.npz), or of a bag.
        trial: column of a CSV file whose cells name the trials; empty: the file is one.

    Raises:
        UserError: the file cannot be read, or lacks this column.
    """
    if path.suffix.lower() == ".npz":
        return _of_arrays(path)
    if path.suffix.lower() in (".csv", ".tsv", ".txt", ".dat"):
        return _of_sheet(path, trial)
    return {path.stem: _of_bag(path)}


def _of_sheet(path: Path, trial: str) -> dict[str, Table]:
    sheet = read_sheet(path)
    if trial and trial not in sheet.names:
        raise UserError(f"{path}: column {trial} is missing; it has {', '.join(sheet.names)}")
    numbers: dict[str, np.ndarray] = {}
    texts: dict[str, np.ndarray] = {}
    for name in sheet.names:
        try:
            numbers |= sheet.numbers([name], gaps=True)
        except UserError:
            texts[name] = np.array(sheet.texts(name))
    units = {name: unit for name, unit in sheet.units.items() if unit}
    if not trial:
        return {path.stem: Table(str(path), numbers, units, texts=texts)}
    cells = np.array(sheet.texts(trial))
    found = {}
    for name in dict.fromkeys(cells.tolist()):
        rows = cells == name
        part = {column: values[rows] for column, values in numbers.items() if column != trial}
        told = {column: values[rows] for column, values in texts.items() if column != trial}
        found[name] = Table(f"{path}: trial {name}", part, units, texts=told)
    return found


def _of_arrays(path: Path) -> dict[str, Table]:
    """Trials K of arrays K_y or y0, y1, ...; without such names the file is one trial."""
    try:
        arrays = arrays_of(path)
    except (OSError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"{path}: cannot be read as arrays (.npz): {problem}") from None
    numeric = {k: v.astype(float) for k, v in arrays.items() if v.dtype.kind in "fiub"}
    numbers = {name: float(value) for name, value in numeric.items() if value.ndim == 0}
    rows = {name: value for name, value in numeric.items() if value.ndim}
    if not rows:
        raise UserError(f"{path}: holds no array of numbers")
    trials = _trials_of(rows)
    found = {}
    for trial, parts in (trials or {path.stem: rows}).items():
        source = f"{path}: trial {trial}" if trials else str(path)
        lengths = {name: len(value) for name, value in parts.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise UserError(f"{source}: arrays of different lengths: {told}")
        columns = dict(each for name, value in parts.items() for each in _columns(name, value))
        found[trial] = Table(source, columns, numbers=numbers)
    return found


def _trials_of(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Arrays by trial, then by name; empty where their names tell no trials."""
    lengths = {len(each) for each in arrays.values()}
    if len(lengths) == 1 and all(each.ndim == 1 for each in arrays.values()):
        return {}
    for pattern in (_NUMBERED, _PREFIXED):
        told = {name: pattern.fullmatch(name) for name in arrays}
        if not all(told.values()):
            continue
        trials: dict[str, dict[str, np.ndarray]] = defaultdict(dict)
        for name, match in told.items():
            assert match is not None
            trials[match["trial"]][match["name"]] = arrays[name]
        common = set.intersection(*map(set, trials.values()))
        if common and len(trials) > 1:
            return dict(trials)
    return {}


def _columns(name: str, values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Columns NAME, NAME_1, ... or NAME_1_1, ... of an array (T, ...)."""
    for place in np.ndindex(values.shape[1:]):
        yield "_".join([name, *(str(k + 1) for k in place)]), values[(slice(None), *place)]


def _of_bag(path: Path) -> Table:
    """Columns TOPIC.FIELD; an entry of a list is FIELD.0, or FIELD.NAME where names stand beside.

    Messages have the stamp of their header, without one the time of their reception.
    """
    bag = Bag(path)
    own: dict[str, Signal] = {}
    for topic, about in bag.topics.items():
        if not is_known(about.type):
            continue
        stamps: dict[int, dict[str, float]] = {}
        for message in bag.messages(topic):
            with suppress(ValueError):
                content = decoded(message.payload, message.type)
                found = dict(_numbers("", content))
                header = getattr(content, "header", None)
                stamp = message.time
                if header is not None and header.stamp.sec:
                    stamp = header.stamp.sec * 1_000_000_000 + header.stamp.nanosec
                if len(found) <= _MOST_COLUMNS:
                    stamps.setdefault(stamp, found)
        times = np.array(sorted(stamps), np.int64)
        for name in dict.fromkeys(name for row in stamps.values() for name in row):
            values = np.array([stamps[time].get(name, np.nan) for time in times.tolist()])
            own[f"{topic}.{name}"] = Signal(times, values)
    if not own:
        held = ", ".join(f"{name} ({about.type})" for name, about in sorted(bag.topics.items()))
        raise UserError(f"bag {bag.path}: no topic of a standard type with numbers; it has {held}")
    return Table(f"bag {bag.path}", {}, own=own)


def _numbers(place: str, value: Any) -> Iterator[tuple[str, float]]:
    """All numbers of a message by the names of their fields, but for its header."""
    if isinstance(value, (bool, int, float, np.number)):
        yield place, float(value)
    elif isinstance(value, (list, tuple, np.ndarray)):
        for number, each in enumerate(value[: _MOST_COLUMNS + 1]):
            yield from _numbers(f"{place}.{number}", each)
    elif hasattr(value, "__dataclass_fields__"):
        names: Sequence[str] = [each for each in value.__dataclass_fields__ if each[:2] != "__"]
        labels = getattr(value, "name", None)
        for each in names:
            part = getattr(value, each)
            inner = f"{place}.{each}" if place else each
            if each == "header":
                continue
            if isinstance(labels, list) and each != "name" and len(part) == len(labels):
                for label, one in zip(labels, part, strict=True):
                    yield from _numbers(f"{inner}.{label}", one)
            else:
                yield from _numbers(inner, part)

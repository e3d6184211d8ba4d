"""The one form of a study's figures: rows, as a file and on the terminal."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from softcr_models.errors import UserError

TABLE_WIDTH = 130
Kind = Literal["simulation", "bench"]
"""Where a published figure was measured; two kinds never stand in one column."""
KINDS: tuple[Kind, ...] = ("simulation", "bench")
_NUMBERS = ("mean", "sd", "median", "worst")


@dataclass(frozen=True)
class Row:
    """One figure of one method.

    Attributes:
        case, method, quantity, unit: whose figure it is, and of what.
        mean, sd: ours over the seeds.
        seeds: how many.
        median, worst: over the seeds; the worst is the largest, where the bounds are lower ones the
            least. None: there is one seed, or the table is from before they were kept.
        published: kind -> published figure in `unit`.
        must, goal: bounds; None: nothing was asked for.
        at_least: whether the bounds are lower ones.
        of_worst: whether the worst seed must keep them; otherwise the mean.
        timing: whether the figure measures the machine, so that it differs from run to run.
        note: what one must know to understand the figure, or why there is none.
    """

    case: str
    method: str
    quantity: str
    mean: float
    sd: float
    unit: str
    seeds: int
    published: Mapping[Kind, float] = field(default_factory=dict)
    must: float | None = None
    goal: float | None = None
    at_least: bool = False
    timing: bool = False
    note: str = ""
    median: float | None = None
    worst: float | None = None
    of_worst: bool = False

    @classmethod
    def of(
        cls, case: str, method: str, quantity: str, values: Sequence[float] | np.ndarray, unit: str,
        **more: Any,
    ) -> "Row":  # fmt: skip
        """The row of one value per seed; `more` are other attributes."""
        mean, sd = float(np.mean(values)), float(np.std(values))
        if len(values) > 1:
            worst = np.min if more.get("at_least") else np.max
            more = {"median": float(np.median(values)), "worst": float(worst(values))} | more
        return cls(case, method, quantity, mean, sd, unit, len(values), **more)

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells a row of a table from the others."""
        return self.case, self.method, self.quantity

    @property
    def paper(self) -> float | None:
        """The published figure to compare with: of a simulation if there is one."""
        return next((self.published[kind] for kind in KINDS if kind in self.published), None)

    @property
    def mark(self) -> str:
        """ "goal", "pass", "MISS", or nothing where nothing was asked for.

        NaN is a miss, and so is what is worse than a published figure, whatever the bounds are.
        """
        if self.must is None:
            return ""
        sign = -1.0 if self.at_least else 1.0
        if self.paper is not None and sign * self.mean > sign * self.paper:
            return "MISS"
        asked = self.mean if self.worst is None or not self.of_worst else self.worst
        if sign * asked <= sign * (self.must if self.goal is None else self.goal):
            return "goal"
        return "pass" if sign * asked <= sign * self.must else "MISS"

    def as_dict(self) -> dict[str, Any]:
        """For JSON, which knows no NaN; `paper` is the published figure of whatever kind."""
        numbers = {name: _finite(getattr(self, name)) for name in _NUMBERS}
        return {**asdict(self), **numbers, "paper": self.paper, "mark": self.mark}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Row":
        """See `as_dict`.

        Raises:
            KeyError, TypeError: something is missing.
        """
        numbers = {name: math.nan if told[name] is None else told[name] for name in ("mean", "sd")}
        names = {each.name for each in fields(cls)}
        return cls(**{name: told[name] for name in told if name in names} | numbers)

    def cells(self, kinds: Sequence[Kind], spread: bool) -> list[str]:
        """As `heads` names them; a figure that could not be computed is left out."""
        known = not math.isnan(self.mean)
        sign = "≥" if self.at_least else "≤"
        return [
            self.case, self.method, self.quantity,
            *(figure(self.published.get(kind)) for kind in kinds),
            figure(self.mean) if known else "",
            figure(self.sd) if known and self.seeds > 1 else "",
            *((figure(self.median), figure(self.worst)) if spread else ()), self.unit,
            str(self.seeds),
            "" if self.must is None else f"{sign} {self.must:g}" + ", worst" * self.of_worst,
            self.mark,
        ]  # fmt: skip


def write_table(path: Path, about: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Writes what the table's reader has to know (settings, machine), then the rows.

    Raises:
        OSError: it cannot be written.
    """
    whole = json.dumps({**about, "rows": []}, indent=1, allow_nan=False)
    lines = (json.dumps(row.as_dict(), allow_nan=False) for row in rows)  # one each: tables ship
    text = whole.removesuffix("]\n}") + "\n  " + ",\n  ".join(lines) + "\n ]\n}\n"
    path.write_text(text, encoding="utf-8")


def read_table(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """What `write_table` wrote.

    Raises:
        FileNotFoundError: there is none.
        UserError: it is not a study's table.
    """
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        rows = [Row.from_dict(row) for row in about.pop("rows")]
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: is not a study's table: {error}") from None
    return about, rows


def published_kinds(rows: Sequence[Row]) -> list[Kind]:
    """Those that have a column: no two kinds ever share one."""
    return [kind for kind in KINDS if any(kind in row.published for row in rows)]


def has_spread(rows: Sequence[Row]) -> bool:
    """Whether median and worst have columns."""
    return any(row.median is not None for row in rows)


def heads(kinds: Sequence[Kind], spread: bool, ours: str = "simulation") -> dict[str, bool]:
    """Column -> whether it holds numbers; ours are of a simulation or of a recording."""
    columns = ("case", "method", "quantity", *(f"published, {kind}" for kind in kinds),
               f"ours, {ours}", "sd", *(("median", "worst") if spread else ()),
               "unit", "seeds", "must", "")  # fmt: skip
    numbers = "published", "ours", "sd", "median", "worst", "seeds"
    return {name: name.startswith(numbers) for name in columns}


def print_table(console: Console, title: str, rows: Sequence[Row]) -> None:
    """All rows, a section for each case and method, then their notes."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    columns = published_kinds(rows), has_spread(rows)
    for column, number in heads(*columns).items():
        words = column in ("case", "method", "quantity")
        heading = column.replace("published, ", "published,\n").replace("ours, simulation", "ours")
        table.add_column(heading, justify="right" if number else "left", no_wrap=not words)
    for _, section in itertools.groupby(rows, lambda row: (row.case, row.method)):
        table.add_section()
        first, *others = (row.cells(*columns) for row in section)
        table.add_row(*first)
        for cells in others:
            table.add_row("", "", *cells[2:])
    console.print(table)
    for note, noted in row_notes(rows).items():
        console.print(f"{'; '.join(noted)}: {note}", markup=False, highlight=False)


def row_notes(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Each note once, with the rows it belongs to."""
    found: dict[str, list[str]] = {}
    for row in rows:
        name = f"{row.case}, {row.method}"
        if row.note and name not in found.setdefault(row.note, []):
            found[row.note].append(name)
    return found


def figure(value: float | None) -> str:
    """Three digits; nothing for None."""
    return "" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None

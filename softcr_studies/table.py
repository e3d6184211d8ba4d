"""The one form of a study's figures: rows, as a file and on the terminal."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Row:
    """One figure of one method.

    Attributes:
        case, method, quantity, unit: whose figure it is, and of what.
        mean, sd: ours over the seeds.
        seeds: how many.
        published: kind -> published figure in `unit`.
        must, goal: bounds; None: nothing was asked for.
        at_least: whether the bounds are lower ones.
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

    @classmethod
    def of(
        cls, case: str, method: str, quantity: str, values: Sequence[float] | np.ndarray, unit: str,
        **more: Any,
    ) -> "Row":  # fmt: skip
        """Mean and deviation of one value per seed; `more` are other attributes."""
        mean, sd = float(np.mean(values)), float(np.std(values))
        return cls(case, method, quantity, mean, sd, unit, len(values), **more)

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells a row of a table from the others."""
        return self.case, self.method, self.quantity

    @property
    def mark(self) -> str:
        """ "goal", "pass", "MISS", or nothing where nothing was asked for; NaN is a miss."""
        if self.must is None:
            return ""
        sign = -1.0 if self.at_least else 1.0
        if sign * self.mean <= sign * (self.must if self.goal is None else self.goal):
            return "goal"
        return "pass" if sign * self.mean <= sign * self.must else "MISS"

    def as_dict(self) -> dict[str, Any]:
        """For JSON, which knows no NaN; `paper` is the published figure of whatever kind."""
        paper = next((self.published[kind] for kind in KINDS if kind in self.published), None)
        return {
            "case": self.case, "method": self.method, "quantity": self.quantity,
            "paper": paper, "published": dict(self.published),
            "mean": _finite(self.mean), "sd": _finite(self.sd), "unit": self.unit,
            "seeds": self.seeds, "must": self.must, "goal": self.goal, "at_least": self.at_least,
            "timing": self.timing, "mark": self.mark, "note": self.note,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Row":
        """See `as_dict`.

        Raises:
            KeyError, TypeError: something is missing.
        """
        numbers: dict[str, Any] = {
            name: math.nan if told[name] is None else told[name] for name in ("mean", "sd")
        }
        names = ("case", "method", "quantity", "unit", "seeds", "published", "must", "goal",
                 "at_least", "timing")  # fmt: skip
        note = told.get("note", "")
        return cls(**numbers, **{name: told[name] for name in names}, note=note)


def write_table(path: Path, about: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Writes what the table's reader has to know (settings, machine), then the rows.

    Raises:
        OSError: it cannot be written.
    """
    content = {**about, "rows": [row.as_dict() for row in rows]}
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")


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


def print_table(console: Console, title: str, rows: Sequence[Row]) -> None:
    """All rows, a section for each case and method, then their notes."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("case", "method", "quantity"):
        table.add_column(column)
    kinds = [kind for kind in KINDS if any(kind in row.published for row in rows)]
    for column in (*(f"published,\n{kind}" for kind in kinds), "ours", "sd"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("seeds", justify="right")
    table.add_column("must", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for owner, section in itertools.groupby(rows, lambda row: (row.case, row.method)):
        table.add_section()
        for number, row in enumerate(section):
            table.add_row(
                *(owner if number == 0 else ("", "")),
                row.quantity,
                *(figure(row.published.get(kind)) for kind in kinds),
                "" if math.isnan(row.mean) else figure(row.mean),
                "" if math.isnan(row.mean) else figure(row.sd),
                row.unit,
                str(row.seeds),
                bound(row),
                row.mark,
            )
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


def bound(row: Row) -> str:
    """What must be kept, in words of a cell."""
    return "" if row.must is None else f"{'≥' if row.at_least else '≤'} {row.must:g}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

"""The one form of an experiment's results: rows beside the published figure, file and terminal."""

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

TABLE_WIDTH = 118


@dataclass(frozen=True)
class Row:
    """One figure of one method.

    Attributes:
        case: of the experiment.
        method: controller or filter.
        quantity: what was measured.
        paper: the published figure in `unit`; None: none was published.
        mean, sd: ours over everything the row stands for.
        unit: of the figures.
        seeds: how many seeds.
        limit: what must be kept, at most; None: nothing was asked for.
        goal: what is hoped for, at most.
    """

    case: str
    method: str
    quantity: str
    paper: float | None
    mean: float
    sd: float
    unit: str
    seeds: int
    limit: float | None = None
    goal: float | None = None

    @property
    def mark(self) -> str:
        """ "goal", "pass", "MISS", or nothing where nothing was asked for."""
        if self.limit is None:
            return ""
        if self.mean <= (self.limit if self.goal is None else self.goal):
            return "goal"
        return "pass" if self.mean <= self.limit else "MISS"


def write_table(directory: Path, about: dict[str, Any], rows: Sequence[Row]) -> Path:
    """Writes `table.json` with `about` (settings, machine) and the rows; returns its path.

    Raises:
        OSError: it cannot be written.
    """
    path = directory / "table.json"
    content = {**about, "rows": [{**_finite(asdict(row)), "mark": row.mark} for row in rows]}
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return path


def print_table(console: Console, title: str, rows: Sequence[Row]) -> None:
    """All rows, a section for each case and method."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("case", "method", "quantity"):
        table.add_column(column)
    for column in ("paper", "mean", "sd"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("seeds", justify="right")
    table.add_column("must", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for (case, method), section in itertools.groupby(rows, lambda row: (row.case, row.method)):
        table.add_section()
        for number, row in enumerate(section):
            table.add_row(
                *((case, method) if number == 0 else ("", "")),
                row.quantity,
                _text(row.paper),
                _text(row.mean),
                _text(row.sd),
                row.unit,
                str(row.seeds),
                "" if row.limit is None else f"≤ {row.limit:g}",
                row.mark,
            )
    console.print(table)


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no NaN: what is not finite becomes null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }

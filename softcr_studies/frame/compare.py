"""Two runs of a study side by side."""

import math
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from softcr_models.errors import UserError
from softcr_studies.frame.table import Row, figure, read_table

SPREADS = 2.0
"""Two means differ when they are further apart than so many of their deviations together."""


Pair = tuple[Row | None, Row | None]
"""A figure before and after; None: the run has no such row."""


def compare(before: Sequence[Row], after: Sequence[Row]) -> list[Pair]:
    """Rows of the same case, method and quantity, in the order of the newer run."""
    old, new = ({row.key: row for row in rows} for rows in (before, after))
    return [(old.get(key), new.get(key)) for key in dict.fromkeys((*new, *old))]


def words(before: Row | None, after: Row | None) -> str:
    """ "same", "within spread", "differs", "only before", "only after", or "now MISS"."""
    if before is None or after is None:
        return "only after" if before is None else "only before"
    if after.mark == "MISS" and before.mark != "MISS":
        return "now MISS"
    if before.mean == after.mean or (math.isnan(before.mean) and math.isnan(after.mean)):
        return "same"
    spread = math.hypot(before.sd, after.sd)
    return "within spread" if abs(after.mean - before.mean) <= SPREADS * spread else "differs"


def table_of(run: str, results: Path) -> Path:
    """The table that a word means: a run's directory, a table, or the newest of a study by name.

    Raises:
        UserError: there is none.
    """
    places = [Path(run), Path(run) / "table.json", results / "studies" / run / "latest/table.json"]
    for place in places:
        if place.is_file():
            return place
    raise UserError(f"run {run!r}: no table there; looked at {', '.join(map(str, places))}")


def print_comparison(console: Console, runs: tuple[Path, Path]) -> int:
    """Shows two runs; returns how many rows miss what they kept before.

    Raises:
        UserError: one of them cannot be read.
    """
    (_, before), (_, after) = map(read_table, runs)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("case", "method", "quantity", "before", "sd", "after", "sd", "unit", ""):
        table.add_column(column)
    found = compare(before, after)
    for pair in found:
        row = pair[1] or pair[0]
        assert row is not None
        sides = [figure(number) for each in pair
                 for number in ((each.mean, each.sd) if each else (None, None))]  # fmt: skip
        table.add_row(*row.key, *sides, row.unit, words(*pair) + row.timing * " (timing)")
    console.print(table)
    return sum(words(*pair) == "now MISS" for pair in found)

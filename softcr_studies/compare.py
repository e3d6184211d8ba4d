"""Two runs of a study side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from softcr_models.errors import UserError
from softcr_studies.table import Row, figure, read_table

SPREADS = 2.0
"""Two means differ when they are further apart than so many of their deviations together."""


@dataclass(frozen=True)
class Difference:
    """A figure of two runs; None: the run has no such row."""

    before: Row | None
    after: Row | None

    @property
    def row(self) -> Row:
        """Whichever there is, the newer one first."""
        row = self.after or self.before
        assert row is not None
        return row

    @property
    def words(self) -> str:
        """ "same", "within spread", "differs", "only before", "only after", or "now MISS"."""
        if self.before is None or self.after is None:
            return "only after" if self.before is None else "only before"
        if self.after.mark == "MISS" and self.before.mark != "MISS":
            return "now MISS"
        before, after = self.before.mean, self.after.mean
        if before == after or (math.isnan(before) and math.isnan(after)):
            return "same"
        spread = math.hypot(self.before.sd, self.after.sd)
        return "within spread" if abs(after - before) <= SPREADS * spread else "differs"


def compare(before: Sequence[Row], after: Sequence[Row]) -> list[Difference]:
    """Rows of the same case, method and quantity, in the order of the newer run."""
    old, new = ({row.key: row for row in rows} for rows in (before, after))
    return [Difference(old.get(key), new.get(key)) for key in dict.fromkeys((*new, *old))]


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
    for each in found:
        sides = (*_mean_and_sd(each.before), *_mean_and_sd(each.after))
        words = each.words + (" (timing)" if each.row.timing else "")
        table.add_row(*each.row.key, *sides, each.row.unit, words)
    console.print(table)
    return sum(each.words == "now MISS" for each in found)


def _mean_and_sd(row: Row | None) -> tuple[str, str]:
    return ("", "") if row is None else (figure(row.mean), figure(row.sd))

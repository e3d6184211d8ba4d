"""Rows as a person reads them."""

import itertools
import math
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from softcr_runtime.console import say
from softcr_tools.benchmarks.row import Requirement, Row

TABLE_WIDTH = 130
STYLES = {"goal": "bold green", "pass": "green", "MISS": "bold red", "skipped": "yellow"}


def one_line(row: Row) -> str:
    """What is said as soon as a row is measured."""
    if row.timing is None:
        return f"{row.name}: skipped: {row.skipped}"
    faster = "" if row.ratio is None else f", {figure(row.ratio)} x"
    mark = f" ({row.mark})" if row.mark else ""
    return f"{row.name}: {figure(row.timing.median)} {row.unit}{faster}{mark}"


def print_table(console: Console, rows: Sequence[Row]) -> None:
    """All rows, in sections of one unit, then their notes; TABLE_WIDTH columns show it well."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title="softcr bench",
        caption="ratio: how many times faster than the rival",
    )
    table.add_column("row")
    for column in ("median", "p99", "min"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("tip error", justify="right")
    table.add_column("rival")
    table.add_column("ratio", justify="right", no_wrap=True)
    for column in ("must", "goal", ""):
        table.add_column(column, no_wrap=True)
    for unit, section in itertools.groupby(rows, lambda row: row.unit):
        table.add_section()
        table.add_row(Text(unit, style="italic"))
        for row in section:
            table.add_row(*_cells(row))
    console.print(table)
    for note, names in _notes(rows).items():
        say(console, f"{'; '.join(names)}: {note}")


def figure(value: float) -> str:
    """Three digits, no exponent."""
    if not math.isfinite(value) or value == 0.0:
        return str(value)
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(0, digits)}f}"


def _cells(row: Row) -> list[str | Text]:
    times = [""] * 3
    if row.timing is not None:
        times = [figure(t) for t in (row.timing.median, row.timing.p99, row.timing.minimum)]
    rival = "" if row.rival is None else f"{row.rival.name} {figure(row.rival.median)}"
    return [
        row.name,
        *times,
        "" if row.tip_error is None else f"{figure(1e3 * row.tip_error)} mm",
        rival,
        "" if row.ratio is None else figure(row.ratio),
        "\n".join(_limit(requirement) for requirement in row.requirements),
        "\n".join(f"{r.goal:g}" for r in row.requirements if r.goal is not None),
        Text(row.mark, style=STYLES.get(row.mark, "")),
    ]


def _limit(requirement: Requirement) -> str:
    return f"{'≥' if requirement.at_least else '≤'} {requirement.limit:g} {requirement.unit}"


def _notes(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Each note once, with the names of its rows."""
    notes: dict[str, list[str]] = {}
    for row in rows:
        text = row.skipped or row.note
        if text:
            notes.setdefault(text, []).append(row.name)
    return notes

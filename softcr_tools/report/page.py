"""What terminal and report.html show of a run; how numbers are written."""

from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

MISSING = "-"
SAFETY_SHOWN = 5
"""Transitions on the terminal; report.html has all."""
LOOP_COLUMNS = (
    "node", "Hz", "p50 ms", "p99 ms", "max ms", "cycles", "missed", "rejected",
)  # fmt: skip
PLANT_WORDS = {
    "exact": "exact in the simulated plant",
    "differs": "differs from the models",
    "unknown": "not told",
}


@dataclass(frozen=True)
class KeyFigure:
    """One number a reader looks for first, and what to know beside it."""

    name: str
    value: str
    note: str


@dataclass(frozen=True)
class ReportPage:
    """What terminal and report.html both show of a run.

    Attributes:
        headline: what ran, in a few words.
        settings: those that matter for comparing runs, in a line.
        deaths: who ended before it was asked to.
        figures: the numbers a reader looks for first.
        loops: rows of `LOOP_COLUMNS`.
        problems: what is missing or not as it should be.
        safety: every transition, with its time.
        plant: lines about the simulated plant under each of `PLANT_WORDS`.
    """

    headline: str
    settings: str
    deaths: list[str]
    figures: list[KeyFigure]
    loops: list[tuple[str, ...]]
    problems: list[str]
    safety: list[str] = field(default_factory=list)
    plant: dict[str, list[str]] = field(default_factory=dict)


def loop_row(node: str, loop: dict[str, Any]) -> tuple[str, ...]:
    """A row of `LOOP_COLUMNS`."""
    missed, cycles = loop["missed_cycles"], loop["cycles"]
    share = f" ({100 * missed / cycles:.1f} %)" if missed and cycles else ""
    return (
        node,
        in_unit(loop["rate_hz"], digits=1),
        *(in_unit(loop[name]) for name in ("p50_ms", "p99_ms", "max_ms")),
        in_unit(cycles, digits=0),
        in_unit(missed, digits=0) + share,
        in_unit(loop["rejected_messages"], digits=0),
    )


def terminal_table(page: ReportPage) -> RenderableType:
    """A page on one screen, for a rich console."""
    figures = Table.grid(padding=(0, 2))
    for figure in page.figures:
        figures.add_row(Text(figure.name), Text(figure.value, style="bold"), Text(figure.note))
    loops = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for name in LOOP_COLUMNS:
        loops.add_column(Text(name), justify="left" if name == "node" else "right")
    for row in page.loops:
        loops.add_row(*map(Text, row))
    return Group(
        Text(page.headline, style="bold"),
        Text(page.settings, style="dim"),
        *(Text(line, style="dim") for line in plant_lines(page)[::-1]),
        *(Text(line, style="bold red") for line in page.deaths),
        "",
        figures,
        "",
        loops,
        *(Text(f"safety at {line}", style="dim") for line in page.safety[-SAFETY_SHOWN:]),
        *(Text(line, style="yellow") for line in page.problems),
    )


def plant_lines(page: ReportPage) -> list[str]:
    """What is exact in the plant, what differs and what is not told, a line for each."""
    told = ((words, page.plant.get(name, ())) for name, words in PLANT_WORDS.items())
    return [f"{words}: {'; '.join(lines)}" for words, lines in told if lines]


def in_unit(value: float | None, unit: str = "", digits: int = 2) -> str:
    """A number with its unit; a dash for none."""
    unit = "" if unit in ("1", "-") else unit
    return MISSING if value is None else f"{value:.{digits}f} {unit}".rstrip()


def listed(numbers: list[float]) -> str:
    """Numbers in a row; a dash for none."""
    return ", ".join(f"{each:.1f}" for each in numbers) or MISSING

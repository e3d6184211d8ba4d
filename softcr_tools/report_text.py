"""A run's summary in words and tables: what the terminal and report.html both show."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from softcr_tools.report_summary import LoopSummary, Summary, SystemSummary

MISSING = "-"
SAFETY_SHOWN = 5
"""Transitions on the terminal; report.html has all."""
LOOP_COLUMNS = (
    "node", "Hz", "p50 ms", "p99 ms", "max ms", "cycles", "missed", "rejected",
)  # fmt: skip


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
    """

    headline: str
    settings: str
    deaths: list[str]
    figures: list[KeyFigure]
    loops: list[tuple[str, ...]]
    problems: list[str]
    safety: list[str] = field(default_factory=list)


def page_of(summary: "Summary") -> ReportPage:
    """The page of a rod's run."""
    return ReportPage(
        headline=headline(summary),
        settings=_settings_line(summary),
        deaths=death_lines(summary),
        figures=_key_figures(summary),
        loops=_loop_rows(summary),
        problems=summary.problems,
        safety=[f"{row['time_s']:.2f} s: {row['what']}" for row in summary.safety],
    )


def headline(summary: "SystemSummary") -> str:
    """What ran, in a few words."""
    parts = [summary.robot or "unknown robot"]
    if summary.reference:
        parts.append(f"reference {summary.reference}")
    if summary.mode:
        parts.append(f"mode {summary.mode}")
    if summary.duration_s is not None:
        parts.append(f"{summary.duration_s:.1f} s")
    return ", ".join(parts)


def _settings_line(summary: "Summary") -> str:
    """The settings that matter for comparing runs."""
    parts = []
    if summary.population is not None:
        parts.append(f"population {summary.population}, horizon {summary.horizon}")
    if summary.seed is not None:
        parts.append(f"seed {summary.seed}")
    if summary.plant_mismatch:
        differences = ", ".join(f"{k} {v:g}" for k, v in summary.plant_mismatch.items() if v)
        parts.append(f"plant against model: {differences or 'none'}")
    return " · ".join(parts)


def death_lines(summary: "SystemSummary") -> list[str]:
    """Who ended before it was asked to."""
    lines = []
    for death in summary.node_deaths:
        signal = death.get("signal")
        how = f"signal {signal}" if signal is not None else f"exit code {death.get('exit_code')}"
        lines.append(f"node {death.get('node')} died ({how})")
    return lines


def _key_figures(summary: "Summary") -> list[KeyFigure]:
    """The numbers a reader looks for first."""
    return [
        KeyFigure(
            "tip to reference (AED)",
            in_unit(summary.tip_aed_mm, "mm"),
            f"{in_unit(summary.tip_aed_percent_of_length, '%')} of the length; settled "
            f"{in_unit(summary.tip_aed_settled_mm, 'mm')}, largest "
            f"{in_unit(summary.tip_error_max_mm, 'mm')}",
        ),
        KeyFigure(
            "estimated to true tip",
            in_unit(summary.estimate_tip_aed_mm, "mm"),
            "mean distance at equal stamps",
        ),
        _softness(summary),
        KeyFigure(
            "commanded pressures",
            f"{in_unit(summary.pressure.commanded_min_kpa, digits=1)} to "
            f"{in_unit(summary.pressure.commanded_max_kpa, 'kPa', digits=1)}",
            f"at a limit {in_unit(summary.pressure.at_limit_percent, '%', digits=1)} of the time",
        ),
    ]


def _softness(summary: "Summary") -> KeyFigure:
    arc, compliance = summary.constant_curvature, summary.bending_compliance
    if arc is not None:
        return KeyFigure(
            "constant curvature",
            f"{in_unit(arc.nrmse_mean_percent, '%', digits=1)} NRMSE",
            "mean of coordinates and rates; bending stiffness "
            f"{in_unit(arc.bending_stiffness, 'N/m', digits=0)}",
        )
    return KeyFigure(
        "bending compliance",
        in_unit(compliance.estimated, "rad/(N m m)"),
        f"true {in_unit(compliance.true)}, first guess {in_unit(compliance.initial)}; error "
        f"{in_unit(compliance.error_percent, '%')}, at worst "
        f"{in_unit(compliance.worst_error_percent, '%')} from 5 s on",
    )


def _loop_rows(summary: "Summary") -> list[tuple[str, ...]]:
    """One row of `LOOP_COLUMNS` for every node with a loop."""
    evolutionary = summary.controller == "nempc_controller"
    loops = {
        "simulator": summary.simulator,
        **({"estimator": summary.estimator} if summary.constant_curvature is None else {}),
        **({"nempc_controller": summary.nempc_controller} if evolutionary else {}),
        **summary.other_nodes,
    }
    return [loop_row(node, loop) for node, loop in loops.items()]


def loop_row(node: str, loop: "LoopSummary") -> tuple[str, ...]:
    """A row of `LOOP_COLUMNS`."""
    missed = _count(loop.missed_cycles)
    if loop.missed_cycles and loop.cycles:
        missed = f"{missed} ({100 * loop.missed_cycles / loop.cycles:.1f} %)"
    return (
        node,
        in_unit(loop.rate_hz, digits=1),
        in_unit(loop.p50_ms),
        in_unit(loop.p99_ms),
        in_unit(loop.max_ms),
        _count(loop.cycles),
        missed,
        _count(loop.rejected_messages),
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
        *(Text(line, style="bold red") for line in page.deaths),
        "",
        figures,
        "",
        loops,
        *(Text(f"safety at {line}", style="dim") for line in page.safety[-SAFETY_SHOWN:]),
        *(Text(line, style="yellow") for line in page.problems),
    )


def in_unit(value: float | None, unit: str = "", digits: int = 2) -> str:
    """A number with its unit; a dash for none."""
    return MISSING if value is None else f"{value:.{digits}f} {unit}".rstrip()


def _count(value: int | None) -> str:
    return MISSING if value is None else str(value)

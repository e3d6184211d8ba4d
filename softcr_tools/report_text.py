"""A run's summary in words and tables: what the terminal and report.html both show."""

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from softcr_tools.report_summary import LoopSummary, Summary

MISSING = "-"
LOOP_COLUMNS = (
    "node", "Hz", "p50 ms", "p99 ms", "max ms", "cycles", "missed", "rejected",
)  # fmt: skip


@dataclass(frozen=True)
class KeyFigure:
    """One number a reader looks for first, and what to know beside it."""

    name: str
    value: str
    note: str


def headline(summary: Summary) -> str:
    """What ran, in a few words."""
    parts = [summary.robot or "unknown robot"]
    if summary.reference:
        parts.append(f"reference {summary.reference}")
    if summary.mode:
        parts.append(f"mode {summary.mode}")
    if summary.duration_s is not None:
        parts.append(f"{summary.duration_s:.1f} s")
    return ", ".join(parts)


def settings_line(summary: Summary) -> str:
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


def death_lines(summary: Summary) -> list[str]:
    """Who ended before it was asked to."""
    lines = []
    for death in summary.node_deaths:
        signal = death.get("signal")
        how = f"signal {signal}" if signal is not None else f"exit code {death.get('exit_code')}"
        lines.append(f"node {death.get('node')} died ({how})")
    return lines


def key_figures(summary: Summary) -> list[KeyFigure]:
    """The numbers a reader looks for first."""
    compliance = summary.bending_compliance
    return [
        KeyFigure(
            "tip to reference (AED)",
            _unit(summary.tip_aed_mm, "mm"),
            f"{_unit(summary.tip_aed_percent_of_length, '%')} of the length; settled "
            f"{_unit(summary.tip_aed_settled_mm, 'mm')}, largest "
            f"{_unit(summary.tip_error_max_mm, 'mm')}",
        ),
        KeyFigure(
            "estimated to true tip",
            _unit(summary.estimate_tip_aed_mm, "mm"),
            "mean distance at equal stamps",
        ),
        KeyFigure(
            "bending compliance",
            _unit(compliance.estimated, "rad/(N m m)"),
            f"true {_unit(compliance.true)}, first guess {_unit(compliance.initial)}; error "
            f"{_unit(compliance.error_percent, '%')}, at worst "
            f"{_unit(compliance.worst_error_percent, '%')} from 5 s on",
        ),
        KeyFigure(
            "commanded pressures",
            f"{_unit(summary.pressure.commanded_min_kpa, digits=1)} to "
            f"{_unit(summary.pressure.commanded_max_kpa, 'kPa', digits=1)}",
            f"at a limit {_unit(summary.pressure.at_limit_percent, '%', digits=1)} of the time",
        ),
    ]


def loop_rows(summary: Summary) -> list[tuple[str, ...]]:
    """One row of `LOOP_COLUMNS` for every node with a loop."""
    evolutionary = summary.controller == "nempc_controller"
    loops = {
        "simulator": summary.simulator,
        "estimator": summary.estimator,
        **({"nempc_controller": summary.nempc_controller} if evolutionary else {}),
        **summary.other_nodes,
    }
    return [_loop_row(node, loop) for node, loop in loops.items()]


def _loop_row(node: str, loop: LoopSummary) -> tuple[str, ...]:
    missed = _count(loop.missed_cycles)
    if loop.missed_cycles and loop.cycles:
        missed = f"{missed} ({100 * loop.missed_cycles / loop.cycles:.1f} %)"
    return (
        node,
        _unit(loop.rate_hz, digits=1),
        _unit(loop.p50_ms),
        _unit(loop.p99_ms),
        _unit(loop.max_ms),
        _count(loop.cycles),
        missed,
        _count(loop.rejected_messages),
    )


def terminal_table(summary: Summary) -> RenderableType:
    """The summary on one screen, for a rich console."""
    figures = Table.grid(padding=(0, 2))
    for figure in key_figures(summary):
        figures.add_row(Text(figure.name), Text(figure.value, style="bold"), Text(figure.note))
    loops = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for name in LOOP_COLUMNS:
        loops.add_column(Text(name), justify="left" if name == "node" else "right")
    for row in loop_rows(summary):
        loops.add_row(*map(Text, row))
    return Group(
        Text(headline(summary), style="bold"),
        Text(settings_line(summary), style="dim"),
        *(Text(line, style="bold red") for line in death_lines(summary)),
        "",
        figures,
        "",
        loops,
        *(Text(line, style="yellow") for line in summary.problems),
    )


def _unit(value: float | None, unit: str = "", digits: int = 2) -> str:
    return MISSING if value is None else f"{value:.{digits}f} {unit}".rstrip()


def _count(value: int | None) -> str:
    return MISSING if value is None else str(value)

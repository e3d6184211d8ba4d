"""A run's summary: every section that applies, and what is not as it should be."""

from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from softcr_tools.report.page import KeyFigure, ReportPage, loop_row, terminal_table
from softcr_tools.report.plant import plant
from softcr_tools.report.run import Run
from softcr_tools.report.sections import SECTIONS

ALARMS_SHOWN = 3
"""How many different warnings, and how many reasons of rejection, are listed of a node."""

SILENCE = 2.5
"""A node unheard for so long at the end of a run, at one status a second, had stopped [s]."""

_ESTIMATES = ("estimate/rod", "estimate/constant_curvature", "estimate/state")
_ROD: tuple[tuple[str, ...], ...] = (
    ("pressure/state",), ("pressure/command",), ("simulation/truth/tip/pose",),
    ("simulation/truth/rod",), ("mocap/tip/pose",), ("estimate/tip/pose",), _ESTIMATES,
    ("reference/rod", "reference/output"), ("force_torque/wrench",),
)  # fmt: skip
_ARM: tuple[tuple[str, ...], ...] = (
    ("mocap/arm/poses",), ("reference/tip", "reference/output"), ("tendon/command",),
    ("tendon/state",), ("estimate/arm", "estimate/state"), ("simulation/truth/arm",),
    ("simulation/truth/tip/pose",),
)  # fmt: skip
"""Of each group the bag of a run holds one topic; without, the first is said to be missing."""


@dataclass(frozen=True)
class Summary:
    """One run in numbers and in words.

    Attributes:
        numbers: content of `summary.json`; see the sections for the keys. `plant` says what of the
            simulated plant is exact, what differs from the models, and what is not told;
            `node_deaths`, `ended_by` and `problems` (a line each) tell how the run went.
        page: what the terminal and report.html show.
    """

    numbers: dict[str, Any]
    page: ReportPage

    def __getitem__(self, key: str) -> Any:
        return self.numbers[key]

    def table(self) -> RenderableType:
        """The summary on one screen, to be printed on a rich console."""
        return terminal_table(self.page)


def summarize(run: Run) -> Summary:
    """Compute the numbers of a run."""
    numbers: dict[str, Any] = {}
    cards: list[KeyFigure] = []
    notes: list[str] = []
    for section in SECTIONS:
        found = section(run)
        numbers |= found.numbers
        cards += found.cards
        notes += found.notes
    failed = [run.system["error"]] if run.system.get("error") else []
    problems = [
        *failed, *run.bag.problems, *_missing(run), *notes, *_silences(run), *_alarms(run)
    ]  # fmt: skip
    numbers |= {
        "plant": plant(run),
        "node_deaths": list(run.system.get("deaths", ())),
        "ended_by": run.system.get("ended_by"),
        "problems": problems,
    }
    return Summary(numbers, _page(numbers, cards, run))


def _page(numbers: dict[str, Any], cards: list[KeyFigure], run: Run) -> ReportPage:
    shown = {node: numbers["loops"][node] for node in sorted(numbers["loops"], key=_rank(run))}
    return ReportPage(
        headline=_headline(numbers),
        settings=_settings(numbers),
        deaths=[_death(death) for death in numbers["node_deaths"]],
        figures=cards,
        loops=[loop_row(node, loop) for node, loop in shown.items()],
        problems=numbers["problems"],
        safety=[f"{row['time_s']:.2f} s: {row['what']}" for row in numbers.get("safety", ())],
        plant={name: numbers["plant"][name] for name in ("exact", "differs", "unknown")},
    )


def _rank(run: Run) -> Any:
    """Plant, estimator and controller first, the others as they were heard."""
    first = ("simulator", "estimator", run.controller)
    return lambda node: first.index(node) if node in first else len(first)


def _headline(numbers: dict[str, Any]) -> str:
    parts = [numbers["robot"] or "unknown robot"]
    parts += [f"{name} {numbers[name]}" for name in ("reference", "mode") if numbers[name]]
    if numbers["duration_s"] is not None:
        parts.append(f"{numbers['duration_s']:.1f} s")
    return ", ".join(parts)


def _settings(numbers: dict[str, Any]) -> str:
    """The settings that matter for comparing runs."""
    parts = []
    if numbers["population"] is not None:
        parts.append(f"population {numbers['population']}, horizon {numbers['horizon']}")
    if numbers.get("payload_kg") is not None:
        parts.append(f"payload {numbers['payload_kg']:g} kg")
    if numbers["seed"] is not None:
        parts.append(f"seed {numbers['seed']}")
    return " · ".join(parts)


def _death(death: dict[str, Any]) -> str:
    signal = death.get("signal")
    how = f"signal {signal}" if signal is not None else f"exit code {death.get('exit_code')}"
    return f"node {death.get('node')} died ({how})"


def _missing(run: Run) -> list[str]:
    recorded = {topic for topic, _ in run.bag.signals}
    groups = _ARM if run.is_tendon_driven else _ROD
    missing = [group[0] for group in groups if not recorded & {*group}]
    missing += ["/diagnostics"] * (not run.bag.nodes)
    return [f"nothing was recorded on {', '.join(missing)}"] if missing else []


def _silences(run: Run) -> list[str]:
    """Which nodes fell silent before the end."""
    end = run.bag.last_heard
    ages = {node: 1e-9 * (end - status.last_heard) for node, status in run.bag.nodes.items()}
    return [
        f"{node} fell silent {age:.1f} s before the end of the recording"
        for node, age in ages.items()
        if age > SILENCE
    ]


def _alarms(run: Run) -> list[str]:
    """Why nodes rejected messages and answers, their warnings and errors; a few of each node."""
    lines: list[str] = []
    for node, status in run.bag.nodes.items():
        told = [
            f"{word}{reason}, {count} times"
            for name, word in (("rejections", "rejected "), ("refusals", ""))
            for reason, count in (status.values.get(name) or {}).items()
        ]
        alarms = sorted(status.alarms.values(), key=lambda alarm: -alarm[1])
        warned = [
            f"{line} (the last of {count})" if differed else f"{line}, {count} times"
            for line, count, differed in alarms
        ]
        shown = told[:ALARMS_SHOWN] + warned[:ALARMS_SHOWN]
        lines += [f"{node}: {line}" for line in shown]
        if (more := len(told) + len(warned) - len(shown)) > 0:
            lines.append(f"{node}: and {more} more")
    return lines

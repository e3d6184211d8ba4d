"""A run's summary: every section that applies, and what is not as it should be."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from softcr_tools.report.page import KeyFigure, ReportFigure, html_page, terminal_table
from softcr_tools.report.plant import plant
from softcr_tools.report.run import Run
from softcr_tools.report.sections import sections

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
        cards: the numbers a reader looks for first.
    """

    numbers: dict[str, Any]
    cards: Sequence[KeyFigure]

    def __getitem__(self, key: str) -> Any:
        return self.numbers[key]

    def table(self) -> RenderableType:
        """The summary on one screen, to be printed on a rich console."""
        return terminal_table(self.numbers, self.cards)

    def html(self, figures: Sequence[ReportFigure]) -> str:
        """The summary and its figures as one HTML document; OSError: a figure is not readable."""
        return html_page(self.numbers, self.cards, figures)


def summarize(run: Run) -> Summary:
    """Compute the numbers of a run."""
    parts = sections(run)
    problems = [run.system["error"]] if run.system.get("error") else []
    problems += [
        *run.bag.problems,
        *_missing(run),
        *(note for part in parts for note in part.notes),
    ]
    problems += [*_silences(run), *_alarms(run)]
    numbers = {key: value for part in parts for key, value in part.numbers.items()} | {
        "plant": plant(run),
        "node_deaths": list(run.system.get("deaths", ())),
        "ended_by": run.system.get("ended_by"),
        "problems": problems,
    }
    return Summary(numbers, [card for part in parts for card in part.cards])


def _missing(run: Run) -> list[str]:
    recorded = {topic for topic, _ in run.bag.signals}
    groups = _ARM if run.is_tendon_driven else _ROD
    missing = [group[0] for group in groups if not recorded & {*group}]
    missing += ["/diagnostics"] * (not run.bag.nodes)
    return [f"nothing was recorded on {', '.join(missing)}"] if missing else []


def _silences(run: Run) -> Iterator[str]:
    """Which nodes fell silent before the end."""
    for node, status in run.bag.nodes.items():
        age = 1e-9 * (run.bag.last_heard - status.last_heard)
        if age > SILENCE:
            yield f"{node} fell silent {age:.1f} s before the end of the recording"


def _alarms(run: Run) -> Iterator[str]:
    """Why nodes rejected messages and answers, their warnings and errors; a few of each node."""
    for node, status in run.bag.nodes.items():
        told = [
            f"{word}{reason}, {count} times"
            for name, word in (("rejections", "rejected "), ("refusals", ""))
            for reason, count in (status.values.get(name) or {}).items()
        ]
        warned = [
            f"{line} (the last of {count})" if differed else f"{line}, {count} times"
            for line, count, differed in sorted(status.alarms.values(), key=lambda each: -each[1])
        ]
        shown = told[:ALARMS_SHOWN] + warned[:ALARMS_SHOWN]
        yield from (f"{node}: {line}" for line in shown)
        if (more := len(told) + len(warned) - len(shown)) > 0:
            yield f"{node}: and {more} more"

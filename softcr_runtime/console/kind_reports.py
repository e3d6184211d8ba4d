"""What a kind of robots, or a package, adds to the report of a run: numbers, key figures, curves.

A kind names the class by its place, see `softcr_models.robots.kinds.Kind.report`, a package by an
entry point, see `softcr_tools.report.run.ENTRY_POINTS`. It is told the run, a
`softcr_tools.report.run.Run`, and tells what to draw as data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from softcr_runtime.bags.signals import Signal

SHORTEST_DWELL = 2.0  # a reference that stands still for less is a motion [s]
DWELL_END = 1.0  # a setpoint's error is the mean over so long at its end [s]


@dataclass(frozen=True)
class Curve:
    """A column of a signal over time, or the signal itself.

    Attributes:
        name: in the legend.
        signal: (T,) or (T, k).
        look: keyword arguments of matplotlib's plot.
        column: of the signal; None where it has one.
    """

    name: str
    signal: Signal
    look: Mapping[str, Any]
    column: int | None = None


@dataclass(frozen=True)
class CurveRow:
    """Curves that share an axis over time.

    Attributes:
        label: of the axis, with the unit that is shown.
        curves: drawn in this order.
        scale: from the signals' units to the one shown [-].
        level: a line to compare with, its name and its height in SI; None for none.
    """

    label: str
    curves: Sequence[Curve]
    scale: float = 1.0
    level: tuple[str, float] | None = None


@dataclass(frozen=True)
class Curves:
    """A figure: its title, its caption, and a row for each axis, `height` [inch] high."""

    title: str
    caption: str
    rows: Sequence[CurveRow] = field(default_factory=tuple)
    height: float = 1.5


class KindReport(Protocol):
    """See above; a class without arguments.

    Attributes:
        key_figures: by a number that must be there: name, value and note, with numbers to be filled
            in as `{number:DIGITS UNIT}`.
    """

    key_figures: Mapping[str, tuple[str, str, str]]

    def numbers(self, run: Any) -> dict[str, Any]:
        """Numbers for the summary, by names that tell their units; None is not known."""
        ...

    def figures(self, run: Any) -> Mapping[str, Curves]:
        """Figures by the name of their file; one without a sample in its rows is left out."""
        ...

    def problems(self, run: Any) -> Sequence[str]:
        """What is not as it should be, a line each."""
        ...


def reduced(reduce: Callable[[np.ndarray], Any], values: np.ndarray) -> float | None:
    """One number of many; None of none, or when one is not finite."""
    number = float(reduce(values)) if values.size else np.nan
    return number if np.isfinite(number) else None

"""The rows of `softcr experiment apcc-robot1 | apcc-robot2`, beside the thesis's figures."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from softcr_tools.experiments.apcc.published import PUBLISHED, Published, change_label
from softcr_tools.experiments.apcc.robot_run import RobotTrace
from softcr_tools.experiments.apcc.robots import AT_NAMED, FIXED, Study
from softcr_tools.experiments.apcc.sensors_table import sensor_rows
from softcr_tools.experiments.results import Row

Pairs = Sequence[tuple[RobotTrace, RobotTrace]]
"""A controller's runs, each with the fixed rival's in the same setting."""

_BOUNDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": np.mean, "least": np.min, "largest": np.max,
}  # fmt: skip
_UNKNOWN = Published(None, None, None)
_REDUCED = Published(None, None, -87.5)  # R11, of its two bounds


def rows_of(study: Study, traces: Mapping[str, Sequence[RobotTrace]], seeds: int) -> list[Row]:
    """All rows of a study.

    Means and bounds are over the runs' means over time. Runs that a controller or its fixed rival
    lost are counted, then left out for both.
    """
    rows = []
    for name, found in traces.items():
        method = _Method(study, name, seeds)
        lost = float(sum(trace.lost for trace in found))
        bounded = 100.0 * float(np.mean([trace.bounded for trace in found]))
        rows += [method.row("runs lost", lost, ""), method.row("ticks at a bound", bounded, "%")]
        pairs = list(zip(found, traces[FIXED][: len(found)], strict=True))
        kept = [pair for pair in pairs if not (pair[0].lost or pair[1].lost)]
        if kept:
            rows += method.bounds("E_shape", _shape, kept, study.shape)
            rows += method.bounds("E_shape by arc", _curve, kept, study.shape)
            rows += method.bounds("Psi", _cost, kept, study.cost)
            rows += method.single(pairs[0])
            rows += method.others(kept)
    return rows


class _Method:
    """The rows of one controller."""

    def __init__(self, study: Study, name: str, seeds: int) -> None:
        self._study, self._name, self._seeds = study, name, seeds

    def row(
        self, quantity: str, value: float, unit: str, paper: float | None = None, sd: float = 0.0
    ) -> Row:
        return Row(self._study.case, self._name, quantity, paper, value, sd, unit, self._seeds)

    def bounds(
        self,
        quantity: str,
        measure: Callable[[RobotTrace], float],
        pairs: Pairs,
        numbers: Sequence[str],
    ) -> list[Row]:
        """Mean, least and largest of a measure [mm], each with its change against the rival.

        The mean of Psi is printed in cm^2, but lies between its bounds in mm only as so many mm; it
        stands beside both, see `others`.
        """
        own, other = (
            np.array([measure(trace) for trace in each]) for each in zip(*pairs, strict=True)
        )
        rows = []
        for bound, number in zip(_BOUNDS, numbers, strict=True):
            value, rival = float(_BOUNDS[bound](own)), float(_BOUNDS[bound](other))
            label = f"{quantity} {bound} ({number.partition(' ')[0]})"
            spread = float(own.std()) if bound == "mean" else 0.0
            rows += [
                self.row(label, value, "mm", self._printed(number), spread),
                *self._change(value, rival, self._published(number)),
            ]
        return rows

    def single(self, pair: tuple[RobotTrace, RobotTrace]) -> list[Row]:
        """E_shape and the sensors' errors of the named run; R11 is the tip's at the end."""
        number = self._study.single
        if number is None or pair[0].lost or pair[1].lost:
            return []
        value, rival = (_shape(trace) for trace in pair)
        tips = [1e2 * float(trace.linear[-1, -1]) for trace in pair]
        numbers = {} if self._name in AT_NAMED else {"distance": "R9", "angle": "R10"}

        def named(quantity: str, value: float, unit: str) -> Row:
            start = "" if quantity.startswith("...") else "named run: "
            return self.row(start + quantity, value, unit)

        return [
            self.row(f"named run: E_shape ({number})", value, "mm", self._printed(number)),
            *self._change(value, rival, self._published(number)),
            *sensor_rows(named, pair[0], None if self._name == FIXED else pair[1], numbers),
            self.row("named run: tip's distance, end (R11)", tips[0], "cm", self._printed("R11")),
            *self._change(tips[0], tips[1], _REDUCED),
        ]

    def others(self, pairs: Pairs) -> list[Row]:
        """Psi^2 as the thesis prints it, the sensors' errors, and where the tip ends."""
        own = [trace for trace, _ in pairs]

        def mean(measure: Callable[[RobotTrace], float]) -> float:
            return float(np.mean([measure(trace) for trace in own]))

        square = 1e4 * mean(lambda trace: float(np.mean(trace.costs**2)))
        return [
            self.row("Psi² mean", square, "cm²", self._printed(self._study.cost[0])),
            self.row("sensors' distance", 1e2 * mean(lambda trace: trace.linear.mean()), "cm"),
            self.row("sensors' angle", 1e2 * mean(lambda trace: trace.angular.mean()), "crad"),
            self.row("tip error at the end", 1e3 * mean(lambda trace: trace.errors[-1]), "mm"),
        ]

    def _published(self, number: str) -> Published:
        """The thesis has no figures for a setpoint alone."""
        return _UNKNOWN if self._name in AT_NAMED else PUBLISHED[number]

    def _printed(self, number: str) -> float | None:
        published = self._published(number)
        return published.fixed if self._name == FIXED else published.adaptive

    def _change(self, value: float, rival: float, published: Published) -> list[Row]:
        if self._name == FIXED:
            return []
        change = 100.0 * (value / rival - 1.0)
        label = change_label(change, published.change)
        return [self.row(label, change, "%", published.change)]


def _shape(trace: RobotTrace) -> float:
    """Mean E_shape of a run [mm]."""
    return 1e3 * float(trace.shapes.mean())


def _curve(trace: RobotTrace) -> float:
    """Mean E_shape by arc length of a run [mm]."""
    return 1e3 * float(trace.curves.mean())


def _cost(trace: RobotTrace) -> float:
    """Mean Psi of a run [mm]."""
    return 1e3 * float(trace.costs.mean())

"""What the report of a run tells of planar strain robots alone: their strains."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from softcr_papers.valadas2024.strain.arm import StrainArm
from softcr_papers.valadas2024.strain.kinematics import kinds_first
from softcr_runtime.bags.signals import Signal, unit_of
from softcr_runtime.console.figure_style import DASHES, ESTIMATE, TRUTH
from softcr_runtime.console.kind_reports import (
    DWELL_END,
    SHORTEST_DWELL,
    Curve,
    CurveRow,
    Curves,
    reduced,
)


class StrainReport:
    """See `softcr_runtime.console.kind_reports.KindReport`."""

    key_figures: Mapping[str, tuple[str, str, str]] = {
        "bending_error": (
            "bending to reference", "{bending_error:3 rad/m}",
            "mean over time and segments; in the last second of setpoints "
            "{bending_setpoint_error:4 rad/m}, estimated to true {bending_estimate_error:3 rad/m}",
        ),
        "linear_error": (
            "shear and axial strain to reference", "{linear_error:4}",
            "likewise; in the last second of setpoints {linear_setpoint_error:5}, estimated to "
            "true {linear_estimate_error:5}",
        ),
    }  # fmt: skip

    def numbers(self, run: Any) -> dict[str, Any]:
        """`strains`: of bending [rad/m] and of shear and axial strain together [-]: the mean error
        over the evaluated window, `setpoint_error` in the last second of each stretch in which the
        reference stands still, `estimate_error` of the estimated from the true strains; of every
        strain by its name under `setpoint_errors`. Without a simulator's truth errors are of the
        estimate.
        """
        true, found, wanted = (_strains(run, of) for of in ("true", "estimated", "wanted"))
        error = (true if len(true) else found).minus(wanted)
        error = replace(error, values=np.abs(error.values)).between(*(run.judged or (1, 0)))
        late = _at_end_of_dwells(error, wanted)
        noise = np.abs(found.minus(true).values)
        bends = np.array([name.startswith("bending") for name in true.columns], bool)
        told: dict[str, Any] = {}
        for word, chosen in (("bending", bends), ("linear", ~bends)):
            for what, values in (
                ("error", error.values), ("setpoint_error", late), ("estimate_error", noise),
            ):  # fmt: skip
                told[f"{word}_{what}"] = reduced(np.mean, values[:, chosen])
        settled = late.mean(axis=0).tolist() if len(late) else [None] * len(bends)
        errors = dict(zip(true.columns, settled, strict=True))
        return {"strains": told | {"setpoint_errors": errors}}

    def figures(self, run: Any) -> Mapping[str, Curves]:
        """Strains of each segment."""
        true, found, wanted = (_strains(run, of) for of in ("true", "estimated", "wanted"))
        drawn: tuple[tuple[str, Signal, Mapping[str, Any]], ...] = (
            ("estimated", found, {"color": ESTIMATE}),
            ("true", true, {"color": TRUTH, "linewidth": 1.8}),
            ("reference", wanted, DASHES),
        )
        rows = [
            CurveRow(
                f"{name.replace('_', ' ')}\n[{unit_of(name)}]",
                [Curve(word, signal, look, column) for word, signal, look in drawn],
            )
            for column, name in enumerate(true.columns)
        ]
        caption = "strains of each segment of a planar robot, relative to the straight robot."
        return {"strains": Curves("Strains", caption, rows)}

    def problems(self, run: Any) -> Sequence[str]:
        return ()


def _strains(run: Any, of: Literal["true", "estimated", "wanted"]) -> Signal:
    """(T, m) strains by the names of the robot's actuators; empty where none were told."""
    robot = run.robot
    names = robot.actuator_names if isinstance(robot, StrainArm) else ()
    told = run.state(of)
    if not names or not len(told):
        return Signal(np.empty(0, np.int64), np.empty((0, len(names))), columns=names)
    # a state has one kind of strain after the other
    values = np.empty((len(told), len(names)))
    values[:, kinds_first(robot.numbers.active)] = told.values[:, : len(names)]
    return Signal(told.stamps, values, columns=names)


def _at_end_of_dwells(error: Signal, wanted: Signal) -> np.ndarray:
    """(K, m) errors in the last second of each stretch in which what is wanted stands still."""
    jumps = np.flatnonzero(np.abs(np.diff(wanted.values, axis=0)).any(axis=1)) + 1
    found = [error.values[:0]]
    for begin, end in pairwise([0, *jumps.tolist(), len(wanted)] if len(wanted) else []):
        first, last = int(wanted.stamps[begin]), int(wanted.stamps[end - 1])
        if last - first >= 1e9 * SHORTEST_DWELL:
            found.append(error.between(last - round(1e9 * DWELL_END), last).values)
    return np.concatenate(found)

"""What the report of a run tells of the arc of constant curvature that is estimated of a rod."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcr_papers.constant_curvature.kinematics import coordinates_of_tip
from softcr_runtime.bags.signals import Signal
from softcr_runtime.console.figure_style import ESTIMATE, TRUTH
from softcr_runtime.console.kind_reports import Curve, CurveRow, Curves

ARC = (
    "delta_x", "delta_y", "elongation",
    "delta_x_rate", "delta_y_rate", "elongation_rate", "bending_stiffness",
)  # fmt: skip
"""What estimate/constant_curvature tells, each with its standard deviation."""

BEGIN = 0.1  # at the start an estimated arc does not count, Mehl et al., Sec. III-B [s]
_BLUE, _BOLD = {"color": ESTIMATE}, {"color": TRUTH, "linewidth": 1.8}


class ArcReport:
    """See `softcr_runtime.console.kind_reports.KindReport`; nothing without an estimated arc."""

    key_figures: Mapping[str, tuple[str, str, str]] = {
        "nrmse_mean_percent": (
            "constant curvature", "{nrmse_mean_percent:1 %} NRMSE",
            "mean of coordinates and rates; bending stiffness {bending_stiffness:0 N/m}",
        ),
    }  # fmt: skip

    def numbers(self, run: Any) -> dict[str, Any]:
        """`constant_curvature`: what a filter with one constant-curvature arc saw of a rod.

        `nrmse_percent` is scored as in Mehl et al., Table II: root mean square error over the
        largest true magnitude; None without a simulator's truth. `bending_stiffness` [N/m] is the
        last estimate, which takes up what constant curvature leaves out.
        """
        arc, scores = _estimated(run), None
        if not len(arc):
            return {}
        if len(truth := _true(run)):
            counted = int(truth.stamps[0]) + round(1e9 * BEGIN), int(truth.stamps[-1])
            errors, values = (each.between(*counted).values for each in (arc.minus(truth), truth))
            if len(errors):
                with np.errstate(divide="ignore", invalid="ignore"):
                    nrmse = 100.0 * np.sqrt(np.mean(errors**2, axis=0)) / np.abs(values).max(axis=0)
                if np.isfinite(nrmse[:-1]).all():
                    scores = dict(zip(ARC[:-1], nrmse[:-1].tolist(), strict=True))
        numbers = {
            "nrmse_percent": scores,
            "nrmse_mean_percent": None if scores is None else float(np.mean([*scores.values()])),
            "bending_stiffness": float(arc.values[-1, -1]),
            "bending_stiffness_std": float(_estimated(run, "_std").values[-1, -1]),
        }
        return {"constant_curvature": numbers}

    def figures(self, run: Any) -> Mapping[str, Curves]:
        arc = _estimated(run)
        if not len(arc):
            return {}
        truth, names = _true(run), ("$\\Delta_x$", "$\\Delta_y$", "$\\delta L$")
        rows = [
            CurveRow(
                f"{name} [mm]",
                [Curve("true arc", truth, _BOLD, column), Curve("estimate", arc, _BLUE, column)],
                1e3,
            )
            for column, name in enumerate(names)
        ]
        rows.append(CurveRow("stiffness\n[N/m]", [Curve("estimate", arc, _BLUE, len(ARC) - 1)]))
        caption = (
            "the arc that is estimated from the sensor under the base, and the one from the rod's "
            "true base to its true tip. The stiffness absorbs what constant curvature leaves out."
        )
        return {"constant_curvature": Curves("Constant curvature", caption, rows)}

    def problems(self, run: Any) -> Sequence[str]:
        return ()


def _estimated(run: Any, ending: str = "") -> Signal:
    """(T, 7) fields of `ARC`, or with `_std` their deviations; empty without an estimate."""
    found = [run.bag.signal("estimate/constant_curvature", name + ending) for name in ARC]
    if not all(map(len, found)):
        return found[0].between(1, 0)
    return found[0].like(found[0].stamps, np.stack([each.values for each in found], axis=1))


def _true(run: Any) -> Signal:
    """(T, 7) coordinates [m] of the arc from the rod's true base to its true tip, their rates [m/s]
    by differences, NaN for the stiffness, which has no truth; empty without a truth."""
    robot, backbone = run.bag.robot, run.bag.signal("simulation/truth/rod", "positions")
    if len(backbone) < 3 or not {"length", "outer_diameter"} <= robot.keys():
        return Signal(np.empty(0, np.int64), np.empty((0, len(ARC))))
    # point 0 is the mounting side of the base, point 1 where the rod begins
    tips = backbone.values[:, -1] - backbone.values[:, 1]
    coordinates = coordinates_of_tip(tips, robot["length"], 0.5 * robot["outer_diameter"])
    rates = np.gradient(coordinates, 1e-9 * (backbone.stamps - backbone.stamps[0]), axis=0)
    unknown = np.full((len(tips), 1), np.nan)
    return Signal(backbone.stamps, np.hstack([coordinates, rates, unknown]))

"""The constant-curvature estimator beside the truth, as Mehl et al. score it (Table II)."""

from typing import Any

import numpy as np

from softcr_models.constant_curvature.kinematics import coordinates_of_tip
from softcr_runtime.bags.signals import Signal
from softcr_tools.report.run import Run

ARC = (
    "delta_x", "delta_y", "elongation",
    "delta_x_rate", "delta_y_rate", "elongation_rate", "bending_stiffness",
)  # fmt: skip
"""What estimate/constant_curvature tells, each with its standard deviation."""

LEFT_OUT = 0.1
"""Seconds at the start that do not count, Mehl et al., Sec. III-B."""


def estimated_arc(run: Run, ending: str = "") -> Signal:
    """(T, 7) the fields of `ARC`, or with `_std` their deviations; empty without an estimate."""
    found = [run.bag.signal("estimate/constant_curvature", name + ending) for name in ARC]
    if not all(map(len, found)):
        return found[0].between(1, 0)
    return found[0].like(found[0].stamps, np.stack([each.values for each in found], axis=1))


def summarize_arc(run: Run) -> dict[str, Any] | None:
    """What a filter with one constant-curvature arc saw of a rod; None where it saw nothing.

    `nrmse_percent`: root mean square error over the largest true magnitude of Delta_x, Delta_y, dL
    and their rates; None without a simulator's truth. `bending_stiffness` [N/m] is the last
    estimate, which takes up what constant curvature leaves out; `std` its deviation.
    """
    arc, truth = estimated_arc(run), true_arc(run)
    if not len(arc):
        return None
    scores = None
    if truth is not None and len(errors := arc.minus(truth).between(*_counted(truth))):
        largest = np.abs(truth.between(*_counted(truth)).values).max(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            nrmse = 100.0 * np.sqrt(np.mean(errors.values**2, axis=0)) / largest
        if np.isfinite(nrmse[:-1]).all():
            scores = dict(zip(ARC[:-1], nrmse[:-1].tolist(), strict=True))
    return {
        "nrmse_percent": scores,
        "nrmse_mean_percent": None if scores is None else float(np.mean([*scores.values()])),
        "bending_stiffness": float(arc.values[-1, -1]),
        "bending_stiffness_std": float(estimated_arc(run, "_std").values[-1, -1]),
    }


def true_arc(run: Run) -> Signal | None:
    """(T, 7) coordinates [m] of the arc from the rod's true base to its true tip, their rates
    [m/s] by differences, NaN for the stiffness, which has no truth; None without a truth.
    """
    robot, backbone = run.bag.robot, run.bag.signal("simulation/truth/rod", "positions")
    if len(backbone) < 3 or not {"length", "outer_diameter"} <= robot.keys():
        return None
    # point 0 is the mounting side of the base, point 1 where the rod begins
    tips = backbone.values[:, -1] - backbone.values[:, 1]
    coordinates = coordinates_of_tip(tips, robot["length"], 0.5 * robot["outer_diameter"])
    rates = np.gradient(coordinates, 1e-9 * (backbone.stamps - backbone.stamps[0]), axis=0)
    unknown = np.full((len(tips), 1), np.nan)
    return Signal(backbone.stamps, np.hstack([coordinates, rates, unknown]))


def _counted(truth: Signal) -> tuple[int, int]:
    return int(truth.stamps[0]) + round(1e9 * LEFT_OUT), int(truth.stamps[-1])

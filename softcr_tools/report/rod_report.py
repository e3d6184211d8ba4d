"""What the report tells of rods alone: the bending compliance, the sensor below the base, the one
arc of constant curvature that an estimator may see, and loops under names that scripts know."""

from collections.abc import Mapping, Sequence

import numpy as np

from softcr_runtime.console.kind_reports import Curves, reduced
from softcr_tools.report.run import ARC, Run
from softcr_tools.report.sections import Numbers, loop

COMPLIANCE_SETTLING_TIME = 5.0  # after its first estimate a compliance must be right [s]
ARC_BEGIN = 0.1  # at the start an estimated arc does not count, Mehl et al., Sec. III-B [s]
_LOOPS = ("simulator", "estimator", "nempc_controller")


class RodReport:
    """See `softcr_runtime.console.kind_reports.KindReport`."""

    key_figures: Mapping[str, tuple[str, str, str]] = {
        "nrmse_mean_percent": (
            "constant curvature", "{nrmse_mean_percent:1 %} NRMSE",
            "mean of coordinates and rates; bending stiffness {bending_stiffness:0 N/m}",
        ),
        "estimated": (
            "bending compliance", "{estimated:2 rad/(N m m)}",
            "true {true:2}; first guess {initial:2}; error {error_percent:2 %}; "
            "from 5 s on at most {worst_error_percent:2 %}",
        ),
    }  # fmt: skip

    def numbers(self, run: Run) -> Numbers:
        """`bending_compliance` [rad/(N m m)] with the first guess and errors, of which
        `worst_error_percent` is the largest from 5 s on; `constant_curvature`, `wrench`; and loops
        by node."""
        loops = {node: loop(run, node) for node in _LOOPS}
        others = {node: loop(run, node) for node in run.bag.nodes if node not in loops}
        return {
            "bending_compliance": _compliance(run), **constant_curvature(run), **base_sensor(run),
            **loops, "other_nodes": others,
        }  # fmt: skip

    def figures(self, run: Run) -> Mapping[str, Curves]:
        return {}

    def problems(self, run: Run) -> Sequence[str]:
        return ()


def _compliance(run: Run) -> dict[str, float | None]:
    estimate = run.bag.signal("estimate/rod", "parameter.bending_compliance")
    initial = (run.bag.said("estimator", "initial_parameters") or {}).get("bending_compliance")
    true, values = run.bag.true_parameter("bending_compliance"), estimate.values
    told = dict.fromkeys(("estimated", "std", "error_percent", "worst_error_percent"))
    if len(estimate):
        initial = float(values[0]) if initial is None else initial
        std = run.bag.signal("estimate/rod", "std.bending_compliance")
        told |= {"estimated": float(values[-1]), "std": float(std.values[-1])}
        if true:
            errors = 100 * np.abs(values - true) / true
            late = estimate.stamps >= estimate.stamps[0] + round(1e9 * COMPLIANCE_SETTLING_TIME)
            told["error_percent"] = float(errors[-1])
            told["worst_error_percent"] = reduced(np.max, errors[late])
    return {"true": true, "initial": initial, **told}


def constant_curvature(run: Run) -> Numbers:
    """`constant_curvature`: what a filter with one constant-curvature arc saw of a rod, if any.

    `nrmse_percent` is scored as in Mehl et al., Table II: root mean square error over the largest
    true magnitude; None without a simulator's truth. `bending_stiffness` [N/m] is the last
    estimate, which takes up what constant curvature leaves out.
    """
    arc, scores = run.estimated_arc(), None
    if not len(arc):
        return {"constant_curvature": None}
    if len(truth := run.true_arc()):
        counted = int(truth.stamps[0]) + round(1e9 * ARC_BEGIN), int(truth.stamps[-1])
        errors, values = arc.minus(truth).between(*counted).values, truth.between(*counted).values
        if len(errors):
            with np.errstate(divide="ignore", invalid="ignore"):
                nrmse = 100.0 * np.sqrt(np.mean(errors**2, axis=0)) / np.abs(values).max(axis=0)
            if np.isfinite(nrmse[:-1]).all():
                scores = dict(zip(ARC[:-1], nrmse[:-1].tolist(), strict=True))
    numbers = {
        "nrmse_percent": scores,
        "nrmse_mean_percent": None if scores is None else float(np.mean([*scores.values()])),
        "bending_stiffness": float(arc.values[-1, -1]),
        "bending_stiffness_std": float(run.estimated_arc("_std").values[-1, -1]),
    }
    return {"constant_curvature": numbers}


def base_sensor(run: Run) -> Numbers:
    """`wrench`: magnitudes at the force-torque sensor [N], [N m]."""
    wrench = run.bag.signal("force_torque/wrench", "wrench").values
    forces, moments = (np.linalg.norm(part, axis=1) for part in (wrench[:, :3], wrench[:, 3:]))
    numbers = {
        "force_mean_n": reduced(np.mean, forces), "force_max_n": reduced(np.max, forces),
        "moment_mean_nm": reduced(np.mean, moments), "moment_max_nm": reduced(np.max, moments),
    }  # fmt: skip
    return {"wrench": numbers}

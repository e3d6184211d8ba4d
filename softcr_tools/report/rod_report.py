"""What the report tells of rods alone: the bending compliance, the sensor below the base, and loops
under names that scripts know."""

from collections.abc import Mapping, Sequence

import numpy as np

from softcr_runtime.console.kind_reports import Curves, reduced
from softcr_tools.report.run import Run
from softcr_tools.report.sections import Numbers, loop

COMPLIANCE_SETTLING_TIME = 5.0  # after its first estimate a compliance must be right [s]
_LOOPS = ("simulator", "estimator", "nempc_controller")


class RodReport:
    """See `softcr_runtime.console.kind_reports.KindReport`."""

    key_figures: Mapping[str, tuple[str, str, str]] = {
        "estimated": (
            "bending compliance", "{estimated:2 rad/(N m m)}",
            "true {true:2}; first guess {initial:2}; error {error_percent:2 %}; "
            "from 5 s on at most {worst_error_percent:2 %}",
        ),
    }  # fmt: skip

    def numbers(self, run: Run) -> Numbers:
        """`bending_compliance` [rad/(N m m)] with the first guess and errors, of which
        `worst_error_percent` is the largest from 5 s on; `wrench`; and loops
        by node."""
        loops = {node: loop(run, node) for node in _LOOPS}
        others = {node: loop(run, node) for node in run.bag.nodes if node not in loops}
        return {
            "bending_compliance": _compliance(run), **base_sensor(run),
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


def base_sensor(run: Run) -> Numbers:
    """`wrench`: magnitudes at the force-torque sensor [N], [N m]."""
    wrench = run.bag.signal("force_torque/wrench", "wrench").values
    forces, moments = (np.linalg.norm(part, axis=1) for part in (wrench[:, :3], wrench[:, 3:]))
    numbers = {
        "force_mean_n": reduced(np.mean, forces), "force_max_n": reduced(np.max, forces),
        "moment_mean_nm": reduced(np.mean, moments), "moment_max_nm": reduced(np.max, moments),
    }  # fmt: skip
    return {"wrench": numbers}

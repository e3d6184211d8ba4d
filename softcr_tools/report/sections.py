"""The sections of a run's summary: each computes the numbers of what the bag holds.

A section is a function of the run; it returns numbers under the keys of `summary.json`, the cards
that a reader looks at first, and notes. Distances are in mm, times in s or ms, as the keys say;
None is what could not be computed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from softcr_runtime.bags.signals import Signal
from softcr_tools.report.arc import summarize_arc
from softcr_tools.report.page import KeyFigure, in_unit, listed
from softcr_tools.report.run import REFERENCES, Run

SETTLING_TIME = 2.0
"""From here on an error counts as settled; after the start of the evaluated window [s]."""

COMPLIANCE_SETTLING_TIME = 5.0
"""From here on the estimated bending compliance must be right; after the first estimate [s]."""

STANDING = 1e-6
"""A reference that moves less than this stands still [m]."""

SHORTEST_DWELL, DWELL_END = 2.0, 1.0
"""A reference that stands still for less is a motion; a setpoint's error is the mean of its end."""

_LOOP = (
    "rate_hz", "p50_ms", "p99_ms", "max_ms", "missed_cycles", "cycles", "deadline_ms",
    "rejected_messages",
)  # fmt: skip


@dataclass(frozen=True)
class Section:
    """A part of the summary: numbers by key, cards, lines of what is not as it should be."""

    numbers: dict[str, Any]
    cards: list[KeyFigure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def identity(run: Run) -> Section:
    """What ran: robot, reference, mode, seed, duration, the controller and its settings."""
    bag = run.bag
    payload = {"payload_kg": number(bag.said("simulator", "payload"))}
    return Section(
        {
            "robot": bag.robot.get("name"),
            "reference": run.said(REFERENCES, "reference"),
            "mode": run.said(("simulator", "estimator", run.controller), "mode"),
            "seed": number(bag.said("simulator", "seed")),
            "duration_s": _duration(run.tip),
            "controller": run.controller,
            "population": number(bag.said(run.controller, "population")),
            "horizon": number(bag.said(run.controller, "horizon")),
            "plant_mismatch": bag.said("simulator", "plant_mismatch"),
            **(payload if run.is_tendon_driven else {}),
        }
    )


def tracking(run: Run) -> Section:
    """Distance of the tip from its reference at equal stamps.

    AED (`tip_aed_mm`) is the mean Euclidean distance of the true tip (on a bench: of the seen one,
    interpolated between the cameras' frames) from the reference over the evaluated window: from the
    first to the last stamp that had a reference and a controller's answer. `settled` begins 2 s
    later. `setpoint_error` is the settled error when the reference never moves;
    `setpoint_errors_mm` are means over the last second of each stretch of 2 s or more in which it
    stands still.
    """
    error = run.tracking_error()
    settled = 1e3 * run.tracking_error(after=SETTLING_TIME).values
    tips, length = run.reference_tip.values, run.bag.robot.get("length")
    stands = len(tips) > 0 and float(np.ptp(tips, axis=0).max()) < STANDING
    standing = settled if stands else np.empty(0)
    mean, dwells = reduced(np.mean, 1e3 * error.values), _dwells(run.reference_tip, error)
    part = None if mean is None or not length else mean / (10 * length)
    numbers: dict[str, Any] = {
        "tip_aed_mm": mean,
        "tip_aed_percent_of_length": part,
        "tip_aed_settled_mm": reduced(np.mean, settled),
        "tip_error_max_mm": reduced(np.max, 1e3 * error.values),
        "setpoint_error_mm": reduced(np.mean, standing),
        "setpoint_error_max_mm": reduced(np.max, standing),
        "setpoint_errors_mm": dwells,
    }
    told = [f"{in_unit(part, '%')} of the length"] * (part is not None)
    told.append(f"settled {in_unit(numbers['tip_aed_settled_mm'], 'mm')}")
    if dwells and run.is_tendon_driven:
        told.append(f"in the last second of {len(dwells)} setpoints {np.mean(dwells):.2f} mm")
    told.append(f"largest {in_unit(numbers['tip_error_max_mm'], 'mm')}")
    goal = "setpoint" if run.reference_tip.topic == "reference/tip" else "reference"
    note = told[0] + ("; " + ", ".join(told[1:]) if len(told) > 1 else "")
    card = KeyFigure(f"tip to {goal} (AED)", in_unit(mean, "mm"), note)
    return Section(numbers, [card], _tracking_notes(run, len(error)))


def _tracking_notes(run: Run, followed: int) -> list[str]:
    notes = []
    if len(run.reference_tip) and not len(run.true_tip) and len(run.measured_tip):
        notes.append("without a simulator's truth the tip errors are against mocap, noise included")
    if not run.bag.robot:
        missing = "shape and the model's tip" if run.is_tendon_driven else "errors per length"
        notes.append(f"no node told its robot: {missing} are missing")
    ticks = len(run.tip.between(*(run.window or (0, 0))))
    if followed < 0.95 * ticks:
        notes.append(f"tip errors cover {followed} of {ticks} ticks: the others had no reference")
    return notes


def _dwells(target: Signal, error: Signal) -> list[float]:
    """Mean error [mm] at the end of each stretch in which the target stood still."""
    moved = np.linalg.norm(np.diff(target.values, axis=0), axis=-1) > STANDING
    bounds = [0, *(np.flatnonzero(moved) + 1), len(target)] if len(target) else []
    found = []
    for begin, end in pairwise(bounds):
        first, last = int(target.stamps[begin]), int(target.stamps[end - 1])
        if last - first >= 1e9 * SHORTEST_DWELL:
            late = error.between(last - round(1e9 * DWELL_END), last)
            found += [1e3 * float(late.values.mean())] * (len(late) > 0)
    return found


def estimation(run: Run) -> Section:
    """`estimate_tip_aed_mm`: mean distance of the estimated from the true tip at equal stamps."""
    mean = reduced(np.mean, 1e3 * run.estimation_error().values)
    card = KeyFigure("estimated to true tip", in_unit(mean, "mm"), "mean distance at equal stamps")
    return Section({"estimate_tip_aed_mm": mean}, [card])


def parameters(run: Run) -> Section:
    """`parameters`: estimated, std and true value by name; `bending_compliance` [rad/(N m m)].

    Of the bending compliance also the first guess and the errors; `worst_error_percent` is the
    largest from 5 s on.
    """
    found = {
        name: {
            "estimated": float(signal.values[-1]),
            "std": float(std.values[-1]) if len(std) else None,
            "true": run.bag.true_parameter(name),
            "unit": signal.unit,
        }
        for name, (signal, std) in run.parameters().items()
    }
    if run.is_tendon_driven:
        return Section({"parameters": found})
    told = _compliance(run)
    card = KeyFigure(
        "bending compliance",
        in_unit(told["estimated"], "rad/(N m m)"),
        f"true {in_unit(told['true'])}, first guess {in_unit(told['initial'])}; error "
        f"{in_unit(told['error_percent'], '%')}, at worst "
        f"{in_unit(told['worst_error_percent'], '%')} from 5 s on",
    )
    cards = [card] * (told["estimated"] is not None)
    return Section({"parameters": found, "bending_compliance": told}, cards)


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


def constant_curvature(run: Run) -> Section:
    """`constant_curvature`: the arc of the constant-curvature estimator beside the truth."""
    arc = summarize_arc(run)
    if arc is None:
        return Section({} if run.is_tendon_driven else {"constant_curvature": None})
    stiffness = in_unit(arc["bending_stiffness"], "N/m", digits=0)
    card = KeyFigure(
        "constant curvature",
        f"{in_unit(arc['nrmse_mean_percent'], '%', digits=1)} NRMSE",
        f"mean of coordinates and rates; bending stiffness {stiffness}",
    )
    return Section({"constant_curvature": arc}, [card])


def chambers(run: Run) -> Section:
    """`pressure`: extremes over all chambers [kPa], how often a command stood at a limit [%]."""
    if run.is_tendon_driven:
        return Section({})
    commanded, measured = 1e-3 * run.commands.values, 1e-3 * run.readings.values
    at_limit, limits = None, run.limits()
    if limits and commanded.size:
        low, high = 1e-3 * limits[0], 1e-3 * limits[1]
        margin = 1e-3 * (high - low)
        outside = (commanded <= low + margin) | (commanded >= high - margin)
        at_limit = 100 * float(outside.any(axis=1).mean())
    numbers = {
        "commanded_min_kpa": reduced(np.min, commanded),
        "commanded_max_kpa": reduced(np.max, commanded),
        "measured_min_kpa": reduced(np.min, measured),
        "measured_max_kpa": reduced(np.max, measured),
        "at_limit_percent": at_limit,
    }
    card = KeyFigure(
        "commanded pressures",
        f"{in_unit(numbers['commanded_min_kpa'], digits=1)} to "
        f"{in_unit(numbers['commanded_max_kpa'], 'kPa', digits=1)}",
        f"at a limit {in_unit(at_limit, '%', digits=1)} of the time",
    )
    return Section({"pressure": numbers}, [card])


def tendons(run: Run) -> Section:
    """`tendons`: changes of length [mm]; forces [N]: largest pull and, were it no tendon, push."""
    if not run.is_tendon_driven:
        return Section({})
    commanded, forces = 1e3 * run.commands.values, run.bag.signal("tendon/state", "force").values
    following = 1e3 * np.abs(run.commands.minus(run.readings).values)
    numbers = {
        "commanded_min_mm": reduced(np.min, commanded),
        "commanded_max_mm": reduced(np.max, commanded),
        "following_error_mean_mm": reduced(np.mean, following),
        "pull_max_n": reduced(np.max, -forces),
        "push_max_n": reduced(np.max, forces),
    }
    holds = number(run.bag.said(run.controller, "holds"))
    card = KeyFigure(
        "tendons",
        f"{in_unit(numbers['commanded_min_mm'], digits=0)} to "
        f"{in_unit(numbers['commanded_max_mm'], 'mm', digits=0)}",
        f"largest pull {in_unit(numbers['pull_max_n'], 'N', digits=1)}; "
        f"held {in_unit(holds, digits=0)} times",
    )
    pushes = "tendons push at times, as in the thesis's simulations; a real tendon goes slack"
    notes = [pushes] * bool((forces > 0.0).any())
    return Section({"tendons": numbers, "holds": holds}, [card], notes)


def base_sensor(run: Run) -> Section:
    """`wrench`: magnitudes at the force-torque sensor [N], [N m]."""
    if run.is_tendon_driven:
        return Section({})
    wrench = run.bag.signal("force_torque/wrench", "wrench").values
    forces, moments = (np.linalg.norm(part, axis=1) for part in (wrench[:, :3], wrench[:, 3:]))
    numbers = {
        "force_mean_n": reduced(np.mean, forces),
        "force_max_n": reduced(np.max, forces),
        "moment_mean_nm": reduced(np.mean, moments),
        "moment_max_nm": reduced(np.max, moments),
    }
    return Section({"wrench": numbers})


def timing(run: Run) -> Section:
    """`loops`: how each node kept its deadline, in its own words; None where it said nothing.

    `simulator`, `estimator`, `nempc_controller` and `other_nodes` hold the same numbers under the
    names that scripts outside know.
    """
    loops = {node: _loop(run, node) for node in run.bag.nodes}
    if run.is_tendon_driven:
        return Section({"loops": loops})
    named = ("simulator", "estimator", "nempc_controller")
    numbers = {node: _loop(run, node) for node in named}
    others = {node: loop for node, loop in loops.items() if node not in named}
    return Section({"loops": loops, **numbers, "other_nodes": others})


def _loop(run: Run, node: str) -> dict[str, Any]:
    told = {name: number(run.bag.said(node, name)) for name in _LOOP}
    return told | {"rejections": run.bag.said(node, "rejections")}


def safety(run: Run) -> Section:
    """`safety`: a row {time_s, what} for every transition."""
    start = run.bag.start
    rows = [{"time_s": round(1e-9 * (t - start), 3), "what": w} for t, w in run.bag.safety]
    return Section({"safety": rows} if rows or not run.is_tendon_driven else {})


def arm_model(run: Run) -> Section:
    """The model of an arm beside the arm; nothing where no sections were estimated.

    `shape_error_mm` is E_shape of Dalenberg (MSc thesis), (52): the mean distance of equal parts of
    the arm's and the model's backbones, twice a second. `elongation_mm` is the mean of Psi, (50).
    Section lengths are the controller's estimates of rest lengths; `sections_measured_mm` where the
    racks are in the arm file. Sensor errors are what the model leaves of what the cameras see.
    """
    if not run.is_tendon_driven:
        return Section({})
    lengths = 1e3 * run.of_arm("rest_lengths").values
    psi = np.linalg.norm(run.of_arm("q").values[:, 2::3], axis=1)
    numbers = {
        "shape_error_mm": reduced(np.mean, 1e3 * shape_errors(run).values),
        "elongation_mm": reduced(np.mean, 1e3 * psi),
        "section_lengths_mm": lengths[-1].tolist() if len(lengths) else [],
        "section_lengths_initial_mm": lengths[0].tolist() if len(lengths) else [],
        "sections_measured_mm": [] if run.arm is None else (1e3 * run.arm.model_lengths).tolist(),
        "sensor_distance_mm": reduced(np.mean, 1e3 * run.of_arm("distances").values),
        "sensor_angle_mrad": reduced(np.mean, 1e3 * run.of_arm("angles").values),
        "ticks_at_bounds": number(run.bag.said(run.controller, "ticks_at_bounds")),
    }
    cards = [
        KeyFigure(
            "model to arm",
            in_unit(numbers["shape_error_mm"], "mm"),
            f"E_shape; sensors {in_unit(numbers['sensor_distance_mm'], 'mm')} and "
            f"{in_unit(numbers['sensor_angle_mrad'], 'mrad', digits=1)}",
        ),
        KeyFigure(
            "section lengths",
            f"{listed(numbers['section_lengths_mm'])} mm",
            f"at first {listed(numbers['section_lengths_initial_mm'])} mm, racks "
            f"{listed(numbers['sections_measured_mm'])} mm; bounds met in "
            f"{in_unit(numbers['ticks_at_bounds'], digits=0)} ticks",
        ),
    ]
    return Section(numbers, cards)


def shape_errors(run: Run) -> Signal:
    """(K,) E_shape [m] twice a second; empty without a truth, an estimate or the arm's data."""
    from softcr_models.constant_curvature.shape_error import shape_error

    true, found, lengths = run.of_arm("q", True), run.of_arm("q"), run.of_arm("rest_lengths")
    stamps, of_true, of_found = np.intersect1d(
        true.stamps, found.stamps, assume_unique=True, return_indices=True
    )
    if run.arm is None or not len(stamps):
        return Signal(np.empty(0, np.int64), np.empty(0))
    arm, picked = run.arm, np.arange(0, len(stamps), _SHAPES_EVERY)
    errors = [
        shape_error(
            arm.chain, true.values[of_true[k]], arm.rest_lengths,
            arm.model, found.values[of_found[k]], lengths.values[of_found[k]],
        )
        for k in picked
    ]  # fmt: skip
    return Signal(stamps[picked], np.array(errors))


_SHAPES_EVERY = 25  # samples between two shapes that are compared

SECTIONS: tuple[Callable[[Run], Section], ...] = (
    identity, tracking, estimation, arm_model, constant_curvature, parameters, chambers, tendons,
    base_sensor, safety, timing,
)  # fmt: skip
"""In the order of their cards."""


def reduced(reduce: Callable[[np.ndarray], Any], values: np.ndarray) -> float | None:
    """One number of many; None of none, or when one is not finite."""
    found = float(reduce(values)) if values.size else math.nan
    return found if math.isfinite(found) else None


def number(value: Any) -> Any:
    """What a node said, if it is a finite number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) else None


def _duration(signal: Signal) -> float | None:
    """From the first to the last sample [s]."""
    return 1e-9 * float(signal.stamps[-1] - signal.stamps[0]) if len(signal) else None

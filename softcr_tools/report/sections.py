"""A run's summary: numbers of what the bag holds, key figures made of them, and what went wrong.

A section is a function of the run; it returns numbers under the keys of `summary.json`, which tell
their units; None is what could not be computed.
"""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from softcr_models.constant_curvature.shape_error import shape_error
from softcr_models.robots.obstacle_files import obstacles_in_words
from softcr_models.rod_model.tip_force import TIP_FORCE, known_tip_force
from softcr_runtime.bags.signals import Signal
from softcr_runtime.ros.node_counts import counted
from softcr_tools.report.page import KeyFigure, Summary, filled, times
from softcr_tools.report.plant import plant, plant_in_words
from softcr_tools.report.run import ARC, REFERENCES, Run
from softcr_tools.report.verdict import verdict

SETTLING_TIME = 2.0  # after the start of the evaluated window an error counts as settled [s]
COMPLIANCE_SETTLING_TIME = 5.0  # after its first estimate a compliance must be right [s]
STANDING = 1e-6  # a reference that moves less than this stands still [m]
SHORTEST_DWELL = 2.0  # a reference that stands still for less is a motion [s]
DWELL_END = 1.0  # a setpoint's error is the mean over so long at its end [s]
ARC_BEGIN = 0.1  # at the start an estimated arc does not count, Mehl et al., Sec. III-B [s]
COVERED = 0.95  # of the evaluated ticks at least this part should have an error
SILENCE = 2.5  # a node unheard for so long at the end, at one status a second, had stopped [s]
ALARMS_SHOWN = 3  # different warnings, and reasons of rejection, that are listed of a node

_IN_TABLE = re.compile(r"warning: \d+ cycles? missed")  # what the table of loops tells, too
_SHAPES_EVERY = 25  # samples between two shapes that are compared
_LOOP = (
    "rate_hz", "p50_ms", "p99_ms", "max_ms", "missed_cycles", "cycles", "deadline_ms",
    "rejected_messages",
)  # fmt: skip
# of each group the bag of a run holds one topic; without, the first is said to be missing
_TOPICS_OF_ROD: tuple[tuple[str, ...], ...] = (
    ("pressure/state",), ("pressure/sent",), ("simulation/truth/tip/pose",),
    ("simulation/truth/rod",), ("mocap/tip/pose",), ("estimate/tip/pose",),
    ("estimate/rod", "estimate/constant_curvature", "estimate/state"),
    ("reference/rod", "reference/output"), ("force_torque/wrench",),
)  # fmt: skip
_TOPICS_OF_ARM: tuple[tuple[str, ...], ...] = (
    ("mocap/arm/poses",), ("reference/tip", "reference/output"), ("tendon/sent",),
    ("tendon/state",), ("estimate/arm", "estimate/state"), ("simulation/truth/arm",),
    ("simulation/truth/tip/pose",),
)  # fmt: skip
_TOPICS_OF_STRAINS: tuple[tuple[str, ...], ...] = (
    ("mocap/body/poses",), ("torque/state",), ("torque/sent",), ("estimate/state",),
    ("reference/output",), ("simulation/truth/strains",), ("simulation/truth/tip/pose",),
)  # fmt: skip


Numbers = dict[str, Any]

_KEY_FIGURES = {
    "estimate_tip_aed_mm": (
        "estimated to true tip", "{estimate_tip_aed_mm:2 mm}", "mean distance at equal stamps"
    ),
    "shape_error_mm": (
        "model to arm", "{shape_error_mm:2 mm}",
        "E_shape; sensors {sensor_distance_mm:2 mm} and {sensor_angle_mrad:1 mrad}",
    ),
    "section_lengths_mm": (
        "section lengths", "{section_lengths_mm} mm",
        "at first {section_lengths_initial_mm} mm, racks {sections_measured_mm} mm; "
        "bounds met in {ticks_at_bounds:0} ticks",
    ),
    "nrmse_mean_percent": (
        "constant curvature", "{nrmse_mean_percent:1 %} NRMSE",
        "mean of coordinates and rates; bending stiffness {bending_stiffness:0 N/m}",
    ),
    "load_force_max_n": (
        "loads on the plant", "{load_force_max_n:3 N} at most",
        "for {loaded_s:2 s}, with the tip {tip_aed_loaded_mm:2 mm} from its reference (AED)",
    ),
    "tip_force_max_n": (
        "estimated force at the tip", "{tip_force_max_n:3 N} at most",
        "known for {tip_force_known_s:2 s}, from {tip_force_first_s:2 s} on",
    ),
    "contact_force_max_n": (
        "contact of the plant", "{contact_force_max_n:3 N} at most",
        "for {contact_s:2 s}, with the tip {tip_aed_contact_mm:2 mm} from its reference (AED)",
    ),
    "estimated": (
        "bending compliance", "{estimated:2 rad/(N m m)}",
        "true {true:2}; first guess {initial:2}; error {error_percent:2 %}; "
        "from 5 s on at most {worst_error_percent:2 %}",
    ),
    "innovation_correlation": (
        "filter's model", "{innovation_correlation:2} correlation of its errors",
        "near 0: the model explains what is measured; measurements left out in "
        "{gated_percent:1 %} of the updates; uncertainty of parameters raised in "
        "{opened_percent:1 %}; fallbacks {fallbacks:0}; parameters at a bound: {bounds_met}",
    ),
    "commanded_min_kpa": (
        "commanded pressures", "{commanded_min_kpa:1} to {commanded_max_kpa:1 kPa}",
        "at a limit {at_limit_percent:1 %} of the time",
    ),
    "commanded_min_n": (
        "commanded tensions", "{commanded_min_n:3} to {commanded_max_n:3 N}",
        "at a limit {at_limit_percent:1 %} of the time",
    ),
    "bending_error": (
        "bending to reference", "{bending_error:3 rad/m}",
        "mean over time and segments; in the last second of setpoints "
        "{bending_setpoint_error:4 rad/m}, estimated to true {bending_estimate_error:3 rad/m}",
    ),
    "linear_error": (
        "shear and axial strain to reference", "{linear_error:4}",
        "likewise; in the last second of setpoints {linear_setpoint_error:5}, estimated to true "
        "{linear_estimate_error:5}",
    ),
    "commanded_min_mnm": (
        "commanded torques", "{commanded_min_mnm:1} to {commanded_max_mnm:1 mN m}",
        "on bending; at a limit {at_limit_percent:1 %} of the time",
    ),
    "commanded_min_strain_n": (
        "commanded forces", "{commanded_min_strain_n:2} to {commanded_max_strain_n:2 N}",
        "on shear and axial strain",
    ),
    "commanded_min_mm": (
        "tendons", "{commanded_min_mm:0} to {commanded_max_mm:0 mm}",
        "largest pull {pull_max_n:1 N}; held {holds:0} times",
    ),
}  # fmt: skip
"""By a number that must be there: name, value and note, with numbers to be filled in."""


def summarize(run: Run) -> Summary:
    """Compute the numbers of a run."""
    numbers: Numbers = {}
    for section in (
        identity, tracking, estimation, constant_curvature, parameters, filter_health,
        *_of_kind(run),
        external_forces, tip_force, safety, parameter_changes, timing,
    ):  # fmt: skip
        numbers |= section(run)
    numbers |= {
        "plant": plant(run),
        "node_deaths": list(run.system.get("deaths", ())),
        "ended_by": run.system.get("ended_by"),
        "problems": [*_problems(run), *_silences(run), *_alarms(run)],
    }
    numbers |= verdict(run, numbers).numbers()
    return Summary(numbers, [*_key_figures(run, numbers)])


def _of_kind(run: Run) -> tuple[Callable[[Run], Numbers], ...]:
    """The sections that a kind of robot has."""
    if run.is_tendon_driven:
        return arm_model, tendons
    return (strains, actuators) if run.is_strain_driven else (actuators, base_sensor)


def _key_figures(run: Run, numbers: Numbers) -> Iterator[KeyFigure]:
    if run.bag.damage:
        yield "damaged bag", "figures of what is left", run.bag.damage
    goal = "setpoint" if run.reference_tip.topic == "reference/tip" else "reference"
    part, dwells = numbers["tip_aed_percent_of_length"], numbers["setpoint_errors_mm"]
    told = ["{tip_aed_percent_of_length:2 %} of the length"] * (part is not None)
    told.append("settled {tip_aed_settled_mm:2 mm}")
    if dwells and not run.is_of_rod:
        which = "setpoint" if len(dwells) == 1 else f"{len(dwells)} setpoints"
        told.append(f"in the last second of the {which} {np.mean(dwells):.2f} mm")
    note = "; ".join([*told, "largest {tip_error_max_mm:2 mm}"])
    yield f"tip to {goal} (AED)", *filled(numbers, "{tip_aed_mm:2 mm}", note)
    flat = dict(numbers)
    for part in numbers.values():
        flat |= part if isinstance(part, dict) else {}
    for key, (name, *templates) in _KEY_FIGURES.items():
        if key in flat and (key != "estimated" or flat[key] is not None):
            yield name, *filled(flat, *templates)


def identity(run: Run) -> Numbers:
    """What ran: robot, plant, reference, mode, seed, duration, the controller and its settings; by
    which command, when [UTC], with which version, as far as system.json beside the bag tells."""
    bag, control = run.bag, run.controller
    numbers = {
        "robot": bag.robot.get("name"),
        "reference": run.said(REFERENCES, "reference"),
        "mode": run.said(("simulator", "estimator", control), "mode"),
        "seed": number(bag.said("simulator", "seed")),
        "duration_s": 1e-9 * float(np.ptp(run.tip.stamps)) if len(run.tip) else None,
        "controller": control,
        "population": number(bag.said(control, "population")),
        "horizon": number(bag.said(control, "horizon")),
        "candidates_least": number(bag.said(control, "candidates_least")),
        "candidates_median": number(bag.said(control, "candidates_median")),
        "plant_mismatch": bag.said("simulator", "plant_mismatch"),
        "plant_in_words": plant_in_words(run),
        **{name: run.system.get(name) for name in ("command", "started", "softcr")},
    }
    if (errors := bag.said("simulator", "plant_errors")) is not None:
        settings = bag.said("simulator", "settings") or {}
        numbers["plant_errors"] = {"name": settings.get("plant_errors"), "fields": errors}
    if run.is_tendon_driven:
        numbers["payload_kg"] = number(bag.said("simulator", "payload"))
    return numbers


def tracking(run: Run) -> Numbers:
    """Distance of the tip from its reference at equal stamps.

    AED is the mean Euclidean distance of the true tip (on a bench: of the seen one, interpolated
    between the cameras' frames) from the reference over the evaluated window, see `Run.judged`;
    `settled` begins 2 s later. `setpoint_error` is the settled error when the reference never
    moves; `setpoint_errors_mm` are means at the end of each stretch in which it stands still.
    """
    error, settled = (1e3 * run.tracking_error(after).values for after in (0.0, SETTLING_TIME))
    tips, length = run.reference_tip.values, run.length
    stands = len(tips) > 0 and float(np.ptp(tips, axis=0).max()) < STANDING
    standing = settled if stands else np.empty(0)
    mean = reduced(np.mean, error)
    part = None if mean is None or not length else mean / (10 * length)
    return {
        "tip_aed_mm": mean,
        "tip_aed_percent_of_length": part,
        "tip_aed_settled_mm": reduced(np.mean, settled),
        "tip_error_max_mm": reduced(np.max, error),
        "setpoint_error_mm": reduced(np.mean, standing),
        "setpoint_error_max_mm": reduced(np.max, standing),
        "setpoint_errors_mm": _dwells(run),
    }


def _dwells(run: Run) -> list[float]:
    """Mean error [mm] at the end of each stretch, of what is judged, in which the reference stood
    still."""
    error, target = run.tracking_error(), run.reference_tip.between(*run.judged or (1, 0))
    moved = np.linalg.norm(np.diff(target.values, axis=0), axis=-1) > STANDING
    bounds = [0, *(np.flatnonzero(moved) + 1), len(target)] if len(target) else []
    found = []
    for begin, end in pairwise(bounds):
        first, last = int(target.stamps[begin]), int(target.stamps[end - 1])
        late = error.between(last - round(1e9 * DWELL_END), last)
        if last - first >= 1e9 * SHORTEST_DWELL and len(late):
            found.append(1e3 * float(late.values.mean()))
    return found


def estimation(run: Run) -> Numbers:
    """`estimate_tip_aed_mm`: mean distance of the estimated from the true tip at equal stamps."""
    return {"estimate_tip_aed_mm": reduced(np.mean, 1e3 * run.estimation_error().values)}


def parameters(run: Run) -> Numbers:
    """`parameters`: estimated, std and true value by name; `bending_compliance` [rad/(N m m)] with
    the first guess and errors, of which `worst_error_percent` is the largest from 5 s on."""
    found = {
        name: {
            "estimated": float(signal.values[-1]),
            "std": float(std.values[-1]) if len(std) else None,
            "true": run.bag.true_parameter(name),
            "unit": signal.unit,
        }
        for name, (signal, std) in run.parameters().items()
    }
    if not run.is_of_rod:
        return {"parameters": found}
    return {"parameters": found, "bending_compliance": _compliance(run)}


def filter_health(run: Run) -> Numbers:
    """`filter`: whether the model explained what was measured; only of the house's filter.

    Shares of updates in which parameters were opened, or a measurement gated [%]; at the end the
    mean product of neighbouring innovations over their variance, 0 where the model is right [-];
    the parameters that met a bound.
    """
    told = {
        name: run.bag.said("estimator", name)
        for name in (
            "updates",
            "opened",
            "gated",
            "fallbacks",
            "innovation_correlation",
            "bounds_met",
        )
    }
    shares = (told["updates"], told["opened"], told["gated"])
    if told["innovation_correlation"] is None or None in shares or not told["updates"]:
        return {}
    share = 100.0 / float(told["updates"])
    return {
        "filter": {
            "innovation_correlation": number(told["innovation_correlation"]),
            "opened_percent": share * float(told["opened"]),
            "gated_percent": share * float(told["gated"]),
            "fallbacks": number(told["fallbacks"]),
            "bounds_met": ", ".join(told["bounds_met"] or ()) or "none",
        }
    }


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
        return {"constant_curvature": None} if run.is_of_rod else {}
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


def external_forces(run: Run) -> Numbers:
    """`loads` and `contact`, only of a simulator that told them: magnitudes [N], [N m], and how
    long a load acted, or the robot touched something [s]. `tip_aed_loaded_mm` and
    `tip_aed_contact_mm` are means of the tip's error in that time."""
    numbers: Numbers = {}
    acting = run.bag.signal("simulation/truth/loads", "wrenches")
    if len(acting):
        sizes = [np.linalg.norm(part, axis=2) for part in np.split(acting.values, 2, axis=2)]
        numbers["loads"] = _while_acting(run, acting, "loaded") | {
            "load_force_max_n": reduced(np.max, sizes[0]),
            "load_moment_max_nm": reduced(np.max, sizes[1]),
            "what": run.loads,
        }
    touching = run.bag.signal("simulation/truth/contact/wrench", "wrench")
    if len(touching):
        total = np.linalg.norm(touching.values[:, :3], axis=1)
        numbers["contact"] = _while_acting(run, touching, "contact") | {
            "contact_force_max_n": float(total.max()),
            "contact_force_mean_n": reduced(np.mean, total[total > 0.0]),
            "with": obstacles_in_words(run.bag.said("simulator", "obstacles")),
        }
    return numbers


def tip_force(run: Run) -> Numbers:
    """`tip_force`, only of an estimator that looks for one: the largest force that was known, see
    `known_tip_force` [N], how long one was, and the first and the last time from the start [s]."""
    found = run.parameters()
    if not set(TIP_FORCE) <= found.keys():
        return {}
    stamps = found[TIP_FORCE[0]][0].stamps
    values, deviations = (
        np.stack([found[name][place].values for name in TIP_FORCE], axis=1) for place in (0, 1)
    )
    known = [
        known_tip_force(*(dict(zip(TIP_FORCE, row.tolist(), strict=True)) for row in rows))
        for rows in zip(values, deviations, strict=True)
    ]
    sizes = np.array([0.0 if force is None else np.linalg.norm(force) for force in known])
    acts = np.flatnonzero(sizes)
    times = 1e-9 * (stamps - run.bag.start)
    period = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    return {
        "tip_force": {
            "tip_force_max_n": reduced(np.max, sizes),
            "tip_force_known_s": period * len(acts),
            "tip_force_first_s": float(times[acts[0]]) if len(acts) else None,
            "tip_force_last_s": float(times[acts[-1]]) if len(acts) else None,
        }
    }


def _while_acting(run: Run, signal: Signal, word: str) -> Numbers:
    """How long a signal was not zero [s], and the mean error of the tip in that time [mm]."""
    error = run.tracking_error()
    acts = signal.values.reshape(len(signal), -1).any(axis=1)
    period = float(np.median(np.diff(signal.stamps))) * 1e-9 if len(signal) > 1 else 0.0
    during = error.values[np.isin(error.stamps, signal.stamps[acts])]
    return {
        f"{word}_s": period * int(acts.sum()),
        f"tip_aed_{word}_mm": reduced(np.mean, 1e3 * during),
    }


def actuators(run: Run) -> Numbers:
    """`pressure` of chambers [kPa], `tension` of a rod's tendons [N], `torque` [mN m] and `force`
    [N] on strains: extremes over all of them, how often a command stood at a limit [%]."""
    if run.is_strain_driven:
        of = {
            kind: [place for place, each in enumerate(run.inputs) if each.kind == kind]
            for kind in ("torque", "force")
        }
        scales = {"torque": (1e3, "mnm"), "force": (1.0, "strain_n")}
        return {kind: _levels(run, places, *scales[kind]) for kind, places in of.items() if places}
    pulls = [place for place, each in enumerate(run.inputs) if each.kind == "tendon"]
    pushes = [place for place, each in enumerate(run.inputs) if each.kind == "chamber"]
    told: Numbers = {}
    if pushes or not pulls:
        told["pressure"] = _levels(run, pushes or slice(None), 1e-3, "kpa")
    if pulls:
        told["tension"] = _levels(run, pulls, 1.0, "n")
    return told


def _levels(run: Run, places: list[int] | slice, scale: float, unit: str) -> Numbers:
    """Of some of the inputs, in units of 1 / `scale`."""
    # not those that only answer a reference which stops at its end
    last = run.judged[1] if run.judged else np.iinfo(np.int64).max
    signals = (each.between(0, last).values for each in (run.commands, run.readings))
    commanded, measured = (
        scale * (values[:, places] if values.size and values.ndim == 2 else values)
        for values in signals
    )
    at_limit = None
    bounds = [(each.low, each.high) for each in run.inputs]
    limits = run.limits()
    if not bounds and limits is not None:
        bounds = [limits]
    if bounds and commanded.size:
        told = np.array(bounds)[places] if run.inputs else np.array(bounds)
        low, high = scale * told.T
        margin = 1e-3 * (high - low)
        outside = (commanded <= low + margin) | (commanded >= high - margin)
        at_limit = 100 * float(outside.any(axis=1).mean())
    return {
        f"commanded_min_{unit}": reduced(np.min, commanded),
        f"commanded_max_{unit}": reduced(np.max, commanded),
        f"measured_min_{unit}": reduced(np.min, measured),
        f"measured_max_{unit}": reduced(np.max, measured),
        "at_limit_percent": at_limit,
    }


def tendons(run: Run) -> Numbers:
    """`tendons`: changes of length [mm]; forces [N]: largest pull and, were it no tendon, push."""
    commanded, forces = 1e3 * run.commands.values, run.bag.signal("tendon/state", "force").values
    following = 1e3 * np.abs(run.commands.minus(run.readings).values)
    numbers = {
        "commanded_min_mm": reduced(np.min, commanded),
        "commanded_max_mm": reduced(np.max, commanded),
        "following_error_mean_mm": reduced(np.mean, following),
        "pull_max_n": reduced(np.max, -forces),
        "push_max_n": reduced(np.max, forces),
    }
    return {"tendons": numbers, "holds": number(run.bag.said(run.controller, "holds"))}


def base_sensor(run: Run) -> Numbers:
    """`wrench`: magnitudes at the force-torque sensor [N], [N m]."""
    wrench = run.bag.signal("force_torque/wrench", "wrench").values
    forces, moments = (np.linalg.norm(part, axis=1) for part in (wrench[:, :3], wrench[:, 3:]))
    numbers = {
        "force_mean_n": reduced(np.mean, forces), "force_max_n": reduced(np.max, forces),
        "moment_mean_nm": reduced(np.mean, moments), "moment_max_nm": reduced(np.max, moments),
    }  # fmt: skip
    return {"wrench": numbers}


def timing(run: Run) -> Numbers:
    """`loops`: how each node kept its deadline, in its own words; None where it said nothing. Of a
    rod's run the same stands beside it under the names that scripts outside know."""
    loops = {node: _loop(run, node) for node in run.bag.nodes}
    if not run.is_of_rod:
        return {"loops": loops}
    numbers = {node: _loop(run, node) for node in ("simulator", "estimator", "nempc_controller")}
    others = {node: loop for node, loop in loops.items() if node not in numbers}
    return {"loops": loops, **numbers, "other_nodes": others}


def _loop(run: Run, node: str) -> dict[str, Any]:
    told = {name: number(run.bag.said(node, name)) for name in _LOOP}
    predictions = run.bag.said(node, "predictions") or {}
    return told | {
        "retried_predictions": number(predictions.get("retried")),
        "predictions": predictions,
        "rejections": run.bag.said(node, "rejections"),
    }


def safety(run: Run) -> Numbers:
    """`safety`: a row {time_s, what} for every transition."""
    start = run.bag.start
    rows = [{"time_s": round(1e-9 * (t - start), 3), "what": w} for t, w in run.bag.safety]
    return {"safety": rows} if rows or run.is_of_rod else {}


def parameter_changes(run: Run) -> Numbers:
    """`parameter_changes`: a row {time_s, what} for every parameter changed while it ran; without
    the key where none was."""
    start = run.bag.start
    rows = [
        {"time_s": round(1e-9 * (t - start), 3), "what": w} for t, w in run.bag.parameter_changes
    ]
    return {"parameter_changes": rows} if rows else {}


def arm_model(run: Run) -> Numbers:
    """The model of an arm beside the arm.

    `shape_error_mm` is E_shape of Dalenberg (MSc thesis), (52): the mean distance of equal parts of
    both backbones. `elongation_mm` is the mean of Psi, (50). Section lengths are estimated rest
    lengths, `sections_measured_mm` those of the racks in the arm file; sensor errors are what the
    model leaves of what the cameras see.
    """
    lengths = 1e3 * run.of_arm("rest_lengths").values
    psi = np.linalg.norm(run.of_arm("q").values[:, 2::3], axis=1)
    return {
        "shape_error_mm": reduced(np.mean, 1e3 * shape_errors(run).values),
        "elongation_mm": reduced(np.mean, 1e3 * psi),
        "section_lengths_mm": lengths[-1].tolist() if len(lengths) else [],
        "section_lengths_initial_mm": lengths[0].tolist() if len(lengths) else [],
        "sections_measured_mm": [] if run.arm is None else (1e3 * run.arm.model_lengths).tolist(),
        "sensor_distance_mm": reduced(np.mean, 1e3 * run.of_arm("distances").values),
        "sensor_angle_mrad": reduced(np.mean, 1e3 * run.of_arm("angles").values),
        "ticks_at_bounds": number(run.bag.said(run.controller, "ticks_at_bounds")),
    }


def strains(run: Run) -> Numbers:
    """`strains`: of bending [rad/m] and of shear and axial strain together [-]: the mean error over
    the evaluated window, `setpoint_error` in the last second of each stretch in which the reference
    stands still, `estimate_error` of the estimated from the true strains; of every strain by its
    name under `setpoint_errors`. Without a simulator's truth errors are of the estimate.
    """
    true, found, wanted = (run.strains(of) for of in ("true", "estimated", "wanted"))
    error = (true if len(true) else found).minus(wanted)
    error = replace(error, values=np.abs(error.values)).between(*(run.judged or (1, 0)))
    late = _at_end_of_dwells(error, wanted)
    noise = np.abs(found.minus(true).values)
    bends = np.array([name.startswith("bending") for name in true.columns], bool)
    told: Numbers = {}
    for word, chosen in (("bending", bends), ("linear", ~bends)):
        for what, values in (
            ("error", error.values), ("setpoint_error", late), ("estimate_error", noise),
        ):  # fmt: skip
            told[f"{word}_{what}"] = reduced(np.mean, values[:, chosen])
    settled = late.mean(axis=0) if len(late) else np.full(len(bends), np.nan)
    by_name = zip(true.columns, settled.tolist(), strict=True)
    return {"strains": told | {"setpoint_errors": {name: number(each) for name, each in by_name}}}


def _at_end_of_dwells(error: Signal, wanted: Signal) -> np.ndarray:
    """(K, m) errors in the last second of each stretch in which what is wanted stands still."""
    jumps = np.flatnonzero(np.abs(np.diff(wanted.values, axis=0)).any(axis=1)) + 1
    found = [error.values[:0]]
    for begin, end in pairwise([0, *jumps.tolist(), len(wanted)] if len(wanted) else []):
        first, last = int(wanted.stamps[begin]), int(wanted.stamps[end - 1])
        if last - first >= 1e9 * SHORTEST_DWELL:
            found.append(error.between(last - round(1e9 * DWELL_END), last).values)
    return np.concatenate(found)


def shape_errors(run: Run) -> Signal:
    """(K,) E_shape [m] twice a second; empty without a truth, an estimate or the arm's data."""
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


def _problems(run: Run) -> Iterator[str]:
    """What is missing or not as it should be."""
    if run.system.get("error"):
        yield run.system["error"]
    yield from run.bag.problems
    recorded = {topic for topic, _ in run.bag.signals}
    groups = _TOPICS_OF_ARM if run.is_tendon_driven else _TOPICS_OF_ROD
    groups = _TOPICS_OF_STRAINS if run.is_strain_driven else groups
    missing = [group[0] for group in groups if not recorded & {*group}]
    if missing := missing + ["/diagnostics"] * (not run.bag.nodes):
        yield f"nothing was recorded on {', '.join(missing)}"
    if len(run.reference_tip) and not len(run.true_tip) and len(run.measured_tip):
        yield "without a simulator's truth the tip errors are against mocap, noise included"
    if not run.bag.robot:
        what = "shape and the model's tip" if run.is_tendon_driven else "errors per length"
        yield f"no node published its robot: {what} are missing"
    ticks, followed = len(run.tip.between(*(run.judged or (0, 0)))), len(run.tracking_error())
    if followed < COVERED * ticks:
        yield f"tip errors cover {followed} of {ticks} ticks: the others had no reference"
    if (run.bag.signal("tendon/state", "force").values > 0.0).any():
        yield "tendons push at times, as in the thesis's simulations; a real tendon goes slack"


def _silences(run: Run) -> Iterator[str]:
    """Which nodes fell silent before the end, or told their configuration and nothing else."""
    for node, status in run.bag.nodes.items():
        age = 1e-9 * (run.bag.last_heard - status.last_heard)
        if not status.last_heard:
            yield f"{node} said nothing in /diagnostics"
        elif age > SILENCE:
            yield f"{node} fell silent {age:.1f} s before the end of the recording"


def _alarms(run: Run) -> Iterator[str]:
    """Why nodes rejected messages and answers, their warnings and errors; a few of each node."""
    for node, status in run.bag.nodes.items():
        told = [
            f"{word}{reason}, {times(count)}"
            for name, word in (("rejections", "rejected "), ("refusals", ""))
            for reason, count in (status.values.get(name) or {}).items()
        ]
        warned = [
            line
            if count == 1
            else f"{line} (and {count - 1} more like it)"
            if differed
            else f"{line}, {count} times"
            for line, count, differed in sorted(status.alarms.values(), key=lambda each: -each[1])
            if not _IN_TABLE.fullmatch(line)
        ]
        shown = told[:ALARMS_SHOWN] + warned[:ALARMS_SHOWN]
        yield from (f"{node}: {line}" for line in shown)
        if (more := len(told) + len(warned) - len(shown)) > 0:
            yield f"{node}: {counted(more, 'more warning')}"


def reduced(reduce: Callable[[np.ndarray], Any], values: np.ndarray) -> float | None:
    """One number of many; None of none, or when one is not finite."""
    return number(float(reduce(values))) if values.size else None


def number(value: Any) -> Any:
    """What a node said, if it is a finite number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and abs(value) <= sys.float_info.max else None

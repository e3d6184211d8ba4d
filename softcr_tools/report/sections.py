"""A run's summary: numbers of what the bag holds, key figures made of them, and what went wrong.

A section is a function of the run; it returns numbers under the keys of `summary.json`, which tell
their units; None is what could not be computed.
"""

import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from softcr_models.robots.obstacle_files import obstacles_in_words
from softcr_models.rod_model.tip_force import TIP_FORCE, known_tip_force
from softcr_runtime.bags.signals import Signal
from softcr_runtime.console.kind_reports import DWELL_END, SHORTEST_DWELL, reduced
from softcr_runtime.ros.node_counts import counted
from softcr_runtime.wire.robot_topics import topics_of_kind
from softcr_runtime.wire.topics import TRUTH, topics_of
from softcr_tools.report.page import KeyFigure, Summary, filled, times
from softcr_tools.report.plant import plant, plant_in_words
from softcr_tools.report.run import REFERENCES, Run
from softcr_tools.report.verdict import verdict

SETTLING_TIME = 2.0  # after the start of the evaluated window an error counts as settled [s]
STANDING = 1e-6  # a reference that moves less than this stands still [m]
COVERED = 0.95  # of the evaluated ticks at least this part should have an error
SILENCE = 2.5  # a node unheard for so long at the end, at one status a second, had stopped [s]
ALARMS_SHOWN = 3  # different warnings, and reasons of rejection, that are listed of a node

_IN_TABLE = re.compile(r"warning: \d+ cycles? missed")  # what the table of loops tells, too
_LOOP = (
    "rate_hz", "p50_ms", "p99_ms", "max_ms", "missed_cycles", "cycles", "deadline_ms",
    "rejected_messages",
)  # fmt: skip
Numbers = dict[str, Any]

_KEY_FIGURES = {
    "estimate_tip_aed_mm": (
        "estimated to true tip", "{estimate_tip_aed_mm:2 mm}", "mean distance at equal stamps"
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
    "innovation_correlation": (
        "filter's model", "{innovation_correlation:2} correlation of its errors",
        "near 0: the model explains what is measured; measurements left out in "
        "{gated_percent:1 %} of the updates; uncertainty of parameters raised in "
        "{opened_percent:1 %}; fallbacks {fallbacks:0}; parameters at a bound: {bounds_met}",
    ),
}  # fmt: skip
"""By a number that must be there: name, value and note, with numbers to be filled in."""


def summarize(run: Run) -> Summary:
    """Compute the numbers of a run."""
    numbers: Numbers = {}
    for section in (
        identity, tracking, estimation, parameters, filter_health, actuators, of_kind,
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


def _key_figures(run: Run, numbers: Numbers) -> Iterator[KeyFigure]:
    if run.bag.damage:
        yield "damaged bag", "figures of what is left", run.bag.damage
    goal = "setpoint" if run.reference_tip.topic == "reference/tip" else "reference"
    part, dwells = numbers["tip_aed_percent_of_length"], numbers["setpoint_errors_mm"]
    told = ["{tip_aed_percent_of_length:2 %} of the length"] * (part is not None)
    told.append("settled {tip_aed_settled_mm:2 mm}")
    if dwells:
        which = "setpoint" if len(dwells) == 1 else f"{len(dwells)} setpoints"
        told.append(f"in the last second of the {which} {np.mean(dwells):.2f} mm")
    note = "; ".join([*told, "largest {tip_error_max_mm:2 mm}"])
    yield f"tip to {goal} (AED)", *filled(numbers, "{tip_aed_mm:2 mm}", note)
    flat = dict(numbers)
    for part in numbers.values():
        flat |= part if isinstance(part, dict) else {}
    own = {key: told for each in run.added for key, told in each.key_figures.items()}
    for key, (name, *templates) in {**_KEY_FIGURES, **own}.items():
        if flat.get(key) is not None:
            yield name, *filled(flat, *templates)
    for quantity, (_, scale, unit) in _quantities(run).items():
        low, high = (f"commanded_{end}_{_key(unit)}" for end in ("min", "max"))
        digits = 1 if scale != 1.0 else 3
        values = f"{{{low}:{digits}}} to {{{high}:{digits} {unit}}}"
        limits = "at a limit {at_limit_percent:1 %} of the time"
        yield f"commanded {quantity}s", *filled(numbers[quantity], values, limits)


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
    if (payload := bag.said("simulator", "payload")) is not None:
        numbers["payload_kg"] = number(payload)
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
    """`parameters`: estimated, std and true value by name."""
    found = {
        name: {
            "estimated": float(signal.values[-1]),
            "std": float(std.values[-1]) if len(std) else None,
            "true": run.bag.true_parameter(name),
            "unit": signal.unit,
        }
        for name, (signal, std) in run.parameters().items()
    }
    return {"parameters": found}


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
    """By what the inputs are, such as `pressure` [kPa], `tension` [N] or `torque` [mN m]: extremes
    over all of them, how often a command stood at a limit [%]."""
    return {
        quantity: _levels(run, places, scale, _key(unit))
        for quantity, (places, scale, unit) in _quantities(run).items()
    }


def _quantities(run: Run) -> dict[str, tuple[list[int] | slice, float, str]]:
    """Places among the inputs, scale from SI and the unit that is shown, by what the inputs are;
    pressures where no node told its robot."""
    found: dict[str, tuple[list[int] | slice, float, str]] = {}
    for place, each in enumerate(run.inputs):
        places, _, _ = found.setdefault(each.quantity, ([], each.scale, each.unit))
        assert isinstance(places, list)
        places.append(place)
    return found or {"pressure": (slice(None), 1e-3, "kPa")}


def _key(unit: str) -> str:
    """A unit as the end of a number's name."""
    return unit.replace(" ", "").lower()


def of_kind(run: Run) -> Numbers:
    """What the robot's kind and packages add."""
    return {name: told for each in run.added for name, told in each.numbers(run).items()}


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
        if np.isfinite([low, high]).all():
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


def timing(run: Run) -> Numbers:
    """`loops`: how each node kept its deadline, in its own words; None where it said nothing."""
    return {"loops": {node: loop(run, node) for node in run.bag.nodes}}


def loop(run: Run, node: str) -> dict[str, Any]:
    """How a node kept its deadline; None where it said nothing."""
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
    return {"safety": rows} if rows or "safety/state" in topics_of(run.kind) else {}


def parameter_changes(run: Run) -> Numbers:
    """`parameter_changes`: a row {time_s, what} for every parameter changed while it ran; without
    the key where none was."""
    start = run.bag.start
    rows = [
        {"time_s": round(1e-9 * (t - start), 3), "what": w} for t, w in run.bag.parameter_changes
    ]
    return {"parameter_changes": rows} if rows else {}


def _problems(run: Run) -> Iterator[str]:
    """What is missing or not as it should be."""
    if run.system.get("error"):
        yield run.system["error"]
    yield from run.bag.problems
    recorded = {topic for topic, _ in run.bag.signals}
    groups = _topics(run.kind)
    missing = [group[0] for group in groups if not recorded & {*group}]
    if missing := missing + ["/diagnostics"] * (not run.bag.nodes):
        yield f"nothing was recorded on {', '.join(missing)}"
    if len(run.reference_tip) and not len(run.true_tip) and len(run.measured_tip):
        yield "without a simulator's truth the tip errors are against mocap, noise included"
    if not run.bag.robot:
        yield "no node published its robot: errors per length and what its kind tells are missing"
    ticks, followed = len(run.tip.between(*(run.judged or (0, 0)))), len(run.tracking_error())
    if followed < COVERED * ticks:
        yield f"tip errors cover {followed} of {ticks} ticks: the others had no reference"
    for each in run.added:
        yield from each.problems(run)


def _topics(kind: str) -> list[tuple[str, ...]]:
    """Groups of topics of which the bag of a run holds one each, the usual one first; of those that
    robots of the kind have."""
    topics = topics_of_kind(kind)
    estimated = "estimate/rod", "estimate/constant_curvature", "estimate/state"
    groups: tuple[tuple[str, ...], ...] = (
        (topics.state,), (topics.sent,), ("simulation/truth/tip/pose",), (topics.poses,),
        ("simulation/truth/rod", TRUTH), estimated, ("force_torque/wrench",),
        ("reference/rod", "reference/output", "reference/tip"),
    )  # fmt: skip
    known = topics_of(kind)
    if "estimate/rod" in known:  # who publishes the others may be led by the cameras
        groups += (("estimate/tip/pose",),)
    return [told for group in groups if (told := tuple(each for each in group if each in known))]


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


def number(value: Any) -> Any:
    """What a node said, if it is a finite number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and abs(value) <= sys.float_info.max else None

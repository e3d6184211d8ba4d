"""The numbers of a run: what `summary.json` holds."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from rich.console import RenderableType

from softcr_runtime import registry
from softcr_tools.report_arc import ArcSummary, summarize_arc
from softcr_tools.report_run import RecordedSystem, Run, Series
from softcr_tools.report_text import ReportPage, page_of, terminal_table

SETTLING_TIME = 2.0
"""From here on an error counts as settled; after the start of the evaluated window [s]."""

COMPLIANCE_SETTLING_TIME = 5.0
"""From here on the estimated bending compliance must be right; after the first estimate [s]."""

CONSTANT_REFERENCE = 1e-6
"""A reference that moves less than this is a setpoint [m]."""

ALARMS_SHOWN = 3
"""How many different warnings, and how many reasons of rejection, are listed of a node."""

LONGEST_HOLE = 0.03
"""Between poses of a camera that are interpolated [s]."""

SILENCE = 2.5
"""A node unheard for so long at the end of a run, at one status a second, had stopped [s]."""


@dataclass(frozen=True)
class LoopSummary:
    """How a node's loop kept its deadline, in its own words; None where it said nothing."""

    rate_hz: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    missed_cycles: int | None = None
    cycles: int | None = None
    deadline_ms: float | None = None
    rejected_messages: int | None = None
    rejections: dict[str, int] | None = None


@dataclass(frozen=True)
class ComplianceSummary:
    """Bending compliance [rad/(N m m)]: the plant's, the last estimate, the first guess.

    `worst_error_percent` is the largest from `COMPLIANCE_SETTLING_TIME` on.
    """

    true: float | None = None
    estimated: float | None = None
    initial: float | None = None
    std: float | None = None
    error_percent: float | None = None
    worst_error_percent: float | None = None


@dataclass(frozen=True)
class PressureSummary:
    """Extremes over all chambers [kPa] and how often a command stood at a limit [%]."""

    commanded_min_kpa: float | None = None
    commanded_max_kpa: float | None = None
    measured_min_kpa: float | None = None
    measured_max_kpa: float | None = None
    at_limit_percent: float | None = None


@dataclass(frozen=True)
class WrenchSummary:
    """Magnitudes at the force-torque sensor."""

    force_mean_n: float | None = None
    force_max_n: float | None = None
    moment_mean_nm: float | None = None
    moment_max_nm: float | None = None


@dataclass(frozen=True)
class SystemSummary:
    """What the summary of every run begins with.

    Attributes:
        robot, reference, mode, seed: in the nodes' words.
        duration_s: of what was recorded of the tip.
        tip_aed_mm: mean distance of tip and reference.
        tip_error_max_mm: largest one.
        estimate_tip_aed_mm: mean distance of the estimated from the true tip.
        node_deaths: nodes that ended before they were asked to.
        ended_by: why the run ended.
        problems: one line for each.
    """

    robot: str | None
    reference: str | None
    mode: str | None
    seed: int | None
    duration_s: float | None
    tip_aed_mm: float | None
    tip_error_max_mm: float | None
    estimate_tip_aed_mm: float | None
    node_deaths: list[dict[str, Any]]
    ended_by: str | None
    problems: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: no NaN, no numpy."""
        return asdict(self)

    def page(self) -> ReportPage:
        """The summary in words."""
        raise NotImplementedError

    def table(self) -> RenderableType:
        """The summary on one screen, to be printed on a rich console."""
        return terminal_table(self.page())


@dataclass(frozen=True)
class Summary(SystemSummary):
    """One run of a rod in numbers; None is what could not be computed, `problems` says why.

    AED is the mean Euclidean distance of the true tip (on a bench: of the seen one, interpolated
    between the cameras' frames) from the reference tip at equal stamps, over
    the evaluated window: from the first to the last stamp that had a reference and a controller's
    answer. `settled` begins 2 s later. `setpoint_error` is the settled error when the reference
    stands still. `estimate_tip_aed` is the distance of the estimated from the true tip. `safety`
    has a row {time_s, what} for every transition.
    """

    tip_aed_percent_of_length: float | None
    tip_aed_settled_mm: float | None
    setpoint_error_mm: float | None
    setpoint_error_max_mm: float | None
    bending_compliance: ComplianceSummary
    constant_curvature: ArcSummary | None
    simulator: LoopSummary
    estimator: LoopSummary
    controller: str
    nempc_controller: LoopSummary
    other_nodes: dict[str, LoopSummary]
    population: int | None
    horizon: int | None
    plant_mismatch: dict[str, float] | None
    pressure: PressureSummary
    wrench: WrenchSummary
    safety: list[dict[str, Any]]

    def page(self) -> ReportPage:
        """The summary in words."""
        return page_of(self)


CONTROLLERS = (*registry.nodes("controller"), "controller", "feedforward")
"""Nodes that may control; the first stands in the summary even where it did not run."""


def summarize(run: Run, system: dict[str, Any]) -> Summary:
    """Compute the numbers of a run.

    Args:
        run: what was recorded.
        system: content of the run's system.json, which knows who died; empty if there is none.
    """
    error_mm = 1e3 * tracking_error(run).values
    settled_mm = 1e3 * tracking_error(run, after=SETTLING_TIME).values
    setpoint_mm = settled_mm if has_constant_reference(run) else np.empty(0)
    aed_mm = reduced(np.mean, error_mm)
    length = run.robot.get("length")
    controller = next((name for name in CONTROLLERS if name in run.nodes), CONTROLLERS[0])
    return Summary(
        robot=run.robot.get("name"),
        reference=run.said("reference", "reference"),
        mode=run.said("simulator", "mode") or run.said("estimator", "mode"),
        seed=number(run.said("simulator", "seed")),
        duration_s=duration_of(run.tip),
        tip_aed_mm=aed_mm,
        tip_aed_percent_of_length=None if aed_mm is None or not length else aed_mm / (10 * length),
        tip_aed_settled_mm=reduced(np.mean, settled_mm),
        tip_error_max_mm=reduced(np.max, error_mm),
        setpoint_error_mm=reduced(np.mean, setpoint_mm),
        setpoint_error_max_mm=reduced(np.max, setpoint_mm),
        estimate_tip_aed_mm=reduced(np.mean, 1e3 * estimation_error(run).values),
        bending_compliance=_compliance(run),
        constant_curvature=summarize_arc(run),
        simulator=loop_summary(run, "simulator"),
        estimator=loop_summary(run, "estimator"),
        controller=controller,
        nempc_controller=loop_summary(run, "nempc_controller"),
        other_nodes={
            node: loop_summary(run, node)
            for node in run.nodes
            if node not in ("simulator", "estimator", "nempc_controller")
        },
        population=number(run.said(controller, "population")),
        horizon=number(run.said(controller, "horizon")),
        plant_mismatch=run.said("simulator", "plant_mismatch"),
        pressure=_pressure(run),
        wrench=_wrench(run),
        safety=[
            {"time_s": round(1e-9 * (time - run.start), 3), "what": what}
            for time, what in run.safety
        ],
        node_deaths=list(system.get("deaths", ())),
        ended_by=system.get("ended_by"),
        problems=[*failures(system), *run.problems, *_notes(run), *alarms(run)],
    )


def evaluated_window(run: Run) -> tuple[int, int] | None:
    """First and last stamp [ns] at which the controller had to follow the reference.

    A command carries the stamp of the estimate it answers; the venting command of a controller that
    leaves answers none, and what the tip does after it is not the controller's error. Without any
    command (open loop) the reference alone decides. None when there was no reference.
    """
    bounds = [run.reference_tip.stamps]
    if len(run.commanded_pressures):
        estimates = run.estimated_tip if len(run.estimated_tip) else run.measured_pressures
        bounds.append(np.intersect1d(run.commanded_pressures.stamps, estimates.stamps))
    if any(len(stamps) == 0 for stamps in bounds):
        return None
    start = run.said("reference", "start_stamp")  # until then it stood still
    first = [start] if isinstance(start, int) else []
    return max([*first, *(int(s[0]) for s in bounds)]), min(int(s[-1]) for s in bounds)


def tracking_error(run: Run, after: float = 0.0) -> Series:
    """(T,) distance of tip and reference [m], from `after` [s] on within the evaluated window."""
    window = evaluated_window(run)
    if window is None:
        return Series(np.empty(0, dtype=np.int64), np.empty(0))
    error = _at(run.tip, run.reference_tip.stamps).minus(run.reference_tip).norm()
    return error.between(window[0] + round(1e9 * after), window[1])


def _at(tip: Series, stamps: np.ndarray) -> Series:
    """(T, 3) A tip; interpolated at `stamps` [ns] where cameras gave it a time of its own."""
    return tip if len(np.intersect1d(tip.stamps, stamps)) else tip.at(stamps, LONGEST_HOLE)


def estimation_error(run: Run) -> Series:
    """(T,) distance of estimated and true tip [m]; empty without a simulator's truth."""
    estimated = run.estimated_tip
    return estimated.minus(_at(run.truth_tip, estimated.stamps)).norm()


def has_constant_reference(run: Run) -> bool:
    """Whether the reference tip stood still all the time."""
    tips = run.reference_tip.values
    return len(tips) > 0 and float(np.ptp(tips, axis=0).max()) < CONSTANT_REFERENCE


def true_compliance(run: Run) -> float | None:
    """The plant's bending compliance [rad/(N m m)]; None where there is no simulator."""
    if len(run.true_compliance):
        return float(run.true_compliance.values[-1])
    return (run.said("simulator", "true_parameters") or {}).get("bending_compliance")


def _compliance(run: Run) -> ComplianceSummary:
    estimate = run.estimated_compliance
    initial = (run.said("estimator", "initial_parameters") or {}).get("bending_compliance")
    true = true_compliance(run)
    if not len(estimate):
        return ComplianceSummary(true=true, initial=initial)
    if initial is None:
        initial = float(estimate.values[0])
    errors = np.empty(0)
    if true:
        errors = 100 * np.abs(estimate.values - true) / true
    after = int(estimate.stamps[0]) + round(1e9 * COMPLIANCE_SETTLING_TIME)
    return ComplianceSummary(
        true=true,
        estimated=float(estimate.values[-1]),
        initial=initial,
        std=float(run.compliance_std.values[-1]),
        error_percent=float(errors[-1]) if len(errors) else None,
        worst_error_percent=reduced(np.max, errors[estimate.stamps >= after])
        if len(errors)
        else None,
    )


def loop_summary(run: RecordedSystem, node: str) -> LoopSummary:
    """How a node kept its deadline."""
    status = run.nodes.get(node)
    if status is None:
        return LoopSummary()
    numbers = {field.name for field in fields(LoopSummary)} - {"rejections"}
    return LoopSummary(
        **{name: number(status.values.get(name)) for name in numbers},
        rejections=status.values.get("rejections"),
    )


def _pressure(run: Run) -> PressureSummary:
    commanded_kpa = 1e-3 * run.commanded_pressures.values
    measured_kpa = 1e-3 * run.measured_pressures.values
    at_limit = None
    limits = pressure_limits_kpa(run)
    if limits and commanded_kpa.size:
        low, high = limits
        margin = 1e-3 * (high - low)
        outside = (commanded_kpa <= low + margin) | (commanded_kpa >= high - margin)
        at_limit = 100 * float(outside.any(axis=1).mean())
    return PressureSummary(
        commanded_min_kpa=reduced(np.min, commanded_kpa),
        commanded_max_kpa=reduced(np.max, commanded_kpa),
        measured_min_kpa=reduced(np.min, measured_kpa),
        measured_max_kpa=reduced(np.max, measured_kpa),
        at_limit_percent=at_limit,
    )


def pressure_limits_kpa(run: Run) -> tuple[float, float] | None:
    """Lowest and highest allowed gauge pressure [kPa]; None when no node told its robot."""
    limits = run.robot.get("pressure_limits")
    return (1e-3 * limits["minimum"], 1e-3 * limits["maximum"]) if limits else None


def _wrench(run: Run) -> WrenchSummary:
    forces = np.linalg.norm(run.wrench.values[:, :3], axis=1)
    moments = np.linalg.norm(run.wrench.values[:, 3:], axis=1)
    return WrenchSummary(
        force_mean_n=reduced(np.mean, forces),
        force_max_n=reduced(np.max, forces),
        moment_mean_nm=reduced(np.mean, moments),
        moment_max_nm=reduced(np.max, moments),
    )


def failures(system: dict[str, Any]) -> list[str]:
    """Why the run failed, if it did."""
    return [system["error"]] if system.get("error") else []


def _notes(run: Run) -> list[str]:
    notes = []
    if len(run.reference_tip) and not len(run.truth_tip) and len(run.measured_tip):
        notes.append("without a simulator's truth the tip errors are against mocap, noise included")
    if not run.robot:
        notes.append("no node told its robot: errors relative to its length are missing")
    tip = run.tip.between(*(evaluated_window(run) or (0, 0)))
    followed = len(tracking_error(run))
    if followed < 0.95 * len(tip):
        notes.append(
            f"tip errors cover {followed} of {len(tip)} ticks: the others had no reference"
        )
    return notes + silences(run)


def silences(run: RecordedSystem) -> list[str]:
    """Which nodes fell silent before the end."""
    ages = {node: 1e-9 * (run.last_heard - s.last_heard) for node, s in run.nodes.items()}
    return [
        f"{node} fell silent {age:.1f} s before the end of the recording"
        for node, age in ages.items()
        if age > SILENCE
    ]


def alarms(run: RecordedSystem) -> list[str]:
    """Why nodes rejected messages and answers, their warnings and errors; a few of each node."""
    lines: list[str] = []
    for node, status in run.nodes.items():
        rejections = status.values.get("rejections") or {}
        told = [f"rejected {reason}, {count} times" for reason, count in rejections.items()]
        refusals = status.values.get("refusals") or {}
        told += [f"{line}, {count} times" for line, count in refusals.items()]
        shown = told[:ALARMS_SHOWN] + [
            f"{alarm}, {count} times" for alarm, count in [*status.alarms.items()][:ALARMS_SHOWN]
        ]
        lines += [f"{node}: {line}" for line in shown]
        if len(shown) < len(told) + len(status.alarms):
            lines.append(f"{node}: and {len(told) + len(status.alarms) - len(shown)} more")
    return lines


def duration_of(series: Series) -> float | None:
    """From the first to the last sample [s]."""
    return 1e-9 * float(series.stamps[-1] - series.stamps[0]) if len(series) else None


def reduced(reduce: Callable[[np.ndarray], Any], values: np.ndarray) -> float | None:
    """One number of many; None of none, or when one is not finite."""
    number = float(reduce(values)) if values.size else math.nan
    return number if math.isfinite(number) else None


def number(value: Any) -> Any:
    """What a node said, if it is a finite number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) else None

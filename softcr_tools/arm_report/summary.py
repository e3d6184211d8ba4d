"""The numbers of an arm's run: what its `summary.json` holds."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from softcr_models.constant_curvature.shape_error import shape_error
from softcr_tools.arm_report.run import ArmRun
from softcr_tools.report_run import Series
from softcr_tools.report_summary import (
    LoopSummary,
    SystemSummary,
    alarms,
    duration_of,
    failures,
    loop_summary,
    number,
    reduced,
    silences,
)
from softcr_tools.report_text import (
    KeyFigure,
    ReportPage,
    death_lines,
    headline,
    in_unit,
    loop_row,
)

SETTLED = 1.0
"""A setpoint's error is the mean over its last part of this length [s]."""

SHORTEST_DWELL = 2.0
"""A target that stands still for less is a motion, not a setpoint [s]."""

STANDING = 1e-6
"""A target that moves less than this between two frames stands still [m]."""

_SHAPES_EVERY = 25  # samples between two shapes that are compared


@dataclass(frozen=True)
class TendonSummary:
    """Changes of tendon length [mm], forces [N]: largest pull and, were it no tendon, push."""

    commanded_min_mm: float | None
    commanded_max_mm: float | None
    following_error_mean_mm: float | None
    pull_max_n: float | None
    push_max_n: float | None


@dataclass(frozen=True)
class ArmSummary(SystemSummary):
    """One run of an arm in numbers; None is what could not be computed, `problems` says why.

    `setpoint_errors_mm` are means over the last second of each setpoint that stood still for 2 s or
    more. `shape_error_mm` is E_shape of the thesis, (52): the mean distance of equal parts of the
    arm's and the model's backbones, twice a second. `elongation_mm` is the mean of Psi, (50).
    Section lengths are the controller's estimates of rest lengths; `sections_measured_mm` where the
    racks are in the arm file. Sensor errors are what the model leaves of what the cameras see.
    """

    payload_kg: float | None
    setpoint_errors_mm: list[float]
    shape_error_mm: float | None
    elongation_mm: float | None
    section_lengths_mm: list[float]
    section_lengths_initial_mm: list[float]
    sections_measured_mm: list[float]
    sensor_distance_mm: float | None
    sensor_angle_mrad: float | None
    tendons: TendonSummary
    ticks_at_bounds: int | None
    holds: int | None
    loops: dict[str, LoopSummary]

    def page(self) -> ReportPage:
        """The summary in words."""
        return _page(self)


def summarize_arm(run: ArmRun, system: dict[str, Any]) -> ArmSummary:
    """Compute the numbers of a run.

    Args:
        run: what was recorded.
        system: content of the run's system.json, which knows who died; empty if there is none.
    """
    error_mm = 1e3 * tracking_error(run).values
    psi = np.linalg.norm(run.estimated_q.values[:, 2::3], axis=1)
    lengths = 1e3 * run.rest_lengths.values
    return ArmSummary(
        robot=run.robot.get("name"),
        reference=run.said("tip_reference", "reference"),
        mode=run.said("apcc_controller", "mode") or run.said("simulator", "mode"),
        seed=number(run.said("simulator", "seed")),
        duration_s=duration_of(run.tip),
        tip_aed_mm=reduced(np.mean, error_mm),
        tip_error_max_mm=reduced(np.max, error_mm),
        estimate_tip_aed_mm=reduced(np.mean, 1e3 * run.estimated_tip.minus(run.tip).norm().values),
        payload_kg=number(run.said("simulator", "payload")),
        setpoint_errors_mm=[1e3 * error for error in _setpoint_errors(run)],
        shape_error_mm=reduced(np.mean, 1e3 * shape_errors(run).values),
        elongation_mm=reduced(np.mean, 1e3 * psi),
        section_lengths_mm=lengths[-1].tolist() if len(lengths) else [],
        section_lengths_initial_mm=lengths[0].tolist() if len(lengths) else [],
        sections_measured_mm=[] if run.arm is None else (1e3 * run.arm.model_lengths).tolist(),
        sensor_distance_mm=reduced(np.mean, 1e3 * run.distances.values),
        sensor_angle_mrad=reduced(np.mean, 1e3 * run.angles.values),
        tendons=_tendons(run),
        ticks_at_bounds=number(run.said("apcc_controller", "ticks_at_bounds")),
        holds=number(run.said("apcc_controller", "holds")),
        loops={node: loop_summary(run, node) for node in run.nodes},
        node_deaths=list(system.get("deaths", ())),
        ended_by=system.get("ended_by"),
        problems=[*failures(system), *run.problems, *_notes(run), *silences(run), *alarms(run)],
    )


def tracking_error(run: ArmRun) -> Series:
    """(T,) distance of tip and target [m] at equal stamps."""
    return run.tip.minus(run.target).norm()


def shape_errors(run: ArmRun) -> Series:
    """(K,) E_shape [m] twice a second; empty without a truth, an estimate or the arm's data."""
    stamps, true, found = np.intersect1d(
        run.true_q.stamps, run.estimated_q.stamps, assume_unique=True, return_indices=True
    )
    if run.arm is None or not len(stamps):
        return Series(np.empty(0, dtype=np.int64), np.empty(0))
    picked = np.arange(0, len(stamps), _SHAPES_EVERY)
    arm = run.arm
    errors = [
        shape_error(
            arm.chain, run.true_q.values[true[k]], arm.rest_lengths,
            arm.model, run.estimated_q.values[found[k]], run.rest_lengths.values[found[k]],
        )
        for k in picked
    ]  # fmt: skip
    return Series(stamps[picked], np.array(errors))


def _setpoint_errors(run: ArmRun) -> list[float]:
    """Mean error of each setpoint's last second [m], in their order."""
    target, error = run.target, tracking_error(run)
    if not len(target):
        return []
    moved = np.linalg.norm(np.diff(target.values, axis=0), axis=1) > STANDING
    bounds = [0, *(np.flatnonzero(moved) + 1), len(target)]
    found = []
    for begin, end in pairwise(bounds):
        first, last = int(target.stamps[begin]), int(target.stamps[end - 1])
        if last - first >= 1e9 * SHORTEST_DWELL:
            late = error.between(last - round(1e9 * SETTLED), last)
            if len(late):
                found.append(float(late.values.mean()))
    return found


def _tendons(run: ArmRun) -> TendonSummary:
    commanded = 1e3 * run.commanded.values
    following = 1e3 * np.abs(run.commanded.minus(run.lengths).values)
    forces = run.forces.values
    return TendonSummary(
        commanded_min_mm=reduced(np.min, commanded),
        commanded_max_mm=reduced(np.max, commanded),
        following_error_mean_mm=reduced(np.mean, following),
        pull_max_n=reduced(np.max, -forces),
        push_max_n=reduced(np.max, forces),
    )


def _notes(run: ArmRun) -> list[str]:
    notes = []
    if not len(run.true_tip) and len(run.measured):
        notes.append("without a simulator's truth the tip errors are against mocap, noise included")
    if run.arm is None:
        notes.append("no node told its arm: shape and the model's tip are missing")
    if (run.forces.values > 0.0).any():
        notes.append(
            "tendons push at times, as in the thesis's simulations; a real tendon goes slack"
        )
    return notes


def _page(summary: ArmSummary) -> ReportPage:
    settings = []
    if summary.payload_kg is not None:
        settings.append(f"payload {summary.payload_kg:g} kg")
    if summary.seed is not None:
        settings.append(f"seed {summary.seed}")
    return ReportPage(
        headline=headline(summary),
        settings=" · ".join(settings),
        deaths=death_lines(summary),
        figures=_key_figures(summary),
        loops=[loop_row(node, loop) for node, loop in summary.loops.items()],
        problems=summary.problems,
    )


def _key_figures(summary: ArmSummary) -> list[KeyFigure]:
    tendons, errors = summary.tendons, summary.setpoint_errors_mm
    reached = "no setpoint stood still"
    if errors:
        reached = (
            f"in the last second of {len(errors)} setpoints {in_unit(float(np.mean(errors)), 'mm')}"
        )
    return [
        KeyFigure(
            "tip to setpoint",
            in_unit(summary.tip_aed_mm, "mm"),
            f"mean, motions included; {reached}, largest "
            f"{in_unit(summary.tip_error_max_mm, 'mm', digits=0)}",
        ),
        KeyFigure(
            "model to arm",
            in_unit(summary.shape_error_mm, "mm"),
            f"E_shape; tip {in_unit(summary.estimate_tip_aed_mm, 'mm')}, sensors "
            f"{in_unit(summary.sensor_distance_mm, 'mm')} and "
            f"{in_unit(summary.sensor_angle_mrad, 'mrad', digits=1)}",
        ),
        KeyFigure(
            "section lengths",
            f"{_listed(summary.section_lengths_mm)} mm",
            f"at first {_listed(summary.section_lengths_initial_mm)} mm, racks "
            f"{_listed(summary.sections_measured_mm)} mm; bounds met in "
            f"{_count(summary.ticks_at_bounds)} ticks",
        ),
        KeyFigure(
            "tendons",
            f"{in_unit(tendons.commanded_min_mm, digits=0)} to "
            f"{in_unit(tendons.commanded_max_mm, 'mm', digits=0)}",
            f"largest pull {in_unit(tendons.pull_max_n, 'N', digits=1)}; "
            f"held {_count(summary.holds)} times",
        ),
    ]


def _listed(lengths_mm: list[float]) -> str:
    return ", ".join(f"{length:.1f}" for length in lengths_mm) or "-"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)

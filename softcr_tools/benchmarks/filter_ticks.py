"""Rows: one tick of the estimator, from measured pressures and tip to the estimate."""

import itertools
from collections.abc import Iterator
from typing import Literal

import numpy as np

from softcr_estimation.rod_estimator import EstimatorSettings, RodEstimator
from softcr_models.prediction import RodPrediction
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_tools.benchmarks.batches import scalar_timing
from softcr_tools.benchmarks.reference_motion import (
    PERIOD,
    mean_distance,
    three_phase_pressures,
    tip_positions,
)
from softcr_tools.benchmarks.row import Requirement, Rival, Row
from softcr_tools.benchmarks.timing import (
    WARM_UP,
    Effort,
    Timing,
    cores,
    cores_available,
    measure_each,
)

UNIT = "ms per tick"
SUBSTEPS = 2
TIP_NOISE = 2e-4
MUST, GOAL = 1.5, 0.7


def rows(robot: Robot, effort: Effort) -> Iterator[Row]:
    """UKF on one core and two, EKF on one."""
    rod = CosseratRod(robot, 5)
    points = 2 * (rod.state_size + 1) + 1
    scalar = points * scalar_timing(rod, SUBSTEPS, effort).times(1e3).median
    rival = Rival(f"{points} scalar steps", scalar)
    note = (
        f"{rod.state_size} states + bending compliance, {SUBSTEPS} sub-steps; tip measured with "
        f"{1e3 * TIP_NOISE:.1f} mm noise"
    )
    alone, error = _ticks(rod, "ukf", 1, effort)
    ukf_note = f"{points} points, {note}"
    yield Row("UKF tick, one core", UNIT, alone, error, rival, _required(alone), ukf_note)
    if cores_available() > 1:
        both, error = _ticks(rod, "ukf", 2, effort)
        yield Row("UKF tick, two cores", UNIT, both, error, rival, _required(both), ukf_note)
    else:
        yield Row("UKF tick, two cores", UNIT, skipped="kernels may use 1 core here")
    timing, error = _ticks(rod, "ekf", 1, effort)
    yield Row("EKF tick, one core", UNIT, timing, error, Rival("UKF", alone.median), note=note)


def _required(timing: Timing) -> tuple[Requirement, ...]:
    return (Requirement(timing.median, "ms", MUST, GOAL),)


def _ticks(
    rod: CosseratRod, kind: Literal["ukf", "ekf"], count: int, effort: Effort
) -> tuple[Timing, float]:
    """Time [ms] of a tick, and the mean tip error [m] of the estimates."""
    prediction = RodPrediction(rod, SUBSTEPS, single_precision=False)
    estimator = RodEstimator(prediction, EstimatorSettings(filter=kind))
    pressures = three_phase_pressures(1 + WARM_UP + effort.repeats)
    tips = _true_tips(prediction, pressures)
    measured = tips + np.random.default_rng(0).normal(0.0, TIP_NOISE, tips.shape)
    samples = zip(pressures[1:], measured, itertools.count(PERIOD, PERIOD), strict=False)
    estimated: list[np.ndarray] = []
    estimator.start(pressures[0], 0.0)

    def tick(sample: tuple[np.ndarray, np.ndarray, float]) -> None:
        estimated.append(estimator.update(*sample).tip_position)

    with cores(count):
        timing = measure_each(tick, samples, effort)
    return timing.times(1e3), mean_distance(np.array(estimated), tips[: len(estimated)])


def _true_tips(prediction: RodPrediction, pressures: np.ndarray) -> np.ndarray:
    """(T, 3) tips [m] from equilibrium on.

    Pressures (T + 1, 3) [Pa] are linear in time, as the estimator takes them.
    """
    parameters = prediction.nominal_parameters
    start = prediction.equilibrium(pressures[0], parameters)
    states = prediction.rollout(start, pressures[None], parameters, PERIOD)[0]
    return tip_positions(prediction.rod, states)

"""Rows: one tick of the estimator, from measured pressures and tip to the estimate."""

import itertools
from collections.abc import Iterator

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


_COMPLIANCE = EstimatorSettings(parameters=("bending_compliance",))


def rows(robot: Robot, effort: Effort) -> Iterator[Row]:
    """UKF of the paper's size on one core and two, with all our parameters, EKF."""
    rod = CosseratRod(robot, 5)
    scalar = scalar_timing(rod, SUBSTEPS, effort).times(1e3).median
    points = 2 * (rod.state_size + 1) + 1
    rival = Rival(f"{points} scalar steps", points * scalar)
    note = f"{SUBSTEPS} sub-steps; tip measured with {1e3 * TIP_NOISE:.1f} mm noise"
    small = f"{rod.state_size} states + bending compliance, {points} points, {note}"
    alone, error = _ticks(rod, _COMPLIANCE, 1, effort)
    yield Row("UKF tick, one core", UNIT, alone, error, rival, _required(alone), small)
    if cores_available() > 1:
        both, error = _ticks(rod, _COMPLIANCE, 2, effort)
        yield Row("UKF tick, two cores", UNIT, both, error, rival, _required(both), small)
    else:
        yield Row("UKF tick, two cores", UNIT, skipped="kernels may use 1 core here")
    against = Rival("UKF", alone.median)
    timing, error = _ticks(rod, EstimatorSettings(), 1, effort)
    more = f"tip mass, damping and pressure offsets estimated too, the default; {note}"
    yield Row("UKF tick, all parameters, one core", UNIT, timing, error, against, note=more)
    settings = EstimatorSettings(filter="ekf", parameters=_COMPLIANCE.parameters)
    timing, error = _ticks(rod, settings, 1, effort)
    yield Row("EKF tick, one core", UNIT, timing, error, against, note=small)


def _required(timing: Timing) -> tuple[Requirement, ...]:
    return (Requirement(timing.median, "ms", MUST, GOAL),)


def _ticks(
    rod: CosseratRod, settings: EstimatorSettings, count: int, effort: Effort
) -> tuple[Timing, float]:
    """Time [ms] of a tick, and the mean tip error [m] of the estimates."""
    prediction = RodPrediction(rod, SUBSTEPS, single_precision=False)
    estimator = RodEstimator(prediction, settings)
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

"""Rows: many candidates over a horizon in one call, as the controller needs them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from softcr_models.prediction import RodPrediction
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_tools.benchmarks.reference_motion import (
    FINE_SUBSTEPS,
    PERIOD,
    mean_distance,
    three_phase_pressures,
    tip_positions,
)
from softcr_tools.benchmarks.row import Requirement, Rival, Row
from softcr_tools.benchmarks.timing import Effort, Timing, cores, cores_available, measure

UNIT = "us per candidate-step"
CANDIDATES, HORIZON = 1000, 8
SUBSTEPS = 2
# Enough candidates for a mean error.
CHECKED = 64
MUST, GOAL = 2.5, 1.2


@dataclass(frozen=True)
class _Batch:
    """A moving rod, and what candidates do to it."""

    rod: CosseratRod
    state: np.ndarray  # (72,)
    pressures: np.ndarray  # (B, T + 1, 3) [Pa]


def rows(robot: Robot, effort: Effort) -> Iterator[Row]:
    """float32 and float64 lanes on one core and two, and the scalar kernel."""
    batch = _make_batch(robot, effort)
    scalar = scalar_timing(batch.rod, SUBSTEPS, effort).times(1e6)
    rival = Rival("scalar kernel", scalar.median)
    for single_precision in (True, False):
        prediction = RodPrediction(batch.rod, SUBSTEPS, single_precision)
        error = _tip_error(batch, prediction)
        for count in (1, 2):
            name = f"batch {CANDIDATES} x {HORIZON}, {_precision(prediction)}, {_cores(count)}"
            if count > cores_available():
                yield Row(name, UNIT, skipped=f"kernels may use {cores_available()} core here")
                continue
            timing = _timing(batch, prediction, count, effort)
            per_core = Requirement(count * timing.median, "us/core", MUST, GOAL)
            yield Row(
                name,
                UNIT,
                timing,
                error,
                rival,
                (per_core,) if single_precision else (),
                f"{SUBSTEPS} sub-steps; tip error over the horizon against {FINE_SUBSTEPS} "
                "sub-steps in float64",
            )
    yield Row(
        "scalar kernel",
        UNIT,
        scalar,
        _tip_error(batch, RodPrediction(batch.rod, SUBSTEPS, single_precision=False)),
        note=f"{SUBSTEPS} sub-steps, float64, one core: candidates one by one, as where SIMD lanes "
        "cannot be had",
    )


def scalar_timing(rod: CosseratRod, substeps: int, effort: Effort) -> Timing:
    """Time per step [s] of the kernel for one rod, many steps in a call."""
    rod = CosseratRod(rod.robot, rod.intervals, max_substep=PERIOD / substeps)
    pressures = three_phase_pressures(effort.periods)
    rest = rod.rest_state()
    whole = measure(lambda: rod.simulate(rest, pressures, PERIOD), effort)
    return whole.times(1.0 / len(pressures))


def _make_batch(robot: Robot, effort: Effort) -> _Batch:
    """Random commands through the pressure lag, from the middle of the reference motion."""
    rod = CosseratRod(robot, 5)
    motion = three_phase_pressures(effort.periods)
    middle = effort.periods // 2
    state = rod.simulate(rod.rest_state(), motion[: middle + 1], PERIOD)[-1]
    commands = np.random.default_rng(0).uniform(0.0, 6e4, (CANDIDATES, HORIZON, rod.input_size))
    return _Batch(rod, state, robot.pressure_lag.trajectory(motion[middle], commands, PERIOD))


def _timing(batch: _Batch, prediction: RodPrediction, count: int, effort: Effort) -> Timing:
    parameters = prediction.nominal_parameters
    with cores(count):
        whole = measure(
            lambda: prediction.rollout(batch.state, batch.pressures, parameters, PERIOD), effort
        )
    return whole.times(1e6 / (CANDIDATES * HORIZON))


def _tip_error(batch: _Batch, prediction: RodPrediction) -> float:
    """Mean over candidates and steps [m]."""
    fine = RodPrediction(batch.rod, FINE_SUBSTEPS, single_precision=False)
    tips = []
    for model in (prediction, fine):
        states = model.rollout(
            batch.state, batch.pressures[:CHECKED], model.nominal_parameters, PERIOD
        )
        tips.append(tip_positions(batch.rod, states.reshape(-1, batch.rod.state_size)))
    return mean_distance(*tips)


def _precision(prediction: RodPrediction) -> str:
    return "float32" if prediction.single_precision else "float64"


def _cores(count: int) -> str:
    return "one core" if count == 1 else "two cores"

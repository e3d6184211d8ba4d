"""Rows: many candidates over a horizon in one call, as the controller needs them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softcr_models.devices import gpu_name, what_cuda_lacks
from softcr_models.prediction import RodPrediction
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod_model import RodModel
from softcr_tools.benchmarks.reference_motion import (
    FINE_SUBSTEPS,
    PERIOD,
    mean_distance,
    three_phase_pressures,
    tip_positions,
)
from softcr_tools.benchmarks.row import Requirement, Rival, Row
from softcr_tools.benchmarks.timing import Effort, Timing, cores, cores_available, measure

if TYPE_CHECKING:
    from softcr_models.cuda.prediction import CudaRodPrediction

UNIT = "us per candidate-step"
CANDIDATES, HORIZON = 1000, 8
SUBSTEPS = 2
# Enough candidates for a mean error.
CHECKED = 64
MUST, GOAL = 2.5, 1.2


@dataclass(frozen=True)
class Batch:
    """A moving rod, and what candidates do to it."""

    rod: CosseratRod
    state: np.ndarray  # (72,)
    pressures: np.ndarray  # (B, T + 1, 3) [Pa]


def rows(robot: Robot, effort: Effort) -> Iterator[Row]:
    """float32 and float64 lanes on one core and two, the scalar kernel, and a GPU."""
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
    yield from cuda_rows(batch, effort)


def cuda_rows(batch: Batch, effort: Effort) -> Iterator[Row]:
    """The rod on a GPU in float32, beside all cores here: arrays on the host, and on the GPU."""
    name = f"exact rod, CUDA, {CANDIDATES} x {HORIZON}"
    names = {"host": name, "device": f"{name}, arrays on the GPU"}
    lacks = what_cuda_lacks("numba")
    if lacks:
        yield from (Row(name, UNIT, skipped=lacks) for name in names.values())
        return
    from softcr_models.cuda.prediction import CudaRodPrediction

    cores_here = cores_available()
    processor = _timing(batch, RodPrediction(batch.rod, SUBSTEPS), cores_here, effort)
    rival = Rival(f"float32 lanes, {cores_here} cores", processor.median)
    prediction = CudaRodPrediction(batch.rod, SUBSTEPS)
    error = _tip_error(batch, prediction)
    note = f"on {gpu_name() or 'the simulator'}, float32, {SUBSTEPS} sub-steps"
    work = {
        "host": lambda: _roll(batch, prediction),
        "device": _rollout_on_device(batch, prediction),
    }
    for place, name in names.items():
        timing = measure(work[place], effort).times(1e6 / (CANDIDATES * HORIZON))
        yield Row(name, UNIT, timing, error, rival, note=note)


def scalar_timing(rod: CosseratRod, substeps: int, effort: Effort) -> Timing:
    """Time per step [s] of the kernel for one rod, many steps in a call."""
    rod = CosseratRod(rod.robot, rod.intervals, max_substep=PERIOD / substeps)
    pressures = three_phase_pressures(effort.periods)
    rest = rod.rest_state()
    whole = measure(lambda: rod.simulate(rest, pressures, PERIOD), effort)
    return whole.times(1.0 / len(pressures))


def _make_batch(robot: Robot, effort: Effort) -> Batch:
    """Random commands through the pressure lag, from the middle of the reference motion."""
    rod = CosseratRod(robot, 5)
    motion = three_phase_pressures(effort.periods)
    middle = effort.periods // 2
    state = rod.simulate(rod.rest_state(), motion[: middle + 1], PERIOD)[-1]
    commands = np.random.default_rng(0).uniform(0.0, 6e4, (CANDIDATES, HORIZON, rod.input_size))
    return Batch(rod, state, robot.pressure_lag.trajectory(motion[middle], commands, PERIOD))


def _timing(batch: Batch, prediction: RodPrediction, count: int, effort: Effort) -> Timing:
    with cores(count):
        whole = measure(lambda: _roll(batch, prediction), effort)
    return whole.times(1e6 / (CANDIDATES * HORIZON))


def _roll(batch: Batch, prediction: RodModel) -> np.ndarray:
    parameters = prediction.nominal_parameters
    return prediction.rollout(batch.state, batch.pressures, parameters, PERIOD)


def _rollout_on_device(batch: Batch, prediction: "CudaRodPrediction") -> Callable[[], None]:
    """The same with everything on the GPU, up to the end of the work there."""
    from numba import cuda

    values = (batch.state[None], batch.pressures, prediction.nominal_parameters[None])
    states, pressures, parameters = (
        cuda.to_device(value.astype(prediction.dtype)) for value in values
    )
    shape = (len(batch.pressures), HORIZON, prediction.state_size)
    out = cuda.device_array(shape, prediction.dtype)

    def work() -> None:
        prediction.rollout_on_device(states, pressures, parameters, PERIOD, out)
        cuda.synchronize()

    return work


def _tip_error(batch: Batch, prediction: RodModel) -> float:
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

"""Many candidates over a horizon in one call, as the controller needs them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from softcr_models.devices import gpu_name, what_cuda_lacks
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod_model import RodModel
from softcr_studies.speed.motion import (
    FINE_SUBSTEPS,
    PERIOD,
    mean_distance,
    three_phase_pressures,
    tip_positions,
)
from softcr_studies.speed.timing import (
    Baseline,
    Effort,
    Timing,
    cores,
    cores_available,
    measure,
    robot,
    skipped,
    speed_study,
    told,
)
from softcr_studies.study import Metric, Must, Result

if TYPE_CHECKING:
    from softcr_models.cuda.prediction import CudaRodPrediction

UNIT = "us per candidate-step"
CANDIDATES, HORIZON = 1000, 8
SUBSTEPS = 2
# Enough candidates for a mean error.
CHECKED = 64
CASE, SCALAR = f"batch {CANDIDATES} x {HORIZON}", "scalar kernel"
PER_CORE = "median times cores"
CUDA = ("exact rod, CUDA", "exact rod, CUDA, arrays on the GPU")
ALL_CORES = "float32, all cores"


@dataclass(frozen=True)
class Batch:
    """A moving rod, and what candidates do to it."""

    rod: CosseratRod
    state: np.ndarray  # (72,)
    pressures: np.ndarray  # (B, T + 1, 3) [Pa]


def lanes(single_precision: bool, count: int, effort: Effort) -> Result:
    """SIMD lanes on so many cores; 0: on all of them."""
    if count > cores_available():
        return skipped(f"kernels may use {cores_available()} core here")
    count = count or cores_available()
    batch = _make_batch(effort.periods)
    prediction = RodPrediction(batch.rod, SUBSTEPS, single_precision)
    timing = _timing(batch, prediction, count, effort)
    note = f"{SUBSTEPS} sub-steps; tip error over the horizon against {FINE_SUBSTEPS} in float64"
    result = told(timing, UNIT, _tip_error(batch, prediction), note)
    return {**result, PER_CORE: count * timing.median}


def scalar(effort: Effort) -> Result:
    """Candidates one by one."""
    batch = _make_batch(effort.periods)
    note = f"{SUBSTEPS} sub-steps, float64, one core: as where SIMD lanes cannot be had"
    error = _tip_error(batch, RodPrediction(batch.rod, SUBSTEPS, single_precision=False))
    return told(scalar_timing(batch.rod, SUBSTEPS, effort).times(1e6), UNIT, error, note)


def cuda(on_device: bool, effort: Effort) -> Result:
    """The rod on a GPU in float32: arrays on the host, or on the GPU."""
    if lacks := what_cuda_lacks("numba"):
        return skipped(lacks)
    from softcr_models.cuda.prediction import CudaRodPrediction

    batch = _make_batch(effort.periods)
    prediction = CudaRodPrediction(batch.rod, SUBSTEPS)
    work = _rollout_on_device(batch, prediction) if on_device else lambda: _roll(batch, prediction)
    timing = measure(work, effort).times(1e6 / (CANDIDATES * HORIZON))
    note = f"on {gpu_name() or 'the simulator'}, float32, {SUBSTEPS} sub-steps"
    return told(timing, UNIT, _tip_error(batch, prediction), note)


def scalar_timing(rod: CosseratRod, substeps: int, effort: Effort) -> Timing:
    """Time per step [s] of the kernel for one rod, many steps in a call."""
    rod = CosseratRod(rod.robot, rod.intervals, max_substep=PERIOD / substeps)
    pressures = three_phase_pressures(effort.periods)
    rest = rod.rest_state()
    whole = measure(lambda: rod.simulate(rest, pressures, PERIOD), effort)
    return whole.times(1.0 / len(pressures))


@cache
def _make_batch(periods: int) -> Batch:
    """Random commands through the pressure lag, from the middle of the reference motion."""
    rod = CosseratRod(robot(), 5)
    motion = three_phase_pressures(periods)
    middle = periods // 2
    state = rod.simulate(rod.rest_state(), motion[: middle + 1], PERIOD)[-1]
    commands = np.random.default_rng(0).uniform(0.0, 6e4, (CANDIDATES, HORIZON, rod.input_size))
    return Batch(rod, state, robot().pressure_lag.trajectory(motion[middle], commands, PERIOD))


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


_LANES = {
    f"{precision}, {words}": partial(lanes, precision == "float32", count)
    for precision in ("float32", "float64")
    for count, words in ((1, "one core"), (2, "two cores"))
}
STUDY = speed_study(
    "speed/batch",
    f"{CANDIDATES} candidates over {HORIZON} steps in one call",
    {
        **{(CASE, name): work for name, work in _LANES.items()},
        (CASE, SCALAR): scalar,
        (CASE, ALL_CORES): partial(lanes, True, 0),
        (CASE, CUDA[0]): partial(cuda, False),
        (CASE, CUDA[1]): partial(cuda, True),
    },
    [UNIT],
    [
        *(Baseline((CASE, name), (CASE, SCALAR)) for name in _LANES),
        *(Baseline((CASE, name), (CASE, ALL_CORES)) for name in CUDA),
    ],
    metrics=(Metric(PER_CORE, UNIT, PER_CORE, timing=True),),
    musts=tuple(
        Must(PER_CORE, 2.5, 1.2, method=f"float32, {words}") for words in ("one core", "two cores")
    ),
)

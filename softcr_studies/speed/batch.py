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
from softcr_studies.speed import motion, timing
from softcr_studies.speed.motion import FINE_SUBSTEPS, PERIOD
from softcr_studies.speed.timing import Baseline, Effort, told
from softcr_studies.study import Metric, Must, Result

if TYPE_CHECKING:
    from softcr_models.cuda.prediction import CudaRodPrediction

UNIT = "us per candidate-step"
CANDIDATES, HORIZON = 1000, 8
SUBSTEPS = 2
CHECKED = 64  # candidates: enough for a mean error
CASE, SCALAR = f"batch {CANDIDATES} x {HORIZON}", "scalar kernel"
PER_CORE = "median times cores"
CUDA = {False: "exact rod, CUDA", True: "exact rod, CUDA, arrays on the GPU"}
ALL_CORES = "float32, all cores"


@dataclass(frozen=True)
class Batch:
    """A moving rod, and what candidates do to it."""

    rod: CosseratRod
    state: np.ndarray  # (72,)
    pressures: np.ndarray  # (B, T + 1, 3) [Pa]


def lanes(single_precision: bool, count: int, effort: Effort) -> Result:
    """SIMD lanes on so many cores; 0: on all of them."""
    batch, count = _make_batch(effort.periods), count or timing.cores_available()
    prediction = RodPrediction(batch.rod, SUBSTEPS, single_precision)
    with timing.cores(count):
        durations = timing.measure(lambda: _roll(batch, prediction), effort)
    note = f"{SUBSTEPS} sub-steps; tip error over the horizon against {FINE_SUBSTEPS} in float64"
    durations *= 1e6 / (CANDIDATES * HORIZON)
    result = told(durations, UNIT, _tip_error(batch, prediction), note)
    return {**result, PER_CORE: count * result["median"]}


def scalar(effort: Effort) -> Result:
    """Candidates one by one."""
    batch = _make_batch(effort.periods)
    note = f"{SUBSTEPS} sub-steps, float64, one core: as where SIMD lanes cannot be had"
    error = _tip_error(batch, RodPrediction(batch.rod, SUBSTEPS, single_precision=False))
    return told(1e6 * _scalar_durations(effort), UNIT, error, note)


def scalar_step(effort: Effort) -> Result:
    """A step of the kernel for one rod, in the unit of ticks."""
    note = f"{SUBSTEPS} sub-steps, float64, one core"
    return told(1e3 * _scalar_durations(effort), "ms per tick", note=note)


def cuda(on_device: bool, effort: Effort) -> Result:
    """The rod on a GPU in float32: arrays on the host, or on the GPU."""
    if lacks := what_cuda_lacks("rod"):
        raise timing.Skipped(lacks)
    from softcr_models.cuda.prediction import CudaRodPrediction

    batch = _make_batch(effort.periods)
    prediction = CudaRodPrediction(batch.rod, SUBSTEPS)
    on_gpu = rollout_on_device(prediction, batch.state, batch.pressures, PERIOD)
    work = on_gpu if on_device else lambda: _roll(batch, prediction)
    durations = 1e6 / (CANDIDATES * HORIZON) * timing.measure(work, effort)
    note = f"on {gpu_name()}, float32, {SUBSTEPS} sub-steps"
    return told(durations, UNIT, _tip_error(batch, prediction), note)


def _scalar_durations(effort: Effort) -> np.ndarray:
    """(R,) durations of a step [s] of the kernel for one rod, many steps in a call."""
    return motion.step_durations(motion.with_substeps(motion.make_rod(), SUBSTEPS), effort)


@cache
def _make_batch(periods: int) -> Batch:
    """Random commands through the pressure lag, from the middle of the reference motion."""
    rod, pressures = motion.make_rod(), motion.three_phase_pressures(periods)
    middle = periods // 2
    state = motion.from_rest(rod, pressures[: middle + 1])[-1]
    commands = np.random.default_rng(0).uniform(0.0, 6e4, (CANDIDATES, HORIZON, rod.input_size))
    lagged = rod.robot.pressure_lag.trajectory(pressures[middle], commands, PERIOD)
    return Batch(rod, state, lagged)


def _roll(batch: Batch, prediction: RodModel, count: int | None = None) -> np.ndarray:
    """(B, T, 72) states of all candidates, or of the first ones."""
    parameters = prediction.nominal_parameters
    return prediction.rollout(batch.state, batch.pressures[:count], parameters, PERIOD)


def rollout_on_device(
    prediction: "CudaRodPrediction", state: np.ndarray, pressures: np.ndarray, period: float
) -> Callable[[], object]:
    """A rollout with everything on the GPU, up to the end of the work there.

    Args:
        state: (nx,) of all candidates; pressures: (B, T + 1, m) [Pa].
        period: of a step [s].
    """
    import torch

    values = (state[None], pressures, prediction.nominal_parameters[None])
    states, levels, parameters = (
        torch.as_tensor(value, dtype=prediction.tensor_type, device=prediction.device)
        for value in values
    )
    out = prediction.rollout_on_device(states, levels, parameters, period)

    def work() -> None:
        prediction.rollout_on_device(states, levels, parameters, period, out)
        torch.cuda.synchronize()

    return work


def _tip_error(batch: Batch, prediction: RodModel) -> float:
    """Mean over candidates and steps [m]."""
    fine = RodPrediction(batch.rod, FINE_SUBSTEPS, single_precision=False)
    rolled = (_roll(batch, model, CHECKED) for model in (prediction, fine))
    flat = (states.reshape(-1, batch.rod.state_size) for states in rolled)
    return motion.mean_distance(*(motion.tip_positions(batch.rod, states) for states in flat))


_LANES = {
    (CASE, f"{precision}, {words}"): partial(lanes, precision == "float32", count)
    for precision in ("float32", "float64")
    for count, words in ((1, "one core"), (2, "two cores"))
}
STUDY = timing.speed_study(
    "speed/batch",
    f"{CANDIDATES} candidates over {HORIZON} steps in one call",
    {
        **_LANES,
        (CASE, SCALAR): scalar,
        (CASE, ALL_CORES): partial(lanes, True, 0),
        **{(CASE, name): partial(cuda, on_device) for on_device, name in CUDA.items()},
    },
    [UNIT],
    [
        *(Baseline(ours, (CASE, SCALAR)) for ours in _LANES),
        *(Baseline((CASE, name), (CASE, ALL_CORES)) for name in CUDA.values()),
    ],
    metrics=(Metric(PER_CORE, UNIT, PER_CORE, timing=True),),
    musts=tuple(
        Must(PER_CORE, 2.5, 1.2, method=f"float32, {words}") for words in ("one core", "two cores")
    ),
)

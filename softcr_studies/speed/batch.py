"""Many candidates over a horizon in one call, as the controller needs them."""

from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod_model.rod_model import RodModel
from softcr_studies.frame.study import Metric, Must, Result
from softcr_studies.speed import motion, timing
from softcr_studies.speed.motion import FINE_SUBSTEPS, PERIOD
from softcr_studies.speed.timing import Baseline, Effort, told

UNIT = "us per candidate-step"
CANDIDATES, HORIZON = 1000, 8
SUBSTEPS = 2
CHECKED = 64  # candidates: enough for a mean error
CASE, SCALAR = f"batch {CANDIDATES} x {HORIZON}", "scalar kernel"
PER_CORE = "median times cores"
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
    },
    [UNIT],
    [Baseline(ours, (CASE, SCALAR)) for ours in _LANES],
    metrics=(Metric(PER_CORE, UNIT, PER_CORE, timing=True),),
    musts=tuple(
        Must(PER_CORE, 2.5, 1.2, method=f"float32, {words}") for words in ("one core", "two cores")
    ),
)

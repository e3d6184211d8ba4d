"""One tick of the estimator, from measured pressures and tip to the estimate."""

import itertools
from functools import partial

import numpy as np

from softcr_estimation.rod_estimator import EstimatorSettings, RodEstimator
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_studies.speed.batch import SCALAR, scalar_timing
from softcr_studies.speed.motion import (
    PERIOD,
    mean_distance,
    three_phase_pressures,
    tip_positions,
)
from softcr_studies.speed.timing import (
    WARM_UP,
    Baseline,
    Effort,
    cores,
    cores_available,
    measure_each,
    robot,
    skipped,
    speed_study,
    told,
)
from softcr_studies.study import Must, Result

UNIT = "ms per tick"
SUBSTEPS = 2
TIP_NOISE = 2e-4
UKF, BOTH, ALL, EKF = (
    "UKF, one core", "UKF, two cores", "UKF, all parameters, one core", "EKF, one core",
)  # fmt: skip
STEP = "one step"
POINTS = 2 * (72 + 1) + 1  # sigma points of 72 states and the bending compliance
_COMPLIANCE = EstimatorSettings(parameters=("bending_compliance",))
_MEASURED = f"{SUBSTEPS} sub-steps; tip measured with {1e3 * TIP_NOISE:.1f} mm noise"
_SMALL = f"72 states + bending compliance, {POINTS} points, {_MEASURED}"
_LARGE = f"tip mass, damping and pressure offsets estimated too, the default; {_MEASURED}"


def ticks(settings: EstimatorSettings, count: int, note: str, effort: Effort) -> Result:
    """Ticks on so many cores, and the mean tip error of the estimates."""
    if count > cores_available():
        return skipped(f"kernels may use {cores_available()} core here")
    rod = CosseratRod(robot(), 5)
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
        timing = measure_each(tick, samples, effort).times(1e3)
    return told(timing, UNIT, mean_distance(np.array(estimated), tips[: len(estimated)]), note)


def scalar(effort: Effort) -> Result:
    """A step of the kernel for one rod."""
    timing = scalar_timing(CosseratRod(robot(), 5), SUBSTEPS, effort)
    return told(timing.times(1e3), UNIT, note=f"{SUBSTEPS} sub-steps, float64, one core")


def _true_tips(prediction: RodPrediction, pressures: np.ndarray) -> np.ndarray:
    """(T, 3) tips [m] from equilibrium on.

    Pressures (T + 1, 3) [Pa] are linear in time, as the estimator takes them.
    """
    parameters = prediction.nominal_parameters
    start = prediction.equilibrium(pressures[0], parameters)
    states = prediction.rollout(start, pressures[None], parameters, PERIOD)[0]
    return tip_positions(prediction.rod, states)


STUDY = speed_study(
    "speed/filter",
    "one tick of the estimator",
    {
        ("tick", UKF): partial(ticks, _COMPLIANCE, 1, _SMALL),
        ("tick", BOTH): partial(ticks, _COMPLIANCE, 2, _SMALL),
        ("tick", ALL): partial(ticks, EstimatorSettings(), 1, _LARGE),
        ("tick", EKF): partial(
            ticks,
            EstimatorSettings(filter="ekf", parameters=_COMPLIANCE.parameters),
            1,
            _SMALL,
        ),
        (STEP, SCALAR): scalar,
    },
    [UNIT],
    [
        Baseline(("tick", UKF), (STEP, SCALAR), POINTS),
        Baseline(("tick", BOTH), (STEP, SCALAR), POINTS),
        Baseline(("tick", ALL), ("tick", UKF)),
        Baseline(("tick", EKF), ("tick", UKF)),
    ],
    musts=(Must("median", 1.5, 0.7, method=UKF), Must("median", 1.5, 0.7, method=BOTH)),
)

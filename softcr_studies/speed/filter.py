"""One tick of the estimator, from measured pressures and tip to the estimate."""

import itertools
from functools import partial

import numpy as np

from softcr_estimation import ModelEstimator, ModelEstimatorSettings
from softcr_estimation.sensors.pressure_filter import PressureFilter
from softcr_models.model import TIP
from softcr_models.models import make_model
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import load_robot
from softcr_studies.frame.study import Must, Result
from softcr_studies.loops.compared_loops import CHAINED, EVERYTHING
from softcr_studies.speed import motion, timing
from softcr_studies.speed.batch import SCALAR, SUBSTEPS, scalar_step
from softcr_studies.speed.motion import PERIOD
from softcr_studies.speed.timing import Baseline, Effort

UNIT = "ms per tick"
TIP_NOISE = 2e-4
UKF, BOTH, ALL, EKF, CHAIN = (
    ("tick", name)
    for name in ("UKF, one core", "UKF, two cores", "UKF, all parameters, one core",
                 "EKF, one core", "EKF, pressure chain, pressures filtered, one core")
)  # fmt: skip
STEP = ("one step", SCALAR)
POINTS = 2 * (72 + 1) + 1  # sigma points of 72 states and the bending compliance
_COMPLIANCE = ModelEstimatorSettings(parameters=("bending_compliance",))
_EKF = ModelEstimatorSettings(filter="ekf", parameters=_COMPLIANCE.parameters)
_MEASURED = f"{SUBSTEPS} sub-steps; tip measured with {1e3 * TIP_NOISE:.1f} mm noise"
_SMALL = f"72 states + bending compliance, {POINTS} points, {_MEASURED}"
_LARGE = f"tip mass, damping and pressure offsets estimated too, the default; {_MEASURED}"
_WHOLE = f"all that {CHAINED} and its pressure sensors have; {_MEASURED}, pressures exactly"


def ticks(
    settings: ModelEstimatorSettings,
    count: int,
    note: str,
    effort: Effort,
    robot: str | None = None,
) -> Result:
    """Ticks on so many cores, and the mean tip error of the estimates.

    Args:
        settings: of the filter.
        count: of cores.
        note: beside the figure.
        effort: how often.
        robot: whose model the filter has, and with it the filter of the readings of pressures;
            None: that of the plant, and the readings as they are.
    """
    prediction = RodPrediction(motion.make_rod(), SUBSTEPS, single_precision=False)
    options = {"substeps": SUBSTEPS, "single_precision": False}
    model = prediction if robot is None else make_model("rod", load_robot(robot), options)
    estimator = ModelEstimator(model, settings)
    lag = prediction.rod.robot.pressure_lag
    readings = None if robot is None else PressureFilter(lag, PERIOD)
    pressures = motion.three_phase_pressures(1 + timing.WARM_UP + effort.repeats)
    # pressures are linear in time, as the estimator takes them, and the rod begins at rest
    parameters = prediction.nominal_parameters
    rest = prediction.equilibrium(pressures[0], parameters)
    states = prediction.rollout(rest, pressures[None], parameters, PERIOD)[0]
    tips = motion.tip_positions(prediction.rod, states)
    measured = tips + np.random.default_rng(0).normal(0.0, TIP_NOISE, tips.shape)
    commands = lag.commands_along(pressures, PERIOD)
    stamps = itertools.count(PERIOD, PERIOD)
    samples = zip(pressures[1:], measured, stamps, commands, strict=False)
    estimated: list[np.ndarray] = []
    estimator.start(pressures[0], 0.0)

    def tick(sample: tuple[np.ndarray, np.ndarray, float, np.ndarray]) -> None:
        pressures, tip, stamp, command = sample
        if readings is not None:
            readings.hear(stamp - 2.0 * PERIOD, command)  # it acted from a period later on
            pressures = readings.filtered(pressures, stamp)
        estimated.append(estimator.update(pressures, {TIP: tip}, stamp).tip_position)

    with timing.cores(count):
        durations = timing.measure_each(tick, samples, effort)
    error = motion.mean_distance(np.array(estimated), tips[: len(estimated)])
    return timing.told(1e3 * durations, UNIT, error, note)


STUDY = timing.speed_study(
    "speed/filter",
    "one tick of the estimator",
    {
        UKF: partial(ticks, _COMPLIANCE, 1, _SMALL),
        BOTH: partial(ticks, _COMPLIANCE, 2, _SMALL),
        ALL: partial(ticks, EVERYTHING, 1, _LARGE),
        EKF: partial(ticks, _EKF, 1, _SMALL),
        CHAIN: partial(ticks, EVERYTHING, 1, _WHOLE, robot=CHAINED),
        STEP: scalar_step,
    },
    [UNIT],
    [Baseline(UKF, STEP, POINTS), Baseline(BOTH, STEP, POINTS), Baseline(ALL, UKF),
     Baseline(EKF, UKF), Baseline(CHAIN, ALL, must=1 / 1.6)],
    musts=[
        *(Must("median", 1.5, 0.7, method=name) for _, name in (UKF, BOTH)),
        Must("median", 1.5, 0.9, method=CHAIN[1]),
    ],
)  # fmt: skip

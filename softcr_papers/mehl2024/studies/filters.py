"""The filters of the study: each sees pressures and base wrench, starts straight and at rest."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_estimation.estimator_settings import ModelEstimatorSettings
from softcr_estimation.model_estimator import ModelEstimator
from softcr_models import CosseratRod, Robot
from softcr_models.prediction import RodPrediction
from softcr_models.rod.description import BASE_WRENCH
from softcr_papers.mehl2024.cc_estimator import CcEstimator, CcEstimatorSettings
from softcr_papers.mehl2024.dynamics import ConstantCurvatureModel
from softcr_papers.mehl2024.studies.plant import DT, FORCE_NOISE, MOMENT_NOISE, motion_of
from softcr_studies.frame.study import Result

LEFT_OUT = 0.1  # seconds at the start that do not count, Mehl et al., Sec. III-B

# Mehl et al., Sec. IV: Q = 1e-10 diag(1, 1, 1, .1, .1, .1, 1e9) is added every 5 ms, and P_0 = Q.
# The rest is our filter, its gate included: the first innovations from so sure a start are far
# outside of it, so they are believed less than in the paper's filter.
PUBLISHED = CcEstimatorSettings(
    coordinate_noise=math.sqrt(1e-10 / DT),
    rate_noise=math.sqrt(1e-11 / DT),
    stiffness_noise=math.sqrt(1e-1 / DT),
    coordinate_deviation=math.sqrt(1e-10),
    rate_deviation=math.sqrt(1e-11),
    stiffness_deviation=math.sqrt(1e-1),
    force_noise=FORCE_NOISE,
    moment_noise=MOMENT_NOISE,
)

# One mass at the centre of gravity cannot give a rod's weight and its moment at once (the fit
# misses the weight by 3 %), so the paper's model must not believe the force. Chosen on a run that
# is not among the study's.
_ONE_MASS = CcEstimatorSettings(rate_noise=0.3, force_noise=1.0, moment_noise=1e-2)

# The extended filter's mean without measurements is one solution of the model; sigma points of a
# covariance that nothing bounds would leave the range where (8) is stable.
_ALONE = CcEstimatorSettings(filter="ekf")


@dataclass(frozen=True)
class CcFilter:
    """A constant-curvature filter."""

    settings: CcEstimatorSettings
    # whether its model's mass was shared between centre of gravity and tip: the paper's is not
    share_mass: bool = False
    corrected: bool = False  # whether its output is, see `corrected`
    sensor: bool = True  # whether it sees the base wrench; if not it is the identified model alone


FILTERS = {
    "CC-UKF": CcFilter(_ONE_MASS),
    "CC-UKF, mass shared": CcFilter(CcEstimatorSettings(), share_mass=True),
    "model alone, mass shared": CcFilter(_ALONE, share_mass=True, sensor=False),
    "CC-UKF, output corrected": CcFilter(_ONE_MASS, corrected=True),
    "CC-EKF": CcFilter(_ONE_MASS.model_copy(update={"filter": "ekf"})),
    "CC-UKF, published Q R P0": CcFilter(PUBLISHED),
}


def see(
    chosen: CcFilter, run: Result, model: ConstantCurvatureModel, base_height: float
) -> dict[str, np.ndarray]:
    """Sends a constant-curvature filter over a part, see `sensed_run`.

    Returns:
        coordinates, rates, tips, velocities (T, 3) see `motion_of`; stiffness (T,) estimated
        k_theta [N/m], NaN where the filter has none; ticks (T,) computing times [s].
    """
    estimator = CcEstimator(model, base_height, chosen.settings)
    estimator.start(run["times"][0] - DT)
    found, ticks = _sent_over(
        run, lambda p, wrench, stamp: estimator.update(p, wrench if chosen.sensor else None, stamp)
    )
    return {
        "coordinates": np.array([each.coordinates for each in found]),
        "rates": np.array([each.rates for each in found]),
        "tips": np.array([each.tip_position for each in found]) - [0.0, 0.0, base_height],
        "velocities": np.array([each.tip_velocity for each in found]),
        "stiffness": np.array([each.bending_stiffness for each in found]),
        "ticks": ticks,
    }


def see_as_rod(robot: Robot, run: Result, model: ConstantCurvatureModel) -> dict[str, np.ndarray]:
    """Sends an unscented filter over a part whose model is the rod itself; returns as `see`.

    It has half as many intervals as the plant and the plant's exact numbers, so it shows what the
    model's shape is worth; it identifies nothing. `model` has the coordinates of the tip.
    """
    rod = CosseratRod(robot, intervals=5)
    settings = ModelEstimatorSettings(parameters=(), wrench_force_noise=1e-2)
    estimator = ModelEstimator(RodPrediction(rod, single_precision=False), settings, DT)
    straight = rod.equilibrium(np.zeros(rod.input_size))
    estimator.start(run["pressures"][0], run["times"][0] - DT, straight)
    found, ticks = _sent_over(
        run, lambda p, wrench, stamp: estimator.update(p, {BASE_WRENCH: wrench}, stamp)
    )
    told = {"stiffness": np.full(len(found), np.nan), "ticks": ticks}
    return told | motion_of(rod, np.array([each.state for each in found]), model)


def _sent_over(run: Result, update: Callable[..., Any]) -> tuple[list[Any], np.ndarray]:
    """What a filter says of every sample of a part, and (T,) its computing times [s]."""
    found, ticks = [], []
    for sample in zip(run["pressures"], run["wrenches"], run["times"], strict=True):
        began = time.perf_counter()
        found.append(update(*sample))
        ticks.append(time.perf_counter() - began)
    return found, np.array(ticks)


def corrected(
    model: ConstantCurvatureModel, runs: Sequence[Result], seen: Sequence[Result]
) -> list[Result]:
    """What a filter says of parts, with what constant curvature gets wrong taken away.

    A rod is no arc, so a filter whose model is one errs in the same way whenever it stands and
    moves in the same way. The truth of the first part, on which the model is identified, tells how:
    coordinates and rates are corrected by a least-squares polynomial, of second order in the
    coordinates, of first order in rates and pressures. The truth of other parts is not looked at,
    and the filter, which said what was `seen` of the parts, does not know of this.
    """
    given = [np.hstack([each["coordinates"], each["rates"], run["pressures"]])
             for run, each in zip(runs, seen, strict=True)]  # fmt: skip
    scale, first = np.abs(given[0]).max(axis=0) + 1e-12, round(LEFT_OUT / DT)
    true = np.hstack([runs[0]["coordinates"], runs[0]["rates"]])
    terms = [_terms(each / scale) for each in given]
    missing = (true - given[0][:, :6])[first:]
    weights = np.linalg.lstsq(terms[0][first:], missing, rcond=1e-6)[0]
    found: list[Result] = []
    for each, inputs, part in zip(seen, given, terms, strict=True):
        coordinates, rates = np.split(inputs[:, :6] + part @ weights, 2, axis=1)
        tips, velocities = model.tip(coordinates), model.tip_velocity(coordinates, rates)
        said = {"coordinates": coordinates, "rates": rates, "tips": tips, "velocities": velocities}
        found.append({**each, **said})
    return found


def _terms(inputs: np.ndarray) -> np.ndarray:
    """(T, 16) the polynomial's terms of coordinates, rates and pressures (T, 9)."""
    rows, columns = np.triu_indices(3)
    return np.hstack([np.ones((len(inputs), 1)), inputs, inputs[:, rows] * inputs[:, columns]])

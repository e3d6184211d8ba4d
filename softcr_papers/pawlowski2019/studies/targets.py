"""What the control experiments of Pawlowski (2019), Sec. 4.4, ask of the tip: points, circles."""

from functools import cache

import numpy as np
from scipy.optimize import brentq

from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_papers.pawlowski2019.quasi_static import static_change, static_jacobian, static_tip
from softcr_papers.pawlowski2019.reference.dynamic_workspace import Excitation, reached_tips
from softcr_papers.pawlowski2019.reference.workspace import Workspace, coordinates_of, tip_of
from softcr_papers.pawlowski2019.studies.robots import floating

LENGTH = 0.1  # of the rod [m]
RADII = {"inner circle": 0.005, "middle circle": 0.01, "outer circle": 0.015}  # [m]
STRETCH = -0.5  # of the rod on a circle, by its radius: two tendons need -0.45 [1/m]
SHARE = 0.999  # of the tips inside each bound of the smaller dynamic box
STRICT = Workspace(LENGTH, 17.5, (-0.024, 0.051))
COMMON = Workspace(LENGTH, 12.5, (-0.022, 0.018))
"""Boxes around 205 k tips of random held inputs, of all and of 99.9 % quantiles, on 5 intervals,
rounded away from the middle. Other seeds and 10 intervals give boxes that are a little smaller."""
STEP, PLANT_INTERVALS = 2.5e-3, 10  # of the motion that fills the dynamic box [s], [-]
_REACHED = 1e-3  # of the length: what counts as a point that the statics reach [-]
_SEARCHES = 8  # steps of Newton's method to find that out
_LEVEL = 1e-6  # in these, of inputs at their range from rest, as an error [m]


@cache
def model(intervals: int = 5) -> RodPrediction:
    """The thesis's rod without weight."""
    return RodPrediction(CosseratRod(floating(), intervals), single_precision=False)


def static_tips(count: int, random: np.random.Generator) -> np.ndarray:
    """(count, 3) tips of equilibria under random tensions, uniform in their limits [m]."""
    rod = model()
    limits = rod.inputs
    rows = random.uniform(limits.low, limits.high, (count, limits.size))
    # a corner of the limits is where the box ends
    corners = np.array(np.meshgrid(*[(0.0, 1.0)] * limits.size)).reshape(limits.size, -1).T
    rows = np.vstack((limits.low + corners * limits.range, rows))[:count]
    return np.array([static_tip(rod, row, rod.nominal_parameters) for row in rows])


@cache
def static_space() -> Workspace:
    """The box of the statics, Sec. 2.7.3."""
    return Workspace.around(static_tips(500, np.random.default_rng(0)), LENGTH)


def moving_tips(runs: int, seed: int = 0) -> np.ndarray:
    """(runs, 50, 3) tips under random inputs, each held for 0.25 to 0.5 s [m]."""
    rod = CosseratRod(floating(), PLANT_INTERVALS, STEP)
    return reached_tips(rod, Excitation(runs=runs), np.random.default_rng(seed))


def static_points(count: int, random: np.random.Generator) -> np.ndarray:
    """(count, 3) points, uniform in the static box, that the statics do reach [m].

    The box is wider than what tendons reach: its largest bending needs two of them.
    """
    found: list[np.ndarray] = []
    while len(found) < count:
        found += [point for point in static_space().sample(count, random) if _is_held(point)]
    return np.array(found[:count])


def _is_held(point: np.ndarray) -> bool:
    """Whether some tensions hold the tip there."""
    rod = model()
    inputs = rod.inputs.low + 0.3 * rod.inputs.range
    for _ in range(_SEARCHES):
        tip, jacobian = static_jacobian(rod, inputs, rod.nominal_parameters)
        if np.linalg.norm(tip - point) < _REACHED * LENGTH:
            return True
        inputs = inputs + static_change(rod, inputs, jacobian, point - tip, _LEVEL)
    return False


def circle_height(radius: float) -> float:
    """z of a circle that the tip can follow [m]: the tendons that bend the rod compress it, too."""

    def tip(curvature: float) -> np.ndarray:
        return tip_of(np.array([curvature, 0.0, STRETCH * radius]), LENGTH)

    curvature = brentq(lambda each: np.hypot(*tip(each)[:2]) - radius, 1e-6, 0.5 * np.pi / LENGTH)
    return float(tip(curvature)[2])


def circle(radius: float, turns: np.ndarray) -> np.ndarray:
    """(T, 3) points of a horizontal circle at turns (T,) [m]."""
    angle = 2.0 * np.pi * turns
    height = np.full_like(angle, circle_height(radius))
    return np.stack((radius * np.cos(angle), radius * np.sin(angle), height), axis=1)


def share_of(error: np.ndarray) -> np.ndarray:
    """Errors [m] in per cent of the rod's length."""
    return 100.0 * np.asarray(error) / LENGTH


def bending(points: np.ndarray) -> np.ndarray:
    """(J,) curvatures of points (J, 3) [1/m]."""
    return coordinates_of(points, LENGTH)[..., 0]

"""Which sub-steps a robot needs, measured: each input from rest to its limit at its rate."""

import math

import numpy as np

from softcr_models.robots.robot import Robot
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.stepper import Retries, Run

CHOICES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Sub-steps of a tick that are tried."""

_FINE = 1e-4  # sub-steps of the reference [s]
_SETTLING = 0.1  # after a ramp [s]
_LONGEST = 0.6  # of a trial [s]
_UNJUDGED = 1e9


def substep_errors(
    robot: Robot, period: float, intervals: int = 5, enough: float = 0.0, usual: int = 1
) -> dict[int, float]:
    """How far off the tip is with so many sub-steps in a period, as a share of the length.

    Every input goes alone from zero to its limit at its rate; a reference in sub-steps of 0.1 ms
    with the same grid says where the tip should be. What only retries make finite is infinite.

    Args:
        robot: whose.
        period: of a tick [s].
        intervals: of the rod.
        enough: more sub-steps than the first `usual` or more with this error, as a share of the
            length, are not tried.
        usual: sub-steps.

    Raises:
        EquilibriumError: the robot has no steady state without inputs.
    """
    rod = CosseratRod(robot, intervals)
    start = rod.equilibrium(np.zeros(rod.input_size))
    levels = _ramps(robot, period)
    fine = math.ceil(period / _FINE)
    expected = _tips(rod, start, levels, period, fine)
    errors = {}
    for substeps in CHOICES:
        off = np.linalg.norm(_tips(rod, start, levels, period, substeps) - expected, axis=-1)
        errors[substeps] = float(off.max()) / robot.length if np.isfinite(off).all() else math.inf
        if substeps >= usual and errors[substeps] <= enough:
            break
    return errors


def _ramps(robot: Robot, period: float) -> np.ndarray:
    """(m, T + 1, m) inputs, of each input one candidate."""
    tendons = [each.type == "tendon" for each in robot.actuators]
    limits = [robot.tension_limits if each else robot.pressure_limits for each in tendons]
    longest = max(each.maximum / each.maximum_rate for each in limits) + _SETTLING
    times = period * np.arange(math.ceil(min(longest, _LONGEST) / period) + 1)
    levels = np.zeros((len(limits), len(times), len(limits)))
    for k, each in enumerate(limits):
        levels[k, :, k] = np.minimum(each.maximum, each.maximum_rate * times)
    return levels


def _tips(rod, start, levels, period, substeps):
    """(m, T, 3) tips [m]; NaN where a rollout is not finite without retries."""
    run = Run.of(
        rod.body, rod.grid, period, substeps, 0, rod.fittings, rod.loads, None, _UNJUDGED
    )  # fmt: skip
    retries = Retries()
    poses = stepper.rollout_tips(
        start[None], levels, rod.nominal_parameters[None], run, retries=retries
    )
    return poses[..., 3] if not retries.candidates else np.full((*poses.shape[:2], 3), np.nan)

"""How a robot rests under its own weight: whether it stays there, how sure its place is, and how
long it swings about it."""

import math
from typing import NamedTuple

import numpy as np

from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod, EquilibriumError

STIFFNESS_ERROR = 0.05
"""Share by which the stiffness of a robot is easily other than its file says [-]."""

TILT_ERROR = 1.0
"""By which a base is easily mounted other than the file says [deg]."""


class Rest(NamedTuple):
    """The steady state without inputs.

    Attributes:
        stays: whether small motions about it die out.
        moved: distance of the tip, in the base frame, from where it rests with a stiffness off by
            `STIFFNESS_ERROR`, or a base turned by `TILT_ERROR` in roll or pitch: the largest, as a
            share of the length; infinite where the robot does not rest then [-].
        frequency, lasts: of the small swinging about it that lasts longest [Hz], and the time in
            which it fades to 1 / e [s]; 0 where none fades.
    """

    stays: bool
    moved: float
    frequency: float = 0.0
    lasts: float = 0.0


def rest_of(robot: Robot, intervals: int = 5) -> Rest:
    """The rest of a robot.

    Args:
        robot: whose.
        intervals: of the rod.

    Raises:
        EquilibriumError: the robot has no steady state without inputs.
    """
    rod = CosseratRod(robot, intervals)
    inputs = np.zeros(rod.input_size)
    state = rod.equilibrium(inputs)
    roll, pitch, yaw = robot.base_orientation
    tilt = math.radians(TILT_ERROR)
    others = [
        robot.model_copy(update={"base_orientation": turned})
        for turned in ((roll + tilt, pitch, yaw), (roll, pitch + tilt, yaw))
    ]
    others.append(robot.scaled(bending=1.0 + STIFFNESS_ERROR))
    tip, moved = rod.tip_pose(state)[:3, 3], 0.0
    for other in (CosseratRod(each, intervals) for each in others):
        try:
            off = other.tip_pose(other.equilibrium(inputs))[:3, 3] - tip
        except EquilibriumError:
            off = np.full(3, np.inf)
        moved = max(moved, float(np.linalg.norm(off)) / robot.length)
    jacobian, _ = rod.linearize(state, inputs)
    modes = np.linalg.eigvals(jacobian)
    fading = modes[(modes.real < 0.0) & (modes.imag > 0.0)]
    stays = bool(modes.real.max() < 0.0)
    if not len(fading):
        return Rest(stays, moved)
    longest = fading[np.argmax(fading.real)]
    return Rest(stays, moved, abs(longest) / math.tau, -1.0 / longest.real)

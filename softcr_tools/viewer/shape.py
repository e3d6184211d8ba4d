"""A robot's size, and its shape as poses along its centre line, from whatever tells it."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from softcr_models.robots.kinds import AnyRobot
from softcr_models.robots.robot import Robot
from softcr_runtime.wire.frames import base_in_world
from softcr_runtime.wire.topics import TRUTH

_ARC_POINTS, _POINTS = 13, 31  # of a centre line that is drawn


class Shape(NamedTuple):
    """What is drawn of a robot."""

    stamp: int  # of the state [ns]
    positions: np.ndarray  # (k, 3) points along the centre line [m]
    quaternions: np.ndarray  # (k, 4) their orientations, x y z w; z along the robot
    counts: tuple[int, ...] = ()  # intervals of a rod's segments; none where nothing tells them


def hangs(robot: AnyRobot) -> bool:
    """Whether what is drawn of a robot hangs below its base, or stands on it."""
    return robot.in_world and bool(base_in_world(robot)[2, 2] < 0.0)


ShapeMaker = Callable[[Any, int], Shape | None]  # of a decoded value and its stamp [ns]


def shape_makers(robot: AnyRobot) -> dict[str, ShapeMaker]:
    """What makes a shape, by topic; of several that flow the first is drawn."""
    makers: dict[str, ShapeMaker] = {"estimate/rod": _of_cloud, "simulation/truth/rod": _of_cloud}
    if isinstance(robot, Robot):
        makers["estimate/constant_curvature"] = _of_arc(robot)
    else:
        makers |= dict.fromkeys(("estimate/state", TRUTH), partial(_of_state, robot))
    return makers | {"estimate/shape": _of_nodes}


def _of_state(robot: AnyRobot, value: Any, stamp: int) -> Shape | None:
    """With the dimensions of the robot's file, also where the estimator's model has others."""
    poses = robot.centre_line(value.groups, value.parameters, _POINTS)
    return None if poses is None else _of_poses(poses, stamp)


def _of_cloud(value: Any, stamp: int) -> Shape:
    return Shape(stamp, value.positions, value.quaternions, value.counts)


def _of_nodes(value: Any, stamp: int) -> Shape:
    positions, quaternions = zip(*((pose.position, pose.quaternion) for pose in value), strict=True)
    return Shape(stamp, np.array(positions), np.array(quaternions))


def _of_arc(robot: Robot) -> ShapeMaker:
    """The arc of the node `cc_estimator`, which begins above the origin of the sensor."""
    above = robot.sensor_to_base_cap + robot.base_cap_length

    def make(value: Any, stamp: int) -> Shape:
        q = np.array([value[name] for name in ("delta_x", "delta_y", "elongation")])
        bend = q[:2] / (0.5 * robot.outer_diameter)
        twist = np.array([0.0, 0.0, robot.length + q[2], -bend[1], bend[0], 0.0])
        parts = np.linspace(0.0, 1.0, _ARC_POINTS)
        poses = np.array([pin.exp6(part * twist).homogeneous for part in parts])
        poses[:, 2, 3] += above
        return _of_poses(poses, stamp)

    return make


def _of_poses(poses: np.ndarray, stamp: int) -> Shape:
    """From poses (k, 4, 4) or (k, 3, 4) [m] along the centre line."""
    return Shape(stamp, poses[:, :3, 3].copy(), Rotation.from_matrix(poses[:, :3, :3]).as_quat())

"""A robot's size, and its shape as poses along its centre line, from whatever tells it."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError
from scipy.spatial.transform import Rotation

from softcr_models.constant_curvature.arm import Arm
from softcr_models.constant_curvature.kinematics import ConstantCurvatureChain
from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_models.strain.arm import StrainArm
from softcr_models.strain.kinematics import StrainKinematics, kinds_first, transforms

_ARC_POINTS, _ARM_POINTS, _STRAIN_POINTS = 13, 25, 31  # of a backbone that is drawn

AnyRobot = Robot | Arm | StrainArm


def robot_told(content: Mapping[str, Any]) -> AnyRobot | None:
    """The robot that a running node told; None where it is of no kind that is known here."""
    kinds: tuple[type[AnyRobot], ...] = (Robot, Arm, StrainArm)
    for kind in kinds:
        with suppress(ValidationError, UserError):
            return kind.model_validate(content)
    return None


class Shape(NamedTuple):
    """What is drawn of a robot."""

    stamp: int  # of the state [ns]
    positions: np.ndarray  # (k, 3) points along the centre line [m]
    quaternions: np.ndarray  # (k, 4) their orientations, x y z w; z along the robot
    counts: tuple[int, ...] = ()  # intervals of a rod's segments; none where nothing tells them


class Size(NamedTuple):
    """Of what is drawn: `length`, `radius` [m]; `hangs` below its base, or stands on it."""

    length: float
    radius: float
    hangs: bool = False


def size_of(robot: AnyRobot) -> Size:
    """Of what is drawn of a robot."""
    if isinstance(robot, Robot):
        return Size(robot.length, 0.5 * robot.outer_diameter)
    if isinstance(robot, StrainArm):
        return Size(robot.length, robot.radius)
    return Size(sum(robot.bodies), robot.radius, hangs=bool(robot.base[2, 2] < 0.0))


ShapeMaker = Callable[[Any, int], Shape]  # of a decoded value and its stamp [ns]


def shape_makers(robot: AnyRobot) -> dict[str, ShapeMaker]:
    """What makes a shape, by topic; of several that flow the first is drawn."""
    if isinstance(robot, StrainArm):
        return {
            "estimate/state": _of_strains(robot),
            "simulation/truth/strains": _of_named_strains(robot),
        }
    makers: dict[str, ShapeMaker] = {"estimate/rod": _of_cloud, "simulation/truth/rod": _of_cloud}
    if isinstance(robot, Arm):
        makers["estimate/arm"] = _of_sections(robot.model)
        makers["simulation/truth/arm"] = _of_sections(robot.chain)
    else:
        makers["estimate/constant_curvature"] = _of_arc(robot)
    return makers | {"estimate/shape": _of_nodes}


def _of_cloud(value: Any, stamp: int) -> Shape:
    return Shape(stamp, value.positions, value.quaternions, value.counts)


def _of_nodes(value: Any, stamp: int) -> Shape:
    positions, quaternions = zip(*((pose.position, pose.quaternion) for pose in value), strict=True)
    return Shape(stamp, np.array(positions), np.array(quaternions))


def _of_sections(chain: ConstantCurvatureChain) -> ShapeMaker:
    return lambda value, stamp: _of_poses(
        chain.backbone(value.q, value.rest_lengths, _ARM_POINTS), stamp
    )


def _of_arc(robot: Robot) -> ShapeMaker:
    """The arc of the node `cc_estimator`, which begins above the origin of the sensor."""
    base = np.eye(4)
    base[2, 3] = robot.sensor_to_base_cap + robot.base_cap_length
    chain = ConstantCurvatureChain(1, 0.5 * robot.outer_diameter, base)

    def make(value: Any, stamp: int) -> Shape:
        q = np.array([value[name] for name in ("delta_x", "delta_y", "elongation")])
        return _of_poses(chain.backbone(q, np.array([robot.length]), _ARC_POINTS), stamp)

    return make


def _of_strains(robot: StrainArm) -> ShapeMaker:
    """Of a state that was decoded from its message, which has one kind of strain after the other;
    with the segments of the robot's file, also where the estimator's model has others."""
    order = kinds_first(robot.numbers.active)
    _backbone(robot, np.zeros(len(order)))  # it is compiled here, not in the loop

    def make(value: Any, stamp: int) -> Shape:
        q = np.empty(len(order))
        q[order] = value.state[: len(order)]
        return _of_poses(_backbone(robot, q), stamp)

    return make


def _of_named_strains(robot: StrainArm) -> ShapeMaker:
    names = robot.actuator_names
    _backbone(robot, np.zeros(len(names)))

    def make(value: Any, stamp: int) -> Shape:
        return _of_poses(_backbone(robot, np.array([value[name] for name in names])), stamp)

    return make


def _backbone(robot: StrainArm, q: np.ndarray) -> np.ndarray:
    """(k, 3, 4) of strains that are kept (m,)."""
    chain = StrainKinematics(robot.lengths)
    places = np.linspace(0.0, chain.length, _STRAIN_POINTS)
    return transforms(chain.poses(robot.numbers.full(q), places))


def _of_poses(poses: np.ndarray, stamp: int) -> Shape:
    """From poses (k, 4, 4) or (k, 3, 4) [m] along the centre line."""
    return Shape(stamp, poses[:, :3, 3].copy(), Rotation.from_matrix(poses[:, :3, :3]).as_quat())

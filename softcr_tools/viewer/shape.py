"""A robot's shape as poses along its centre line, from whatever tells it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_models.constant_curvature.arm import Arm
from softcr_models.constant_curvature.kinematics import ConstantCurvatureChain, section_pose
from softcr_models.robot import Robot

_ARC_POINTS, _ARM_POINTS = 13, 25  # of a backbone that is drawn
_COORDINATES = ("delta_x", "delta_y", "elongation")


@dataclass(frozen=True, eq=False)
class Shape:
    """What is drawn of a robot.

    Attributes:
        stamp: time of the state [ns].
        positions: (k, 3) points along the centre line [m].
        quaternions: (k, 4) their orientations, x y z w; z along the robot.
    """

    stamp: int
    positions: np.ndarray
    quaternions: np.ndarray

    @classmethod
    def of_poses(cls, poses: np.ndarray, stamp: int) -> "Shape":
        """From poses (k, 4, 4) [m] along the centre line."""
        turns = Rotation.from_matrix(poses[:, :3, :3]).as_quat()
        return cls(stamp, poses[:, :3, 3].copy(), turns)


@dataclass(frozen=True)
class Arc:
    """How the one arc of the constant-curvature estimator stands for a rod.

    Attributes:
        rest_length, radius: of the arc [m].
        base_height: from the sensor's origin to where it begins [m].
    """

    rest_length: float
    radius: float
    base_height: float

    @classmethod
    def of_robot(cls, robot: Robot) -> "Arc":
        """As `ConstantCurvatureModel.of_robot` and the node `cc_estimator` have it."""
        height = robot.sensor_to_base_cap + robot.base_cap_length
        return cls(robot.length, 0.5 * robot.outer_diameter, height)

    def shape(self, coordinates: np.ndarray, stamp: int) -> Shape:
        """The arc with coordinates (3,) [m], in the sensor's frame."""
        parts = np.linspace(0.0, 1.0, _ARC_POINTS)
        poses = section_pose(coordinates, self.rest_length, self.radius, parts)
        poses[:, 2, 3] += self.base_height
        return Shape.of_poses(poses, stamp)

    def compliance(self, stiffness: float) -> float:
        """Bending compliance [rad/(N m m)] of the arc with a bending stiffness [N/m]."""
        return 1.0 / (stiffness * self.rest_length * self.radius**2)


ShapeMaker = Callable[[Any, int], Shape]
"""Makes a shape of a decoded value and its stamp [ns]."""


def shape_makers(robot: Robot | Arm) -> dict[str, ShapeMaker]:
    """What makes a shape, by topic; of several that flow the first is drawn."""

    def of_sections(chain: ConstantCurvatureChain) -> ShapeMaker:
        return lambda value, stamp: Shape.of_poses(
            chain.backbone(value.q, value.rest_lengths, _ARM_POINTS), stamp
        )

    makers: dict[str, ShapeMaker] = {"estimate/rod": _of_cloud, "simulation/truth/rod": _of_cloud}
    if isinstance(robot, Arm):
        makers["estimate/arm"] = of_sections(robot.model)
        makers["simulation/truth/arm"] = of_sections(robot.chain)
    else:
        arc = Arc.of_robot(robot)
        makers["estimate/constant_curvature"] = lambda value, stamp: arc.shape(
            np.array([value[name] for name in _COORDINATES]), stamp
        )
    return makers | {"estimate/shape": _of_nodes}


def _of_cloud(value: Any, stamp: int) -> Shape:
    return Shape(stamp, value.positions, value.quaternions)


def _of_nodes(value: Any, stamp: int) -> Shape:
    positions = np.array([pose.position for pose in value])
    return Shape(stamp, positions, np.array([pose.quaternion for pose in value]))

"""A robot's shape as poses along its centre line, from whatever model estimates it."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_models.constant_curvature.kinematics import section_pose
from softcr_models.robot import Robot

_POINTS = 13  # of an arc that is drawn


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
        parts = np.linspace(0.0, 1.0, _POINTS)
        poses = section_pose(coordinates, self.rest_length, self.radius, parts)
        poses[:, 2, 3] += self.base_height
        return Shape.of_poses(poses, stamp)

    def compliance(self, stiffness: float) -> float:
        """Bending compliance [rad/(N m m)] of the arc with a bending stiffness [N/m]."""
        return 1.0 / (stiffness * self.rest_length * self.radius**2)

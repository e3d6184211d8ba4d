"""The frames of a robot, in one place: their names, and the transforms between them.

`world` is the cameras' and everybody's; `base`, `force_torque` and `tip` are the robot's own, and a
prefix keeps those of several robots apart. world -> base -> force_torque stand still, the tip
moves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from softcr_runtime.blocks.values import Pose
from softcr_runtime.wire.messages import header

WORLD = "world"
STATIC_TOPIC, MOVING_TOPIC = "/tf_static", "/tf"


@dataclass(frozen=True)
class Frames:
    """Names of the frames of one robot.

    Attributes:
        prefix: before the names of the robot's own frames, such as `robot1/`.
    """

    prefix: str = ""

    @property
    def world(self) -> str:
        """The frame of the cameras; all robots share it."""
        return WORLD

    @property
    def base(self) -> str:
        """The origin of the force-torque sensor below the robot, z along the straight robot."""
        return f"{self.prefix}base"

    @property
    def force_torque(self) -> str:
        """The frame of published wrenches."""
        return f"{self.prefix}force_torque"

    @property
    def tip(self) -> str:
        """The outer face of the tip cap, z along the robot."""
        return f"{self.prefix}tip"


@dataclass(frozen=True, eq=False)
class Transform:
    """Where one frame is in another at a time.

    Attributes:
        parent, child: names of the frames.
        pose: of the child in the parent [m].
        stamp: [ns].
    """

    parent: str
    child: str
    pose: Pose
    stamp: int


def base_in_world(robot: Any) -> np.ndarray:
    """(4, 4) pose of the base as the robot's file has it: turned, at the world's origin [m].

    On a bench the calibration of the cameras knows better.
    """
    rotation = pin.rpy.rpyToMatrix(*robot.base_orientation)
    return np.ascontiguousarray(pin.SE3(rotation, np.zeros(3)).homogeneous)


def static_transforms(
    frames: Frames, base: np.ndarray, stamp: int, has_sensor: bool = True
) -> list[Transform]:
    """What stands still: world -> base, and base -> force_torque where there is such a sensor.

    Args:
        frames: names.
        base: (4, 4) pose of the base in the world [m].
        stamp: [ns].
        has_sensor: whether a force-torque sensor sits below the base. Its wrench is told in the
            base's axes about its own origin, which is the base's: the two frames are one place.
    """
    found = [Transform(frames.world, frames.base, Pose.of(base), stamp)]
    if has_sensor:
        here = Pose.of(np.eye(4))
        found.append(Transform(frames.base, frames.force_torque, here, stamp))
    return found


def transform_messages(transforms: Sequence[Transform]) -> list[Any]:
    """geometry_msgs/TransformStamped of each."""
    from geometry_msgs.msg import Quaternion, TransformStamped, Vector3

    made = []
    for each in transforms:
        message = TransformStamped(header=header(each.stamp, each.parent))
        message.child_frame_id = each.child
        x, y, z = map(float, each.pose.position)
        message.transform.translation = Vector3(x=x, y=y, z=z)
        x, y, z, w = map(float, each.pose.quaternion)
        message.transform.rotation = Quaternion(x=x, y=y, z=z, w=w)
        made.append(message)
    return made

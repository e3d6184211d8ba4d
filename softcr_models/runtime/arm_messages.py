"""Messages of a tendon-driven arm: as `messages`, for sensor poses, setpoints and tendons."""

from array import array
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from softcr_models.runtime.messages import (
    MessageError,
    pose_from_message,
    pose_to_message,
    to_stamp,
)


def poses_to_message(poses: np.ndarray, stamp: int, frame: str = "world") -> Any:
    """geometry_msgs/PoseArray of (k, 4, 4) poses [m] seen at one stamp [ns]."""
    from geometry_msgs.msg import PoseArray

    stamped = [pose_to_message(pose, stamp, frame) for pose in poses]
    return PoseArray(header=_header(stamp, frame), poses=[each.pose for each in stamped])


def poses_from_message(message: Any, topic: str, count: int) -> np.ndarray:
    """(count, 4, 4) poses [m] of a PoseArray.

    Raises:
        MessageError: another number of poses, or one that is not a pose.
    """
    if len(message.poses) != count:
        raise MessageError(topic, f"{len(message.poses)} poses, must be {count}")
    return np.array(
        [pose_from_message(SimpleNamespace(pose=each), topic) for each in message.poses]
    )


def point_to_message(point: np.ndarray, stamp: int, frame: str = "world") -> Any:
    """geometry_msgs/PointStamped of a point (3,) [m]; stamp [ns]."""
    from geometry_msgs.msg import Point, PointStamped

    x, y, z = map(float, point)
    return PointStamped(header=_header(stamp, frame), point=Point(x=x, y=y, z=z))


def point_from_message(message: Any, topic: str) -> np.ndarray:
    """(3,) point [m] of a PointStamped.

    Raises:
        MessageError: a coordinate is not finite.
    """
    point = np.array([message.point.x, message.point.y, message.point.z], float)
    if not np.isfinite(point).all():
        raise MessageError(topic, f"point {point.tolist()} must be finite")
    return point


def tendons_to_message(differentials: np.ndarray, names: Sequence[str], stamp: int) -> Any:
    """sensor_msgs/JointState of changes of tendon length (a,) [m] against the zero state."""
    from sensor_msgs.msg import JointState

    position = array("d", np.asarray(differentials, dtype=float).tobytes())
    return JointState(header=_header(stamp, ""), name=list(names), position=position)


def tendons_from_message(message: Any, topic: str, names: Sequence[str]) -> np.ndarray:
    """(a,) changes of tendon length [m], in the order of `names`.

    Raises:
        MessageError: other tendons, or a value that is not finite.
    """
    position = np.array(message.position, float)
    if list(message.name) != list(names) or len(position) != len(names):
        raise MessageError(
            topic, f"name {list(message.name)} must be {list(names)}, with positions"
        )
    if not np.isfinite(position).all():
        raise MessageError(topic, f"position {position.tolist()} must be finite")
    return position


def _header(stamp: int, frame: str) -> Any:
    from std_msgs.msg import Header

    return Header(stamp=to_stamp(stamp), frame_id=frame)

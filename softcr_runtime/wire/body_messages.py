"""Messages of several bodies and of tendons: as `messages`."""

from array import array
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from softcr_runtime.blocks.values import Pose
from softcr_runtime.wire.messages import (
    MessageError,
    pose_to_message,
    pose_value_from_message,
    to_stamp,
)


def poses_to_message(poses: np.ndarray | Sequence[Pose], stamp: int, frame: str = "world") -> Any:
    """geometry_msgs/PoseArray of k poses [m], values or (k, 4, 4), seen at one stamp [ns]."""
    from geometry_msgs.msg import PoseArray

    stamped = [pose_to_message(pose, stamp, frame) for pose in poses]
    return PoseArray(header=_header(stamp, frame), poses=[each.pose for each in stamped])


def pose_values_from_message(message: Any, topic: str, count: int) -> tuple[Pose, ...]:
    """The poses [m] of a PoseArray.

    Raises:
        MessageError: another number of poses, or one that is not a pose.
    """
    if len(message.poses) != count:
        raise MessageError(topic, f"{len(message.poses)} poses, must be {count}")
    wrapped = (SimpleNamespace(pose=each) for each in message.poses)
    return tuple(pose_value_from_message(each, topic) for each in wrapped)


def tendons_to_message(
    differentials: np.ndarray,
    names: Sequence[str],
    stamp: int,
    forces: np.ndarray | None = None,
) -> Any:
    """sensor_msgs/JointState of tendon lengths (a,) [m], of arms against the zero state.

    Forces (a,) [N], where they are measured, are negative where a tendon pulls.
    """
    from sensor_msgs.msg import JointState

    efforts = np.empty(0) if forces is None else forces
    return JointState(
        header=_header(stamp, ""),
        name=list(names),
        position=array("d", np.asarray(differentials, dtype=float).tobytes()),
        effort=array("d", np.asarray(efforts, dtype=float).tobytes()),
    )


def tendons_from_message(message: Any, topic: str, names: Sequence[str]) -> np.ndarray:
    """(a,) tendon lengths [m] as `tendons_to_message` has them, in the order of `names`.

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


def tendon_state_from_message(
    message: Any, topic: str, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """(a,) changes of tendon length [m] and (a,) forces [N], in the order of `names`.

    Raises:
        MessageError: as `tendons_from_message`, and for forces that are missing or not finite.
    """
    forces = np.array(message.effort, float)
    if len(forces) != len(names) or not np.isfinite(forces).all():
        raise MessageError(topic, f"effort {forces.tolist()} must be {len(names)} finite forces")
    return tendons_from_message(message, topic, names), forces


def _header(stamp: int, frame: str) -> Any:
    from std_msgs.msg import Header

    return Header(stamp=to_stamp(stamp), frame_id=frame)

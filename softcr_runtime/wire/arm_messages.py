"""Messages of a tendon-driven arm: as `messages`, for sensor poses and tendons."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from softcr_runtime.blocks.values import Pose
from softcr_runtime.wire.messages import (
    MessageError,
    from_stamp,
    named_numbers_from_message,
    named_numbers_message,
    pose_to_message,
    pose_value_from_message,
    to_stamp,
)

_COORDINATES = ("delta_x", "delta_y", "elongation")


@dataclass(frozen=True, eq=False)
class ArmCloud:
    """A decoded estimate/arm or simulation/truth/arm.

    Attributes:
        stamp: time of the state [ns].
        q: (3 n,) coordinates Delta_x, Delta_y, dL of every section [m].
        rest_lengths: (n,) [m].
        distances, angles: (k,) what is left of each sensor's error [m], [rad]; of the truth none.
    """

    stamp: int
    q: np.ndarray
    rest_lengths: np.ndarray
    distances: np.ndarray
    angles: np.ndarray


def poses_to_message(poses: np.ndarray | Sequence[Pose], stamp: int, frame: str = "world") -> Any:
    """geometry_msgs/PoseArray of k poses [m], values or (k, 4, 4), seen at one stamp [ns]."""
    from geometry_msgs.msg import PoseArray

    stamped = [pose_to_message(pose, stamp, frame) for pose in poses]
    return PoseArray(header=_header(stamp, frame), poses=[each.pose for each in stamped])


def poses_from_message(message: Any, topic: str, count: int) -> np.ndarray:
    """(count, 4, 4) poses [m] of a PoseArray.

    Raises:
        MessageError: another number of poses, or one that is not a pose.
    """
    return np.array([pose.matrix for pose in pose_values_from_message(message, topic, count)])


def pose_values_from_message(message: Any, topic: str, count: int) -> tuple[Pose, ...]:
    """As `poses_from_message`, as positions and quaternions."""
    if len(message.poses) != count:
        raise MessageError(topic, f"{len(message.poses)} poses, must be {count}")
    wrapped = (SimpleNamespace(pose=each) for each in message.poses)
    return tuple(pose_value_from_message(each, topic) for each in wrapped)


def arm_cloud_message(
    q: np.ndarray,
    rest_lengths: np.ndarray,
    stamp: int,
    distances: np.ndarray | None = None,
    angles: np.ndarray | None = None,
) -> Any:
    """sensor_msgs/PointCloud2 of an arm's sections; arguments as the attributes of `ArmCloud`."""
    numbers = {}
    for section, coordinates in enumerate(np.reshape(q, (-1, 3)).tolist(), 1):
        for name, value in zip(_COORDINATES, coordinates, strict=True):
            numbers[f"{name}_{section}"] = value
        numbers[f"rest_length_{section}"] = float(rest_lengths[section - 1])
    for name, values in (("distance", distances), ("angle", angles)):
        for sensor, value in enumerate(() if values is None else values, 1):
            numbers[f"{name}_{sensor}"] = float(value)
    return named_numbers_message(numbers, stamp, "world")


def arm_cloud_from_message(message: Any, topic: str, sections: int | None = None) -> ArmCloud:
    """The sections of an arm.

    Args:
        message: sensor_msgs/PointCloud2.
        topic: where it came from.
        sections: that are expected; None for any number.

    Raises:
        MessageError: another number of sections, a coordinate that is missing or not finite, a
            rest length that is not above 0.
    """
    numbers = named_numbers_from_message(message, topic)
    lengths = _numbered(numbers, "rest_length")
    coordinates = [_numbered(numbers, name) for name in _COORDINATES]
    if not len(lengths) or any(len(each) != len(lengths) for each in coordinates):
        raise MessageError(topic, f"fields {list(numbers)} are not the sections of an arm")
    if sections is not None and len(lengths) != sections:
        raise MessageError(topic, f"{len(lengths)} sections, must be {sections}")
    if not (lengths > 0.0).all():
        raise MessageError(topic, f"rest lengths {lengths.tolist()} m must be above 0")
    return ArmCloud(
        stamp=from_stamp(message, topic),
        q=np.stack(coordinates, axis=1).ravel(),
        rest_lengths=lengths,
        distances=_numbered(numbers, "distance"),
        angles=_numbered(numbers, "angle"),
    )


def _numbered(numbers: Mapping[str, float], name: str) -> np.ndarray:
    """(k,) the values of name_1, name_2, ..."""
    values: list[float] = []
    while (key := f"{name}_{len(values) + 1}") in numbers:
        values.append(numbers[key])
    return np.array(values)


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

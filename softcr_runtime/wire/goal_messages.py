"""Messages of goals: poses and paths that persons send, and how it stands with them."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from softcr_runtime.blocks.values import Goal, GoalState, Pose
from softcr_runtime.wire.diagnostics import DiagnosticReport, diagnostics_to_message
from softcr_runtime.wire.messages import (
    MessageError,
    header,
    pose_to_message,
    pose_value_from_message,
)

_LONGEST = 10_000  # poses of a path
_NONE_ASKED = np.array([0.0, 0.0, 0.0, 1.0])
"""The orientation of a message that nobody has given one."""


def tip_to_message(
    tip: np.ndarray, stamp: int, frame: str, orientation: np.ndarray = _NONE_ASKED
) -> Any:
    """geometry_msgs/PoseStamped of a wanted tip and, if asked for, its orientation.

    Args:
        tip: (3,) position [m]; or (7,) with a quaternion x y z w behind it, which is asked for.
        stamp: [ns].
        frame: of it.
        orientation: (4,) of a tip of three numbers.
    """
    numbers = np.asarray(tip, float)
    turned = numbers[3:] if len(numbers) > 3 else orientation
    return pose_to_message(Pose(numbers[:3], turned), stamp, frame)


def tip_from_message(message: Any, topic: str, frame: str, turns: bool = False) -> np.ndarray:
    """Wanted tip of a PoseStamped.

    Args:
        message: the message.
        topic: where it came from.
        frame: that it must be in.
        turns: whether an orientation can be followed.

    Returns:
        (3,) position [m]; (7,) with a quaternion x y z w behind it where one is asked for.

    Raises:
        MessageError: a value is not finite, it is in another frame, or it asks for an orientation
            that cannot be followed.
    """
    found = message.header.frame_id
    if found not in (frame, ""):
        raise MessageError(topic, f"frame {found!r} must be {frame!r}")
    pose = pose_value_from_message(message, topic)
    if _asked(pose.quaternion[None]) is None:
        return pose.position
    if turns:
        return np.concatenate((pose.position, pose.quaternion))
    told = ", ".join(f"{value:.3g}" for value in pose.quaternion)
    raise MessageError(
        topic, f"orientation ({told}) cannot be followed, must be (0, 0, 0, 1), which asks none"
    )


def goal_to_message(goal: Goal, stamp: int) -> Any:
    """geometry_msgs/PoseStamped of a goal of one tip."""
    return _poses(goal, stamp)[0]


def goal_from_message(message: Any, topic: str) -> Goal:
    """Of a PoseStamped.

    Raises:
        MessageError: a value is not finite, or the quaternion has not length 1.
    """
    pose = pose_value_from_message(message, topic)
    return Goal(pose.position[None], message.header.frame_id, _asked(pose.quaternion[None]))


def path_to_message(goal: Goal, stamp: int) -> Any:
    """nav_msgs/Path of a goal's tips."""
    from nav_msgs.msg import Path

    return Path(header=header(stamp, goal.frame), poses=_poses(goal, stamp))


def path_from_message(message: Any, topic: str) -> Goal:
    """Of a nav_msgs/Path; the stamps of its poses are not used.

    Raises:
        MessageError: no pose, too many, one that is not finite, or of another frame than the path.
    """
    if not 1 <= len(message.poses) <= _LONGEST:
        raise MessageError(topic, f"{len(message.poses)} poses, must be 1 to {_LONGEST}")
    frame = message.header.frame_id
    for each in message.poses:
        if each.header.frame_id not in (frame, ""):
            found = each.header.frame_id
            raise MessageError(topic, f"a pose in frame {found!r}, the path in {frame!r}")
    wrapped = (SimpleNamespace(pose=each.pose) for each in message.poses)
    poses = [pose_value_from_message(each, topic) for each in wrapped]
    asked = _asked(np.array([pose.quaternion for pose in poses]))
    return Goal(np.array([pose.position for pose in poses]), frame, asked)


def goal_state_to_message(value: GoalState, stamp: int) -> Any:
    """diagnostic_msgs/DiagnosticArray with one status, whose message begins with the state."""
    values = {
        "state": value.state,
        "distance": None if np.isnan(value.distance) else round(value.distance, 6),
        "tip": [round(float(each), 6) for each in value.tip],
        "frame": value.frame,
    }
    report = DiagnosticReport("goal: state", int(value.warns), value.message, "", values)
    return diagnostics_to_message([report], stamp)


def _asked(quaternions: np.ndarray) -> np.ndarray | None:
    """(k, 4) orientations; None where no one of them is asked for."""
    return None if (np.abs(np.abs(quaternions) - _NONE_ASKED) < 1e-9).all() else quaternions


def _poses(goal: Goal, stamp: int) -> list[Any]:
    """geometry_msgs/PoseStamped of each tip."""
    told = np.tile(_NONE_ASKED, (len(goal.tips), 1))
    orientations = told if goal.orientations is None else goal.orientations
    pairs = zip(goal.tips, orientations, strict=True)
    return [tip_to_message(tip, stamp, goal.frame, turn) for tip, turn in pairs]


def _position(point: Any, topic: str) -> np.ndarray:
    position = np.array([point.x, point.y, point.z], float)
    if not np.isfinite(position).all():
        raise MessageError(topic, f"point {position.tolist()} must be finite")
    return position

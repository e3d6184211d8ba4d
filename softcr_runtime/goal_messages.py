"""Messages of goals: poses and paths that persons send, and how it stands with them."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from softcr_runtime.diagnostics import DiagnosticReport, diagnostics_to_message
from softcr_runtime.messages import MessageError, header, pose_to_message, pose_value_from_message
from softcr_runtime.values import Goal, GoalState, Pose

_LONGEST = 10_000  # poses of a path
_UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])


def tip_to_message(tip: np.ndarray, stamp: int, frame: str) -> Any:
    """geometry_msgs/PoseStamped of a wanted tip (3,) [m]; its orientation says nothing."""
    return pose_to_message(Pose(np.asarray(tip, float), _UPRIGHT), stamp, frame)


def tip_from_message(message: Any, topic: str, frame: str) -> np.ndarray:
    """(3,) wanted tip [m] of a PoseStamped, or of a PointStamped as in bags of older releases.

    Raises:
        MessageError: a value is not finite, or it is in another frame.
    """
    found = message.header.frame_id
    if found not in (frame, ""):
        raise MessageError(topic, f"frame {found!r} must be {frame!r}")
    point = message.point if hasattr(message, "point") else message.pose.position
    return _position(point, topic)


def goal_to_message(goal: Goal, stamp: int) -> Any:
    """geometry_msgs/PoseStamped of a goal of one tip."""
    return tip_to_message(goal.tips[0], stamp, goal.frame)


def goal_from_message(message: Any, topic: str) -> Goal:
    """Of a PoseStamped; its orientation is not used.

    Raises:
        MessageError: a value is not finite, or the quaternion has not length 1.
    """
    pose = pose_value_from_message(message, topic)
    return Goal(pose.position[None], message.header.frame_id)


def path_to_message(goal: Goal, stamp: int) -> Any:
    """nav_msgs/Path of a goal's tips."""
    from nav_msgs.msg import Path

    poses = [tip_to_message(tip, stamp, goal.frame) for tip in goal.tips]
    return Path(header=header(stamp, goal.frame), poses=poses)


def path_from_message(message: Any, topic: str) -> Goal:
    """Of a nav_msgs/Path; orientations and the stamps of its poses are not used.

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
    return Goal(np.array([pose.position for pose in poses]), frame)


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


def _position(point: Any, topic: str) -> np.ndarray:
    position = np.array([point.x, point.y, point.z], float)
    if not np.isfinite(position).all():
        raise MessageError(topic, f"point {position.tolist()} must be finite")
    return position

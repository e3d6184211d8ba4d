"""Conversions between arrays and ROS messages, both ways.

What goes out is built from arrays and a stamp in integer nanoseconds. What comes in is foreign:
every decoder checks it and raises `MessageError`, so that nothing behind it meets a NaN or a wrong
length.

Decoders read attributes only. They need no ROS and serve rclpy's messages and those that rosbags
reads from a bag alike; ROS is imported by the functions that build messages.
"""

import math
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from softcr_runtime.blocks.command_packets import MOST_COMMANDS, CommandPacket
from softcr_runtime.blocks.values import Pose as PoseValue

_FLOAT64 = 8  # sensor_msgs/PointField.FLOAT64
_ITEM = 8  # bytes of a float64
_NANO = 1_000_000_000
_UNIT_TOLERANCE = 1e-3  # of the length of a received quaternion
_UNKNOWN_ANGLE_VARIANCE = math.pi**2 / 3  # [rad^2] of an angle of which nothing is known


INPUT = "input."
"""Before an actuator's name: the field of an estimate that tells the input it was made with."""


class MessageError(Exception):
    """A received message that must not be used.

    Attributes:
        topic: where it came from.
        what: the field, the value found and what is allowed.
    """

    def __init__(self, topic: str, what: str):
        super().__init__(f"{topic}: {what}")
        self.topic = topic
        self.what = what


# --- time ---------------------------------------------------------------------------------------


def to_stamp(nanoseconds: int) -> Any:
    """builtin_interfaces/Time of a time in integer nanoseconds."""
    from builtin_interfaces.msg import Time

    seconds, rest = divmod(nanoseconds, _NANO)
    return Time(sec=seconds, nanosec=rest)


def from_stamp(message: Any, topic: str) -> int:
    """The header stamp of a message in integer nanoseconds.

    Raises:
        MessageError: it was never set, or is not a time.
    """
    stamp = message.header.stamp
    if stamp.sec < 0 or stamp.nanosec >= _NANO or (stamp.sec == 0 and stamp.nanosec == 0):
        raise MessageError(
            topic, f"stamp {stamp.sec} s, {stamp.nanosec} ns must be a positive time"
        )
    return int(stamp.sec) * _NANO + int(stamp.nanosec)


def clock_to_message(nanoseconds: int) -> Any:
    """rosgraph_msgs/Clock of a simulated time in integer nanoseconds."""
    from rosgraph_msgs.msg import Clock

    return Clock(clock=to_stamp(nanoseconds))


# --- pressures ----------------------------------------------------------------------------------


def pressures_to_message(pressures: np.ndarray, chambers: Sequence[str], stamp: int) -> Any:
    """sensor_msgs/JointState of gauge pressures.

    Args:
        pressures: (m,) [Pa].
        chambers: names of the m chambers.
        stamp: [ns].
    """
    from sensor_msgs.msg import JointState

    if np.shape(pressures) != (len(chambers),):
        raise ValueError(f"pressures have shape {np.shape(pressures)}, must be ({len(chambers)},)")
    effort = array("d", np.asarray(pressures, dtype=float).tobytes())
    return JointState(header=header(stamp, ""), name=list(chambers), effort=effort)


def pressures_from_message(message: Any, chambers: Sequence[str], topic: str) -> np.ndarray:
    """(m,) gauge pressures [Pa] in the order of `chambers`, whatever the order of the message.

    Raises:
        MessageError: other chambers, a wrong number of values, a value that is not finite.
    """
    names = list(message.name)
    effort = np.array(message.effort, dtype=float)
    in_order = names == list(chambers)
    if not in_order and sorted(names) != sorted(chambers):
        raise MessageError(topic, f"name {names} must be the chambers {list(chambers)}")
    if effort.shape != (len(names),):
        raise MessageError(topic, f"effort has {len(effort)} values, must have {len(names)}")
    if not in_order:
        effort = effort[[names.index(chamber) for chamber in chambers]]
    if not np.isfinite(effort).all():
        check_finite(effort, [f"effort of {chamber}" for chamber in chambers], topic)
    return effort


# --- plans of commands --------------------------------------------------------------------------


def plan_to_message(
    packet: CommandPacket, names: Sequence[str], stamp: int, field: str = "effort"
) -> Any:
    """trajectory_msgs/JointTrajectory of a packet of commands.

    Args:
        packet: of commands (N, m).
        names: of the m actuators.
        stamp: of the estimate that it answers [ns]; due times are told from here on.
        field: of the points that carries the commands: "effort", or "positions" of lengths.
    """
    from builtin_interfaces.msg import Duration
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    if packet.commands.shape != (len(packet.due), len(names)):
        raise ValueError(
            f"commands have shape {packet.commands.shape}, must be ({len(packet.due)}, "
            f"{len(names)})"
        )
    points = []
    for due, command in zip(packet.due, packet.commands, strict=True):
        sec, nanosec = divmod(due - stamp, _NANO)
        after = Duration(sec=sec, nanosec=nanosec)
        values = {field: array("d", command.tobytes())}
        points.append(JointTrajectoryPoint(time_from_start=after, **values))
    return JointTrajectory(header=header(stamp, ""), joint_names=list(names), points=points)


def plan_from_message(
    message: Any, names: Sequence[str], topic: str, field: str = "effort"
) -> CommandPacket:
    """The packet of a JointTrajectory, its commands in the order of `names`.

    Raises:
        MessageError: other actuators, no or too many points, a wrong number of values, a value that
            is not finite, due times that do not ascend.
    """
    stamp, found = from_stamp(message, topic), list(message.joint_names)
    if found != list(names) and sorted(found) != sorted(names):
        raise MessageError(topic, f"joint_names {found} must be the actuators {list(names)}")
    if not 1 <= len(message.points) <= MOST_COMMANDS:
        raise MessageError(
            topic, f"points: {len(message.points)} of them, must be 1 to {MOST_COMMANDS}"
        )
    due, rows = [], []
    for number, point in enumerate(message.points):
        row = np.array(getattr(point, field), dtype=float)
        if row.shape != (len(found),):
            raise MessageError(
                topic, f"points[{number}].{field} has {row.size} values, must have {len(found)}"
            )
        if not np.isfinite(row).all():
            labels = [f"points[{number}].{field} of {name}" for name in found]
            check_finite(row, labels, topic)
        after = point.time_from_start
        due.append(stamp + int(after.sec) * _NANO + int(after.nanosec))
        rows.append(row)
        if number and due[-1] <= due[-2]:
            raise MessageError(
                topic,
                f"points[{number}].time_from_start {1e-9 * (due[-1] - stamp):.6g} s must be after "
                f"that of the point before it, {1e-9 * (due[-2] - stamp):.6g} s",
            )
    commands = np.array(rows)
    if found != list(names):
        commands = commands[:, [found.index(name) for name in names]]
    return CommandPacket(tuple(due), commands)


# --- poses and wrenches -------------------------------------------------------------------------


def pose_to_message(pose: np.ndarray | PoseValue, stamp: int, frame: str = "base") -> Any:
    """geometry_msgs/PoseStamped of a (4, 4) pose [m] in `frame`; stamp [ns]."""
    from geometry_msgs.msg import PoseStamped

    return PoseStamped(header=header(stamp, frame), pose=_pose(pose))


def pose_from_message(message: Any, topic: str) -> np.ndarray:
    """(4, 4) pose [m] of a PoseStamped, in the frame of its header.

    Raises:
        MessageError: a value is not finite, or the quaternion has not length 1.
    """
    return _checked_pose(message.pose, topic).matrix


def pose_value_from_message(message: Any, topic: str) -> PoseValue:
    """As `pose_from_message`, as position and quaternion."""
    return _checked_pose(message.pose, topic)


def pose_with_covariance_to_message(
    pose: np.ndarray | PoseValue, position_covariance: np.ndarray, stamp: int, frame: str = "base"
) -> Any:
    """geometry_msgs/PoseWithCovarianceStamped of a pose whose position's covariance is known.

    Args:
        pose: (4, 4) [m] in `frame`.
        position_covariance: (3, 3) [m^2]. The rotation is given the variance of an unknown angle.
        stamp: [ns].
        frame: of pose and covariance.
    """
    from geometry_msgs.msg import PoseWithCovariance, PoseWithCovarianceStamped

    covariance = np.diag([0.0, 0.0, 0.0] + [_UNKNOWN_ANGLE_VARIANCE] * 3)
    covariance[:3, :3] = position_covariance
    body = PoseWithCovariance(pose=_pose(pose), covariance=covariance.ravel())
    return PoseWithCovarianceStamped(header=header(stamp, frame), pose=body)


def pose_with_covariance_from_message(message: Any, topic: str) -> tuple[np.ndarray, np.ndarray]:
    """(4, 4) pose [m] and (6, 6) covariance, position first, of a PoseWithCovarianceStamped.

    Raises:
        MessageError: as `pose_from_message`, and for a variance below 0.
    """
    pose, covariance = pose_with_covariance_value(message, topic)
    return pose.matrix, covariance


def pose_with_covariance_value(message: Any, topic: str) -> tuple[PoseValue, np.ndarray]:
    """As `pose_with_covariance_from_message`, the pose as position and quaternion."""
    pose = _checked_pose(message.pose.pose, topic)
    covariance = np.array(message.pose.covariance, dtype=float).reshape(6, 6)
    check_finite(covariance.ravel(), [f"covariance[{i}]" for i in range(36)], topic)
    if (covariance.diagonal() < 0.0).any():
        raise MessageError(topic, f"variances {covariance.diagonal()} must be at least 0")
    return pose, covariance


def wrench_to_message(wrench: np.ndarray, stamp: int, frame: str = "force_torque") -> Any:
    """geometry_msgs/WrenchStamped of (6,) force [N] then moment [N m] in `frame`; stamp [ns]."""
    from geometry_msgs.msg import Vector3, Wrench, WrenchStamped

    force_x, force_y, force_z, moment_x, moment_y, moment_z = map(float, wrench)
    body = Wrench(
        force=Vector3(x=force_x, y=force_y, z=force_z),
        torque=Vector3(x=moment_x, y=moment_y, z=moment_z),
    )
    return WrenchStamped(header=header(stamp, frame), wrench=body)


def wrench_from_message(message: Any, topic: str) -> np.ndarray:
    """(6,) force [N] then moment [N m] of a WrenchStamped.

    Raises:
        MessageError: a value is not finite.
    """
    force, moment = message.wrench.force, message.wrench.torque
    wrench = np.array([force.x, force.y, force.z, moment.x, moment.y, moment.z])
    names = [f"{part}.{axis}" for part in ("force", "torque") for axis in "xyz"]
    check_finite(wrench, names, topic)
    return wrench


def named_numbers_message(numbers: Mapping[str, float], stamp: int, frame: str = "base") -> Any:
    """sensor_msgs/PointCloud2 of one point whose fields are named numbers; stamp [ns]."""
    table = np.array([[list(numbers.values())]], float)
    return cloud_message(table, tuple(numbers), stamp, frame)


def named_numbers_from_message(message: Any, topic: str) -> dict[str, float]:
    """The numbers of a one-point cloud, by name.

    Raises:
        MessageError: more than a point, fields that are no numbers, a value that is not finite.
    """
    columns = cloud_fields(message, topic)
    if (message.height, message.width) != (1, 1):
        raise MessageError(topic, f"{message.height} x {message.width} points, must be 1 x 1")
    row = cloud_values(message, topic)[0, 0, list(columns.values())].astype(float)
    check_finite(row, list(columns), topic)
    return dict(zip(columns, row.tolist(), strict=True))


# --- inside -------------------------------------------------------------------------------------


def header(stamp: int, frame: str) -> Any:
    """std_msgs/Header; stamp [ns]."""
    from std_msgs.msg import Header

    return Header(stamp=to_stamp(stamp), frame_id=frame)


def _pose(pose: np.ndarray | PoseValue) -> Any:
    from geometry_msgs.msg import Point, Pose, Quaternion

    value = pose if isinstance(pose, PoseValue) else PoseValue.of(pose)
    x, y, z = value.position.tolist()
    qx, qy, qz, qw = value.quaternion.tolist()
    return Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw))


def _checked_pose(pose: Any, topic: str) -> PoseValue:
    position, orientation = pose.position, pose.orientation
    values = [position.x, position.y, position.z]
    quaternion = [orientation.x, orientation.y, orientation.z, orientation.w]
    if not all(map(math.isfinite, values + quaternion)):
        names = ["position.x", "position.y", "position.z"]
        names += ["orientation.x", "orientation.y", "orientation.z", "orientation.w"]
        check_finite(np.array(values + quaternion), names, topic)
    length = math.hypot(*quaternion)
    if abs(length - 1.0) > _UNIT_TOLERANCE:
        raise MessageError(topic, f"orientation {quaternion} has length {length:.6g}, must be 1")
    return PoseValue(np.array(values), np.array(quaternion))


@cache
def _point_fields(names: tuple[str, ...]) -> list[Any]:
    """Layout of a cloud of float64 fields; built once per layout, never changed."""
    from sensor_msgs.msg import PointField

    return [
        PointField(name=name, offset=_ITEM * index, datatype=_FLOAT64, count=1)
        for index, name in enumerate(names)
    ]


def cloud_message(table: np.ndarray, fields: tuple[str, ...], stamp: int, frame: str) -> Any:
    """sensor_msgs/PointCloud2 of a (height, width, fields) table of float64; stamp [ns]."""
    from sensor_msgs.msg import PointCloud2

    height, width, columns = table.shape
    return PointCloud2(
        header=header(stamp, frame),
        height=height,
        width=width,
        fields=_point_fields(fields),
        is_bigendian=False,
        point_step=_ITEM * columns,
        row_step=_ITEM * columns * width,
        data=array("B", table.astype("<f8", copy=False).tobytes()),
        is_dense=bool(np.isfinite(table).all()),
    )


def cloud_fields(message: Any, topic: str) -> dict[str, int]:
    """Column of each field in a row of float64, in their order."""
    found: dict[str, int] = {}
    for field in message.fields:
        if field.datatype != _FLOAT64 or field.count > 1 or field.offset % _ITEM:
            raise MessageError(topic, f"field {field.name} must be one aligned FLOAT64")
        if field.name in found or field.offset + _ITEM > message.point_step:
            raise MessageError(topic, f"field {field.name} must be there once, inside the point")
        found[field.name] = field.offset // _ITEM
    return found


def cloud_values(message: Any, topic: str) -> np.ndarray:
    """(height, width, point_step / 8) of a cloud, every float64 in its place."""
    height, width, step = message.height, message.width, message.point_step
    size = len(message.data)
    if step % _ITEM or message.row_step != width * step or size != height * width * step:
        raise MessageError(
            topic,
            f"{size} bytes, row_step {message.row_step}, point_step {step} must fit "
            f"{height} x {width} points of whole float64",
        )
    numbers = np.frombuffer(message.data, dtype=">f8" if message.is_bigendian else "<f8")
    return numbers.reshape(height, width, step // _ITEM)


def fields_of_inputs(inputs: np.ndarray | None, actuators: Sequence[str]) -> dict[str, float]:
    """Fields `input.ACTUATOR` of an estimate that was made with inputs (m,); none without them."""
    if inputs is None:
        return {}
    return {INPUT + name: value for name, value in zip(actuators, inputs.tolist(), strict=True)}


def inputs_of_fields(
    fields: Mapping[str, float], actuators: Sequence[str] | None, topic: str
) -> np.ndarray | None:
    """(m,) the inputs among an estimate's fields, in the order of the actuators; None without them.

    Args:
        fields: values by name.
        actuators: their names; None: whichever there are, in their order.
        topic: where the message came from.

    Raises:
        MessageError: there are inputs of other actuators.
    """
    found = {n.removeprefix(INPUT): v for n, v in fields.items() if n.startswith(INPUT)}
    if not found:
        return None
    names = list(found) if actuators is None else list(actuators)
    if sorted(names) != sorted(found):
        raise MessageError(topic, f"inputs are of {list(found)}, must be of {names}")
    return np.array([found[name] for name in names])


def check_finite(values: np.ndarray, names: Sequence[str], topic: str) -> None:
    """Refuse what is not finite in the last axis, which `names` names."""
    if not np.isfinite(values).all():
        index = np.argwhere(~np.isfinite(values))[0]
        raise MessageError(topic, f"{names[index[-1]]} = {values[tuple(index)]} must be finite")

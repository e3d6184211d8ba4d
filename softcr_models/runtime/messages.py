"""Conversions between arrays and ROS messages, both ways.

What goes out is built from arrays and a stamp in integer nanoseconds. What comes in is foreign:
every decoder checks it and raises `MessageError`, so that nothing behind it meets a NaN or a wrong
length.

Decoders read attributes only. They need no ROS and serve rclpy's messages and those that rosbags
reads from a bag alike; ROS is imported by the functions that build messages.

A rod state travels as a point cloud that viewers show as it is. Its fields, all float64, are
`ROD_FIELDS`: position and orientation in the base frame, velocity and wrench in the node's local
frame. Point 0 is the mounting side of the base (velocity 0, wrench x2(0-)); points 1 to n + 1 are
the nodes 0+ to n. Each row of a reference cloud is one such rod.
"""

import json
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin

from softcr_models.rod.state import RodState, intervals_of

ROD_FIELDS = (
    *("x", "y", "z"),
    *("qx", "qy", "qz", "qw"),
    *("vx", "vy", "vz", "wx", "wy", "wz"),
    *("fx", "fy", "fz", "mx", "my", "mz"),
)
"""Fields of a point of a rod cloud: m, quaternion, m/s, rad/s, N, N m."""

_POSITION, _QUATERNION = slice(0, 3), slice(3, 7)
_VELOCITY, _WRENCH = slice(7, 13), slice(13, 19)
_FLOAT64 = 8  # sensor_msgs/PointField.FLOAT64
_ITEM = 8  # bytes of a float64
_NANO = 1_000_000_000
_UNIT_TOLERANCE = 1e-3  # of the length of a received quaternion
_UNKNOWN_ANGLE_VARIANCE = math.pi**2 / 3  # [rad^2] of an angle of which nothing is known


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


@dataclass(frozen=True, eq=False)
class RodCloud:
    """A decoded estimate/rod or simulation/truth/rod.

    Attributes:
        stamp: time of the state [ns].
        state: (12(n+1),) flat rod state, see `RodState`.
        positions: (n+2, 3) points along the centre line [m], base frame.
        quaternions: (n+2, 4) their orientations, x y z w.
        parameters: what the state was computed with, by name.
        parameters_std: their standard deviations, by name.
    """

    stamp: int
    state: np.ndarray
    positions: np.ndarray
    quaternions: np.ndarray
    parameters: dict[str, float]
    parameters_std: dict[str, float]


@dataclass(frozen=True, eq=False)
class ReferenceCloud:
    """A decoded reference/rod; row j belongs to time stamp + j * period.

    Attributes:
        stamp: time of row 0 [ns].
        period: time between rows [s].
        states: (H, 12(n+1)) wanted states; rows of NaN where only the tip is known.
        tip_positions: (H, 3) wanted tip positions [m], base frame.
        positions: (H, n+2, 3) centre lines [m], base frame; NaN where only the tip is known.
    """

    stamp: int
    period: float
    states: np.ndarray
    tip_positions: np.ndarray
    positions: np.ndarray


@dataclass(frozen=True)
class DiagnosticReport:
    """One decoded status of /diagnostics.

    Attributes:
        name: "<node>: <part>".
        level: 0 OK, 1 WARN, 2 ERROR, 3 STALE.
        message: one line.
        hardware_id: name of the robot.
        values: by key; what was written as JSON is read back, other text stays text.
    """

    name: str
    level: int
    message: str
    hardware_id: str
    values: dict[str, Any]


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
    return JointState(header=_header(stamp, ""), name=list(chambers), effort=effort)


def pressures_from_message(message: Any, chambers: Sequence[str], topic: str) -> np.ndarray:
    """(m,) gauge pressures [Pa] in the order of `chambers`, whatever the order of the message.

    Raises:
        MessageError: other chambers, a wrong number of values, a value that is not finite.
    """
    names = list(message.name)
    effort = np.array(message.effort, dtype=float)
    if names != list(chambers):
        if sorted(names) != sorted(chambers):
            raise MessageError(topic, f"name {names} must be the chambers {list(chambers)}")
        order = [names.index(chamber) for chamber in chambers]
    else:
        order = list(range(len(names)))
    if effort.shape != (len(names),):
        raise MessageError(topic, f"effort has {len(effort)} values, must have {len(names)}")
    effort = effort[order]
    _check_finite(effort, [f"effort of {chamber}" for chamber in chambers], topic)
    return effort


# --- poses and wrenches -------------------------------------------------------------------------


def pose_to_message(pose: np.ndarray, stamp: int, frame: str = "base") -> Any:
    """geometry_msgs/PoseStamped of a (4, 4) pose [m] in `frame`; stamp [ns]."""
    from geometry_msgs.msg import PoseStamped

    return PoseStamped(header=_header(stamp, frame), pose=_pose(pose))


def pose_from_message(message: Any, topic: str) -> np.ndarray:
    """(4, 4) pose [m] of a PoseStamped, in the frame of its header.

    Raises:
        MessageError: a value is not finite, or the quaternion has not length 1.
    """
    return _matrix(message.pose, topic)


def pose_with_covariance_to_message(
    pose: np.ndarray, position_covariance: np.ndarray, stamp: int, frame: str = "base"
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
    return PoseWithCovarianceStamped(header=_header(stamp, frame), pose=body)


def pose_with_covariance_from_message(message: Any, topic: str) -> tuple[np.ndarray, np.ndarray]:
    """(4, 4) pose [m] and (6, 6) covariance, position first, of a PoseWithCovarianceStamped.

    Raises:
        MessageError: as `pose_from_message`, and for a variance below 0.
    """
    pose = _matrix(message.pose.pose, topic)
    covariance = np.array(message.pose.covariance, dtype=float).reshape(6, 6)
    _check_finite(covariance.ravel(), [f"covariance[{i}]" for i in range(36)], topic)
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
    return WrenchStamped(header=_header(stamp, frame), wrench=body)


def wrench_from_message(message: Any, topic: str) -> np.ndarray:
    """(6,) force [N] then moment [N m] of a WrenchStamped.

    Raises:
        MessageError: a value is not finite.
    """
    force, moment = message.wrench.force, message.wrench.torque
    wrench = np.array([force.x, force.y, force.z, moment.x, moment.y, moment.z])
    names = [f"{part}.{axis}" for part in ("force", "torque") for axis in "xyz"]
    _check_finite(wrench, names, topic)
    return wrench


def named_numbers_message(numbers: Mapping[str, float], stamp: int, frame: str = "base") -> Any:
    """sensor_msgs/PointCloud2 of one point whose fields are named numbers; stamp [ns]."""
    table = np.array([[list(numbers.values())]], float)
    return _cloud(table, tuple(numbers), stamp, frame)


def named_numbers_from_message(message: Any, topic: str) -> dict[str, float]:
    """The numbers of a one-point cloud, by name.

    Raises:
        MessageError: more than a point, fields that are no numbers, a value that is not finite.
    """
    columns = _fields(message, topic)
    if (message.height, message.width) != (1, 1):
        raise MessageError(topic, f"{message.height} x {message.width} points, must be 1 x 1")
    row = _values(message, topic)[0, 0, list(columns.values())].astype(float)
    _check_finite(row, list(columns), topic)
    return dict(zip(columns, row.tolist(), strict=True))


# --- rod states ---------------------------------------------------------------------------------


def rod_cloud_message(
    state: np.ndarray,
    poses: np.ndarray,
    parameters: Mapping[str, float],
    parameters_std: Mapping[str, float],
    stamp: int,
    frame: str = "base",
) -> Any:
    """sensor_msgs/PointCloud2 of one rod state.

    Args:
        state: (12(n+1),) flat rod state.
        poses: (n+2, 4, 4) [m] of base 0- and nodes 0+ to n, in `frame`.
        parameters: what the state was computed with, by name; bending_compliance among them.
        parameters_std: standard deviations by name; 0 where there is none.
        stamp: [ns].
        frame: of the poses.

    Raises:
        ValueError: shapes that do not belong together, or a value that is not finite.
    """
    names = sorted(parameters, key=lambda name: name != "bending_compliance")
    if not names or names[0] != "bending_compliance":
        raise ValueError(f"parameters {names} must hold bending_compliance")
    fields = ROD_FIELDS + tuple(field for name in names for field in (name, f"{name}_std"))
    table = np.empty((1, intervals_of(len(state)) + 2, len(fields)))
    _write_rods(table, state[np.newaxis], poses[np.newaxis])
    for column, name in enumerate(names):
        table[..., len(ROD_FIELDS) + 2 * column] = parameters[name]
        table[..., len(ROD_FIELDS) + 2 * column + 1] = parameters_std.get(name, 0.0)
    if not np.isfinite(table).all():
        raise ValueError("a rod state that is published must be finite")
    return _cloud(table, fields, stamp, frame)


def rod_cloud_from_message(message: Any, topic: str, intervals: int | None = None) -> RodCloud:
    """The rod state of a point cloud.

    Args:
        message: sensor_msgs/PointCloud2.
        topic: where it came from.
        intervals: of the rod that is expected; None for any.

    Raises:
        MessageError: fields, sizes or number of points that are no rod, a value that is not finite.
    """
    columns = _columns(message, topic)
    table = _table(message, columns, topic, intervals)
    if table.shape[0] != 1:
        raise MessageError(topic, f"height {table.shape[0]} must be 1")
    rows = table[0]
    names = list(columns)
    _check_finite(rows, names, topic)
    extra = names[len(ROD_FIELDS) :]
    parameters = [name for name in extra if f"{name}_std" in columns]
    if set(extra) != {field for name in parameters for field in (name, f"{name}_std")}:
        raise MessageError(topic, f"fields {extra} after mz must be pairs NAME, NAME_std")
    if "bending_compliance" not in parameters:
        raise MessageError(topic, "field bending_compliance is missing")
    _check_constant(rows, names, extra, topic)
    values = dict(zip(names, rows[0].tolist(), strict=True))
    return RodCloud(
        stamp=from_stamp(message, topic),
        state=_read_states(table)[0],
        positions=rows[:, _POSITION].copy(),
        quaternions=rows[:, _QUATERNION].copy(),
        parameters={name: values[name] for name in parameters},
        parameters_std={name: values[f"{name}_std"] for name in parameters},
    )


def reference_cloud_message(
    states: np.ndarray,
    poses: np.ndarray | None,
    tip_positions: np.ndarray,
    stamp: int,
    period: float,
    frame: str = "base",
) -> Any:
    """sensor_msgs/PointCloud2 of a reference: one row per step.

    Args:
        states: (H, 12(n+1)) wanted states; rows of NaN where only the tip is known.
        poses: (H, n+2, 4, 4) [m] of base 0- and nodes 0+ to n, in `frame`; NaN where unknown, None
            when all are.
        tip_positions: (H, 3) [m]; they take the place of the last point's position.
        stamp: time of row 0 [ns].
        period: time between rows [s].
        frame: of poses and tip positions.

    Raises:
        ValueError: shapes that do not belong together.
    """
    fields = (*ROD_FIELDS, "period")
    rows, size = states.shape
    points = intervals_of(size) + 2
    if poses is None:
        poses = np.full((rows, points, 4, 4), np.nan)
    if np.shape(tip_positions) != (rows, 3):
        raise ValueError(f"tip positions have shape {np.shape(tip_positions)}, must be ({rows}, 3)")
    table = np.empty((rows, points, len(fields)))
    _write_rods(table, states, poses)
    table[:, -1, _POSITION] = tip_positions
    table[..., -1] = period
    return _cloud(table, fields, stamp, frame)


def reference_cloud_from_message(
    message: Any, topic: str, intervals: int | None = None
) -> ReferenceCloud:
    """The reference of a point cloud; arguments as `rod_cloud_from_message`.

    Raises:
        MessageError: fields, sizes or number of points that are no reference; a tip that is not
            finite; a state that is partly known; a period that is not positive.
    """
    columns = _columns(message, topic)
    names = list(columns)
    if names != [*ROD_FIELDS, "period"]:
        raise MessageError(topic, f"fields {names[len(ROD_FIELDS) :]} after mz must be period")
    table = _table(message, columns, topic, intervals)
    tips = table[:, -1, _POSITION].copy()
    _check_finite(tips, ["tip x", "tip y", "tip z"], topic)
    states = _read_states(table)
    known = np.isfinite(states)
    if not (known.all(axis=1) | np.isnan(states).all(axis=1)).all():
        raise MessageError(topic, "each state must be all finite or, with only a tip, all NaN")
    period = float(table[0, 0, -1])
    if not (math.isfinite(period) and period > 0.0):
        raise MessageError(topic, f"period = {period} s must be positive and finite")
    _check_constant(table.reshape(-1, len(names)), names, ["period"], topic)
    return ReferenceCloud(
        stamp=from_stamp(message, topic),
        period=period,
        states=states,
        tip_positions=tips,
        positions=table[..., _POSITION].copy(),
    )


# --- diagnostics --------------------------------------------------------------------------------


def diagnostics_to_message(reports: Sequence[DiagnosticReport], stamp: int) -> Any:
    """diagnostic_msgs/DiagnosticArray; values that are not text are written as JSON. Stamp [ns]."""
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

    statuses = [
        DiagnosticStatus(
            level=bytes([report.level]),
            name=report.name,
            message=report.message,
            hardware_id=report.hardware_id,
            values=[
                KeyValue(key=key, value=value if isinstance(value, str) else json.dumps(value))
                for key, value in report.values.items()
            ],
        )
        for report in reports
    ]
    return DiagnosticArray(header=_header(stamp, ""), status=statuses)


def diagnostics_from_message(message: Any) -> list[DiagnosticReport]:
    """The statuses of a DiagnosticArray, of any node, ours or not."""
    return [
        DiagnosticReport(
            name=status.name,
            # a byte is bytes in rclpy and an int in rosbags
            level=status.level[0] if isinstance(status.level, bytes) else int(status.level),
            message=status.message,
            hardware_id=status.hardware_id,
            values={pair.key: _json_or_text(pair.value) for pair in status.values},
        )
        for status in message.status
    ]


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# --- inside -------------------------------------------------------------------------------------


def _header(stamp: int, frame: str) -> Any:
    from std_msgs.msg import Header

    return Header(stamp=to_stamp(stamp), frame_id=frame)


def _pose(pose: np.ndarray) -> Any:
    from geometry_msgs.msg import Point, Pose, Quaternion

    x, y, z = pose[:3, 3].tolist()
    qx, qy, qz, qw = pin.Quaternion(pose[:3, :3]).coeffs().tolist()
    return Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw))


def _matrix(pose: Any, topic: str) -> np.ndarray:
    position, orientation = pose.position, pose.orientation
    values = [position.x, position.y, position.z]
    quaternion = [orientation.x, orientation.y, orientation.z, orientation.w]
    names = ["position.x", "position.y", "position.z"]
    names += ["orientation.x", "orientation.y", "orientation.z", "orientation.w"]
    _check_finite(np.array(values + quaternion), names, topic)
    length = math.hypot(*quaternion)
    if abs(length - 1.0) > _UNIT_TOLERANCE:
        raise MessageError(topic, f"orientation {quaternion} has length {length:.6g}, must be 1")
    matrix = np.eye(4)
    matrix[:3, :3] = pin.Quaternion(np.array(quaternion) / length).matrix()
    matrix[:3, 3] = values
    return matrix


def _write_rods(table: np.ndarray, states: np.ndarray, poses: np.ndarray) -> None:
    """Fill the rod's fields of a (H, n+2, fields) table from (H, nx) and (H, n+2, 4, 4)."""
    rods = RodState(states)
    expected = (len(states), rods.intervals + 2, 4, 4)
    if np.shape(poses) != expected:
        raise ValueError(
            f"poses have shape {np.shape(poses)}, must be {expected} for states {states.shape}"
        )
    table[..., _POSITION] = poses[..., :3, 3]
    table[..., _QUATERNION] = _quaternions(poses[..., :3, :3])
    table[:, :2, _VELOCITY] = 0.0
    table[:, 2:, _VELOCITY] = rods.velocities
    table[:, 0, _WRENCH] = rods.base_wrench
    table[:, 1:, _WRENCH] = rods.wrenches


def _read_states(table: np.ndarray) -> np.ndarray:
    """(H, nx) flat states of a (H, n+2, fields) table."""
    velocities, wrenches = table[:, 2:, _VELOCITY], table[:, 1:, _WRENCH]
    return RodState.join(velocities, wrenches, table[:, 0, _WRENCH]).array


def _quaternions(rotations: np.ndarray) -> np.ndarray:
    """(..., 4) quaternions x y z w of (..., 3, 3) rotations; NaN stays NaN.

    pinocchio converts one at a time, for the 84 of a reference longer than all the rest takes.
    Every row of 4 q q^T is a multiple of q; the one with the largest diagonal is the exact one.
    """
    r = rotations
    xx, yy, zz = r[..., 0, 0], r[..., 1, 1], r[..., 2, 2]
    outer = np.empty((*r.shape[:-2], 4, 4))
    outer[..., 0, 0] = 1.0 + xx - yy - zz
    outer[..., 1, 1] = 1.0 - xx + yy - zz
    outer[..., 2, 2] = 1.0 - xx - yy + zz
    outer[..., 3, 3] = 1.0 + xx + yy + zz
    outer[..., 0, 1] = outer[..., 1, 0] = r[..., 0, 1] + r[..., 1, 0]
    outer[..., 0, 2] = outer[..., 2, 0] = r[..., 0, 2] + r[..., 2, 0]
    outer[..., 1, 2] = outer[..., 2, 1] = r[..., 1, 2] + r[..., 2, 1]
    outer[..., 0, 3] = outer[..., 3, 0] = r[..., 2, 1] - r[..., 1, 2]
    outer[..., 1, 3] = outer[..., 3, 1] = r[..., 0, 2] - r[..., 2, 0]
    outer[..., 2, 3] = outer[..., 3, 2] = r[..., 1, 0] - r[..., 0, 1]
    largest = np.diagonal(outer, axis1=-2, axis2=-1).argmax(axis=-1)
    quaternions = np.take_along_axis(outer, largest[..., None, None], axis=-2)[..., 0, :]
    return quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True)


@cache
def _point_fields(names: tuple[str, ...]) -> list[Any]:
    """Layout of a cloud of float64 fields; built once per layout, never changed."""
    from sensor_msgs.msg import PointField

    return [
        PointField(name=name, offset=_ITEM * index, datatype=_FLOAT64, count=1)
        for index, name in enumerate(names)
    ]


def _cloud(table: np.ndarray, fields: tuple[str, ...], stamp: int, frame: str) -> Any:
    from sensor_msgs.msg import PointCloud2

    height, width, columns = table.shape
    return PointCloud2(
        header=_header(stamp, frame),
        height=height,
        width=width,
        fields=_point_fields(fields),
        is_bigendian=False,
        point_step=_ITEM * columns,
        row_step=_ITEM * columns * width,
        data=array("B", table.astype("<f8", copy=False).tobytes()),
        is_dense=bool(np.isfinite(table).all()),
    )


def _columns(message: Any, topic: str) -> dict[str, int]:
    """Column of each field in a row of float64, `ROD_FIELDS` first, the others in their order."""
    found = _fields(message, topic)
    missing = [name for name in ROD_FIELDS if name not in found]
    if missing:
        raise MessageError(topic, f"fields {missing} are missing")
    return {name: found.pop(name) for name in ROD_FIELDS} | found


def _fields(message: Any, topic: str) -> dict[str, int]:
    """Column of each field in a row of float64, in their order."""
    found: dict[str, int] = {}
    for field in message.fields:
        if field.datatype != _FLOAT64 or field.count > 1 or field.offset % _ITEM:
            raise MessageError(topic, f"field {field.name} must be one aligned FLOAT64")
        if field.name in found or field.offset + _ITEM > message.point_step:
            raise MessageError(topic, f"field {field.name} must be there once, inside the point")
        found[field.name] = field.offset // _ITEM
    return found


def _table(
    message: Any, columns: Mapping[str, int], topic: str, intervals: int | None
) -> np.ndarray:
    """(height, width, fields) values of a cloud in the order of `columns`."""
    height, width = message.height, message.width
    if intervals is not None and width != intervals + 2:
        expected = f"{intervals + 2} for a rod of {intervals} intervals"
        raise MessageError(topic, f"width {width} must be {expected}")
    if height < 1 or width < 3:
        raise MessageError(topic, f"height {height} x width {width} must be at least 1 x 3")
    return _values(message, topic)[..., list(columns.values())].astype(float)


def _values(message: Any, topic: str) -> np.ndarray:
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


def _check_finite(values: np.ndarray, names: Sequence[str], topic: str) -> None:
    """Refuse what is not finite in the last axis, which `names` names."""
    if not np.isfinite(values).all():
        index = np.argwhere(~np.isfinite(values))[0]
        raise MessageError(topic, f"{names[index[-1]]} = {values[tuple(index)]} must be finite")


def _check_constant(
    rows: np.ndarray, names: Sequence[str], constant: Sequence[str], topic: str
) -> None:
    for name in constant:
        column = rows[:, names.index(name)]
        if (column != column[0]).any():
            raise MessageError(topic, f"{name} must be the same on every point")

"""Rod states and references as point clouds, both ways; see `messages`.

A rod state travels as a point cloud that viewers show as it is. Its fields, all float64, are
`ROD_FIELDS`: position and orientation in the base frame, velocity and wrench in the node's local
frame. Point 0 is the mounting side of the base (velocity 0, wrench x2(0-)); points 1 to n + 1 are
the nodes 0+ to n. Further fields are the same on all points: NAME and NAME_std of each parameter,
and of an estimate input.ACTUATOR, the measured input that it was made with. Each row of a reference
cloud is one such rod.

The last point of a reference's row is the tip. Where the state is unknown its orientation is the
one that the reference asks for, and NaN where it asks for none. What repetitions of a motion have
taught stands in fields shift_x, shift_y, shift_z [m], the same on all points of a row.

A rod of several segments has two nodes at a boundary, before and after the connector, and a field
`segment`: the number of the segment that a point belongs to, from 0 at the base.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_models.rod.state import RodState
from softcr_runtime.blocks.values import PointForces
from softcr_runtime.wire.messages import (
    INPUT,
    MessageError,
    check_finite,
    cloud_fields,
    cloud_message,
    cloud_values,
    from_stamp,
    inputs_of_fields,
)

FORCE_FIELDS = (
    "x", "y", "z", "force_x", "force_y", "force_z", "moment_x", "moment_y", "moment_z",
)  # fmt: skip
"""Fields of a point, all float64, base frame: m, N, N m about the point."""


def forces_message(value: PointForces, stamp: int, frame: str = "base") -> Any:
    """sensor_msgs/PointCloud2 with one point for each place; stamp [ns]."""
    table = np.hstack((value.points, value.wrenches))[np.newaxis]
    return cloud_message(table, FORCE_FIELDS, stamp, frame)


def forces_from_message(message: Any, topic: str) -> PointForces:
    """The forces of a point cloud.

    Raises:
        MessageError: other fields or sizes, or a value that is not finite.
    """
    columns = cloud_fields(message, topic)
    if tuple(columns) != FORCE_FIELDS:
        raise MessageError(topic, f"fields {list(columns)} must be {list(FORCE_FIELDS)}")
    table = cloud_values(message, topic)
    if table.shape[0] != 1:
        raise MessageError(topic, f"height {table.shape[0]} must be 1")
    rows = table[0][:, list(columns.values())]
    check_finite(rows, FORCE_FIELDS, topic)
    return PointForces(rows[:, :3].astype(float), rows[:, 3:].astype(float))


ROD_FIELDS = (
    *("x", "y", "z"),
    *("qx", "qy", "qz", "qw"),
    *("vx", "vy", "vz", "wx", "wy", "wz"),
    *("fx", "fy", "fz", "mx", "my", "mz"),
)
"""Fields of a point of a rod cloud: m, quaternion, m/s, rad/s, N, N m."""

_POSITION, _QUATERNION = slice(0, 3), slice(3, 7)
_VELOCITY, _WRENCH = slice(7, 13), slice(13, 19)
_SEGMENT = "segment"
SHIFT = ("shift_x", "shift_y", "shift_z")
"""Fields of a reference: how far beside the wanted tip a controller aims [m]."""
_LENGTH_TOLERANCE = 1e-3  # of a quaternion

Counts = tuple[int, ...]
"""Numbers of intervals of a rod's segments."""


@dataclass(frozen=True, eq=False)
class RodCloud:
    """A decoded estimate/rod or simulation/truth/rod.

    Attributes:
        stamp: time of the state [ns].
        state: (12N + 6K + 6,) flat rod state of N intervals in K segments, see `RodState`.
        positions: (N+K+1, 3) points along the centre line [m], base frame.
        quaternions: (N+K+1, 4) their orientations, x y z w.
        parameters: what the state was computed with, by name.
        parameters_std: their standard deviations, by name.
        inputs: (m,) that the estimate was made with; None where it does not tell them, as a truth.
        counts: (K,) numbers of intervals of the segments.
    """

    stamp: int
    state: np.ndarray
    positions: np.ndarray
    quaternions: np.ndarray
    parameters: dict[str, float]
    parameters_std: dict[str, float]
    inputs: np.ndarray | None = None
    counts: Counts = ()


@dataclass(frozen=True, eq=False)
class ReferenceCloud:
    """A decoded reference/rod; row j belongs to time stamp + j * period.

    Attributes:
        stamp: time of row 0 [ns].
        period: time between rows [s].
        states: (H, nx) wanted states; rows of NaN where only the tip is known.
        tip_positions: (H, 3) wanted tip positions [m], base frame.
        positions: (H, N+K+1, 3) centre lines [m], base frame; NaN where only the tip is known.
        tip_orientations: (H, 4) quaternions x y z w that are asked of the tip, base frame; NaN in
            rows that ask for none. None: no row asks for one.
        shift: (H, 3) by which a controller aims beside the wanted tip [m]; None: by nothing.
    """

    stamp: int
    period: float
    states: np.ndarray
    tip_positions: np.ndarray
    positions: np.ndarray
    tip_orientations: np.ndarray | None = None
    shift: np.ndarray | None = None


def rod_cloud_message(
    state: np.ndarray,
    poses: np.ndarray,
    parameters: Mapping[str, float],
    parameters_std: Mapping[str, float],
    stamp: int,
    frame: str = "base",
    inputs: Mapping[str, float] | None = None,
    counts: Counts | None = None,
) -> Any:
    """sensor_msgs/PointCloud2 of one rod state.

    Args:
        state: (nx,) flat rod state.
        poses: (N+K+1, 4, 4) [m] of base 0- and all rows from 0+ to the tip, in `frame`.
        parameters: what the state was computed with, by name; bending_compliance among them.
        parameters_std: standard deviations by name; 0 where there is none.
        stamp: [ns].
        frame: of the poses.
        inputs: that an estimate was made with, see `fields_of_inputs`.
        counts: numbers of intervals of the segments; None: of one segment.

    Raises:
        ValueError: shapes that do not belong together, or a value that is not finite.
    """
    names = sorted(parameters, key=lambda name: name != "bending_compliance")
    if not names or names[0] != "bending_compliance":
        raise ValueError(f"parameters {names} must hold bending_compliance")
    constant: dict[str, float] = {}
    for name in names:
        constant |= {name: parameters[name], f"{name}_std": parameters_std.get(name, 0.0)}
    constant |= inputs or {}
    states = state[np.newaxis]
    grid = counts or (RodState(states).intervals,)
    own = _rod_fields(grid)
    fields = (*own, *constant)
    table = np.empty((1, _points(grid), len(fields)))
    _write_rods(table, states, poses[np.newaxis], grid)
    table[..., len(own) :] = tuple(constant.values())
    if not np.isfinite(table).all():
        raise ValueError("a rod state that is published must be finite")
    return cloud_message(table, fields, stamp, frame)


def rod_cloud_from_message(
    message: Any,
    topic: str,
    intervals: int | Counts | None = None,
    actuators: Sequence[str] | None = None,
) -> RodCloud:
    """The rod state of a point cloud.

    Args:
        message: sensor_msgs/PointCloud2.
        topic: where it came from.
        intervals: of the rod that is expected, or of each of its segments; None for any.
        actuators: whose inputs an estimate may tell, in the order they are wanted; None for any.

    Raises:
        MessageError: fields, sizes or number of points that are no rod, a value that is not finite.
    """
    columns = _columns(message, topic)
    table, counts = _table(message, columns, topic, intervals)
    if table.shape[0] != 1:
        raise MessageError(topic, f"height {table.shape[0]} must be 1")
    rows = table[0]
    names = list(columns)
    check_finite(rows, names, topic)
    constant = names[len(_rod_fields(counts)) :]
    extra = [name for name in constant if not name.startswith(INPUT)]
    parameters = [name for name in extra if f"{name}_std" in columns]
    if set(extra) != {field for name in parameters for field in (name, f"{name}_std")}:
        raise MessageError(topic, f"fields {extra} after mz must be pairs NAME, NAME_std")
    if "bending_compliance" not in parameters:
        raise MessageError(topic, "field bending_compliance is missing")
    _check_constant(rows, names, constant, topic)
    values = dict(zip(names, rows[0].tolist(), strict=True))
    return RodCloud(
        stamp=from_stamp(message, topic),
        state=_read_states(table, counts)[0],
        positions=rows[:, _POSITION].copy(),
        quaternions=rows[:, _QUATERNION].copy(),
        parameters={name: values[name] for name in parameters},
        parameters_std={name: values[f"{name}_std"] for name in parameters},
        inputs=inputs_of_fields(values, actuators, topic),
        counts=counts,
    )


def reference_cloud_message(
    states: np.ndarray,
    poses: np.ndarray | None,
    tip_positions: np.ndarray,
    stamp: int,
    period: float,
    frame: str = "base",
    counts: Counts | None = None,
    tip_orientations: np.ndarray | None = None,
    shift: np.ndarray | None = None,
) -> Any:
    """sensor_msgs/PointCloud2 of a reference: one row per step.

    Args:
        states: (H, nx) wanted states; rows of NaN where only the tip is known.
        poses: (H, N+K+1, 4, 4) [m] of base 0- and all rows from 0+ to the tip, in `frame`; NaN
            where unknown, None when all are.
        tip_positions: (H, 3) [m]; they take the place of the last point's position.
        stamp: time of row 0 [ns].
        period: time between rows [s].
        frame: of poses and tip positions.
        counts: numbers of intervals of the segments; None: of one segment.
        tip_orientations: (H, 4) that rows of unknown states ask for, NaN where they ask for none;
            None: no row does.
        shift: (H, 3) by which a controller aims beside the tips [m]; None: by nothing.

    Raises:
        ValueError: shapes that do not belong together.
    """
    grid = counts or (RodState(states).intervals,)
    own = (*_rod_fields(grid), "period")
    fields = own if shift is None else (*own, *SHIFT)
    rows, points = len(states), _points(grid)
    if poses is None:
        poses = np.full((rows, points, 4, 4), np.nan)
    if np.shape(tip_positions) != (rows, 3):
        raise ValueError(f"tip positions have shape {np.shape(tip_positions)}, must be ({rows}, 3)")
    table = np.empty((rows, points, len(fields)))
    _write_rods(table, states, poses, grid)
    table[:, -1, _POSITION] = tip_positions
    if tip_orientations is not None:
        asks = np.isnan(states).all(axis=1)
        table[asks, -1, _QUATERNION] = tip_orientations[asks]
    table[..., len(own) - 1] = period
    if shift is not None:
        table[..., len(own) :] = shift[:, None]
    return cloud_message(table, fields, stamp, frame)


def reference_cloud_from_message(
    message: Any, topic: str, intervals: int | Counts | None = None
) -> ReferenceCloud:
    """The reference of a point cloud; arguments as `rod_cloud_from_message`.

    Raises:
        MessageError: fields, sizes or number of points that are no reference; a tip or shift that
            is not finite; a state that is partly known; an orientation that is none; a period that
            is not positive.
    """
    columns = _columns(message, topic)
    names = list(columns)
    own = [name for name in names if name not in SHIFT]
    if own not in ([*ROD_FIELDS, "period"], [*ROD_FIELDS, _SEGMENT, "period"]):
        raise MessageError(topic, f"fields {own[len(ROD_FIELDS) :]} after mz must be period")
    table, counts = _table(message, columns, topic, intervals)
    tips = table[:, -1, _POSITION].copy()
    check_finite(tips, ["tip x", "tip y", "tip z"], topic)
    states = _read_states(table, counts)
    known = np.isfinite(states)
    if not (known.all(axis=1) | np.isnan(states).all(axis=1)).all():
        raise MessageError(topic, "each state must be all finite or, with only a tip, all NaN")
    period = float(table[0, 0, names.index("period")])
    if not (math.isfinite(period) and period > 0.0):
        raise MessageError(topic, f"period = {period} s must be positive and finite")
    _check_constant(table.reshape(-1, len(names)), names, ["period"], topic)
    return ReferenceCloud(
        stamp=from_stamp(message, topic),
        period=period,
        states=states,
        tip_positions=tips,
        positions=table[..., _POSITION].copy(),
        tip_orientations=asked_orientations(
            table[:, -1, _QUATERNION], np.isnan(states).all(axis=1), topic
        ),
        shift=shift_of_fields(table[:, -1], names, topic),
    )


def shift_of_fields(rows: np.ndarray, names: Sequence[str], topic: str) -> np.ndarray | None:
    """(H, 3) shift of a reference's rows (H, fields); None where they tell none.

    Args:
        rows: a point of each row.
        names: of the fields.
        topic: where they came from.

    Raises:
        MessageError: part of it is missing, or not finite.
    """
    told = [name for name in SHIFT if name in names]
    if not told:
        return None
    if len(told) < len(SHIFT):
        raise MessageError(topic, f"fields {told}: must be all of {', '.join(SHIFT)}")
    shift = rows[:, [list(names).index(name) for name in SHIFT]].copy()
    check_finite(shift, SHIFT, topic)
    return shift


def asked_orientations(
    quaternions: np.ndarray, allowed: np.ndarray, topic: str
) -> np.ndarray | None:
    """(H, 4) quaternions of the rows that may ask for an orientation, NaN in the others; None where
    no row asks.

    Args:
        quaternions: (H, 4) x y z w as received; all NaN in rows that ask for none.
        allowed: (H,) whether a row may ask.
        topic: where they came from.

    Raises:
        MessageError: a quaternion that is partly known or not of length 1.
    """
    asked = np.where(allowed[:, None], quaternions, np.nan)
    known = ~np.isnan(asked).all(axis=1)
    if not known.any():
        return None
    lengths = np.linalg.norm(asked[known], axis=1)
    wrong = ~(np.abs(lengths - 1.0) < _LENGTH_TOLERANCE)
    if wrong.any():
        shown = asked[known][wrong][0].tolist()
        raise MessageError(
            topic, f"tip orientation {shown} must be a quaternion of length 1, or NaN"
        )
    return asked


def _points(counts: Counts) -> int:
    """Of a rod: its rows, and the mounting side of the base."""
    return sum(counts) + len(counts) + 1


def _rod_fields(counts: Counts) -> tuple[str, ...]:
    return ROD_FIELDS if len(counts) == 1 else (*ROD_FIELDS, _SEGMENT)


def _first_points(counts: Counts) -> list[int]:
    """At which point each segment begins: the nodes there have no velocity of their own."""
    return (1 + np.cumsum([0, *(n + 1 for n in counts[:-1])])).tolist()


def _moving_points(counts: Counts) -> list[int]:
    """Points whose velocities are states."""
    begin = {0, *_first_points(counts)}
    return [point for point in range(_points(counts)) if point not in begin]


def _write_rods(table: np.ndarray, states: np.ndarray, poses: np.ndarray, counts: Counts) -> None:
    """Fill the rod's fields of a (H, points, fields) table from (H, nx) and (H, points, 4, 4)."""
    rods = RodState(states, len(counts))
    expected = (len(states), _points(counts), 4, 4)
    if np.shape(poses) != expected or rods.intervals != sum(counts):
        raise ValueError(
            f"poses have shape {np.shape(poses)}, must be {expected} for states {states.shape}"
        )
    table[..., _POSITION] = poses[..., :3, 3]
    table[..., _QUATERNION] = _quaternions(poses[..., :3, :3])
    table[:, :2, _VELOCITY] = 0.0
    table[:, _moving_points(counts), _VELOCITY] = rods.velocities
    for point in _first_points(counts)[1:]:
        before = table[:, point - 1, _VELOCITY]
        table[:, point, _VELOCITY] = _carried(before, poses[:, point - 1], poses[:, point])
    table[:, 0, _WRENCH] = rods.base_wrench
    table[:, 1:, _WRENCH] = rods.wrenches
    if len(counts) > 1:
        rows = np.repeat(np.arange(len(counts)), np.array(counts) + 1)
        table[..., len(ROD_FIELDS)] = np.concatenate(([0], rows))


def _carried(velocities: np.ndarray, poses: np.ndarray, beyond: np.ndarray) -> np.ndarray:
    """(H, 6) velocities of a rigid body in the frames `beyond` (H, 4, 4), from those in others."""
    linear, angular = velocities[:, :3, None], velocities[:, 3:, None]
    back = np.swapaxes(poses[:, :3, :3], 1, 2)
    lever = back @ (beyond[:, :3, 3:] - poses[:, :3, 3:])
    turned = np.swapaxes(beyond[:, :3, :3], 1, 2) @ poses[:, :3, :3]
    moved = linear + np.cross(angular, lever, axis=1)
    return np.concatenate((turned @ moved, turned @ angular), axis=1)[..., 0]


def _read_states(table: np.ndarray, counts: Counts) -> np.ndarray:
    """(H, nx) flat states of a (H, points, fields) table."""
    velocities, wrenches = table[:, _moving_points(counts), _VELOCITY], table[:, 1:, _WRENCH]
    return RodState.join(velocities, wrenches, table[:, 0, _WRENCH], len(counts)).array


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


def _columns(message: Any, topic: str) -> dict[str, int]:
    """Column of each field in a row of float64, `ROD_FIELDS` first, the others in their order."""
    found = cloud_fields(message, topic)
    missing = [name for name in ROD_FIELDS if name not in found]
    if missing:
        raise MessageError(topic, f"fields {missing} are missing")
    first = [name for name in (*ROD_FIELDS, _SEGMENT) if name in found]
    return {name: found.pop(name) for name in first} | found


def _table(
    message: Any, columns: Mapping[str, int], topic: str, intervals: int | Counts | None
) -> tuple[np.ndarray, Counts]:
    """(height, width, fields) values of a cloud in the order of `columns`, and its rod's segments'
    numbers of intervals."""
    height, width = message.height, message.width
    expected = (intervals,) if isinstance(intervals, int) else intervals
    if expected is not None and width != _points(expected):
        of = f"{len(expected)} segments and " if len(expected) > 1 else ""
        told = f"{_points(expected)} for a rod of {of}{sum(expected)} intervals"
        raise MessageError(topic, f"width {width} must be {told}")
    if height < 1 or width < 3:
        raise MessageError(topic, f"height {height} x width {width} must be at least 1 x 3")
    table = cloud_values(message, topic)[..., list(columns.values())].astype(float)
    counts: Counts = (width - 2,)
    if _SEGMENT in columns:
        counts = _counts_of(table[..., list(columns).index(_SEGMENT)], topic)
    if expected is not None and counts != expected:
        shown = [" + ".join(map(str, each)) for each in (counts, expected)]
        raise MessageError(topic, f"a rod of {shown[0]} intervals, must be {shown[1]}")
    return table, counts


def _counts_of(numbers: np.ndarray, topic: str) -> Counts:
    """Numbers of intervals of the segments that points (height, width) belong to."""
    row = numbers[0]
    steps = np.diff(row)
    ordered = row[0] == 0.0 and row[1] == 0.0 and np.isin(steps, (0.0, 1.0)).all()
    if not ordered or (numbers != row).any():
        raise MessageError(topic, "segment must count up from 0 along the rod, in all rows alike")
    counts = np.bincount(row[1:].astype(int)) - 1
    if (counts < 1).any():
        raise MessageError(topic, "segment: each must have at least two points")
    return tuple(counts.tolist())


def _check_constant(
    rows: np.ndarray, names: Sequence[str], constant: Sequence[str], topic: str
) -> None:
    columns = rows[:, [names.index(name) for name in constant]]
    varies = (columns != columns[:1]).any(axis=0)
    if varies.any():
        raise MessageError(topic, f"{constant[varies.argmax()]} must be the same on every point")

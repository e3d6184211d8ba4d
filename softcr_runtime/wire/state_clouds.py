"""States and references of models that are no rods, as point clouds, both ways; see `messages`.

`estimate/state` is one point whose float64 fields have as many elements as the group of the model's
state that they hold: `state.GROUP`; then `parameter.NAME`, `std.NAME`, and `input.ACTUATOR`, which
is the measured input that the estimate was made with. `reference/output` has a
point per step of the horizon: x, y, z of the tip and the period; and, where an orientation of the
tip is asked for, its quaternion qx, qy, qz, qw, NaN in rows that ask for none; and, where
repetitions of the motion have taught one, shift_x, shift_y, shift_z; and, where all are
known, the states as fields of one number, `state.GROUP.0`, `state.GROUP.1` ... A reader compares
names and counts with what its own model has and refuses others.
"""

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from softcr_models.model import Layout
from softcr_runtime.blocks.values import ReferenceRows, StateEstimate
from softcr_runtime.wire.messages import (
    MessageError,
    check_finite,
    cloud_fields,
    cloud_message,
    cloud_values,
    fields_of_inputs,
    from_stamp,
    header,
    inputs_of_fields,
)
from softcr_runtime.wire.rod_clouds import SHIFT, asked_orientations, shift_of_fields

_FLOAT64 = 8  # sensor_msgs/PointField.FLOAT64
_ITEM = 8  # bytes of a float64
_STATE, _PARAMETER, _STD = "state.", "parameter.", "std."
_REFERENCE, _TURN = ("x", "y", "z", "period"), ("qx", "qy", "qz", "qw")


def state_message(
    value: StateEstimate, layout: Layout, actuators: Sequence[str], stamp: int, frame: str
) -> Any:
    """sensor_msgs/PointCloud2 of an estimated state; stamp [ns]."""
    from sensor_msgs.msg import PointCloud2, PointField

    parts = [(_STATE + group.name, value.state[group.indices]) for group in layout]
    numbers = {_PARAMETER + name: number for name, number in value.parameters.items()}
    numbers |= {_STD + name: number for name, number in value.parameters_std.items()}
    numbers |= fields_of_inputs(value.inputs, actuators)
    parts += [(name, np.array([number])) for name, number in numbers.items()]
    fields, offset = [], 0
    for name, values in parts:
        count = len(values)
        fields.append(PointField(name=name, offset=offset, datatype=_FLOAT64, count=count))
        offset += _ITEM * count
    row = np.concatenate([values for _, values in parts]).astype("<f8")
    return PointCloud2(
        header=header(stamp, frame),
        height=1,
        width=1,
        fields=fields,
        is_bigendian=False,
        point_step=offset,
        row_step=offset,
        data=array("B", row.tobytes()),
        is_dense=bool(np.isfinite(row).all()),
    )


def state_from_message(
    message: Any, topic: str, layout: Layout, actuators: Sequence[str]
) -> StateEstimate:
    """The state of a cloud, for a model of this layout that is driven by these actuators.

    Raises:
        MessageError: another model's groups, or a value that is not finite.
    """
    if (message.height, message.width) != (1, 1):
        raise MessageError(topic, f"{message.height} x {message.width} points, must be 1 x 1")
    row = cloud_values(message, topic)[0, 0].astype(float)
    check_finite(row, [f"number {index + 1}" for index in range(len(row))], topic)
    numbers = {field.name: _elements(field, row, topic) for field in message.fields}
    expected = {_STATE + group.name: len(group.indices) for group in layout}
    found = {name: len(values) for name, values in numbers.items() if name.startswith(_STATE)}
    if found != expected:
        raise MessageError(topic, f"fields {found} are not those of the model, {expected}")
    state = np.empty(layout.size)
    for group in layout:
        state[group.indices] = numbers[_STATE + group.name]
    single = {name: float(values[0]) for name, values in numbers.items() if len(values)}
    return StateEstimate(
        state,
        _named(single, _PARAMETER),
        _named(single, _STD),
        inputs=inputs_of_fields(single, actuators, topic),
        layout=layout,
    )


def reference_message(value: ReferenceRows, layout: Layout | None, stamp: int, frame: str) -> Any:
    """sensor_msgs/PointCloud2 of a reference's tips, and of its states where a layout names them;
    stamp [ns]."""
    rows = len(value.tip_positions)
    names, parts = [*_REFERENCE], [value.tip_positions, np.full(rows, value.period)]
    if value.tip_orientations is not None:
        names += _TURN
        parts.append(value.tip_orientations)
    if value.shift is not None:
        names += SHIFT
        parts.append(value.shift)
    if value.states is not None and layout is not None:
        places = _places(layout)
        names += places
        parts.append(value.states[:, list(places.values())])
    return cloud_message(np.column_stack(parts)[None], tuple(names), stamp, frame)


def reference_from_message(message: Any, topic: str, layout: Layout | None = None) -> ReferenceRows:
    """The reference of a cloud.

    Args:
        message: of the cloud.
        topic: where it came from.
        layout: of the states of the reader's model; None: states come in the message's order.

    Raises:
        MessageError: other fields, a value that is not finite, a period that is not above 0, an
            orientation that is none, states of another model.
    """
    columns = cloud_fields(message, topic)
    missing = [name for name in _REFERENCE if name not in columns]
    if missing or message.height != 1 or message.width < 1:
        raise MessageError(topic, f"fields {missing} are missing, or it is not one row of points")
    values = cloud_values(message, topic)[0].astype(float)
    rows = values[:, [columns[name] for name in _REFERENCE]]
    check_finite(rows, _REFERENCE, topic)
    period = float(rows[0, 3])
    if not period > 0.0 or (rows[:, 3] != period).any():
        raise MessageError(topic, f"period = {period} s must be above 0, and the same in each row")
    turns = None
    if all(name in columns for name in _TURN):
        quaternions = values[:, [columns[name] for name in _TURN]]
        turns = asked_orientations(quaternions, np.ones(len(rows), bool), topic)
    states = _states(values, columns, layout, topic)
    own = sorted(columns, key=lambda name: columns[name])
    return ReferenceRows(
        from_stamp(message, topic), period, states, rows[:, :3].copy(), tip_orientations=turns,
        shift=shift_of_fields(values, own, topic),
    )  # fmt: skip


def _states(
    values: np.ndarray, columns: dict[str, int], layout: Layout | None, topic: str
) -> np.ndarray | None:
    """(H, nx) of the rows (H, fields) of a cloud; None where it tells none."""
    told = {name: place for name, place in columns.items() if name.startswith(_STATE)}
    if not told:
        return None
    places = dict(zip(told, range(len(told)), strict=True)) if layout is None else _places(layout)
    if set(told) != set(places):
        raise MessageError(
            topic, f"states {', '.join(told)} are not those of the model, {', '.join(places)}"
        )
    states = np.empty((len(values), len(places)))
    states[:, list(places.values())] = values[:, [told[name] for name in places]]
    check_finite(values[:, list(told.values())], list(told), topic)
    return states


def _places(layout: Layout) -> dict[str, int]:
    """Index of each state by the name of its field in a reference."""
    return {
        f"{_STATE}{group.name}.{number}": index
        for group in layout
        for number, index in enumerate(group.indices.tolist())
    }


def _elements(field: Any, row: np.ndarray, topic: str) -> np.ndarray:
    first, rest = divmod(field.offset, _ITEM)
    if field.datatype != _FLOAT64 or rest or first + field.count > len(row):
        raise MessageError(topic, f"field {field.name} must be aligned FLOAT64 inside the point")
    return row[first : first + field.count]


def _named(numbers: dict[str, float], prefix: str) -> dict[str, float]:
    return {n.removeprefix(prefix): v for n, v in numbers.items() if n.startswith(prefix)}

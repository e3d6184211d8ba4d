"""CDR bytes of ROS messages without rclpy: rosbags serializes what ROS's message classes hold."""

import struct
from array import array
from functools import cache
from typing import Any

import numpy as np
from rosbags.typesys import Stores, get_typestore

_MOST_SURPLUS = 16  # bytes behind a message
_POINT_FIELD = "sensor_msgs/msg/PointField"
_TYPESTORE = get_typestore(Stores.ROS2_JAZZY)


def is_known(type_: str) -> bool:
    """Whether a type, as in `sensor_msgs/msg/JointState`, is one of ROS's standard interfaces."""
    return type_ in _TYPESTORE.fielddefs


def decoded(payload: bytes, type_: str) -> Any:
    """The message that CDR bytes hold, of a standard interface.

    Fast DDS reserves room to align the numbers of a sequence even where the sequence is empty, and
    sends what it did not need: rosbags would refuse these bytes at the end.

    Raises:
        ValueError: the bytes do not fit the type.
    """
    refused: Exception | None = None
    for surplus in range(0, _MOST_SURPLUS + 1, 4):
        try:
            return _TYPESTORE.deserialize_cdr(payload[: len(payload) - surplus], type_)
        except Exception as error:  # rosbags raises many kinds on foreign bytes
            refused = refused or error
    raise ValueError(refused)


def cdr_of(message: Any) -> bytes:
    """The bytes that rclpy would publish of a message of a standard interface.

    They are filled up to whole words, as they go over the wire (DDSI-RTPS 2.5, 10.2.1.2).
    """
    payload = bytes(_TYPESTORE.serialize_cdr(_as_rosbags(message), _type(message)))
    return payload + bytes(-len(payload) % 4)


def same_content(one: bytes, other: bytes, type_: str) -> bool:
    """Whether the bytes of two messages of a standard interface hold the same bits.

    What DDS leaves in the gaps between fields and fills up at the end is no content.
    """
    return one == other or _canonical(one, type_) == _canonical(other, type_)


def _canonical(payload: bytes, type_: str) -> bytes | None:
    try:
        return bytes(_TYPESTORE.serialize_cdr(decoded(payload, type_), type_))
    except ValueError:
        return None


def header_stamp(payload: bytes) -> int:
    """The stamp [ns] of a message whose first field is a header, without decoding the rest.

    Raises:
        ValueError: there are too few bytes.
    """
    if len(payload) < 12:
        raise ValueError(f"{len(payload)} bytes hold no header")
    order = "<" if payload[1] & 1 else ">"
    seconds, nanoseconds = struct.unpack_from(f"{order}iI", payload, 4)
    return seconds * 1_000_000_000 + nanoseconds


def _type(message: Any) -> str:
    package = type(message).__module__.partition(".")[0]
    return f"{package}/msg/{type(message).__name__}"


def _as_rosbags(value: Any) -> Any:
    if hasattr(value, "get_fields_and_field_types"):
        fields = {
            name: _as_rosbags(getattr(value, name)) for name in value.get_fields_and_field_types()
        }
        return _TYPESTORE.types[_type(value)](**fields)
    if isinstance(value, array):
        return np.frombuffer(value, dtype=value.typecode) if len(value) else np.array(value)
    if isinstance(value, list):
        if value and _type(value[0]) == _POINT_FIELD:
            return _point_fields(tuple((f.name, f.offset, f.datatype, f.count) for f in value))
        return [_as_rosbags(item) for item in value]
    if isinstance(value, bytes):  # one byte is bytes in rclpy and an int in rosbags
        return value[0]
    return value


@cache
def _point_fields(rows: tuple[tuple[str, int, int, int], ...]) -> list[Any]:
    """The layout of a cloud, which is the same all the time and takes long to convert."""
    make = _TYPESTORE.types[_POINT_FIELD]
    return [
        make(name=name, offset=offset, datatype=datatype, count=count)
        for name, offset, datatype, count in rows
    ]

"""tf2_msgs/TFMessage for machines whose ROS comes from wheels, which lack the package tf2_msgs.

A message of this type is a list of geometry_msgs/TransformStamped, which the wheels have. The class
made here has the name, the hash and the description of the real type, so that RViz and tf2 of
another machine hear it; its bytes are made by rosbags, because the wheels have no code for that.
Only bytes can be sent and received with it (`raw=True`).

The class is a copy of that of visualization_msgs/MarkerArray, a list of messages as well, with
other names: `rosidl_message_type_support_t` and the structs behind it, see rosidl_runtime_c and
rosidl_typesupport_fastrtps_cpp. What is found there is checked before anything of it is used.
"""

from ctypes import (
    CFUNCTYPE,
    Structure,
    addressof,
    c_bool,
    c_byte,
    c_char_p,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
    cast,
    py_object,
    pythonapi,
    sizeof,
    string_at,
)
from functools import cache
from importlib import import_module, util
from typing import Any

TF_MESSAGE = "tf2_msgs/msg/TFMessage"
_FIELDS = {"transforms": "sequence<geometry_msgs/TransformStamped>"}
_ANY, _FAST, _INTROSPECTION = (
    b"rosidl_typesupport_c", b"rosidl_typesupport_fastrtps_c", b"rosidl_typesupport_introspection_c"
)  # fmt: skip
_NESTED_SEQUENCE = 145  # type_description_interfaces/FieldType: nested type, unbounded sequence
_kept: list[Any] = []
"""What C looks at as long as the process lives."""


class NoWireType(Exception):
    """The installed ROS is not the one that this module knows; `str(error)` says in what."""


class _Support(Structure):
    _fields_ = [
        ("identifier", c_char_p), ("data", c_void_p), ("find", c_void_p), ("hash", c_void_p),
        ("description", c_void_p), ("sources", c_void_p),
    ]  # fmt: skip


class _Callbacks(Structure):
    _fields_ = [
        ("namespace", c_char_p), ("name", c_char_p), ("serialize", c_void_p),
        ("deserialize", c_void_p), ("size", c_void_p), ("largest", c_void_p), ("key", c_void_p),
    ]  # fmt: skip


class _Member(Structure):
    _fields_ = [
        ("name", c_char_p), ("type", c_uint8), ("bound", c_size_t), ("members", c_void_p),
        ("rest", c_byte * 80),
    ]  # fmt: skip


class _Members(Structure):
    _fields_ = [
        ("namespace", c_char_p), ("name", c_char_p), ("count", c_uint32), ("size", c_size_t),
        ("has_key", c_bool), ("members", c_void_p), ("init", c_void_p), ("fini", c_void_p),
    ]  # fmt: skip


class _Hash(Structure):
    _fields_ = [("version", c_uint8), ("value", c_uint8 * 32)]


class _Text(Structure):
    _fields_ = [("text", c_char_p), ("size", c_size_t), ("capacity", c_size_t)]


class _Sequence(Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t), ("capacity", c_size_t)]


class _FieldType(Structure):
    _fields_ = [
        ("id", c_uint8), ("capacity", c_uint64), ("length", c_uint64), ("nested", _Text),
    ]  # fmt: skip


class _Field(Structure):
    _fields_ = [("name", _Text), ("type", _FieldType), ("default", _Text)]


class _Type(Structure):
    _fields_ = [("name", _Text), ("fields", _Sequence)]


class _Description(Structure):
    _fields_ = [("type", _Type), ("others", _Sequence)]


_Find = CFUNCTYPE(c_void_p, c_void_p, c_char_p)
_Get = CFUNCTYPE(c_void_p, c_void_p)


def is_installed() -> bool:
    """Whether the package tf2_msgs can be imported."""
    return util.find_spec("tf2_msgs") is not None


@cache
def tf_message_class() -> Any:
    """The class of tf2_msgs/msg/TFMessage: the real one where it is installed, else a copy's.

    Raises:
        NoWireType: neither is possible here.
    """
    if is_installed():
        return import_module("tf2_msgs.msg").TFMessage
    try:
        return _made()
    except NoWireType:
        raise
    except Exception as error:  # of ctypes, of a module that is not there
        raise NoWireType(f"{type(error).__name__}: {error}") from None


def tf_message(transforms: list[Any]) -> Any:
    """What a publisher of TFMessage is given for some geometry_msgs/TransformStamped: the message,
    or its bytes.

    Raises:
        NoWireType: see `tf_message_class`.
    """
    kind = tf_message_class()
    message = kind(transforms=transforms)
    if is_installed():
        return message
    from softcr_runtime.bags.message_bytes import cdr_of

    return cdr_of(message)


def tf_transforms(received: Any) -> list[Any]:
    """The transforms of a received TFMessage, or of the bytes of one that was received raw.

    Raises:
        ValueError: the bytes are no such message.
    """
    from softcr_runtime.bags.message_bytes import decoded

    message = decoded(received, TF_MESSAGE) if isinstance(received, bytes) else received
    return list(message.transforms)


def _made() -> Any:
    from geometry_msgs.msg import TransformStamped
    from visualization_msgs.msg import MarkerArray

    pattern, element = _support(MarkerArray), _support(TransformStamped)
    fast, shape = _found(pattern, _FAST), _found(pattern, _INTROSPECTION)
    callbacks = _Callbacks.from_address(fast.data)
    members = _Members.from_address(shape.data)
    _check(callbacks, members)

    member = _Member.from_buffer_copy(string_at(members.members, sizeof(_Member)))
    member.name = b"transforms"
    member.members = addressof(_found(element, _INTROSPECTION))
    own_members = _Members.from_buffer_copy(members)
    own_members.namespace, own_members.name = b"tf2_msgs__msg", b"TFMessage"
    own_members.members = addressof(member)
    own_callbacks = _Callbacks.from_buffer_copy(callbacks)
    own_callbacks.namespace, own_callbacks.name = b"tf2_msgs::msg", b"TFMessage"

    tells_hash, tells_description = _hash(), _description(element)
    told = {
        "hash": cast(tells_hash, c_void_p).value,
        "description": cast(tells_description, c_void_p).value,
        "sources": pattern.sources,
    }
    supports = {
        _FAST: _Support(fast.identifier, addressof(own_callbacks), fast.find, **told),
        _INTROSPECTION: _Support(shape.identifier, addressof(own_members), shape.find, **told),
    }
    find = _Find(lambda _, which: addressof(supports[which]) if which in supports else None)
    support = _Support(_ANY, None, cast(find, c_void_p).value, **told)
    _kept.extend((
        member, own_members, own_callbacks, tells_hash, tells_description, supports, find, support,
    ))  # fmt: skip
    return _class(addressof(support))


def _support(kind: Any) -> _Support:
    """The type support of a message class."""
    if kind.__class__._TYPE_SUPPORT is None:
        kind.__class__.__import_type_support__()
    return _Support.from_address(_pointer(kind.__class__._TYPE_SUPPORT))


def _pointer(capsule: Any) -> int:
    name, get = pythonapi.PyCapsule_GetName, pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = c_char_p, [py_object]
    get.restype, get.argtypes = c_void_p, [py_object, c_char_p]
    return int(get(capsule, name(capsule)))


def _found(support: _Support, which: bytes) -> _Support:
    """The part of a type support that a library of ROS asks for."""
    address = _Find(support.find)(addressof(support), which) if support.find else None
    if not address:
        raise NoWireType(f"{which.decode()} is not there")
    return _Support.from_address(address)


def _check(callbacks: _Callbacks, members: _Members) -> None:
    """Whether the structs are those that are known."""
    expected = (b"visualization_msgs::msg", b"MarkerArray", b"visualization_msgs__msg",
                b"MarkerArray", 1, 3 * sizeof(c_size_t))  # fmt: skip
    found = (callbacks.namespace, callbacks.name, members.namespace, members.name,
             members.count, members.size)  # fmt: skip
    if found != expected or callbacks.key:
        raise NoWireType(f"visualization_msgs/MarkerArray is told as {found}")
    member = _Member.from_address(members.members)
    inner = _Members.from_address(_Support.from_address(member.members).data)
    if (member.name, inner.name) != (b"markers", b"Marker"):
        raise NoWireType(f"the member of MarkerArray is told as {member.name, inner.name}")


def _hash() -> Any:
    """Tells the hash of the type, as REP-2011 defines it."""
    from rosbags.typesys import Stores, get_typestore

    text = get_typestore(Stores.ROS2_JAZZY).hash_rihs01(TF_MESSAGE)
    value = _Hash(1, (c_uint8 * 32).from_buffer_copy(bytes.fromhex(text.rpartition("_")[2])))
    _kept.append(value)
    return _Get(lambda _: addressof(value))


def _description(element: _Support) -> Any:
    """Tells what the type holds: one field, of what its element is told to hold."""
    address = _Get(element.description)(addressof(element)) if element.description else None
    if not address:
        raise NoWireType("TransformStamped is not described")
    inner = _Description.from_address(address)
    if inner.type.name.text != b"geometry_msgs/msg/TransformStamped":
        raise NoWireType(f"TransformStamped is described as {inner.type.name.text!r}")
    others = (_Type * inner.others.size).from_address(inner.others.data)
    parts = sorted([inner.type, *others], key=lambda part: part.name.text)
    referenced = (_Type * len(parts))(*parts)
    kind = _FieldType(_NESTED_SEQUENCE, 0, 0, inner.type.name)
    fields = (_Field * 1)(_Field(_text(b"transforms"), kind))
    outer = _Type(_text(TF_MESSAGE.encode()), _Sequence(addressof(fields), 1, 1))
    count = len(parts)
    made = _Description(outer, _Sequence(addressof(referenced), count, count))
    _kept.extend((referenced, fields, made))
    return _Get(lambda _: addressof(made))


def _text(value: bytes) -> _Text:
    return _Text(value, len(value), len(value) + 1)


def _class(support: int) -> Any:
    new = pythonapi.PyCapsule_New
    new.restype, new.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
    # no capsules: rclpy raises where a message that is not bytes were to be converted
    functions = dict.fromkeys(
        ("_CONVERT_FROM_PY", "_CONVERT_TO_PY", "_CREATE_ROS_MESSAGE", "_DESTROY_ROS_MESSAGE"),
        "bytes only",
    )
    meta = type(
        "Metaclass_TFMessage", (type,), {"_TYPE_SUPPORT": new(support, None, None), **functions}
    )

    def __init__(self: Any, transforms: list[Any]) -> None:
        self.transforms = transforms

    def get_fields_and_field_types() -> dict[str, str]:
        return dict(_FIELDS)

    return meta(
        "TFMessage",
        (),
        {
            "__module__": "tf2_msgs.msg",
            "__doc__": "transforms: geometry_msgs/TransformStamped, a list.",
            "__init__": __init__,
            "get_fields_and_field_types": staticmethod(get_fields_and_field_types),
        },
    )

"""Messages and services as words: their classes, requests from `field=value`, readable text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_runtime.wire.tf_types import TF_MESSAGE, is_installed, tf_message_class
from softcr_tools.ros.participant import nearest

_SHOWN = 6  # elements of an array in text
_CLOUD_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8"}
_WHOLE = re.compile(r"(u?)int(8|16|32|64)")


def interface_class(name: str) -> Any:
    """The Python class of `PACKAGE/msg/NAME` or `PACKAGE/srv/NAME`.

    Raises:
        UserError: its package is not installed for this Python.
    """
    package, kind, short = name.split("/")
    if name == TF_MESSAGE and not is_installed():  # only bytes of it can be heard
        return tf_message_class()
    try:
        return getattr(import_module(f"{package}.{kind}"), short)
    except (ImportError, AttributeError):
        raise UserError(f"type {name}: package {package} is not installed here") from None


# --- requests from words ------------------------------------------------------------------------


def fill(message: Any, words: Sequence[str], name: str) -> None:
    """Write `field=value` words into a message; `a.b=1` reaches a field of a field.

    Args:
        message: is changed.
        words: of the command line.
        name: of its type, for errors.

    Raises:
        UserError: a word has no value, its field does not exist, or the value is not of its type.
    """
    for word in words:
        path, equals, text = word.partition("=")
        if not equals:
            raise UserError(f"{word!r}: must be FIELD=VALUE; {_fields_in_words(message, name)}")
        *groups, leaf = path.split(".")
        owner = message
        for group in groups:
            owner = getattr(owner, group) if _is_message(_type_of(owner, group, path, name)) else 0
            if not owner:
                raise UserError(f"field {path}: {group} of {name} has no fields")
        setattr(owner, leaf, _value(_type_of(owner, leaf, path, name), text, f"field {path}"))


def _type_of(message: Any, field: str, path: str, name: str) -> Any:
    """The declared type of a message's field, of rosidl_parser.definition."""
    types = dict(zip(message.get_fields_and_field_types(), message.SLOT_TYPES, strict=True))
    if field in types:
        return types[field]
    near = nearest(field, types)
    instead = f"did you mean {near[0]}?" if near else _fields_in_words(message, name)
    raise UserError(f"field {path}: unknown; {instead}")


def _fields_in_words(message: Any, name: str) -> str:
    fields = message.get_fields_and_field_types()
    if not fields:
        return f"{name} has no fields"
    return f"{name} has {', '.join(f'{field} ({kind})' for field, kind in fields.items())}"


def _is_message(kind: Any) -> bool:
    return hasattr(kind, "namespaces")


def _value(kind: Any, text: str, where: str) -> Any:
    if hasattr(kind, "value_type"):  # a list
        inner = text.strip()
        inner = inner[1:-1] if inner.startswith("[") and inner.endswith("]") else inner
        parts = [part.strip() for part in inner.split(",")] if inner.strip() else []
        return _list(kind, [_value(kind.value_type, part, where) for part in parts], where)
    if _is_message(kind):
        raise UserError(f"{where}: is a {'/'.join(kind.namespaced_name())}; name its fields")
    if hasattr(kind, "typename"):
        return _number(kind.typename, text, where)
    most = kind.maximum_size if kind.has_maximum_size() else len(text)
    if len(text) > most:
        raise UserError(f"{where} = {text!r}: must be at most {most} characters")
    return text


def _list(kind: Any, values: list[Any], where: str) -> list[Any]:
    size, most = getattr(kind, "size", None), len(values)
    if size is not None and most != size:
        raise UserError(f"{where}: must be a list of {size}, has {most}")
    if kind.has_maximum_size() and most > kind.maximum_size:
        raise UserError(f"{where}: must be a list of at most {kind.maximum_size}, has {most}")
    return values


def _number(kind: str, text: str, where: str) -> Any:
    word, whole = text.strip().lower(), _WHOLE.fullmatch(kind)
    if kind == "boolean":
        if word not in ("true", "false"):
            raise UserError(f"{where} = {text!r}: must be true or false")
        return word == "true"
    low, high = -float("inf"), float("inf")
    if whole:
        bits = int(whole[2])
        low, high = (0, 2**bits - 1) if whole[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    elif kind not in ("float", "double"):  # octet, char
        low, high = 0, 255
    try:
        number = float(word) if kind in ("float", "double") else int(word)
    except ValueError:
        number = None
    if number is None or (kind not in ("float", "double") and not low <= number <= high):
        said = "a number" if kind in ("float", "double") else f"a whole number from {low} to {high}"
        raise UserError(f"{where} = {text!r}: must be {said} ({kind})")
    return bytes([int(number)]) if kind == "octet" else number


# --- plain values and text ----------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A message as mappings, lists, numbers and texts; a point cloud has its points by field."""
    if hasattr(value, "get_fields_and_field_types"):
        fields = {name: getattr(value, name) for name in value.get_fields_and_field_types()}
        points = _points(value) if {"point_step", "fields", "data"} <= fields.keys() else None
        if points is not None:
            for name in ("fields", "data", "is_bigendian", "point_step", "row_step"):
                del fields[name]
            fields["points"] = points
        return {name: plain(each) for name, each in fields.items()}
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, bytes) and len(value) == 1:
        return value[0]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [plain(each) for each in value]


def _points(cloud: Any) -> dict[str, np.ndarray] | None:
    """The values of each field of a PointCloud2, in the order of its points; None of a bad one."""
    order = ">" if cloud.is_bigendian else "<"
    try:
        layout = np.dtype(
            {
                "names": [each.name for each in cloud.fields],
                "formats": [
                    (order + _CLOUD_TYPES[each.datatype], (each.count,) if each.count > 1 else ())
                    for each in cloud.fields
                ],
                "offsets": [each.offset for each in cloud.fields],
                "itemsize": cloud.point_step,
            }
        )
        rows = np.frombuffer(cloud.data, "u1").reshape(cloud.height, cloud.row_step)
        used = np.ascontiguousarray(rows[:, : cloud.width * cloud.point_step])
        table = np.frombuffer(used.tobytes(), layout)
    except (KeyError, ValueError, TypeError):
        return None
    return {name: table[name] for name in layout.names or ()}


def without_nan(value: Any) -> Any:
    """Plain values for JSON, which knows neither NaN nor infinity: those become null."""
    if isinstance(value, dict):
        return {name: without_nan(each) for name, each in value.items()}
    if isinstance(value, list):
        return [without_nan(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def picked(value: Any, path: str) -> Any:
    """The part of plain values that a path as `pose.position.x` or `effort[0]` names.

    Raises:
        UserError: there is no such part.
    """
    left = path
    while left:
        if (index := re.match(r"\[(-?\d+)\]\.?", left)) and isinstance(value, list):
            number = int(index[1])
            if not -len(value) <= number < len(value):
                raise UserError(f"field {path}: there are {len(value)} elements, from 0 on")
            value, left = value[number], left[index.end() :]
            continue
        names = list(value) if isinstance(value, dict) else []
        begins = [name for name in names if re.match(rf"{re.escape(name)}(\.|\[|$)", left)]
        if not begins:
            near = nearest(re.split(r"[.\[]", left)[0], names)
            known = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
            here = known if names else "there is nothing below"
            raise UserError(f"field {path}: {left!r} is unknown; {here}")
        name = max(begins, key=len)  # fields of point clouds have dots in their names
        value, left = value[name], left[len(name) :].removeprefix(".")
    return value


def lines(value: Any, indent: str = "") -> Iterator[str]:
    """Plain values as readable lines; long lists are shortened."""
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, dict) or _is_nested(each):
                yield f"{indent}{name}:"
                yield from lines(each, indent + "  ")
            else:
                yield f"{indent}{name}: {_in_line(each)}"
    elif _is_nested(value):
        for each in islice(value, _SHOWN):
            first, *others = lines(each, "")
            yield f"{indent}- {first}"
            yield from (f"{indent}  {line}" for line in others)
        if len(value) > _SHOWN:
            yield f"{indent}... {len(value)} elements"
    else:
        yield f"{indent}{_in_line(value)}"


def _is_nested(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _in_line(value: Any) -> str:
    if isinstance(value, list):
        shown = [_in_line(each) for each in value]
        if len(shown) > _SHOWN:
            kept = [*shown[: _SHOWN - 2], "...", shown[-1]]
            return f"[{', '.join(kept)}] ({len(shown)} elements)"
        return f"[{', '.join(shown)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.7g}" if isinstance(value, float) else str(value)

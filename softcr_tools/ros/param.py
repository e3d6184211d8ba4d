"""`softcr param`: the parameters of a node."""

import json as json_format
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from softcr_models.errors import UserError
from softcr_runtime.console.terminal import FAILED, complain, show
from softcr_runtime.ros.parameters import changes_and_range
from softcr_runtime.settings.command_line import command, new_app
from softcr_tools.ros.interfaces import lines, plain, without_nan
from softcr_tools.ros.participant import Connection, Participant, Unanswered, beside, nearest
from softcr_tools.ros.tables import print_table

app = new_app("param", "List, show or change the parameters of a node.")

_SIDE_BY_SIDE = 100  # of names in one question: a longer answer is a large message for UDP


@dataclass(frozen=True)
class Row:
    """What a node tells of one parameter.

    Attributes:
        name: with dots.
        value: plain; None where it has none.
        unit: empty for none.
        range: the allowed values in words.
        changes: in which states it can be changed, in words; empty: the node does not tell.
        description: what it means.
    """

    name: str
    value: Any
    unit: str
    range: str
    changes: str
    description: str


@app.command(name="list")
@command
def list_(node: str, /, *, connection: Connection, json: bool = False) -> int:
    """List a node's parameters: value, unit, allowed values, when they can change, description.

    Args:
        node: name of the node, as in `softcr nodes`.
        json: print JSON, for programs.
    """

    def act(participant: Participant) -> int:
        name = _found(participant, node)
        rows = _rows(participant, name, _names(participant, name))
        if json:
            told = [without_nan(asdict(row)) for row in rows]
            print(json_format.dumps(told, indent=2, allow_nan=False))
        else:
            columns = ("name", "value", "unit", "allowed", "changes", "description")
            print_table(columns, [_cells(row) for row in rows])
        return 0

    return beside("param", connection, act)


@app.command
@command
def get(node: str, name: str, /, *, connection: Connection, json: bool = False) -> int:
    """Print the value of a parameter.

    Args:
        node: name of the node, as in `softcr nodes`.
        name: name of the parameter.
        json: print JSON with value, unit, range and description, for programs.
    """

    def act(participant: Participant) -> int:
        place = _found(participant, node)
        _must_be_known(participant, place, name)
        (row,) = _rows(participant, place, [name])
        if json:
            print(json_format.dumps(without_nan(asdict(row)), allow_nan=False))
        else:
            show(f"{_text(row.value)} {row.unit}".strip())
        return 0

    return beside("param", connection, act)


@app.command(name="set")
@command
def set_(
    node: str,
    name: str,
    value: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    connection: Connection,
) -> int:
    """Change a parameter, and print the node's answer.

    The exit code is 1 if the node refuses.

    Args:
        node: name of the node, as in `softcr nodes`.
        name: name of the parameter.
        value: new value; a list as "[1, 2]".
    """

    def act(participant: Participant) -> int:
        from rcl_interfaces.msg import Parameter as Given
        from rcl_interfaces.srv import SetParameters

        place = _found(participant, node)
        _must_be_known(participant, place, name)
        (before,) = _rows(participant, place, [name])
        (described,) = _descriptors(participant, place, [name])
        if described.read_only:
            complain(f"{place}: {name} is fixed when the node starts; start it with another value")
            return FAILED
        given = Given(name=name, value=_parsed(described.type, value, name))
        request = SetParameters.Request(parameters=[given])
        answer = participant.ask(f"{place}/set_parameters", SetParameters, request, place)
        (result,) = answer.results
        if not result.successful:
            complain(f"{place} refused: {result.reason or 'it gave no reason'}")
            return FAILED
        (after,) = _rows(participant, place, [name])
        said = f"{_text(after.value)} {after.unit}".strip()
        show(f"{place}: {name} was {_text(before.value)}, is {said}")
        return 0

    return beside("param", connection, act)


def _found(participant: Participant, word: str) -> str:
    name, _ = participant.found("node", word)
    if not participant.is_offered(f"{name}/list_parameters"):
        raise UserError(f"node {name}: offers no services for its parameters")
    return name


def _names(participant: Participant, node: str) -> list[str]:
    from rcl_interfaces.srv import ListParameters

    answer = participant.read(f"{node}/list_parameters", ListParameters, ListParameters.Request())
    return sorted(answer.result.names)


def _must_be_known(participant: Participant, node: str, name: str) -> None:
    names = _names(participant, node)
    if name in names:
        return
    near = nearest(name, names) or [each for each in names if each.endswith(f".{name}")][:3]
    instead = f"did you mean {' or '.join(near)}?" if near else f"see softcr param list {node}"
    raise UserError(f"parameter {name}: {node} has none of this name; {instead}")


def _descriptors(participant: Participant, node: str, names: Sequence[str]) -> list[Any]:
    from rcl_interfaces.srv import DescribeParameters

    request = DescribeParameters.Request(names=names)
    answer = participant.read(f"{node}/describe_parameters", DescribeParameters, request)
    return list(answer.descriptors)


def _rows(participant: Participant, node: str, names: Sequence[str]) -> list[Row]:
    from rcl_interfaces.srv import GetParameters
    from rclpy.parameter import parameter_value_to_python

    rows = []
    for begin in range(0, len(names), _SIDE_BY_SIDE):
        some = names[begin : begin + _SIDE_BY_SIDE]
        request = GetParameters.Request(names=some)
        values = participant.read(f"{node}/get_parameters", GetParameters, request).values
        described = _descriptors(participant, node, some)
        if not len(values) == len(described) == len(some):
            raise Unanswered(f"node {node}: its parameters changed while they were read")
        for name, value, each in zip(some, values, described, strict=True):
            python = parameter_value_to_python(value)
            rows.append(_row(name, None if python is None else plain(python), each))
    return rows


def _row(name: str, value: Any, descriptor: Any) -> Row:
    said, opens, unit = descriptor.description.removesuffix("]").rpartition(" [")
    if not (opens and descriptor.description.endswith("]")):
        said, unit = descriptor.description, ""
    changes, allowed = changes_and_range(descriptor)
    return Row(
        name=name,
        value=value,
        unit=unit,
        range=allowed,
        changes=changes,
        description=said,
    )


def _cells(row: Row) -> tuple[str, ...]:
    allowed = row.range.removesuffix(f" {row.unit}") if row.unit else row.range
    return (row.name, _text(row.value), row.unit, allowed, row.changes, row.description)


def _text(value: Any) -> str:
    if value is None:
        return "not set"
    return "''" if value == "" else "\n".join(lines(value))


def _parsed(kind: int, text: str, name: str) -> Any:
    """A text as a parameter's value.

    Raises:
        UserError: it is not of the parameter's type.
    """
    from rcl_interfaces.msg import ParameterType, ParameterValue
    from rclpy.parameter import get_parameter_value

    elements: dict[int, tuple[str, str, Any]] = {
        ParameterType.PARAMETER_BOOL: ("bool", "true or false", _boolean),
        ParameterType.PARAMETER_INTEGER: ("integer", "a whole number", int),
        ParameterType.PARAMETER_DOUBLE: ("double", "a number", float),
        ParameterType.PARAMETER_STRING: ("string", "a text", str),
        ParameterType.PARAMETER_BYTE_ARRAY: ("byte_array", "whole numbers", _byte),
        ParameterType.PARAMETER_BOOL_ARRAY: ("bool_array", "a list of true or false", _boolean),
        ParameterType.PARAMETER_INTEGER_ARRAY: ("integer_array", "a list of whole numbers", int),
        ParameterType.PARAMETER_DOUBLE_ARRAY: ("double_array", "a list of numbers", float),
        ParameterType.PARAMETER_STRING_ARRAY: ("string_array", "a list of texts", str),
    }
    if kind not in elements:  # not set yet, or of any type: as ROS reads it
        return get_parameter_value(text)
    short, words, convert = elements[kind]
    try:
        if not short.endswith("_array"):
            return ParameterValue(type=kind, **{f"{short}_value": convert(text)})
        inner = text.strip().removeprefix("[").removesuffix("]")
        parts = [part.strip() for part in inner.split(",")] if inner.strip() else []
        return ParameterValue(type=kind, **{f"{short}_value": [convert(part) for part in parts]})
    except (KeyError, ValueError, AssertionError, OverflowError):
        raise UserError(f"parameter {name} = {text!r}: must be {words}") from None


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _byte(text: str) -> bytes:
    return bytes([int(text)])

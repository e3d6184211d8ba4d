"""The shipped robots, and the fields of robot files, from the pydantic models."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import yaml
from pydantic import BaseModel

from generate.markdown import first_paragraph, table
from softcr_models.plugins import load_class
from softcr_models.robots.kinds import KINDS
from softcr_models.robots.obstacle_files import ObstacleFile
from softcr_models.robots.robot import available_robots, load_robot
from softcr_simulation.scripted_loads import LoadScript

_END = "\n...\n"  # what YAML puts behind a number that stands alone


def pages() -> dict[str, Callable[[], str]]:
    """The shipped robots, and tables of every field of the files of robots, by their type, of
    loads and of obstacles."""
    kinds: dict[str, type[BaseModel]] = {
        f"robot_{name}.md": load_class(kind.robot, "robot") for name, kind in KINDS.items()
    }
    kinds |= {"loads.md": LoadScript, "obstacles.md": ObstacleFile}
    tables = {name: partial(_tables, kind) for name, kind in kinds.items()}
    return {"robots.md": _shipped, **tables}


def _shipped() -> str:
    rows = []
    for name in available_robots(None):
        robot = load_robot(name, None)
        inputs = Counter(each.quantity for each in robot.shown_inputs)
        moved = ", ".join(f"{count} {quantity}s" for quantity, count in inputs.items())
        length = f"{1e3 * robot.length:.0f} mm"
        rows.append([f"`{name}`", f"`{robot.type}`", length, moved, robot.description])
    return table(["robot", "type", "length", "inputs", "description"], rows) + "\n"


def _tables(kind: type[BaseModel]) -> str:
    """A table for the file, and one for each part of it."""
    schema = kind.model_json_schema()
    lines = [_table(schema)]
    for name, part in schema.get("$defs", {}).items():
        lines += [f"**{name}**: {first_paragraph(part.get('description'))}", _table(part)]
    return "\n\n".join(lines) + "\n"


def _table(schema: Mapping[str, Any]) -> str:
    rows = []
    for name, field in schema["properties"].items():
        unit, meaning = _unit_and_meaning(field.get("description", ""))
        needed = name in schema.get("required", ())
        default = "required" if needed else _default(field.get("default"))
        rows.append([f"`{name}`", unit, _allowed(field), default, meaning])
    return table(["field", "unit", "allowed", "default", "meaning"], rows)


def _unit_and_meaning(description: str) -> tuple[str, str]:
    """The unit that stands in brackets, and the rest."""
    found = re.search(r" ?\[([^\]]+)\]", description)
    if found is None:
        return "", description
    return found[1], description.replace(found[0], "", 1)


def _default(value: Any) -> str:
    if value is None or value == "":
        return "none"
    text = yaml.safe_dump(value, default_flow_style=True, width=1000)
    return f"`{text.removesuffix(_END).strip()}`"


def _allowed(field: Mapping[str, Any]) -> str:
    """What JSON schema says of a field, in words."""
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if "$ref" in field:
        return _name(field)
    if "anyOf" in field:  # or null
        return _allowed(field["anyOf"][0])
    if "oneOf" in field:
        return " or ".join(_allowed(member) for member in field["oneOf"])
    if field["type"] == "array":
        return f"{_length(field)}, each {_allowed(field['items'])}"
    if field["type"] == "object":
        return f"mapping, each {_allowed(field['additionalProperties'])}"
    words = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
    }[field["type"]]
    return f"{words} {_bounds(field)}".strip()


def _name(field: Mapping[str, Any]) -> str:
    return str(field["$ref"]).rpartition("/")[2]


def _length(field: Mapping[str, Any]) -> str:
    shortest, longest = field.get("minItems", 0), field.get("maxItems")
    if shortest == longest:
        return f"list of {shortest}"
    if longest is not None:
        return f"list of {shortest} to {longest}"
    return f"list of at least {shortest}" if shortest else "list"


def _bounds(field: Mapping[str, Any]) -> str:
    words = {
        "minimum": "at least", "exclusiveMinimum": "above",
        "maximum": "at most", "exclusiveMaximum": "below",
    }  # fmt: skip
    found = [f"{word} {field[bound]:g}" for bound, word in words.items() if bound in field]
    return " and ".join(found)

"""The generated parts of docs/robots.md: an example file, and a table of every field.

`python -m softcr_tools.robot_page` writes them anew from config/robots and from the models; a test
compares, so that the page cannot go stale.
"""

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from softcr_models.config import config_directory
from softcr_models.constant_curvature.arm import Arm
from softcr_models.robot import Robot

PAGE = Path(__file__).resolve().parent.parent / "docs" / "robots.md"

_EXAMPLE = "four_chambers"
_END = "\n...\n"  # what YAML puts behind a number that stands alone


def page(text: str) -> str:
    """The page with its generated parts made anew.

    Args:
        text: the page as it is; each part stands between `<!-- NAME: begin -->` and
            `<!-- NAME: end -->`.
    """
    for name, made in _PARTS.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{made()}\n{end}{rest.split(end)[1]}"
    return text


def _example() -> str:
    path = config_directory() / "robots" / f"{_EXAMPLE}.yaml"
    return f"```yaml\n{path.read_text(encoding='utf-8')}```"


def _tables(kind: type[BaseModel]) -> str:
    """A table for the file, and one for each part of it."""
    schema = kind.model_json_schema()
    lines = [*_table(schema), ""]
    for name, part in schema.get("$defs", {}).items():
        summary = " ".join(part.get("description", "").split("\n\n")[0].split())
        lines += [f"**{name}**: {summary}", "", *_table(part), ""]
    return "\n".join(lines).rstrip()


_PARTS: dict[str, Callable[[], str]] = {
    "example": _example, "rod": partial(_tables, Robot), "arm": partial(_tables, Arm)
}  # fmt: skip


def _table(schema: Mapping[str, Any]) -> list[str]:
    lines = ["| field | unit | allowed | default | meaning |", "|---|---|---|---|---|"]
    for name, field in schema["properties"].items():
        unit, meaning = _unit_and_meaning(field.get("description", ""))
        needed = name in schema.get("required", ())
        default = "required" if needed else _default(field.get("default"))
        lines.append(f"| `{name}` | {unit} | {_allowed(field)} | {default} | {meaning} |")
    return lines


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
        return " or ".join(_name(member) for member in field["oneOf"])
    if field["type"] == "array":
        return f"{_length(field)}, each {_allowed(field['items'])}"
    words = {"string": "text", "integer": "whole number", "number": "number"}[field["type"]]
    return f"{words} {_bounds(field)}".strip()


def _name(field: Mapping[str, Any]) -> str:
    return str(field["$ref"]).rpartition("/")[2]


def _length(field: Mapping[str, Any]) -> str:
    shortest, longest = field.get("minItems", 0), field.get("maxItems")
    if shortest == longest:
        return f"list of {shortest}"
    return f"list of at least {shortest}" if shortest else "list"


def _bounds(field: Mapping[str, Any]) -> str:
    words = {
        "minimum": "at least", "exclusiveMinimum": "above",
        "maximum": "at most", "exclusiveMaximum": "below",
    }  # fmt: skip
    found = [f"{word} {field[bound]:g}" for bound, word in words.items() if bound in field]
    return " and ".join(found)


def main() -> int:
    """Write the page anew; returns the exit code."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

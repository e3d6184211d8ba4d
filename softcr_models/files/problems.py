"""What is wrong with data that a pydantic model refused, a line for each problem."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from softcr_models.errors import did_you_mean

_LONGEST_VALUE = 80  # characters of a value in a line

_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument", "invalid_key")
_NO_MAPPING = ("model_type", "model_attributes_type", "dataclass_type")
_NO_LIST = ("tuple_type", "list_type")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong; `str()` is the line, without the name of the file.

    Attributes:
        location: where, as the user wrote it: names of fields, and places in lists from 0. Empty
            for a rule between several fields.
        kind: a field is missing or unknown, its value is not allowed, or a rule between several
            fields is broken.
        value: what was found there.
        reason: what is allowed.
    """

    location: tuple[str | int, ...]
    kind: Literal["missing", "unknown", "value", "rule"]
    value: Any
    reason: str

    @property
    def field(self) -> str:
        """The location with dots; empty for a rule about everything."""
        return ".".join(str(part) for part in self.location)

    def __str__(self) -> str:
        """FIELD: VALUE is not allowed: REASON, or what is said of a missing or unknown field."""
        if self.kind == "value":
            return f"{self.field}: {_shown(self.value)} is not allowed: {self.reason}"
        return f"{self.field}: {self.reason}" if self.location else self.reason


def first_problem(error: ValidationError, model: Any) -> Problem:
    """The first of `all_problems`, where one line is told."""
    return all_problems(error, model)[0]


def all_problems(error: ValidationError, model: Any) -> list[Problem]:
    """Everything that is wrong, of an error of validation by a model.

    Unknown fields come first. A misspelt field is also a missing one, which is not told a second
    time.

    Args:
        error: of `model.model_validate` or the like.
        model: the pydantic model, whose fields are listed where a name is unknown.
    """
    found = []
    for one in error.errors(include_url=False):
        if one["type"] == "too_short" and len(one["input"]) >= one["ctx"]["min_length"]:
            continue  # its entries are wrong, and told
        location, holder, here = _written(model, one["loc"])
        kind, reason = _described(one, location, holder, here)
        if one["type"].startswith("union_tag"):
            location = (*location, one["ctx"]["discriminator"].strip("'"))
        value = one["ctx"]["tag"] if "tag" in one.get("ctx", {}) else one["input"]
        found.append(Problem(location, kind, value, reason))
    meant = {
        (*each.location[:-1], near)
        for each in found
        if each.kind == "unknown" and (near := _nearest(each.location, found))
    }
    told = [each for each in found if each.kind != "missing" or each.location not in meant]
    return sorted(told, key=lambda each: each.kind != "unknown")


def _nearest(location: tuple[str | int, ...], found: list[Problem]) -> str | None:
    """The missing field beside an unknown one that was probably meant."""
    beside = [
        str(each.location[-1])
        for each in found
        if each.kind == "missing" and each.location[:-1] == location[:-1]
    ]
    return next(iter(get_close_matches(str(location[-1]), beside, n=1)), None)


def _described(
    problem: Any, location: tuple[str | int, ...], holder: Any, here: Any
) -> tuple[Literal["missing", "unknown", "value", "rule"], str]:
    """Kind and reason of one of pydantic's errors."""
    kind, message = problem["type"], problem["msg"].removeprefix("Value error, ")
    if kind in ("missing", "missing_argument"):
        field = _fields(holder).get(str(location[-1])) if location else None
        meaning = getattr(field, "description", None)
        return "missing", "missing; this field is required" + (f": {meaning}" if meaning else "")
    if kind in _UNKNOWN:
        known = _fields(holder)
        near = did_you_mean(location[-1], known) if location else ""
        return "unknown", f"unknown field; {near}allowed are {', '.join(known)}"
    if kind == "union_tag_not_found":
        return "missing", f"missing; allowed are {', '.join(_tags(here))}"
    if kind == "union_tag_invalid":
        return "value", f"allowed are {', '.join(_tags(here))}"
    if kind in _NO_MAPPING:
        return "value", f"must be a mapping of {', '.join(_fields(_bare(here)))}"
    if kind in _NO_LIST:
        return "value", "must be a list"
    message = re.sub(r"^(Input|Tuple|List|String|Dictionary|Value) should ", "must ", message)
    structured = isinstance(problem["input"], (dict, BaseModel))
    if not problem["loc"] or (kind == "value_error" and structured):
        return "rule", message
    return "value", message


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


# --- following a location through the types of a model ------------------------------------------


def _written(model: Any, location: tuple[Any, ...]) -> tuple[tuple[str | int, ...], Any, Any]:
    """A location without pydantic's names of union members; what holds its last part; its type."""
    written: list[str | int] = []
    holder, here = None, model
    for part in location:
        here = _bare(here)
        members = _members(here)
        if members:
            chosen = [member for member in members if part in _tag(member)]
            here = chosen[0] if chosen else None
            continue
        written.append(part)
        holder, here = here, _child(here, part)
    return tuple(written), holder, _bare(here)


def _bare(annotation: Any) -> Any:
    """Without `Annotated` and `| None`."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            return _bare(members[0])
    return annotation


def _members(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) not in (Union, UnionType):
        return ()
    return tuple(_bare(member) for member in get_args(annotation))


def _tag(member: Any) -> tuple[Any, ...]:
    """The values of a union member's field `type` or `kind`."""
    fields = _fields(member)
    field = fields.get("type") or fields.get("kind")
    return get_args(field.annotation) if field else ()


def _tags(union: Any) -> list[str]:
    return [str(tag) for member in _members(union) for tag in _tag(member)]


def _fields(annotation: Any) -> dict[str, Any]:
    """Fields by the names they have in a file; of a union, those that all its members have."""
    if members := _members(annotation):
        first, *others = (_fields(member) for member in members)
        return {name: first[name] for name in first if all(name in other for other in others)}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = {field.alias or name: field for name, field in annotation.model_fields.items()}
        return fields | getattr(annotation, "also_written", {})
    return dict(getattr(annotation, "__pydantic_fields__", {}))  # pydantic's dataclasses


def _child(annotation: Any, part: str | int) -> Any:
    if isinstance(part, str) and part in (fields := _fields(annotation)):
        return fields[part].annotation
    arguments, origin = get_args(annotation), get_origin(annotation)
    if origin is dict:
        return arguments[1]
    if origin is tuple and Ellipsis not in arguments:
        return arguments[part] if isinstance(part, int) and part < len(arguments) else None
    return arguments[0] if origin in (tuple, list) else None

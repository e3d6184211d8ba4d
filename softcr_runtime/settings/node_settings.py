"""Settings of a node: a pydantic model, each field of which becomes one ROS parameter. No ROS here.

A field tells range, unit and meaning once, and everything else follows from it: the declared
parameter, the check of every value, the list printed by `--help`:

    delay: Seconds = Field(0.01, ge=0.0, le=1.0, description="of the camera")

A field that is itself a model becomes parameters with dotted names (`cost.tip_position`). A field
with `json_schema_extra={"live": True}` may change while the node is configured or active, where
`{"while": "..."}` says in words what must hold then; one with `{"hidden": True}` is no parameter;
of one with `{"in_words": ...}` these words say what is allowed. Free text, which names classes,
files, folders and interfaces, is fixed when the node starts, and so is a field with
`json_schema_extra=FIXED`: nobody else may choose later what a process loads, opens or writes.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from softcr_models.errors import UserError, did_you_mean
from softcr_models.files.checked import checked
from softcr_models.files.number_types import number_in, whole_number_in
from softcr_models.files.problems import Problem, all_problems
from softcr_models.files.yaml_files import available
from softcr_runtime.wire.namespaces import FramePrefix

Model = TypeVar("Model", bound=BaseModel)
Kind = Literal["boolean", "integer", "number", "string"]


def unit(name: str) -> Any:
    """The unit of a number, behind its type: `Annotated[float, unit("1/m")]`."""
    return Field(json_schema_extra={"unit": name})


LIVE: dict[str, Any] = {"live": True}
"""`json_schema_extra` of a field that may change while its node is active."""

FIXED: dict[str, Any] = {"read_only": True}
"""`json_schema_extra` of a field, other than free text, that is fixed when its node starts."""

Seconds = Annotated[float, unit("s")]
Hertz = Annotated[float, unit("Hz")]
Millimetres = Annotated[float, unit("mm")]
Kilograms = Annotated[float, unit("kg")]

_ACCEPTED: dict[Kind, tuple[type, ...]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
}
_WORDS: dict[Kind, str] = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
}
_LARGEST: dict[Kind, float] = {"integer": 2**63 - 1, "number": sys.float_info.max}


class NodeSettings(BaseModel):
    """What every node can be told."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    robot: str = Field(
        "licher2025",
        min_length=1,
        description="a robot of config/robots, or a YAML file",
        json_schema_extra={"folder": "robots"},
    )
    mode: Literal["wall", "lockstep"] = Field(
        "wall", description="paced by the wall clock, or each cycle waits for the one before"
    )
    rate_hz: Hertz = Field(70.0, ge=1.0, le=1000.0, description="number of cycles per second")
    seed: int = Field(
        0, ge=0, le=2**31 - 1, description="seed of every random number that the node draws"
    )
    realtime_priority: int = Field(
        0, ge=0, le=90, description="priority while active (SCHED_FIFO); 0: the ordinary scheduler"
    )
    frame_prefix: FramePrefix = Field(
        "",
        description="prefix of the names of the robot's frames, such as robot1/ for robot1/base; "
        "by default the node's namespace and a slash, or nothing at the root; / for none",
    )

    @property
    def period(self) -> float:
        """Time between cycles [s]."""
        return 1.0 / self.rate_hz

    @property
    def lockstep(self) -> bool:
        """Whether each cycle waits for the one before."""
        return self.mode == "lockstep"


class SampledNodeSettings(NodeSettings):
    """What nodes are told whose cycles take samples of several sensors together."""

    sampling: Literal["common", "separate"] = Field(
        "common",
        description="whether the sensors' samples of a cycle share one stamp (simulator), or each "
        "sensor keeps its own time (bench) and is interpolated at whole multiples of the "
        "period",
    )

    @property
    def resampled(self) -> bool:
        """Whether samples are interpolated at the ticks of a grid."""
        return self.sampling == "separate"


@dataclass(frozen=True)
class Setting:
    """One parameter, as its field declares it.

    Attributes:
        name: dotted path of the field.
        kind: type of the value, or of its elements, in the words of JSON schema.
        is_list: whether the value is a list.
        default: value when nothing is given.
        low, high: inclusive range; None for a list and for what has no range.
        allowed: the allowed values in words.
        unit: of the value; empty for none.
        description: what it means.
        live: whether it may change while the node is active.
        choices: the only texts that are allowed, if there are such.
        known: texts that a shell completes, where others are allowed, too.
        condition: what must hold for a live change, in words; empty for nothing.
        fixed: whether it can never change after the node's start.
    """

    name: str
    kind: Kind
    is_list: bool
    default: Any
    low: float | None
    high: float | None
    allowed: str
    unit: str
    description: str
    live: bool
    choices: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    condition: str = ""
    fixed: bool = False


@cache
def declared_settings(model: type[BaseModel]) -> dict[str, Setting]:
    """All parameters of a model by dotted name, in the order of its fields.

    Raises:
        TypeError: a field has no default, or a type that no ROS parameter can hold, or is live and
            neither a number nor a boolean, which a record of a change can hold.
    """
    schema = model.model_json_schema()
    return {setting.name: setting for setting in _declared(schema, schema.get("$defs", {}), "")}


@cache
def nested_data(model: type[BaseModel], prefix: str = "") -> frozenset[str]:
    """Dotted names of the fields that no parameter can hold: mappings, lists of models."""
    schema = model.model_json_schema()
    found = set()
    for name, field in schema.get("properties", {}).items():
        inner = model.model_fields[name].annotation
        if field.get("hidden") or _is_nested_data(field):
            found.add(prefix + name)
        elif "$ref" in field and isinstance(inner, type) and issubclass(inner, BaseModel):
            found |= nested_data(inner, f"{prefix}{name}.")
    return frozenset(found)


def setting_values(settings: BaseModel) -> dict[str, Any]:
    """The values of a model by dotted name, as ROS parameters hold them: tuples are lists."""
    values: dict[str, Any] = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            values.update({f"{name}.{key}": inner for key, inner in setting_values(value).items()})
        else:
            values[name] = _plain(value)
    return values


def changed_values(before: BaseModel, after: BaseModel) -> dict[str, Any]:
    """The values of `after` by dotted name that differ from those of `before`."""
    old = setting_values(before)
    new = setting_values(after)
    return {name: value for name, value in new.items() if name not in old or value != old[name]}


def _plain(value: Any) -> Any:
    """What JSON and parameters can hold."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def build_settings(model: type[Model], values: Mapping[str, Any], word: str = "parameter") -> Model:
    """A model from values by dotted name; what is not named keeps its default.

    Args:
        model: to make.
        values: to be checked.
        word: for one of them, as the user knows it.

    Raises:
        UserError: a line for each wrong parameter, with its value and what is allowed.
    """
    declared, beyond = declared_settings(model), nested_data(model)
    lines = []
    for name, value in values.items():
        if name not in declared and not _is_within(name, beyond):
            known = ", ".join(declared)
            near = did_you_mean(name, declared)
            lines.append(f"{word} {name} = {value!r}: unknown; {near}known are {known}")
        elif name in declared and not _has_type(declared[name], value):
            lines.append(f"{word} {name} = {value!r}: must be {declared[name].allowed}")
    if lines:
        raise UserError("\n".join(lines))
    try:
        return checked(model, nested(values))
    except ValidationError as error:
        told = (problem_in_line(each, declared, word) for each in all_problems(error, model))
        raise UserError("\n".join(told)) from None


def unknown_names(model: type[BaseModel], names: Iterable[str]) -> list[str]:
    """Those of some dotted names that are no settings of a model, in their order."""
    declared, beyond = declared_settings(model), nested_data(model)
    return [name for name in names if name not in declared and not _is_within(name, beyond)]


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name that somebody meant who wrote another one, by its letters or its last part;
    empty where none is near."""
    known = list(known)
    near = get_close_matches(name, known, n=1)
    last = name.rpartition(".")[2]
    same_end = [each for each in known if each.rpartition(".")[2] == last]
    return next(iter((*near, *same_end)), "")


def name_and_nearest(name: str, known: Iterable[str]) -> str:
    """A name that nobody knows, with the one that was probably meant."""
    near = nearest_name(name, known)
    return f"{name} (did you mean {near}?)" if near else name


def parsed(setting: Setting, text: str, name: str) -> Any:
    """A text as the type of its setting; a list is written as `1, 2, 3` or `[1, 2, 3]`.

    Raises:
        UserError: it is none; in one line, with the setting's `name`.
    """
    converters: dict[Kind, Callable[[str], Any]] = {
        "boolean": lambda word: {"true": True, "false": False}[word.lower()],
        "integer": whole_number_in,
        "number": number_in,
        "string": str,
    }
    convert = converters[setting.kind]
    try:
        if setting.is_list:
            return [convert(part.strip()) for part in text.strip().strip("[]").split(",")]
        if setting.choices and text not in setting.choices:
            raise ValueError
        return convert(text)
    except (KeyError, ValueError):
        near = did_you_mean(text, setting.choices)
        raise UserError(f"{name} = {text!r}: {near}must be {setting.allowed}") from None


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted name as groups within groups."""
    groups: dict[str, Any] = {}
    for name, value in values.items():
        *path, leaf = name.split(".")
        group = groups
        for part in path:
            group = group.setdefault(part, {})
        group[leaf] = dict(value) if isinstance(value, dict) else value
    return groups


def _is_within(name: str, groups: Iterable[str]) -> bool:
    """Whether it is one of some groups of data, or names something in one of them."""
    return any(name == group or name.startswith(f"{group}.") for group in groups)


def _has_type(setting: Setting, value: Any) -> bool:
    if isinstance(value, (list, tuple)) != setting.is_list:
        return False
    elements = value if setting.is_list else [value]
    accepted = _ACCEPTED[setting.kind]
    # to Python true is a whole number, to a user it is not
    return all(
        isinstance(element, accepted) and (bool in accepted or not isinstance(element, bool))
        for element in elements
    )


def problem_in_line(problem: Problem, declared: Mapping[str, Setting], word: str) -> str:
    """A problem with a value, in words that say what is allowed; `word` is for the value."""
    name = ".".join(part for part in problem.location if isinstance(part, str))
    if name in declared:
        return f"{word} {name} = {problem.value!r}: must be {declared[name].allowed}"
    if problem.kind == "value":
        return f"{word} {problem.field} = {problem.value!r}: {problem.reason}"
    # a rule between several parameters
    return f"{word}s{f' {name}' if name else ''}: {problem.reason}"


def _declared(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], prefix: str
) -> Iterator[Setting]:
    for field_name, field in schema["properties"].items():
        name = prefix + field_name
        if field.get("hidden") or _is_nested_data(field):
            continue
        if "$ref" in field:
            nested = definitions[field["$ref"].removeprefix("#/$defs/")]
            yield from _declared(nested, definitions, f"{name}.")
        else:
            yield _setting(name, field)


def _is_nested_data(field: Mapping[str, Any]) -> bool:
    """Whether it is a mapping, or a list of models: a file can hold it, a parameter cannot."""
    return field.get("type") == "object" or "$ref" in field.get("items", {})


def _setting(name: str, field: Mapping[str, Any]) -> Setting:
    is_list = field.get("type") == "array"
    element = field.get("items") or field.get("prefixItems", [{}])[0] if is_list else field
    default = field.get("default")
    if element.get("type") not in _WORDS:
        raise TypeError(f"setting {name}: no ROS parameter can hold its type: {dict(field)}")
    if default is None or (is_list and not default):
        raise TypeError(f"setting {name}: needs a default that a ROS parameter can hold")
    kind: Kind = element["type"]
    if field.get("live") and (is_list or kind == "string"):
        raise TypeError(f"setting {name}: a live one must be a number or a boolean")
    low, high = (None, None) if is_list else _range(kind, element)
    unit, folder = field.get("unit", "-"), field.get("folder", "")
    allowed = " ".join(filter(None, [_in_words(kind, element), unit.strip("-")]))
    return Setting(
        name=name,
        kind=kind,
        is_list=is_list,
        default=default,
        low=low,
        high=high,
        allowed=f"{_lengths_in_words(field)}, each {allowed}" if is_list else allowed,
        unit=unit.strip("-"),
        description=field.get("description", ""),
        live=field.get("live", False),
        choices=tuple(element.get("enum", ())),
        known=tuple(field.get("known") or (available(folder) if folder else ())),
        condition=field.get("while", ""),
        fixed=field.get("read_only", kind == "string" and "enum" not in element),
    )


def _range(kind: Kind, element: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """The range as ROS declares it, inclusive: an exclusive bound is its neighbouring number."""
    bounds = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
    if not any(bound in element for bound in bounds):
        return None, None
    low = element.get("minimum", -_LARGEST[kind])
    high = element.get("maximum", _LARGEST[kind])
    if "exclusiveMinimum" in element:
        low = _neighbour(kind, element["exclusiveMinimum"], +1)
    if "exclusiveMaximum" in element:
        high = _neighbour(kind, element["exclusiveMaximum"], -1)
    return low, high


def _neighbour(kind: Kind, bound: float, side: int) -> float:
    return bound + side if kind == "integer" else math.nextafter(bound, side * math.inf)


def _in_words(kind: Kind, element: Mapping[str, Any]) -> str:
    if "in_words" in element:
        return str(element["in_words"])
    if "enum" in element:
        return "one of " + ", ".join(element["enum"])
    if "minimum" in element and "maximum" in element:
        return f"{_WORDS[kind]} from {element['minimum']} to {element['maximum']}"
    bounds = [
        f"{word} {element[bound]}"
        for bound, word in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
        )
        if bound in element
    ]
    return " ".join(filter(None, [_WORDS[kind], " and ".join(bounds)]))


def _lengths_in_words(field: Mapping[str, Any]) -> str:
    shortest, longest = field.get("minItems", 0), field.get("maxItems")
    if shortest == longest:
        return f"a list of {shortest}"
    return f"a list of at least {shortest}" if shortest else "a list"

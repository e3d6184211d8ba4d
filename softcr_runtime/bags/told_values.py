"""What a node may say of itself in a bag: values of another type are left out before they are used.

Readers of a bag (report, figures, replay, `softcr learn`) take what they find under these names for
what it should be. A bag may come from anybody, and from any release.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

_STRICT = ConfigDict(strict=True, allow_inf_nan=False, extra="allow")

Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Number = Annotated[float, Field(allow_inf_nan=False)] | Whole
Numbers = list[Number]
ByName = dict[str, Number]
Counts = dict[str, Whole]


class _Limits(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    minimum: Number
    maximum: Number


class _Sensor(TypedDict, total=False):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    type: str
    noise: Number
    force_noise: Number
    moment_noise: Number


class _Actuator(TypedDict, total=False):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    type: str


class _Robot(TypedDict, total=False):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    name: str
    length: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    outer_diameter: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    pressure_limits: _Limits | None
    sensors: list[_Sensor]
    actuators: list[_Actuator]


class _Settings(TypedDict, total=False):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    plant: str
    plant_errors: str
    model: str
    model_file: str
    estimator: str
    controller: str
    learned: str
    intervals: Whole | None
    duration: Number
    pressure_noise: Number
    force_noise: Number
    moment_noise: Number


class _Histogram(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    counts: Numbers
    edges: Numbers


class _Told(TypedDict, total=False):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    robot: _Robot
    settings: _Settings
    block: str
    role: str
    mode: str
    reference: str
    start_stamp: Whole | None
    before_changes: dict[str, Any]
    plant_model: str
    plant_mismatch: ByName | None
    plant_errors: dict[str, bool | Number | str | Numbers] | None
    plant_errors_left_out: str
    true_parameters: ByName
    initial_parameters: ByName
    payload: Number
    tip_noise_mm: Number
    loads: list[str]
    updates: Number
    opened: Number
    gated: Number
    innovation_correlation: Number | None
    bounds_met: list[str]
    rejections: Counts
    refusals: Counts
    predictions: dict[str, Number]
    in_words: dict[str, list[str]]
    holds: Whole
    ticks_at_bounds: Whole
    commands_stale: Whole
    cycles_made_up: Whole
    without_commands: bool
    missed_cycles: Whole
    cycles: Whole
    tick_time_histogram_ms: _Histogram


class _Death(TypedDict, total=False):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    node: str
    signal: Whole | None
    exit_code: Whole | None


class _System(TypedDict, total=False):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    deaths: list[_Death]
    ended_by: str | None
    error: str | None


_SYSTEM: TypeAdapter[Any] = TypeAdapter(_System)
_BY_NAME: Mapping[str, TypeAdapter[Any]] = {
    name: TypeAdapter(kind, config=None if hasattr(kind, "__pydantic_config__") else _STRICT)
    for name, kind in _Told.__annotations__.items()
}


def misfits(values: Mapping[str, Any]) -> dict[str, str]:
    """Name -> what is wrong with it, in a few words, of those values that have another type."""
    found: dict[str, str] = {}
    for name in values.keys() & _BY_NAME.keys():
        try:
            _BY_NAME[name].validate_python(values[name])
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, (name, *problem["loc"])))
            found[name] = f"{where}: {problem['msg']}"[:200]
    return found


def told_of_system(content: Any) -> dict[str, Any]:
    """The content of a run's system.json; empty where it is of another form."""
    try:
        found: dict[str, Any] = _SYSTEM.validate_python(content)
    except ValidationError:
        return {}
    return found

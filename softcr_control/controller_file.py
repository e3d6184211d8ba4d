"""Controllers as data: a file of numbers and cost weights, and how it meets what a user gives."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from softcr_models.errors import UserError
from softcr_models.files.checked import checked
from softcr_models.files.problems import Problem, all_problems
from softcr_models.files.yaml_files import read_mapping, yaml_path
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import Setting, declared_settings, problem_in_line
from softcr_runtime.settings.plugin_settings import settings_class

ON_APPROXIMATIONS: dict[str, Any] = {
    "population": 32,  # candidates at 70 Hz on two cores
    "tip_offset_gain": 0.1,  # an approximation's slow errors are worth learning, the rod's are not
    "perturbation": 2e-3,  # finite differences of what is computed in single precision
}
"""By name of setting: where the model is a trained network."""

_APPROXIMATIONS = ("ddpinn",)


def defaults_on(model: str) -> dict[str, Any]:
    """Defaults that differ from those of the settings' class, by name; a file or a user wins.

    Args:
        model: its name.
    """
    return ON_APPROXIMATIONS if model in _APPROXIMATIONS else {}


@dataclass(frozen=True)
class ControllerFile:
    """What a file of config/controllers says; not yet validated.

    Attributes:
        path: of the file.
        type: name of the controller that it is for.
        description: for people.
        values: settings by name, nested as in the file.
    """

    path: Path
    type: str
    description: str
    values: Mapping[str, Any]


def load_controller(name_or_path: str | Path, type_: str = "") -> ControllerFile:
    """`config/controllers/NAME.yaml`, or the YAML file at a path.

    Args:
        type_: that it must be of; empty for any.

    Raises:
        UserError: one line with the file, the field, the value found and what is allowed.
    """
    path = yaml_path(name_or_path, "controllers", "controller")
    content = read_mapping(path, "controller")
    found, description = content.pop("type", None), content.pop("description", "")
    if not isinstance(found, str) or (type_ and found != type_):
        allowed = type_ or ", ".join(registry.names("controller"))
        raise UserError(f"{path}: type: {found!r} is not allowed: must be {allowed}")
    for term in _terms(content):
        where = path.parent / str(term.get("class", ""))
        if where.with_name(where.name.partition(":")[0]).is_file():
            term["class"] = str(where)
    return ControllerFile(path, found, str(description), content)


def controller_settings(
    kind: type[BaseModel],
    file: ControllerFile | None = None,
    given: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    below: Mapping[str, Any] | None = None,
) -> Any:
    """Settings of a controller: its defaults, then those of the model, then the file, then `given`.

    Later ones win, group by group and name by name; only the result is validated. A horizon that
    comes without knots takes those from before along, in proportion.

    Args:
        kind: the controller's `Settings`.
        file: loaded; None for none.
        given: by a user: by name, groups nested.
        defaults: that depend on the model; what the controller does not know is left out.
        below: all values of a run, nested, where that is where to begin.

    Raises:
        UserError: a line for each problem with the source, the field, the value found and what is
            allowed.
    """
    advised = {name: v for name, v in (defaults or {}).items() if name in kind.model_fields}
    given = dict(given or {})
    values = dict(below) if below is not None else kind().model_dump(by_alias=True)
    for layer in (advised, file.values if file else {}, given):
        values = _over(values, kind, layer)
    try:
        return checked(kind, values)
    except ValidationError as error:
        problems = all_problems(error, kind)
        declared = declared_settings(kind)
        lines = [_in_line(each, file, given, declared) for each in problems]
        raise UserError("\n".join(lines)) from None


def named_settings(
    controller: str,
    file: ControllerFile | str | Path = "",
    given: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Any:
    """See `controller_settings`, for a name of the registry or a place of a class.

    Args:
        controller: `nempc`, `package.module:Class` or `path/file.py:Class`.
        file: loaded, a name or a path; empty for the shipped one of that name, if there is one.
        given, defaults: see there.

    Raises:
        UserError: likewise, or no such controller.
    """
    kind = settings_class(registry.resolve("controller", controller))
    shipped = controller if controller in registry.names("controller") else ""
    if not isinstance(file, ControllerFile):
        found = load_controller(file or shipped, controller) if file or shipped else None
    else:
        found = file
    return controller_settings(kind, found, given, defaults)


def as_content(type_: str, description: str, settings: BaseModel) -> dict[str, Any]:
    """What a file says that holds these settings."""
    numbers = settings.model_dump(mode="json", by_alias=True)
    return {"type": type_, "description": description, **numbers}


def _terms(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    costs = content.get("costs")
    terms = costs.get("terms") if isinstance(costs, dict) else None
    return [term for term in terms if isinstance(term, dict)] if isinstance(terms, list) else []


def _over(
    values: dict[str, Any], kind: type[BaseModel], layer: Mapping[str, Any]
) -> dict[str, Any]:
    """Values with a layer above them."""
    told = dict(layer)
    beside_horizon = getattr(kind, "beside_horizon", None)
    beside = beside_horizon(values, told["horizon"]) if beside_horizon and "horizon" in told else {}
    return _merged(values, beside | told)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        both = isinstance(under, dict) and isinstance(value, Mapping)
        merged[name] = _merged(under, value) if both else value  # type: ignore[arg-type]
    return merged


def _in_line(
    problem: Problem,
    file: ControllerFile | None,
    given: Mapping[str, Any],
    declared: Mapping[str, Setting],
) -> str:
    asked = ", ".join(f"{name} = {value!r}" for name, value in given.items())
    if not problem.location:  # a rule between several of them
        source = f"{file.path if file else 'controller'}{f' with {asked}' * bool(asked)}"
        return f"{source}: {problem}"
    if problem.location[0] not in given and file is not None:
        return f"{file.path}: {problem}"
    return problem_in_line(problem, declared, "parameter")

"""Who plays the roles of a run, and what each can be told: its own settings, by `role.name`."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from softcr_models.errors import UserError, did_you_mean
from softcr_models.plugins import load_class
from softcr_models.robots.robot import kind_of
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.blocks.system import Parameters, Part
from softcr_runtime.settings import registry
from softcr_runtime.settings.loops import loop_of
from softcr_runtime.settings.node_settings import (
    Setting,
    build_settings,
    declared_settings,
    parsed,
    unknown_names,
)

if TYPE_CHECKING:
    from softcr_tools.running.run_options import RunOptions

ROLES: tuple[registry.Kind, ...] = ("controller", "estimator", "plant", "reference")
"""Options that name something of the registry, or a class in a file."""

NOBODY = "none"
"""In place of a controller or a device: a node of somebody else does its work."""

OPEN_LOOP = "cc"
"""Estimator that runs in open loop."""

_OF_THE_RUN = {
    "robot", "frame_prefix", "mode", "seed", "duration", "sampling", "start", "bag", *ROLES,
    "sends",
}  # fmt: skip
"""Settings of a part that the run decides, by an option of its own or by what it is."""


def absolute_file(place: str) -> str:
    """A file by its absolute path, so that nodes and replay elsewhere find it; a name as it is."""
    path = Path(place)
    is_file = path.suffix in (".yaml", ".yml", ".json", ".csv", ".npz") and path.is_file()
    return str(path.resolve()) if is_file else place


def part_of(options: "RunOptions", role: registry.Kind, parameters: Parameters) -> Part | None:
    """The part that plays a role, told what was given for it; None where none does.

    Args:
        options: of the run.
        role: that it plays.
        parameters: below those that were given.

    Raises:
        UserError: what is named cannot be used.
    """
    if role == "controller" and options.controller == NOBODY:
        return None
    told: Parameters = {"robot": options.robot, **parameters}
    part: Part | None
    if role == "controller" and options.estimator == OPEN_LOOP:
        place = "softcr_control.open_loop.feedforward:Feedforward"
        # it draws no random numbers
        part = Part("feedforward", place, {"reference": options.reference, **told, "seed": 0})
    else:
        part = loop_of(kind_of(options.robot)).part(role, options, told)
    return part and replace(part, parameters={**part.parameters, **options.of(role)})


def class_of(options: "RunOptions", role: registry.Kind) -> Any:
    """The class that plays a role; None where a known motion or a node of somebody else does."""
    named = options.named(role)
    is_motion = role == "reference" and named in registry.MOTIONS
    is_class = bool(named) and named != NOBODY and not is_motion
    return registry.resolve(role, named) if is_class else None


def settings_of(options: "RunOptions", role: str) -> dict[str, Setting]:
    """What can be told to whoever plays a role, by name; empty where nobody does.

    Raises:
        UserError: what is named cannot be used, or has settings that a node cannot hold.
    """
    model, _ = _told(options, role)
    try:
        declared = declared_settings(model) if model else {}
    except (TypeError, PydanticUserError) as error:
        line = str(error).splitlines()[0]
        raise UserError(f"{role} {options.named(role)!r}: {line}") from None
    return {name: each for name, each in declared.items() if _is_offered(role, name)}


def checked(options: "RunOptions", role: str) -> Parameters:
    """What was given for a role, as values that whoever plays it accepts.

    Raises:
        UserError: a line with the option, its value and what is allowed.
    """
    declared = settings_of(options, role)
    model, part = _told(options, role)
    if model is None:
        name = next(iter(options.roles[role]))
        raise UserError(f"option {role}.{name}: has no meaning here: this run has no {role}")
    values: Parameters = {}
    for name, value in options.roles[role].items():
        full = f"{role}.{name}"
        if not _is_offered(role, name) or unknown_names(model, [name]):
            known = [f"{role}.{each}" for each in declared]
            near = did_you_mean(full, known)
            raise UserError(
                f"option {full} = {value!r}: unknown; {near}known are {', '.join(known)}"
            )
        if name in declared and isinstance(value, str):
            value = parsed(declared[name], value, f"option {full}")
        values[name] = absolute_file(value) if isinstance(value, str) else value
    try:
        if part is None:
            build_settings(model, values)
        else:
            _block(part).settings_of(part.parameters | values)
    except UserError as error:
        # of a node they are parameters, and here options
        line = re.sub("(?m)^parameter(s?) ", rf"option\1 {role}.", str(error))
        raise UserError(re.sub("(?m)^parameter(s?):", rf"option\1 {role}:", line)) from None
    return values


def _told(options: "RunOptions", role: str) -> tuple[type[BaseModel] | None, Part | None]:
    """The settings of whoever plays a role, and the part where that runs a block."""
    if place := options.nodes.get(role):
        found: type[BaseModel] = load_class(place, "settings", BaseModel)
        return found, None
    if role not in ROLES or role not in type(options).model_fields:
        return None, None
    part = part_of(options, role, {})
    return (None, None) if part is None else (_block(part).settings_model(part.parameters), part)


def _block(part: Part) -> type[BlockBase]:
    return load_class(part.runs, "block", BlockBase)


def _is_offered(role: str, name: str) -> bool:
    return name not in _OF_THE_RUN and (role, name) != ("controller", "device")


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Groups within groups as values by dotted name."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {above + key: value}
    return found

"""Another controller for a system that runs: what `softcr call switch` asks for, as a part.

Anybody on the ROS domain may ask. Code and files are therefore loaded only where they are those of
the run, or were named when it was started (`--switchable`); registered controllers are always
allowed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from softcr_models.errors import UserError
from softcr_models.plugins import load_class
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.blocks.system import Parameters, Part, System
from softcr_runtime.ros.executor.exchange import Wanted
from softcr_runtime.settings.node_settings import declared_settings, nested_data, parsed
from softcr_tools.running.node_parameters import system_with_file
from softcr_tools.running.option_checks import NOBODY, ROLES
from softcr_tools.running.run_options import RunOptions

_OF_THE_RUN = (
    "robot", "mode", "frame_prefix", "rate_hz", "sampling", "takes_over",
    "answer_from", "answer_until",
)  # fmt: skip
"""Parameters in which the new controller must agree with the run."""


def other_controller(
    running: System,
    options: RunOptions,
    system_of: Callable[[RunOptions], System],
    warn: Callable[[str], None],
) -> Callable[[Wanted], Part]:
    """What makes the part of another controller.

    Args:
        running: the system.
        options: that it was made of.
        system_of: makes one like it of other options.
        warn: told about what a file of parameters has for nobody.

    Returns:
        A function that raises UserError where there can be no such controller.
    """

    def made(wanted: Wanted) -> Part:
        _check_system(options)
        _check_places(options, wanted)
        changed = _options(options, wanted)
        system = system_with_file(system_of(changed), changed, warn)
        part = _told(system.part(system.controller), wanted)
        _check_rate(part, running)
        _check_horizon(part, running)
        return part.with_parameters({"takes_over": True})

    return made


def _check_system(options: RunOptions) -> None:
    if options.controller == NOBODY:
        raise UserError(f"controller {NOBODY}: a node that is not softcr's commands this run")
    if options.estimator == "cc":
        raise UserError("estimator cc runs in open loop, which has no controller to exchange")


def _check_places(options: RunOptions, wanted: Wanted) -> None:
    """Nothing is loaded because a message names it."""
    named = {each.strip() for each in options.switchable.split(",")}
    for name, value, own in (
        ("controller", wanted.controller, options.controller),
        ("params_file", wanted.params_file, options.params_file),
    ):
        is_place = name == "params_file" or ":" in value
        if value and is_place and value != own and value not in named:
            raise UserError(
                f"{name} {value!r}: must be named when the run is started: --switchable {value}"
            )


def _options(options: RunOptions, wanted: Wanted) -> RunOptions:
    """The run's options with another controller; numbers are kept for the same one only."""
    given: dict[str, Any] = {
        name: getattr(options, name)
        for name in options.model_fields_set
        if name not in ("plugin_settings", "controller")
    }
    same = wanted.controller == options.controller
    for role in ROLES:
        if role != "controller" or same:
            settings = options.plugin_settings.get(role, {})
            given |= {f"{role}.{name}": value for name, value in settings.items()}
    if not same:
        given = {n: v for n, v in given.items() if n not in ("controller_file", "population")}
    if wanted.params_file:
        if not Path(wanted.params_file).is_file():
            raise UserError(f"params_file = {wanted.params_file!r}: no such file")
        given["params_file"] = wanted.params_file
    return type(options).of_options(given | {"controller": wanted.controller})


def _told(part: Part, wanted: Wanted) -> Part:
    """The part with the parameters that were asked for, validated."""
    block: type[BlockBase] = load_class(part.runs, "block", BlockBase)
    if (
        not hasattr(block.Settings, "model_fields")
        or "takes_over" not in block.Settings.model_fields
    ):
        raise UserError(
            f"controller {wanted.controller!r}: is a block of its own, which cannot take over; a "
            "class with reset and command can"
        )
    for name in _OF_THE_RUN:
        if name in wanted.parameters:
            raise UserError(f"parameter {name}: is the run's, and cannot be another one's")
    _check_texts(block.settings_model(part.parameters), wanted)  # before they are looked up
    declared = declared_settings(block.settings_model({**part.parameters, **wanted.parameters}))
    values: Parameters = {}
    for name, value in wanted.parameters.items():
        text = isinstance(value, str) and name in declared
        values[name] = parsed(declared[name], value, f"parameter {name}") if text else value
    told = part.with_parameters(values)
    block.settings_of(told.parameters)
    return told


def _check_texts(settings: type[BaseModel], wanted: Wanted) -> None:
    """Classes and files of the controller's settings are those of the run, too."""
    declared, beyond = declared_settings(settings), nested_data(settings)
    for name in wanted.parameters:
        of_file = any(name == group or name.startswith(f"{group}.") for group in beyond)
        if of_file or (name in declared and declared[name].fixed):
            raise UserError(f"parameter {name}: is text, and is fixed when the run is started")


def _check_rate(part: Part, running: System) -> None:
    """No controller of another rate gets what the parts that run tell."""
    mine, theirs = (
        each.parameters.get("rate_hz") for each in (part, running.part(running.controller))
    )
    if mine != theirs:
        raise UserError(
            f"controller {part.name}: runs {mine} times a second around this robot, and the run "
            f"{theirs} times: it cannot take over"
        )


def _check_horizon(part: Part, running: System) -> None:
    """No controller can look further ahead than the reference that runs."""
    there = {each.name: each for each in running.parts}.get("reference")
    block: type[BlockBase] = load_class(part.runs, "block", BlockBase)
    wanted = getattr(block.settings_of(part.parameters), "horizon", None)
    if there is None or wanted is None:
        return
    reference: type[BlockBase] = load_class(there.runs, "block", BlockBase)
    longest = getattr(reference.settings_of(there.parameters), "horizon", wanted)
    if wanted > longest:
        raise UserError(
            f"parameter horizon = {wanted}: must be at most {longest}, as far as the running "
            "reference looks ahead"
        )

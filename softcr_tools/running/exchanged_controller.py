"""Another controller for a system that runs: what `softcr call switch` asks for, as a part.

Anybody on the ROS domain may ask. Code and files are therefore loaded only where they are those of
the run, or were named when it was started (`--switchable`); registered controllers are always
allowed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from softcr_models.errors import UserError
from softcr_models.plugins import load_class
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.blocks.system import Part, System
from softcr_runtime.ros.executor.exchange import Wanted
from softcr_runtime.settings.node_settings import declared_settings, nested_data, parsed
from softcr_tools.running.roles import NOBODY
from softcr_tools.running.run_options import RunOptions

_OF_THE_RUN = (
    "robot", "mode", "frame_prefix", "rate_hz", "sampling", "takes_over", "answer_from",
    "answer_until",
)  # fmt: skip
"""Parameters in which the new controller must agree with the run."""


def other_controller(
    running: System,
    options: RunOptions,
    system_of: Callable[[RunOptions], System],
) -> Callable[[Wanted], Part]:
    """What makes the part of another controller.

    Args:
        running: the system.
        options: that it was made of.
        system_of: makes one like it of other options.

    Returns:
        A function that raises UserError where there can be no such controller.
    """

    def made(wanted: Wanted) -> Part:
        _check_run(options, wanted)
        changed = _options(options, wanted)
        system = system_of(changed)
        part = _told(system.part(system.controller), wanted, running)
        _check_rate(part, running)
        return part

    return made


def _check_run(options: RunOptions, wanted: Wanted) -> None:
    """Whether the run can have another controller, and nothing is loaded because a message names
    it."""
    if options.controller == NOBODY:
        raise UserError(f"controller {NOBODY}: a node that is not softcr's commands this run")
    if options.estimator == "cc":
        raise UserError("estimator cc runs in open loop, which has no controller to exchange")
    named = {each.strip() for each in options.switchable.split(",")}
    if ":" in wanted.controller and wanted.controller not in named | {options.controller}:
        _refuse("controller", wanted.controller)
    if wanted.params_file and wanted.params_file not in named | {options.params_file}:
        _refuse("params_file", wanted.params_file)
    if wanted.params_file and not Path(wanted.params_file).is_file():
        raise UserError(f"params_file = {wanted.params_file!r}: no such file")


def _refuse(name: str, value: str) -> None:
    raise UserError(
        f"{name} {value!r}: must be named when the run is started: --switchable {value}"
    )


def _options(options: RunOptions, wanted: Wanted) -> RunOptions:
    """The run's options with another controller; numbers are kept for the same one only."""
    dropped = {"roles", "virtual", "controller", "params_file"}
    roles = dict(options.roles)
    if wanted.controller != options.controller:
        roles.pop("controller", None)
    given: dict[str, Any] = {n: getattr(options, n) for n in options.model_fields_set - dropped}
    given |= {f"{role}.{n}": value for role, own in roles.items() for n, value in own.items()}
    given |= {"params_file": wanted.params_file} if wanted.params_file else {}
    return type(options).of_options(given | {"controller": wanted.controller})


def _told(part: Part, wanted: Wanted, running: System) -> Part:
    """The part with the parameters that were asked for, validated; it waits."""
    block, asked = _block(part), wanted.parameters
    if "takes_over" not in getattr(block.Settings, "model_fields", ()):
        raise UserError(
            f"controller {wanted.controller!r}: is a block of its own, which cannot take over; a "
            "class with reset and command can"
        )
    own = block.settings_model(part.parameters)
    declared, beyond = declared_settings(own), nested_data(own)
    for name in asked:  # before they are looked up: classes and files are those of the run, too
        if name in _OF_THE_RUN:
            raise UserError(f"parameter {name}: is the run's, and cannot be another one's")
        of_file = any(name == group or name.startswith(f"{group}.") for group in beyond)
        if of_file or (name in declared and declared[name].fixed):
            raise UserError(f"parameter {name}: is text, and is fixed when the run is started")
    declared = declared_settings(block.settings_model({**part.parameters, **asked}))
    texts = {n: v for n, v in asked.items() if isinstance(v, str) and n in declared}
    values = {n: parsed(declared[n], text, f"parameter {n}") for n, text in texts.items()}
    told = part.with_parameters({**asked, **values})
    wants = getattr(block.settings_of(told.parameters), "horizon", None)
    there = next((each for each in running.parts if each.name == "reference"), None)
    if there is not None and wants is not None:
        longest = getattr(_block(there).settings_of(there.parameters), "horizon", wants)
        if wants > longest:
            raise UserError(
                f"parameter horizon = {wants}: must be at most {longest}, as far as the running "
                "reference looks ahead"
            )
    return told.with_parameters({"takes_over": True})


def _block(part: Part) -> type[BlockBase]:
    return load_class(part.runs, "block", BlockBase)


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

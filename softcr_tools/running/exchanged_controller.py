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

_OF_THE_RUN = ("robot", "mode", "frame_prefix", "rate_hz", "sampling", "sends")


def other_controller(
    running: System,
    options: RunOptions,
    system_of: Callable[[RunOptions], System],
) -> Callable[[Wanted], Part]:
    """What makes the part of another controller; the function raises UserError where it cannot.

    Args:
        running: the system.
        options: that it was made of.
        system_of: makes one like it of other options.
    """

    def made(wanted: Wanted) -> Part:
        _check_run(options, wanted)
        changed = _options(options, wanted)
        system = system_of(changed)
        return _told(system.part(system.controller), wanted, running)

    return made


def _check_run(options: RunOptions, wanted: Wanted) -> None:
    """Whether the run can have another controller, and nothing is loaded because a message names
    it."""
    if options.controller == NOBODY:
        raise UserError(f"controller {NOBODY}: a node that is not softcr's commands this run")
    if options.estimator == "cc":
        raise UserError("estimator cc runs in open loop, which has no controller to exchange")
    named = {each.strip() for each in options.switchable.split(",")}
    is_code = ":" in wanted.controller
    for name, value, own in (
        ("controller", wanted.controller * is_code, options.controller),
        ("params_file", wanted.params_file, options.params_file),
    ):
        if value and value not in named | {own}:
            raise UserError(
                f"{name} {value!r}: must be named when the run is started: --switchable {value}"
            )
    if wanted.params_file and not Path(wanted.params_file).is_file():
        raise UserError(f"params_file = {wanted.params_file!r}: no such file")


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
    """The part with the parameters that were asked for, validated; it sends nothing yet."""
    block, asked = _block(part), wanted.parameters
    if "sends" not in getattr(block.Settings, "model_fields", ()):
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
    settings, old = block.settings_of(told.parameters), running.part(running.controller)
    if (mine := told.parameters.get("rate_hz")) != (rate := old.parameters.get("rate_hz")):
        raise UserError(
            f"controller {part.name}: runs {mine} times a second around this robot, and the run "
            f"{rate} times: it cannot take over"
        )
    wants = getattr(settings, "horizon", 0)
    for each in running.parts:
        if each.name == "reference":
            longest = getattr(_block(each).settings_of(each.parameters), "horizon", wants)
            if wants > longest:
                raise UserError(
                    f"parameter horizon = {wants}: must be at most {longest}, as far as the "
                    "running reference looks ahead"
                )
    return told.with_parameters({"sends": False})


def _block(part: Part) -> type[BlockBase]:
    return load_class(part.runs, "block", BlockBase)

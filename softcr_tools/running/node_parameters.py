"""A file of ROS parameters for a system: it counts more than what the system says by itself, and
less than the options that a person gives."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from softcr_models.errors import UserError
from softcr_models.plugins import load_class
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.blocks.system import Parameters, Part, System
from softcr_runtime.settings.node_settings import (
    build_settings,
    declared_settings,
    name_and_nearest,
    unknown_names,
)
from softcr_runtime.settings.parameter_files import Given, ParameterFile, as_kind, is_of_ros, origin
from softcr_runtime.wire.namespaces import absolute
from softcr_tools.running.run_options import RunOptions

_GIVEN_BY = {
    "command_port": "optitrack_port", "file": "reference_file",
    "errors": "bending_compliance_factor tip_mass_factor tip_noise_mm payload_kg",
    "host": "force_torque", "http_port": "force_torque_http_port", "intervals": "plant_intervals",
    "box_rate_hz": "force_torque_records_hz", "multicast": "group", "payload": "payload_kg",
    "rate_hz": "force_torque_rate_hz", "rdt_port": "force_torque_port",
    "safety.require_operator": "deadman", "server": "optitrack", "tip_noise": "tip_noise_mm",
}  # fmt: skip
"""Parameter -> the options that a system makes it of, where they have other names."""

_OF_THE_RUN = {
    "robot": "robot", "frame_prefix": "frame_prefix", "mode": "mode",
    "controller": "controller", "estimator": "estimator",
    "plant": "plant", "reference": "reference", "model": "model", "bag": "", "sampling": "",
    "start": "",
}  # fmt: skip
"""Parameters in which the nodes of a run must agree, and the option that chooses them."""


def with_parameters(
    part: Part,
    options: RunOptions,
    file: ParameterFile,
    finished: bool = True,
) -> Part:
    """A part with what a file says of its node, validated.

    Args:
        part: made of the options.
        options: those that were given count more; they say the node's namespace.
        file: what it says of parameters that the node does not have is left out.
        finished: whether the system has told the part all that it decides itself.

    Raises:
        UserError: one line with the file, the section, the parameter, its value and what is
            allowed.
    """
    said = file.of(absolute(options.namespace, part.name))
    if not said:
        return part
    known = {name: each for name, each in said.items() if not _is_unknown(part, name, said)}
    values: Parameters = {}
    for name, each in known.items():
        if name not in _OF_THE_RUN:
            if not (name in part.parameters and _is_given(name, part, options)):
                values[name] = each.value
        elif finished and each.value != (current := _current(part, name)):
            option = _OF_THE_RUN[name].replace("_", "-")
            can_be_chosen = hasattr(options, _OF_THE_RUN[name])
            if can_be_chosen and each.section.is_for_all(absolute(options.namespace)):
                continue  # an option was given that counts more
            choice = f"; choose it with --{option}, or in a section /**" * can_be_chosen
            raise UserError(
                f"{file.where(each.section)}: parameter {name} = {each.value!r}: this run decides "
                f"it, for all of its nodes: it is {current!r}{choice}"
            )
    merged = part.with_parameters(values)
    declared = declared_settings(_model(merged))
    values = {name: as_kind(declared.get(name), value) for name, value in values.items()}
    merged = part.with_parameters(values)
    try:
        _validate(merged)
    except UserError as error:
        raise UserError(f"{origin(str(error), known, file, part.name)}: {error}") from None
    return merged


def with_options_file(part: Part, options: RunOptions) -> Part:
    """A part that is still being made, with the file that the options name, if they name one."""
    if not options.params_file:
        return part
    file = ParameterFile.load(options.params_file)
    return with_parameters(part, options, file, finished=False)


def system_with_file(system: System, options: RunOptions, warn: Callable[[str], None]) -> System:
    """A system with the parameters of `options.params_file`; the same without such a file.

    Args:
        system: made of the options.
        options: those that were given count more than the file.
        warn: told a line about what nobody in the system has, if there is such.

    Raises:
        UserError: one line about a file, or a value in it, that cannot be used.
    """
    if not options.params_file:
        return system
    file = ParameterFile.load(options.params_file)
    warn_of_unknown(file, system.parts, options.namespace, warn)
    parts = tuple(with_parameters(part, options, file) for part in system.parts)
    return replace(system, parts=parts)


def warn_of_unknown(
    file: ParameterFile, parts: tuple[Part, ...], namespace: str, warn: Callable[[str], None]
) -> None:
    """One line about sections that are for none of some nodes, one about unknown parameters.

    Args:
        file: of parameters.
        parts: the nodes.
        namespace: of them, with or without a slash in front.
        warn: told each line.
    """
    names = [absolute(namespace, part.name) for part in parts]
    models = [_model(part) for part in parts]
    strangers, unknown = [], []
    for section in file.sections:
        mine = [model for name, model in zip(names, models, strict=True) if section.matches(name)]
        if not mine:
            strangers.append(name_and_nearest(section.name, names))
            continue
        known = [name for model in mine for name in declared_settings(model)]
        for name in section.parameters:
            if not is_of_ros(name) and all(unknown_names(model, [name]) for model in mine):
                unknown.append(f"{section.name}: {name_and_nearest(name, known)}")
    if strangers:
        warn(f"{file.path}: for no node of this run: {'; '.join(strangers)}")
    if unknown:
        warn(f"{file.path}: ignored, no such parameters: {'; '.join(unknown)}")


def _current(part: Part, name: str) -> Any:
    """What a node would do without a file."""
    default = declared_settings(_model(part))[name].default
    return part.parameters.get(name, default)


def _is_unknown(part: Part, name: str, said: Mapping[str, Given]) -> bool:
    return not is_of_ros(name) and bool(unknown_names(_model(part), [name]))


def _is_given(name: str, part: Part, options: RunOptions) -> bool:
    """Whether a person has given the option that a parameter of a part is made of."""
    found = {name, *_GIVEN_BY.get(name, "").split()}
    of_plugins = any(
        given.get(name, ...) == part.parameters[name] for given in options.plugin_settings.values()
    )
    return of_plugins or bool(found & options.model_fields_set)


def _model(part: Part) -> type[BaseModel]:
    """The settings that a part's node has."""
    if part.is_block:
        block: type[BlockBase] = load_class(part.runs, "block", BlockBase)
        return block.settings_model(part.parameters)
    from softcr_runtime.ros.run_blocks import node_class

    return node_class(part.runs, part.name).Settings


def _validate(part: Part) -> None:
    own = {name: value for name, value in part.parameters.items() if not is_of_ros(name)}
    if part.is_block:
        block: type[BlockBase] = load_class(part.runs, "block", BlockBase)
        block.settings_of(own)
    else:
        build_settings(_model(part), own)

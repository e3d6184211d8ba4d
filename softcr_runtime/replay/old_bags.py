"""Bags of older releases: nodes that do not say which block they run, estimates without inputs,
controllers that answered with one command at a time."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from softcr_models.errors import UserError
from softcr_runtime.bags.reading import Bag
from softcr_runtime.blocks.block import BlockBase, Input, Output
from softcr_runtime.blocks.tick_records import TickRecord
from softcr_runtime.blocks.values import StateEstimate
from softcr_runtime.wire.messages import INPUT
from softcr_runtime.wire.robot_topics import robot_topics
from softcr_runtime.wire.topics import TOPICS

_CONTROLLER = "softcr_control.controller:ControllerBlock"
BLOCKS: dict[str, str] = {
    "estimator": "softcr_estimation.estimator:EstimatorBlock",
    "cc_estimator": "softcr_papers.mehl2024.cc_block:CcEstimatorBlock",
    "nempc_controller": _CONTROLLER,
    "rod_mpc": _CONTROLLER,
    "feedforward": "softcr_control.feedforward:Feedforward",
    "apcc_controller": "softcr_papers.dalenberg2024.apcc.block:ApccBlock",
}
"""What each node ran, by its name."""

_CONTROLLERS = {"nempc_controller": "nempc", "rod_mpc": "rod_mpc"}


def settings_today(node: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of such a node by today's names: `controller` was its file."""
    today = dict(values)
    if node in _CONTROLLERS:
        today["controller_file"] = today.pop("controller", _CONTROLLERS[node])
        today["controller"] = _CONTROLLERS[node]
    return today


def as_it_was(values: Mapping[str, Any], records: Iterable[TickRecord]) -> dict[str, Any]:
    """What a node told of its settings, with what it did not have yet, or not as it is today,
    switched off."""
    if "estimator" not in values:
        return dict(values)
    if heard_commands(records):
        return dict(values) | {"pressure_filter": False}
    return {"pressure_filter": False} | dict(values)


def heard_commands(records: Iterable[TickRecord]) -> bool:
    """Whether an estimator filtered its readings by commands, and not by what was played."""
    return any(topic.endswith("/command") for record in records for topic in record.used)


def require_plans(bag: Bag) -> None:
    """Refuse to replay the controller of a bag in which there are commands, but no plans.

    Raises:
        UserError: it is such a bag.
    """
    for plan in (name for name in TOPICS if name.endswith("/plan")):
        command = plan.replace("/plan", "/command")
        if bag.find(command) and not bag.find(plan):
            raise UserError(
                f"bag {bag.path}: its controller answered on {command} with one command at a time, "
                f"today's answer on {plan}: only its estimator can be replayed, without "
                "--controller"
            )


def tells_inputs(bag: Bag, estimates: str) -> bool:
    """Whether the estimates of a bag tell the inputs that they were made with, or it has none."""
    for message in bag.messages(estimates) if bag.find(estimates) else ():
        with suppress(ValueError):
            fields = getattr(message.decode(), "fields", ())
            return any(field.name.startswith(INPUT) for field in fields)
    return True


def without_inputs(output: Output) -> Output:
    """An output as it was while estimates did not tell the inputs that they were made with."""
    if not isinstance(output.value, StateEstimate):
        return output
    return replace(output, value=replace(output.value, inputs=None))


def former_input(block: BlockBase) -> Input:
    """What controllers joined for themselves while their estimates did not tell it."""
    return Input(robot_topics(block.robot).state)

"""Every node of the package: what it runs, hears, says and offers."""

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from softcr_models import load_robot
from softcr_models.plugins import load_class
from softcr_runtime.block import CLOCK, BlockBase
from softcr_runtime.settings import NodeSettings
from softcr_runtime.topics import TOPICS

BLOCKS = {
    "simulator": "softcr_hardware.simulator:Simulator",
    "estimator": "softcr_estimation.estimator:EstimatorBlock",
    "cc_estimator": "softcr_estimation.cc_block:CcEstimatorBlock",
    "reference": "softcr_control.reference_block:ReferenceBlock",
    "tip_reference": "softcr_control.tip_reference_block:TipReferenceBlock",
    "goal": "softcr_control.goals.block:GoalReference",
    "controller": "softcr_control.controller:ControllerBlock",
    "nempc_controller": "softcr_control.controller:ControllerBlock",
    "rod_mpc": "softcr_control.controller:ControllerBlock",
    "feedforward": "softcr_control.feedforward:Feedforward",
    "apcc_controller": "softcr_control.apcc.block:ApccBlock",
}
"""Nodes that run a block; `softcr run NAME`."""

OTHERS = {
    "valves": "softcr_hardware.nodes.valves",
    "optitrack": "softcr_hardware.nodes.optitrack",
    "force_torque": "softcr_hardware.nodes.force_torque",
    "visuals": "softcr_tools.nodes.visuals",
    "recorder": "softcr_runtime.bags.recorder_node",
}
"""Nodes with a loop of their own."""

_CHOSEN = {"rod_mpc": {"controller": "rod_mpc"}}


@dataclass(frozen=True)
class NodePage:
    """What the reference tells of one node.

    Attributes:
        name: `softcr run NAME`.
        summary: one line.
        place: class that it runs.
        inputs, outputs: names of topics, with the rule by which samples are joined, if any.
        services: name -> what it does.
        settings: its parameters.
    """

    name: str
    summary: str
    place: str
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]
    services: dict[str, str]
    settings: type[NodeSettings]


@cache
def all_nodes() -> tuple[NodePage, ...]:
    """Every node, blocks first."""
    return (*map(_of_block, BLOCKS), *map(_of_loop, OTHERS))


def _of_block(name: str) -> NodePage:
    block: type[BlockBase] = load_class(BLOCKS[name], "block", BlockBase)
    settings = block.settings_of(_CHOSEN.get(name, {}))
    made = block(load_robot(settings.robot, block.kinds), settings)
    return NodePage(
        name=name,
        summary=_line(block.__doc__),
        place=BLOCKS[name],
        inputs=tuple((each.topic, each.rule) for each in made.inputs),
        outputs=tuple(made.outputs),
        services={each: _line(inspect.getdoc(block.act)) for each in block.actions},
        settings=type(settings),
    )


def _of_loop(name: str) -> NodePage:
    module = import_module(OTHERS[name])
    tree = ast.parse(inspect.getsource(module))
    node = next(
        each
        for each in vars(module).values()
        if inspect.isclass(each)
        and each.__module__ == module.__name__
        and getattr(each, "default_name", None) == name
    )
    served = _first_arguments(tree, "create_service", 1)
    return NodePage(
        name=name,
        summary=_line(node.__doc__),
        place=f"{module.__name__}:{node.__name__}",
        inputs=tuple((topic, "") for topic in _told(module, tree, "receive")),
        outputs=tuple(_told(module, tree, "advertise")),
        services={
            each.removeprefix("~/"): _service(module, node, each.removeprefix("~/"))
            for each in served
        },
        settings=node.Settings,
    )


def _told(module: Any, tree: ast.AST, method: str) -> Sequence[str]:
    """Topics of a node: of a table of its module where it has one, else of its calls."""
    tables = {"receive": "RECEIVED", "advertise": "ADVERTISED"}
    return getattr(module, tables[method], None) or _first_arguments(tree, method, 0)


def _service(module: Any, node: type, name: str) -> str:
    said = _line(inspect.getdoc(getattr(node, f"_serve_{name}", None)) or "")
    return said or f"see `{module.__name__}`"


def _first_arguments(tree: ast.AST, method: str, position: int) -> list[str]:
    """The texts that stand at a place of every call of a method, in order."""
    found = [
        call.args[position].value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == method
        and len(call.args) > position
        and isinstance(call.args[position], ast.Constant)
    ]
    return [str(each) for each in found]


def talkers(topic: str, nodes: Sequence[NodePage]) -> tuple[list[str], list[str]]:
    """Who publishes a topic and who hears it."""
    says = [node.name for node in nodes if topic in node.outputs]
    hears = [node.name for node in nodes if topic in [name for name, _ in node.inputs]]
    return says, hears


def _line(docstring: str | None) -> str:
    return " ".join((docstring or "").split("\n\n")[0].split())


def is_topic(name: str) -> bool:
    """Whether it is of the table; a block's clock is none."""
    return name != CLOCK and name in TOPICS

"""Every node of the package: what it runs, subscribes to, publishes and offers."""

import ast
import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

import yaml

from softcr_models import load_robot
from softcr_models.plugins import load_class
from softcr_runtime.blocks.block import CLOCK, BlockBase
from softcr_runtime.settings.node_settings import NodeSettings
from softcr_runtime.wire.topics import TOPICS
from softcr_simulation.plants import CONTACT_POINTS, CONTACT_WRENCH, LOADS
from softcr_tools.ros.executables import NODES

_WORDS = {name: command.split() for name, command in NODES.items()}
BLOCKS = {name: words[1] for name, words in _WORDS.items() if words[0].endswith("run_block")}
"""Nodes that run a block, and its place; `softcr run NAME`."""

OTHERS = {name: words[0] for name, words in _WORDS.items() if name not in BLOCKS}
"""Nodes with a loop of their own, and their modules."""

_CHOSEN = {
    name: {
        parameter: yaml.safe_load(text)
        for flag, pair in pairwise(words)
        if flag == "-p"
        for parameter, text in [pair.split(":=")]
    }
    for name, words in _WORDS.items()
}
"""Parameters with which a node is started that shares its block with others, as ROS reads them."""

_WHERE_ASKED = {"simulator": (LOADS, CONTACT_POINTS, CONTACT_WRENCH)}
"""Topics that a node publishes only with some of its parameters."""


_MADE_OTHERWISE: dict[str, dict[str, Any]] = {"policy": {"make": lambda context: None}}
"""Parts of a block whose own need a file that does not come with the package: a learned policy."""


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
    settings = block.settings_of(_CHOSEN[name])
    parts = _MADE_OTHERWISE.get(name, {})
    made = block(load_robot(settings.robot, block.kinds), settings, **parts)
    return NodePage(
        name=name,
        summary=_line(block.__doc__),
        place=BLOCKS[name],
        inputs=tuple((each.topic, each.rule) for each in made.inputs),
        outputs=(*made.outputs, *_WHERE_ASKED.get(name, ())),
        services=_actions(block),
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
    """The nodes that publish a topic, and those that subscribe to it."""
    says = [node.name for node in nodes if topic in node.outputs]
    hears = [node.name for node in nodes if topic in [name for name, _ in node.inputs]]
    return says, hears


def _actions(block: type[BlockBase]) -> dict[str, str]:
    """What each action of a block does: its part of the docstring of `act`."""
    said = re.split(r"`(\w+)`: ", _line(inspect.getdoc(block.act)))[1:]
    told = dict(zip(said[::2], said[1::2], strict=True))
    return {action: told[action].strip() for action in block.actions}


def _line(docstring: str | None) -> str:
    return " ".join((docstring or "").split("\n\n")[0].split())


def is_topic(name: str) -> bool:
    """Whether it is of the table; a block's clock is none."""
    return name != CLOCK and name in TOPICS

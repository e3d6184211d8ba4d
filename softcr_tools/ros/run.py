"""`softcr run`: one node by itself, its parameters as options."""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pydantic import BaseModel, Field

from softcr_models.errors import UserError
from softcr_models.plugins import load_class
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.console.terminal import complain
from softcr_runtime.ros.context import set_environment, whereabouts
from softcr_runtime.ros.log_levels import LogLevels
from softcr_runtime.settings.command_line import command
from softcr_runtime.settings.node_settings import (
    NodeSettings,
    Setting,
    build_settings,
    declared_settings,
)
from softcr_runtime.wire.namespaces import Namespace, in_namespace
from softcr_tools.ros.executables import NODES
from softcr_tools.ros.participant import nearest


class NodeParameters(BaseModel):
    """The parameters of the node that is named, as options."""

    values: dict[str, Any] = Field({}, json_schema_extra={"hidden": True})

    @classmethod
    def more_options(cls, given: Mapping[str, Any]) -> dict[str, dict[str, Setting]]:
        """Those of the node that the first word names.

        Raises:
            UserError: there is no such node, or what it should run cannot be used.
        """
        words = given.get("node", [])
        if not words:
            return {}
        texts = {name: text for name, text in given.items() if name != "node"}
        settings = settings_of(words[0], texts)
        return {f"Parameters of {words[0]}": declared_settings(settings)}

    @classmethod
    def of_options(cls, values: Mapping[str, Any]) -> "NodeParameters":
        """Of the values that were given."""
        return cls(values=dict(values))


@command
def run(
    node: str,
    /,
    *,
    parameters: NodeParameters,
    namespace: Namespace = "",
    name: str = "",
    use_sim_time: bool = False,
    params_file: str = "",
    log_level: str = "",
) -> int:
    """Start one node by itself, as `ros2 run softcr NODE` does; Ctrl-C ends it.

    softcr run NODE --help lists the parameters of that node. The node starts unconfigured: in
    another terminal, call softcr lifecycle set NODE configure and then activate.

    Args:
        node: name of the node, as in the documentation's list of nodes: valves, optitrack,
            estimator, ...
        namespace: namespace of the node, its topics and its simulated time.
        name: another name for the node.
        use_sim_time: use the time of /clock, or in a namespace that of its own clock.
        params_file: ROS parameter file (YAML) with values for this node; options take
            precedence.
        log_level: debug, info, warn, error or fatal; NODE:=LEVEL for one logger; several,
            separated by commas; empty: info.

    Raises:
        UserError: one line about a value that is not allowed.
    """
    given = dict(parameters.values)
    build_settings(settings_of(node, given), given, "option")
    levels = _levels(log_level)
    if use_sim_time:
        given["use_sim_time"] = True
    words = ["--ros-args", *(("--params-file", params_file) if params_file else ())]
    for each, value in given.items():
        words += ["-p", f"{each}:={_yaml(value)}"]
    words += in_namespace(namespace)
    words += ["-r", f"__node:={name}"] if name else []
    words += levels.arguments(namespace) if log_level else []
    set_environment()
    print(whereabouts())
    sys.stdout.flush()
    command_line = [sys.executable, "-m", *shlex.split(NODES[node]), *words]
    try:
        os.execv(sys.executable, command_line)
    except OSError as error:
        complain(f"{sys.executable}: {error.strerror}")
        return 1


def _levels(text: str) -> LogLevels:
    try:
        return LogLevels.parsed(text)
    except ValueError as error:
        raise UserError(f"option log_level = {text!r}: {error}") from None


def settings_of(node: str, given: Mapping[str, Any]) -> type[NodeSettings]:
    """The settings of a node; what is given, as the controller's name, may choose among them.

    Raises:
        UserError: there is no such node, or what it should run cannot be used.
    """
    if node not in NODES:
        near = nearest(node, NODES)
        raise UserError(
            f"node {node!r}: unknown; "
            + (f"did you mean {near[0]}?" if near else f"known are {', '.join(NODES)}")
        )
    module, *words = shlex.split(NODES[node])
    if words:
        chosen = dict(each.split(":=", 1) for each in words if ":=" in each)
        block: type[BlockBase] = load_class(words[0], "block", BlockBase)
        return block.settings_model({**chosen, **given})
    found: type[NodeSettings] = next(
        each.Settings
        for each in vars(import_module(module)).values()
        if getattr(each, "default_name", None) == node
    )
    return found


def _yaml(value: Any) -> str:
    """A value as ROS reads it on a command line: JSON is YAML."""
    return json.dumps(value, ensure_ascii=False)

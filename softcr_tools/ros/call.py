"""`softcr call`: ask a service of a node."""

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softcr_models.errors import UserError
from softcr_runtime.console.terminal import FAILED, complain, show
from softcr_runtime.ros.executor.exchange import SERVICE
from softcr_runtime.ros.running_systems import domain, running_namespaces
from softcr_runtime.settings.command_line import command
from softcr_tools.ros.interfaces import fill, interface_class, lines, plain, without_nan
from softcr_tools.ros.participant import Connection, Participant, beside, is_plumbing, whereabouts
from softcr_tools.ros.tables import print_table

_SWITCH = "rcl_interfaces/srv/SetParametersAtomically"
_SWITCHED = 180.0  # the new controller is started, and may compile, before it is answered [s]


@command
def call(
    service: str = "",
    fields: list[str] = [],  # noqa: B006 (cyclopts shows no default of it)
    /,
    *,
    connection: Connection,
    all: bool = False,
    json: bool = False,
) -> int:
    """Call a service, and print its type and its answer; without a service, list all of them.

    softcr call switch CONTROLLER replaces the controller of a running softcr up. The exit code is 1
    if the answer says success: false, or if none arrives.

    Args:
        service: name of the service, such as valves/reset.
        fields: fields of the request, such as data=true or pose.position.x=0.1; a list as [1,
            2]. For switch: the controller and its parameters, such as population=64 or
            params_file=my.yaml.
        all: also list the services that ROS gives every node.
        json: print JSON, for programs.
    """

    def act(participant: Participant) -> int:
        if not service:
            return _list(participant, all, json)
        name, graph = participant.found("service", service)
        types = graph.services[name]
        if len(types) != 1:
            raise UserError(f"service {name}: has several types: {', '.join(types)}")
        kind = interface_class(types[0])
        request = kind.Request()
        namespace, _, last = name.rpartition("/")
        switches = last == SERVICE and types[0] == _SWITCH
        if switches:
            _fill_switch(request, fields)
            participant.be_patient(_SWITCHED)
        else:
            fill(request, fields, types[0])
        server, *others = dict.fromkeys(graph.servers[name])
        if others:
            complain(f"service {name}: several nodes offer it: {', '.join((server, *others))}")
        if not (json or switches):
            show(f"{name} ({types[0]})")
        # the run of this machine is known to have ended some time before DDS tells it
        is_here = switches and (namespace or "/") in running_namespaces(domain())
        answer = plain(
            participant.ask(
                *(name, kind, request, server),
                lambda: is_here and (namespace or "/") not in running_namespaces(domain()),
            )
        )
        result = answer["result"] if switches else answer
        agreed = result.get("successful" if switches else "success")
        if json:
            said = {"service": name, "type": types[0], "response": without_nan(answer)}
            print(json_format.dumps(said, indent=2, allow_nan=False))
        elif switches:
            (show if agreed else complain)("not exchanged: " * (not agreed) + result["reason"])
        else:
            show("\n".join(lines(answer)))
        return FAILED if agreed is False else 0

    return beside("call", connection, act)


def _fill_switch(request: Any, words: Sequence[str]) -> None:
    """Write `CONTROLLER NAME=VALUE ...` into a request; texts that its node will read, files by
    their absolute paths, for the system runs in another directory."""
    from rclpy.parameter import Parameter

    values: dict[str, str] = {}
    for word in words:
        name, _, text = (word if "=" in word else f"controller={word}").partition("=")
        if not name or name in values:
            raise UserError(f"{word!r}: must be CONTROLLER, and NAME=VALUE of its parameters")
        path, colon, rest = text.partition(":")
        if name == "controller" and colon and path.endswith(".py"):
            text = f"{Path(path).resolve()}:{rest}"
        if name == "params_file" and text:
            if not Path(text).is_file():
                raise UserError(f"params_file = {text!r}: no such file")
            text = str(Path(text).resolve())
        values[name] = text
    if not values.get("controller"):
        raise UserError("switch: needs the name of a controller, or package.module:Class")
    request.parameters = [Parameter(n, value=text).to_parameter_msg() for n, text in values.items()]


def _list(participant: Participant, all: bool, json: bool) -> int:
    graph = participant.settled_graph()
    found = [
        {"service": name, "types": list(types), "nodes": list(graph.servers[name])}
        for name, types in sorted(graph.services.items())
        if participant.in_namespace(name) and (all or not is_plumbing(name))
    ]
    if json:
        print(json_format.dumps(found, indent=2))
    elif not found:
        show(f"no service is visible ({whereabouts()})")
    else:
        rows = [(str(each["service"]), ", ".join(each["types"])) for each in found]
        print_table(("service", "type"), rows)
    return 0

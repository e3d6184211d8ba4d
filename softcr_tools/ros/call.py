"""`softcr call`: ask a service of a node."""

import json as json_format

from softcr_models.errors import UserError
from softcr_runtime.console.terminal import FAILED, complain, show
from softcr_runtime.settings.command_line import command
from softcr_tools.ros.interfaces import fill, interface_class, lines, plain, without_nan
from softcr_tools.ros.participant import Connection, Participant, beside, is_plumbing, whereabouts
from softcr_tools.ros.switch import TIMEOUT, ended_run, fill_switch, is_switch, tell
from softcr_tools.ros.tables import print_table


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
        switches = is_switch(name, types[0])
        if switches:
            fill_switch(request, fields)
            participant.be_patient(TIMEOUT)
        else:
            fill(request, fields, types[0])
        server, *others = dict.fromkeys(graph.servers[name])
        if others:
            complain(f"service {name}: several nodes offer it: {', '.join((server, *others))}")
        if not (json or switches):
            show(f"{name} ({types[0]})")
        ended = ended_run(name) if switches else (lambda: False)
        answer = plain(participant.ask(name, kind, request, server, ended))
        if json:
            said = {"service": name, "type": types[0], "response": without_nan(answer)}
            print(json_format.dumps(said, indent=2, allow_nan=False))
        elif switches:
            return 0 if tell(answer) else FAILED
        else:
            show("\n".join(lines(answer)))
        agreed = answer["result"]["successful"] if switches else answer.get("success")
        return FAILED if agreed is False else 0

    return beside("call", connection, act)


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

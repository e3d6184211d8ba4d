"""`softcr nodes`: who is running, and in which lifecycle state."""

import json as json_format
import math
import time
from typing import Any

from softcr_runtime.settings.command_line import command
from softcr_tools.ros.participant import (
    Connection,
    Graph,
    Participant,
    beside,
    is_plumbing,
    whereabouts,
)
from softcr_tools.ros.tables import print_table

_NO_ANSWER = "no answer"
_AGAIN = 0.5  # after which a node is asked again [s]


@command
def nodes(*, connection: Connection, json: bool = False) -> int:
    """List the running nodes and their lifecycle states.

    Nodes without a state are not lifecycle nodes. A node that is busy, for instance because it is
    configuring, does not answer in time.

    Args:
        json: print JSON, for programs.
    """

    def act(participant: Participant) -> int:
        graph = participant.settled_graph()
        names = [name for name in graph.nodes if participant.in_namespace(name)]
        found = [
            _row(participant, graph, states, name)
            for states in (lifecycle_states(participant, graph, names),)
            for name in dict.fromkeys(names)
        ]
        if json:
            print(json_format.dumps(found, indent=2))
        elif not found:
            print(f"no node is visible ({whereabouts()})")
        else:
            print_table(
                ("node", "state", "publishes", "hears", "services"),
                [(_named(names, each["node"]), each["state"] or "-", *(
                    str(len(each[kind])) for kind in ("publishes", "hears", "services")))
                 for each in found],
            )  # fmt: skip
        return 0

    return beside("nodes", connection, act)


def lifecycle_states(participant: Participant, graph: Graph, names: list[str]) -> dict[str, str]:
    """The states of those nodes that have one, by full name; asked all at once."""
    from lifecycle_msgs.srv import GetState

    clients = {
        name: participant.node.create_client(GetState, f"{name}/get_state")
        for name in dict.fromkeys(names)
        if f"{name}/get_state" in graph.services
    }
    answers: dict[str, list[Any]] = {name: [] for name in clients}
    asked = -math.inf

    def unanswered() -> list[str]:
        return [name for name, each in answers.items() if not any(one.done() for one in each)]

    def all_answered() -> bool:
        nonlocal asked
        if time.monotonic() - asked > _AGAIN:  # an answer is lost to a client not yet discovered
            asked = time.monotonic()
            for name in unanswered():
                if clients[name].service_is_ready():
                    answers[name].append(clients[name].call_async(GetState.Request()))
        return not unanswered()

    participant.wait(all_answered, participant.connection.timeout)
    states = dict.fromkeys(clients, _NO_ANSWER)
    for name, each in answers.items():
        for answer in each:
            if answer.done():
                states[name] = answer.result().current_state.label
    return states


def _row(participant: Participant, graph: Graph, states: dict[str, str], name: str) -> Any:
    namespace, _, short = name.rpartition("/")
    place = short, namespace or "/"
    try:
        says = participant.node.get_publisher_names_and_types_by_node(*place)
        hears = participant.node.get_subscriber_names_and_types_by_node(*place)
    except Exception:  # it has just gone; its kind is not public
        says, hears = [], []
    offered = [service for service, servers in graph.servers.items() if name in servers]
    kinds = {"publishes": [n for n, _ in says], "hears": [n for n, _ in hears], "services": offered}
    shown = {kind: sorted(n for n in each if not is_plumbing(n)) for kind, each in kinds.items()}
    return {"node": name, "state": states.get(name), **shown}


def _named(names: list[str], name: str) -> str:
    return name if names.count(name) == 1 else f"{name} ({names.count(name)} nodes of this name)"

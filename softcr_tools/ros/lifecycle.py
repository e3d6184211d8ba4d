"""`softcr lifecycle`: the state of a lifecycle node, and its changes."""

import json as json_format
from typing import Any

from pydantic import Field

from softcr_models.errors import UserError
from softcr_runtime.console.terminal import FAILED, complain, show
from softcr_runtime.settings.command_line import command, new_app
from softcr_runtime.settings.node_settings import Seconds
from softcr_tools.ros.participant import Connection, Participant, beside, nearest

app = new_app("lifecycle", "Show or change the lifecycle state of a node.")


class PatientConnection(Connection):
    """A node may compile or open devices while it configures."""

    timeout: Seconds = Field(
        60.0, gt=0.0, le=3600.0, description="longest wait until the transition is done"
    )


@app.command
@command
def get(node: str, /, *, connection: Connection, json: bool = False) -> int:
    """Show a node's state and the transitions that it allows.

    Args:
        node: name of the node, as in `softcr nodes`.
        json: print JSON, for programs.
    """

    def act(participant: Participant) -> int:
        name = _found(participant, node)
        state, transitions = _state(participant, name), list(_transitions(participant, name))
        if json:
            print(json_format.dumps({"node": name, "state": state, "transitions": transitions}))
        else:
            show(f"{name}: {state}; transitions: {', '.join(transitions) or 'none'}")
        return 0

    return beside("lifecycle", connection, act)


@app.command(name="set")
@command
def set_(node: str, transition: str, /, *, connection: PatientConnection) -> int:
    """Ask a node for a transition: configure, activate, deactivate, cleanup or shutdown.

    The exit code is 1 if the node refuses; its log says why.

    Args:
        node: name of the node, as in `softcr nodes`.
        transition: a transition that its state allows.
    """

    def act(participant: Participant) -> int:
        from lifecycle_msgs.msg import Transition
        from lifecycle_msgs.srv import ChangeState

        name = _found(participant, node)
        before, allowed = _state(participant, name), _transitions(participant, name)
        if transition not in allowed:
            near = nearest(transition, allowed)
            instead = f"did you mean {near[0]}?" if near else f"allowed are {', '.join(allowed)}"
            raise UserError(f"transition {transition}: not allowed while {name} is {before}; "
                            f"{instead if allowed else 'none is'}")  # fmt: skip
        wanted = ChangeState.Request(transition=Transition(id=allowed[transition]))
        done = participant.ask(f"{name}/change_state", ChangeState, wanted, name)
        if not done.success:
            complain(f"{name} refused to {transition}; its own log says why")
            return FAILED
        if transition == "shutdown":  # most processes end with it, and nobody can be asked
            show(f"{name}: was {before}, is shut down")
        else:
            show(f"{name}: was {before}, is {_state(participant, name)}")
        return 0

    return beside("lifecycle", connection, act)


def _found(participant: Participant, word: str) -> str:
    name, _ = participant.found("node", word)
    if not participant.is_offered(f"{name}/get_state"):
        raise UserError(f"node {name}: is not a lifecycle node: it has no state and no transitions")
    return name


def _state(participant: Participant, name: str) -> str:
    from lifecycle_msgs.srv import GetState

    answer = participant.read(f"{name}/get_state", GetState, GetState.Request())
    return str(answer.current_state.label)


def _transitions(participant: Participant, name: str) -> dict[str, int]:
    """Number by name of what the present state allows."""
    from lifecycle_msgs.srv import GetAvailableTransitions

    place, request = f"{name}/get_available_transitions", GetAvailableTransitions.Request()
    answer: Any = participant.read(place, GetAvailableTransitions, request)
    return {each.transition.label: each.transition.id for each in answer.available_transitions}

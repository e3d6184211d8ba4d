"""What nodes are asked by their standard services: to change state, and to agree to a beginning."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lifecycle_msgs.msg import State, Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import Trigger

AGREEMENT_TIMEOUT = 30.0
"""For all to agree: poses must flow, a person take the deadman's switch in hand, and the arming
test pass, which takes 3 s of an idle machine [s]."""

_PAUSE = 0.3  # between two questions [s]
_NOT_RUNNING = "no such service is running"


class Change(NamedTuple):
    """A change of state: its number and words, the state before it, and the one it reaches."""

    transition: int
    verb: str
    done: str
    passing: str
    start: int
    goal: int


CONFIGURE = Change(
    Transition.TRANSITION_CONFIGURE, "configure", "configured", "configuring",
    State.PRIMARY_STATE_UNCONFIGURED, State.PRIMARY_STATE_INACTIVE,
)  # fmt: skip
ACTIVATE = Change(
    Transition.TRANSITION_ACTIVATE, "activate", "activated", "activating",
    State.PRIMARY_STATE_INACTIVE, State.PRIMARY_STATE_ACTIVE,
)  # fmt: skip
DEACTIVATE = Change(
    Transition.TRANSITION_DEACTIVATE, "deactivate", "deactivated", "deactivating",
    State.PRIMARY_STATE_ACTIVE, State.PRIMARY_STATE_INACTIVE,
)  # fmt: skip
CLEAN_UP = Change(
    Transition.TRANSITION_CLEANUP, "clean up", "cleaned_up", "cleaningup",
    State.PRIMARY_STATE_INACTIVE, State.PRIMARY_STATE_UNCONFIGURED,
)  # fmt: skip


class LifecycleClient:
    """Asks one lifecycle node for its state, `state` being the last known, or for changes of it."""

    def __init__(self, node: Node, name: str) -> None:
        """Connect to the node called `name`.

        Args:
            node: ROS node that asks; somebody must spin it.
            name: of the lifecycle node, in the namespace of `node`.
        """
        self.state = State.PRIMARY_STATE_UNKNOWN
        self._change = node.create_client(ChangeState, f"{name}/change_state")
        self._get = node.create_client(GetState, f"{name}/get_state")
        node.create_subscription(TransitionEvent, f"{name}/transition_event", self._on_event, 10)

    def is_ready(self) -> bool:
        """Whether both services have been discovered."""
        return self._get.service_is_ready() and self._change.service_is_ready()

    def request_state(self) -> Future:
        """Ask for the state; a future of lifecycle_msgs/srv/GetState_Response."""
        return self._get.call_async(GetState.Request())

    def request(self, change: Change) -> Future:
        """Ask for a change; a future of lifecycle_msgs/srv/ChangeState_Response."""
        return self._change.call_async(
            ChangeState.Request(transition=Transition(id=change.transition))
        )

    def _on_event(self, event: TransitionEvent) -> None:
        self.state = event.goal_state.id


def refusal(
    node: Node,
    services: Sequence[str],
    wait: Callable[[Callable[[], bool], float], bool],
    timeout: float = AGREEMENT_TIMEOUT,
    *,
    over: Callable[[], str] = lambda: "",
) -> str:
    """Ask services, as the safety handshake, in order, until each has agreed.

    Args:
        node: that asks.
        services: of std_srvs/srv/Trigger.
        wait: spins the node until a condition holds; whether it did within a time [s].
        timeout: for all of them [s].
        over: says why nobody may ask any more, in a line; empty while one may.

    Returns:
        One line about who refused, and why; empty when all have agreed.
    """
    deadline = time.monotonic() + timeout
    for name in services:
        client = node.create_client(Trigger, name)
        said = _NOT_RUNNING
        while True:
            if line := over():
                return line
            if wait(client.service_is_ready, max(deadline - time.monotonic(), 0.0)):
                answer = client.call_async(Trigger.Request())
                if wait(answer.done, max(deadline - time.monotonic(), 0.0)):
                    if answer.result().success:
                        break
                    said = answer.result().message
                elif said == _NOT_RUNNING:  # what it answered before tells more
                    said = "no answer"
            if time.monotonic() + _PAUSE >= deadline:
                return f"{name} refused for {timeout:.0f} s: {said}"
            wait(lambda: False, _PAUSE)
    return ""

"""Driving lifecycle nodes from outside, by their standard services."""

from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import State, Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.node import Node
from rclpy.task import Future


@dataclass(frozen=True)
class Change:
    """A change of state: its number and words, and the states it passes through and reaches."""

    transition: int
    verb: str
    done: str
    passing: str
    reached: str
    goal: int


CONFIGURE = Change(
    transition=Transition.TRANSITION_CONFIGURE,
    verb="configure",
    done="configured",
    passing="configuring",
    reached="inactive",
    goal=State.PRIMARY_STATE_INACTIVE,
)
ACTIVATE = Change(
    transition=Transition.TRANSITION_ACTIVATE,
    verb="activate",
    done="activated",
    passing="activating",
    reached="active",
    goal=State.PRIMARY_STATE_ACTIVE,
)
DEACTIVATE = Change(
    transition=Transition.TRANSITION_DEACTIVATE,
    verb="deactivate",
    done="deactivated",
    passing="deactivating",
    reached="inactive",
    goal=State.PRIMARY_STATE_INACTIVE,
)
CLEAN_UP = Change(
    transition=Transition.TRANSITION_CLEANUP,
    verb="clean up",
    done="cleaned_up",
    passing="cleaningup",
    reached="unconfigured",
    goal=State.PRIMARY_STATE_UNCONFIGURED,
)


def says_finished(message: DiagnosticArray) -> bool:
    """Whether a node tells in its diagnostics that the run is complete."""
    values = (value for status in message.status for value in status.values)
    return any(value.key == "finished" and value.value == "true" for value in values)


class LifecycleClient:
    """Asks one lifecycle node for its state, `state` being the last known, or for changes of it."""

    def __init__(self, node: Node, name: str) -> None:
        """Connect to the node called `name`.

        Args:
            node: ROS node that asks; somebody must spin it.
            name: of the lifecycle node, in the namespace of `node`.
        """
        self.name = name
        self.state = State.PRIMARY_STATE_UNKNOWN
        self._change = node.create_client(ChangeState, f"{name}/change_state")
        self._get = node.create_client(GetState, f"{name}/get_state")
        self._events = node.create_subscription(
            TransitionEvent, f"{name}/transition_event", self._on_event, 10
        )

    def is_ready(self) -> bool:
        """Whether both services have been discovered."""
        return self._get.service_is_ready() and self._change.service_is_ready()

    def is_active(self) -> bool:
        """Whether the last known state is active."""
        return self.state == State.PRIMARY_STATE_ACTIVE

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

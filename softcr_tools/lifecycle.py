"""Driving lifecycle nodes from outside, by their standard services."""

from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import State, Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.node import Node
from rclpy.task import Future


class Change(NamedTuple):
    """A change of state: its number and words, and the state that it reaches."""

    transition: int
    verb: str
    done: str
    passing: str
    goal: int


CONFIGURE = Change(
    Transition.TRANSITION_CONFIGURE, "configure", "configured", "configuring",
    State.PRIMARY_STATE_INACTIVE,
)  # fmt: skip
ACTIVATE = Change(
    Transition.TRANSITION_ACTIVATE, "activate", "activated", "activating",
    State.PRIMARY_STATE_ACTIVE,
)  # fmt: skip
DEACTIVATE = Change(
    Transition.TRANSITION_DEACTIVATE, "deactivate", "deactivated", "deactivating",
    State.PRIMARY_STATE_INACTIVE,
)  # fmt: skip
CLEAN_UP = Change(
    Transition.TRANSITION_CLEANUP, "clean up", "cleaned_up", "cleaningup",
    State.PRIMARY_STATE_UNCONFIGURED,
)  # fmt: skip


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

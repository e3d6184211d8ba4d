"""`softcr goal`: send the tip to a pose, or along a path, and wait until it is there."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_runtime.console.terminal import FAILED, complain, ended_by_signals, show
from softcr_runtime.settings.command_line import command
from softcr_tools.ros.participant import Connection, Participant, Unanswered, beside

_NODE = "goal"
_USED = 2.0  # for the node to take a goal into a tick, before it is asked to go [s]


@command
def goal(
    coordinates: list[float],
    /,
    *,
    connection: Connection,
    frame: str = "",
    no_wait: bool = False,
) -> int:
    """Send the tip to a pose, or along a path, and wait until it is there.

    The system must run with `--reference goal`. Ctrl-C stops the tip. To follow a stream, or to
    cancel from elsewhere: softcr call goal/follow, softcr call goal/cancel.

    Args:
        coordinates: x y z [m]; for a path, x y z of each of its points.
        frame: frame of the coordinates; empty: that of the robot's estimates.
        no_wait: end as soon as the goal is accepted.

    Raises:
        UserError: coordinates that are not points.
    """
    if not coordinates or len(coordinates) % 3 or not np.isfinite(coordinates).all():
        raise UserError(f"coordinates: {len(coordinates)} numbers, must be x y z of each point [m]")
    tips = np.array(coordinates, float).reshape(-1, 3)
    return beside("goal", connection, lambda p: _send(p, tips, frame, no_wait))


def _send(participant: Participant, tips: np.ndarray, frame: str, no_wait: bool) -> int:
    from std_srvs.srv import Trigger

    from softcr_runtime.blocks.values import Goal
    from softcr_runtime.wire.topics import TOPICS

    go, graph = participant.found("service", f"{_NODE}/go")
    server = graph.servers[go][0]
    states: list[Any] = []
    state = participant.full_name("goal/state")
    participant.hear(state, TOPICS["goal/state"].message_class(), states.append)
    publish = _publisher(participant, Goal(tips, frame))
    deadline = time.monotonic() + _USED
    while True:
        publish()
        participant.wait(lambda: False, 0.1)
        answer = participant.ask(go, Trigger, Trigger.Request(), server)
        # a goal is there from the tick after it came
        if not answer.message.startswith("no goal") or time.monotonic() > deadline:
            break
    if not answer.success:
        complain(answer.message)
        return FAILED
    show(answer.message)
    if no_wait:
        return 0
    # what was told before is of another goal
    states[:] = [each for each in states[-1:] if each.status[0].message == "arrived"]
    return _wait(participant, states, server)


def _publisher(participant: Participant, goal: Any) -> Callable[[], None]:
    """What publishes a goal once more, with the present as its stamp."""
    from softcr_runtime.wire.goal_messages import goal_to_message, path_to_message
    from softcr_runtime.wire.topics import TOPICS, qos

    topic = "goal/pose" if len(goal.tips) == 1 else "goal/path"
    encode = goal_to_message if len(goal.tips) == 1 else path_to_message
    name = participant.full_name(topic)
    publisher = participant.node.create_publisher(TOPICS[topic].message_class(), name, qos(topic))
    timeout = participant.connection.timeout
    if not participant.wait(lambda: bool(publisher.get_subscription_count()), timeout):
        raise Unanswered(f"topic {name}: no subscriber appeared within {timeout:g} s")

    def publish() -> None:
        publisher.publish(encode(goal, participant.node.get_clock().now().nanoseconds))

    return publish


def _wait(participant: Participant, states: list[Any], server: str) -> int:
    """Until the tip stands; Ctrl-C lets it stop."""
    from std_srvs.srv import Trigger

    said = ""
    with ended_by_signals() as stop:
        while not stop.is_set():
            participant.wait(lambda: bool(states) or stop.is_set(), 1.0)
            while states:
                status = states.pop(0).status[0]
                if status.message != said and (said or not status.message.startswith("going")):
                    show(status.message)
                said = status.message
                idle = {pair.key: pair.value for pair in status.values}.get("state") == "idle"
                if idle and said:
                    return 0 if said == "arrived" else FAILED
        answer = participant.ask(f"{server}/cancel", Trigger, Trigger.Request(), server)
        show(answer.message)
    return FAILED

"""The last step before a run: services that must agree, as the safety handshake."""

import time
from collections.abc import Callable, Sequence

from rclpy.node import Node
from std_srvs.srv import Trigger

TIMEOUT = 15.0
"""For all to agree: poses must flow, and a person take the deadman's switch in hand [s]."""

_PAUSE = 0.3  # between two questions [s]
_NOT_RUNNING = "no such service is running"


def refusal(
    node: Node,
    services: Sequence[str],
    wait: Callable[[Callable[[], bool], float], bool],
    timeout: float = TIMEOUT,
) -> str:
    """Ask services, in order, until each has agreed.

    Args:
        node: that asks.
        services: of std_srvs/srv/Trigger.
        wait: spins the node until a condition holds; whether it did within a time [s].
        timeout: for all of them [s].

    Returns:
        One line about who refused, and why; empty when all have agreed.
    """
    deadline = time.monotonic() + timeout
    for name in services:
        client = node.create_client(Trigger, name)
        said = _NOT_RUNNING
        while True:
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

"""Another controller in the place of the one that commands, while the system runs.

The new one is brought up beside the old one, hears estimates, references and the old one's
commands, and says nothing. Then both are told one moment: the old one answers the estimates stamped
before it, the new one those from it on, beginning from the last command. So each estimate has one
answer, however late the nodes are.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.task import Future

SERVICE = "switch"
"""Name of the service, of rcl_interfaces/srv/SetParametersAtomically: its parameter `controller`
says which, `params_file` names a ROS parameter file, all others are the new node's own."""

LEAD = 2.0  # from the telling of the moment to the moment itself [s]
ANSWER_TIME = 1.0  # of it, for the new one to agree, before the old one is told [s]
READY_TIMEOUT = 10.0  # to have seen estimates, references and commands [s]
TAKEN_TIMEOUT = 5.0  # from the moment to the new one's word that it commands [s]
_QUESTION_TIMEOUT = 5.0  # of any other question [s]
_AGAIN = 0.3  # after which one is asked again [s]

Wait = Callable[[Callable[[], bool], float], bool]
"""Spins a node until a condition holds; whether it did within a time [s]."""


class Refused(Exception):
    """The exchange does not take place, and the old controller goes on; the text says why."""


class Lost(Exception):
    """The old controller has been told to end, and the new one does not command."""


@dataclass(frozen=True)
class Wanted:
    """What somebody asked for.

    Attributes:
        controller: name in the registry, or a class.
        params_file: path of a ROS parameter file; empty for none.
        parameters: of the new node, values or texts by name.
    """

    controller: str
    params_file: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


class SwitchService:
    """Takes requests; the supervisor's loop sees to them, for they take seconds."""

    def __init__(self, node: Node) -> None:
        """Offer the service; somebody must spin the node."""
        self._waiting: tuple[Wanted, Future] | None = None
        self._running, self._closed = False, ""
        # in a group of its own: an answer that is waited for holds up the others of its group
        alone = ReentrantCallbackGroup()
        node.create_service(SetParametersAtomically, SERVICE, self._serve, callback_group=alone)

    def see_to(self, do: Callable[[Wanted], str]) -> None:
        """Do what is asked for, if anything is.

        Args:
            do: returns a line about what was done; raises Refused.
        """
        if self._waiting is None:
            return
        (wanted, answer), self._waiting = self._waiting, None
        self._running = True
        try:
            answer.set_result((True, do(wanted)))
        except BaseException as error:
            answer.set_result((False, str(error) or type(error).__name__))
            if not isinstance(error, Refused):
                raise
        finally:
            self._running = False

    @property
    def under_way(self) -> bool:
        """Whether somebody waits for an answer."""
        return self._running or self._waiting is not None

    def close(self, why: str) -> None:
        """From now on answer everybody, and who waits, that nothing is done, and why."""
        self._closed = why
        if self._waiting is not None:
            (_, answer), self._waiting = self._waiting, None
            answer.set_result((False, why))

    async def _serve(self, request: Any, response: Any) -> Any:
        result = response.result
        try:
            wanted = wanted_of(request.parameters)
        except ValueError as error:
            result.reason = str(error)
            return response
        if self._closed or self.under_way:
            result.reason = self._closed or "another exchange is under way"
            return response
        answer = Future()
        self._waiting = wanted, answer
        result.successful, result.reason = await answer
        return response


def wanted_of(parameters: Sequence[ParameterMessage]) -> Wanted:
    """What a request's parameters ask for.

    Raises:
        ValueError: it names no controller.
    """
    given = {each.name: parameter_value_to_python(each.value) for each in parameters}
    controller, file = given.pop("controller", ""), given.pop("params_file", "")
    if not (isinstance(controller, str) and controller and isinstance(file, str)):
        raise ValueError("parameter controller: must be the name of a controller, or a class")
    return Wanted(controller, file, given)


class Asker:
    """Sets parameters of one node, or asks a service of that type.

    DDS loses the answer of a server that does not know this client yet: it is asked for nothing
    first, until it answers.
    """

    def __init__(self, node: Node, service: str, wait: Wait) -> None:
        """
        Args:
            node: that asks.
            service: of rcl_interfaces/srv/SetParametersAtomically.
            wait: spins the node until a condition holds; whether it did within a time [s].
        """
        self._service, self._wait = service, wait
        self._client = node.create_client(SetParametersAtomically, service)
        self._destroy = lambda: node.destroy_client(self._client)

    def __enter__(self) -> "Asker":
        return self

    def __exit__(self, *_: object) -> None:
        self._destroy()

    def meet(self, timeout: float) -> bool:
        """Whether the server answers within a time [s]."""
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0.0:
            if self._wait(self._client.service_is_ready, left):
                answer = self._client.call_async(SetParametersAtomically.Request())
                if self._wait(answer.done, _AGAIN):
                    return True
        return False

    def refusal(self, values: Mapping[str, Any], timeout: float) -> str:
        """Why values were not accepted, or that no answer came within a time [s]; empty if they
        were."""
        messages = [Parameter(n, value=v).to_parameter_msg() for n, v in values.items()]
        answer = self._client.call_async(SetParametersAtomically.Request(parameters=messages))
        if not self._wait(answer.done, timeout):
            return f"{self._service} did not answer within {timeout:.1f} s"
        result = answer.result().result
        return "" if result.successful else str(result.reason) or "no reason given"


def permit(node: Node, actuators: str, commanders: Sequence[str], wait: Wait) -> None:
    """Tell actuators who may command.

    Args:
        node: that asks.
        actuators: name of their node.
        commanders: full names, the one that commands first.
        wait: see `Asker`.

    Raises:
        Refused: they do not agree.
    """
    with Asker(node, f"{actuators}/hand_over", wait) as asker:
        line = "no answer"
        if asker.meet(_QUESTION_TIMEOUT):
            line = asker.refusal({"commanders": list(commanders)}, _QUESTION_TIMEOUT)
    if line:
        raise Refused(f"{actuators} does not permit it: {line}")


def agree(node: Node, old: str, new: str, wait: Wait) -> float:
    """Tell two controllers one moment, and wait until it is over; returns it [s].

    Args:
        node: that asks.
        old, new: names of the controllers.
        wait: see `Asker`.

    Raises:
        Refused: one of them does not agree; the old one goes on.
        Lost: the old one may have agreed, and the new one not.
    """
    with (
        Asker(node, f"{old}/set_parameters_atomically", wait) as of_old,
        Asker(node, f"{new}/set_parameters_atomically", wait) as of_new,
    ):
        for name, asker in ((old, of_old), (new, of_new)):
            if not asker.meet(_QUESTION_TIMEOUT):
                raise Refused(f"{name} does not answer")
        moment = time.time() + LEAD
        if line := of_new.refusal({"answer_from": moment}, ANSWER_TIME):
            of_new.refusal({"answer_from": 0.0}, ANSWER_TIME)
            raise Refused(f"{new} did not agree to take over: {line}")
        line = of_old.refusal({"answer_until": moment}, moment - time.time())
        if line and time.time() < moment - _AGAIN:
            of_new.refusal({"answer_from": 0.0}, _AGAIN)
            raise Refused(f"{old} did not agree to hand over: {line}")
        if line:
            raise Lost(f"{old} did not hand over: {line}")
        wait(lambda: time.time() > moment, LEAD)
        return moment

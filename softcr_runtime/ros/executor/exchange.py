"""Another controller in the place of the one that commands, while the system runs.

The new controller is started beside the old one, hears its packets and sends none. Then the old one
falls silent, the robot plays what is planned in its last packet, and the first packet of the new
one, for which that is what is pending, overrides it from its first due tick on.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rcl_interfaces.srv import SetParametersAtomically
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.task import Future

from softcr_models.errors import UserError
from softcr_runtime.blocks.system import Part
from softcr_runtime.console.terminal import say
from softcr_runtime.ros.executor import run_nodes
from softcr_runtime.ros.executor.heard import Heard
from softcr_runtime.ros.executor.node_services import ACTIVATE, CONFIGURE
from softcr_runtime.ros.executor.progress import RunProgress
from softcr_runtime.ros.executor.run_nodes import RunNodes
from softcr_runtime.ros.executor.run_record import RunFailure
from softcr_runtime.wire.namespaces import absolute

SERVICE = "switch"
"""Name of the service, of rcl_interfaces/srv/SetParametersAtomically: its parameter `controller`
says which, `params_file` names a ROS parameter file, all others are the new node's own."""

READY_TIMEOUT = 10.0  # to have heard estimates, references and packets [s]
_ANSWER_TIMEOUT = 5.0  # of a question [s]
_AGAIN = 0.3  # after which the same is asked again: DDS loses the answer to a new client [s]


@dataclass(frozen=True)
class Wanted:
    """A controller, by its name in the registry or its class, the path of a ROS parameter file
    (empty for none), and parameters of the node, values or texts by name."""

    controller: str
    params_file: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


OtherController = Callable[[Wanted], Part]
"""Makes the part of another controller for a running system; raises UserError."""


class ControllerExchange:
    """Takes requests; the supervisor's loop sees to them, for they take seconds.

    Args:
        nodes: of the run; the controllers come and go there.
        heard: what they say.
        other_controller: None: controllers cannot be exchanged.

    Attributes:
        controller: name of the node that commands.
    """

    def __init__(
        self, nodes: RunNodes, heard: Heard, other_controller: OtherController | None
    ) -> None:
        self._nodes, self._heard, self._other_controller = nodes, heard, other_controller
        self._system, self._wait = nodes.system, nodes.wait
        self.controller = self._system.controller
        self._commanders = [self.controller]  # that were started, in their order
        self._clients: dict[str, Any] = {}
        self._asked: tuple[Wanted, Future] | None = None
        self._closed = ""
        # in a group of its own: an answer that is waited for holds up the others of its group
        alone = ReentrantCallbackGroup()
        nodes.node.create_service(
            SetParametersAtomically, SERVICE, self._serve, callback_group=alone
        )

    @property
    def under_way(self) -> bool:
        """Whether somebody waits for an answer."""
        return self._asked is not None

    def close(self, why: str) -> None:
        """From now on answer everybody, and who waits, that nothing is done, and why."""
        self._closed = why
        if self._asked is not None:
            self._asked[1].set_result((False, why))
            self._asked = None

    def see_to(self, run: RunProgress) -> None:
        """Do what is asked for, if anything is, while a run goes on.

        Raises:
            RunFailure: neither controller commands, or the run failed meanwhile.
        """
        if self._asked is None:
            return
        wanted, answer = self._asked
        try:
            answer.set_result((True, self._exchange(wanted, run)))
        except BaseException as error:
            answer.set_result((False, str(error) or type(error).__name__))
            if not isinstance(error, UserError):
                raise
        finally:
            self._asked = None

    async def _serve(self, request: Any, response: Any) -> Any:
        given = {each.name: parameter_value_to_python(each.value) for each in request.parameters}
        controller, file = given.pop("controller", ""), given.pop("params_file", "")
        result = response.result
        if not (isinstance(controller, str) and controller and isinstance(file, str)):
            result.reason = "parameter controller: must be the name of a controller, or a class"
        elif self._closed or self.under_way:
            result.reason = self._closed or "another exchange is under way"
        else:
            answer = Future()
            self._asked = Wanted(controller, file, given), answer
            result.successful, result.reason = await answer
        return response

    def _exchange(self, wanted: Wanted, run: RunProgress) -> str:
        """Let another controller command; a line about it. Raises UserError where the old one goes
        on, and RunFailure where neither commands."""
        old, began, nodes = self.controller, time.monotonic(), self._nodes
        part, told = self._part_of(wanted), False
        new = part.name
        self._commanders.append(new)
        try:
            self._require(self._permit(old))
            self._bring_up(part, run)
            told = True
            self._require(self._let_send(old, False))
            self._require(self._let_send(new, True))
        except BaseException as error:
            if new in nodes.process_of:
                nodes.kill(new)
            if told and (line := self._let_send(old, True)):
                raise RunFailure(line) from error
            if isinstance(error, UserError):
                nodes.record.add("refused", new, str(error))
            raise
        nodes.adopt(new)
        self.controller = new
        nodes.record.add(
            "exchanged", new, f"answers from {time.time():.6f} s on, in place of {old}"
        )
        nodes.retire(old)
        if line := self._permit(new):  # both may still publish
            say(nodes.console, line, "yellow")
        line = f"{new} commands in place of {old}"
        say(nodes.console, f"{line}; {time.monotonic() - began:.1f} s after it was asked for")
        return line

    @staticmethod
    def _require(refusal: str) -> None:
        if refusal:
            raise UserError(refusal)

    def _part_of(self, wanted: Wanted) -> Part:
        """The new controller's part, under a name that no node has."""
        if self._system.simulated_time:
            raise UserError(
                "in lock-step all runs of a seed are equal, and the moment of an exchange would "
                "differ: choose --controller, or --mode wall"
            )
        if self._other_controller is None:
            raise UserError("this system has one controller")
        try:
            part = self._other_controller(wanted)
        except UserError:
            raise
        except Exception as error:  # of somebody's own class; the robot goes on
            raise UserError(f"{wanted.controller}: {type(error).__name__}: {error}") from None
        # a bag tells nodes apart by name, and DDS does not forget a killed one at once
        used = {*self._commanders, *(each.name for each in self._system.parts)}
        name, number = part.name, 1
        while name in used:
            number += 1
            name = f"{part.name}_{number}"
        return replace(part, name=name, process="")

    def _bring_up(self, part: Part, run: RunProgress) -> None:
        """Start, configure and activate the new controller; it hears, and says nothing."""
        name, nodes = part.name, self._nodes
        self._heard.listen_to(name)
        process = nodes.start(part)
        say(nodes.console, f"{name} is brought up beside {self.controller}")

        def over() -> bool:
            return process.has_ended() or run.look()

        try:
            if not nodes.answers(name, run_nodes.START_TIMEOUT, over):
                raise nodes.failure(name, "did not start")
            for change in (CONFIGURE, ACTIVATE):
                nodes.change(name, change, over)
            states = self._heard.hand_over
            self._wait(lambda: states.get(name) == "ready" or over(), READY_TIMEOUT)
            if states.get(name) != "ready":
                what = "has not seen estimates, references and commands within"
                raise nodes.failure(name, f"{what} {READY_TIMEOUT:.0f} s")
        except RunFailure as failure:
            raise UserError(str(failure)) from None

    def _let_send(self, controller: str, sends: bool) -> str:
        """Why it does not agree; empty where it does."""
        line = self._tell(f"{controller}/set_parameters_atomically", {"sends": sends})
        return line and f"{controller} did not agree to the exchange: {line}"

    def _permit(self, first: str) -> str:
        """Tell the actuators who may command, where they must know: the one that does, and the
        others that were started, of whom DDS may still tell. Why they do not agree; empty where
        they do."""
        names = [first, *(name for name in self._commanders if name != first)]
        full = [absolute(self._system.namespace, each) for each in names]
        if not (actuators := self._system.actuators):
            return ""
        line = self._tell(f"{actuators}/hand_over", {"commanders": full})
        return line and f"{actuators} does not permit it: {line}"

    def _tell(self, service: str, values: Mapping[str, Any]) -> str:
        """Set parameters by a service; why they were not accepted, or that no answer came in time;
        empty if they were."""
        if service not in self._clients:
            made = self._nodes.node.create_client(SetParametersAtomically, service)
            self._clients[service] = made
        client, answers = self._clients[service], list[Future]()
        messages = [Parameter(n, value=v).to_parameter_msg() for n, v in values.items()]
        end = time.monotonic() + _ANSWER_TIMEOUT
        while time.monotonic() < end:
            if self._wait(client.service_is_ready, _AGAIN):
                request = SetParametersAtomically.Request(parameters=messages)
                answers.append(client.call_async(request))
                self._wait(lambda: any(each.done() for each in answers), _AGAIN)
            for result in (each.result().result for each in answers if each.done()):
                return "" if result.successful else str(result.reason) or "no reason given"
        return f"{service} did not answer within {_ANSWER_TIMEOUT:.0f} s"

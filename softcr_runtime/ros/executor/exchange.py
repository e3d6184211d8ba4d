"""Another controller in the place of the one that commands, while the system runs.

The new one is brought up beside the old one, hears estimates, references and the old one's packets,
and says nothing. Then both are told one moment: the old one answers the estimates stamped before
it, the new one those from it on, beginning from the packets that are due. So each estimate has one
answer, however late the nodes are.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rcl_interfaces.srv import SetParametersAtomically
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.task import Future

from softcr_models.errors import UserError
from softcr_runtime.blocks.system import Part
from softcr_runtime.console.terminal import say
from softcr_runtime.ros.executor import run_nodes
from softcr_runtime.ros.executor.heard import Heard
from softcr_runtime.ros.executor.node_services import ACTIVATE, CONFIGURE
from softcr_runtime.ros.executor.progress import RunProgress
from softcr_runtime.ros.executor.run_nodes import RunNodes, Wait
from softcr_runtime.ros.executor.run_record import RunFailure
from softcr_runtime.wire.namespaces import absolute

SERVICE = "switch"
"""Name of the service, of rcl_interfaces/srv/SetParametersAtomically: its parameter `controller`
says which, `params_file` names a ROS parameter file, all others are the new node's own."""

LEAD = 2.0  # from the telling of the moment to the moment itself [s]
ANSWER_TIME = 1.0  # of it, for the new one to agree, before the old one is told [s]
READY_TIMEOUT = 10.0  # to have seen estimates, references and commands [s]
TAKEN_TIMEOUT = 5.0  # from the moment to the new one's word that it commands [s]
_QUESTION_TIMEOUT = 5.0  # of any other question [s]
_AGAIN = 0.3  # after which one is asked again [s]


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


OtherController = Callable[[Wanted], Part]
"""Makes the part of another controller for a running system; raises UserError."""


class ControllerExchange:
    """Takes requests; the supervisor's loop sees to them, for they take seconds.

    Attributes:
        controller: name of the node that commands.
    """

    def __init__(
        self, nodes: RunNodes, heard: Heard, other_controller: OtherController | None
    ) -> None:
        """
        Args:
            nodes: of the run; the controllers come and go there.
            heard: what they say.
            other_controller: None: controllers cannot be exchanged.
        """
        self._nodes, self._heard, self._other_controller = nodes, heard, other_controller
        self._system, self._wait = nodes.system, nodes.wait
        self.controller = self._system.controller
        self._commanders = [self.controller]  # that were brought up, in their order
        self._askers: dict[str, _Asker] = {}
        self._waiting: tuple[Wanted, Future] | None = None
        self._running, self._closed = False, ""
        # in a group of its own: an answer that is waited for holds up the others of its group
        alone = ReentrantCallbackGroup()
        nodes.node.create_service(
            SetParametersAtomically, SERVICE, self._serve, callback_group=alone
        )

    @property
    def under_way(self) -> bool:
        """Whether somebody waits for an answer."""
        return self._running or self._waiting is not None

    def close(self, why: str) -> None:
        """From now on answer everybody, and who waits, that nothing is done, and why."""
        self._closed = why
        if self._waiting is not None:
            self._waiting[1].set_result((False, why))
            self._waiting = None

    def see_to(self, run: RunProgress) -> None:
        """Do what is asked for, if anything is, while a run goes on.

        Raises:
            RunFailure: neither controller commands, or the run failed meanwhile.
        """
        if self._waiting is None:
            return
        (wanted, answer), self._waiting = self._waiting, None
        self._running = True
        try:
            answer.set_result((True, self._exchange(wanted, run)))
        except BaseException as error:
            answer.set_result((False, str(error) or type(error).__name__))
            if not isinstance(error, UserError):
                raise
        finally:
            self._running = False

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
            self._waiting = Wanted(controller, file, given), answer
            result.successful, result.reason = await answer
        return response

    def _exchange(self, wanted: Wanted, run: RunProgress) -> str:
        """Let another controller command; a line about it. Raises UserError where the old one goes
        on, and RunFailure where neither commands."""
        old, began = self.controller, time.monotonic()
        part = self._part_of(wanted)
        new = part.name
        self._commanders.append(new)
        try:
            self._permit(old)
            self._bring_up(part, run)
            moment = self._agree(old, new, run)
        except BaseException as error:
            if new in self._nodes.process_of:  # it never commanded
                self._nodes.kill(new)
            if isinstance(error, UserError):
                self._nodes.record.add("refused", new, str(error))
            raise
        self._nodes.adopt(new)
        self.controller = new
        states = self._heard.hand_over
        self._wait(lambda: states.get(new) == "commands" or run.look(), TAKEN_TIMEOUT)
        if states.get(new) != "commands" and not run.look():
            raise self._nodes.failure(new, "does not command")
        self._nodes.record.add(
            "exchanged", new, f"answers from {moment:.6f} s on, in place of {old}"
        )
        self._nodes.retire(old)
        try:
            self._permit(new)
        except UserError as error:  # both may still publish
            say(self._nodes.console, str(error), "yellow")
        line = f"{new} commands in place of {old}"
        say(self._nodes.console, f"{line}; {time.monotonic() - began:.1f} s after it was asked for")
        return line

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
        name, states = part.name, self._heard.hand_over
        self._heard.listen_to(name)
        process = self._nodes.start(part)
        say(self._nodes.console, f"{name} is brought up beside {self.controller}")

        def over() -> bool:
            return process.has_ended() or run.look()

        try:
            if not self._nodes.answers(name, run_nodes.START_TIMEOUT, over):
                raise self._nodes.failure(name, "did not start")
            for change in (CONFIGURE, ACTIVATE):
                self._nodes.change(name, change, over)
            self._wait(lambda: states.get(name) == "ready" or over(), READY_TIMEOUT)
            if states.get(name) != "ready":
                what = "has not seen estimates, references and commands within"
                raise self._nodes.failure(name, f"{what} {READY_TIMEOUT:.0f} s")
        except RunFailure as failure:
            raise UserError(str(failure)) from None

    def _agree(self, old: str, new: str, run: RunProgress) -> float:
        """Tell both one moment, and wait until it is over; returns it [s]."""
        if run.ends_within(LEAD + TAKEN_TIMEOUT):
            raise UserError("the run is about to end")
        of_old, of_new = (self._asker(f"{name}/set_parameters_atomically") for name in (old, new))
        moment = time.time() + LEAD
        if line := of_new.refusal({"answer_from": moment}, ANSWER_TIME):
            raise UserError(f"{new} did not agree to take over: {line}")
        line = of_old.refusal({"answer_until": moment}, moment - time.time())
        if line and time.time() < moment - _AGAIN:
            raise UserError(f"{old} did not agree to hand over: {line}")
        if line:  # it may have agreed
            raise RunFailure(f"{old} did not hand over: {line}")
        self._wait(lambda: time.time() > moment, LEAD)
        return moment

    def _permit(self, first: str) -> None:
        """Tell the actuators who may command, where they must know: the one that does, and those
        before, of whom DDS may still tell."""
        if not self._system.actuators:
            return
        names = [first, *(name for name in self._commanders if name != first)]
        full = [absolute(self._system.namespace, each) for each in names]
        asker = self._asker(f"{self._system.actuators}/hand_over")
        if line := asker.refusal({"commanders": full}, _QUESTION_TIMEOUT):
            raise UserError(f"{self._system.actuators} does not permit it: {line}")

    def _asker(self, service: str) -> "_Asker":
        """One that its server knows; raises UserError where none answers."""
        asker = self._askers.setdefault(service, _Asker(self._nodes.node, service, self._wait))
        deadline = time.monotonic() + _QUESTION_TIMEOUT
        while line := asker.refusal({}, _AGAIN):
            if time.monotonic() > deadline:
                raise UserError(line)
        return asker


class _Asker:
    """Sets parameters of one node, or asks a service of that type.

    DDS loses the answer of a server that does not know this client yet: it is asked for nothing
    first, until it answers.
    """

    def __init__(self, node: Node, service: str, wait: Wait) -> None:
        """`wait` spins the node until a condition holds, for a time [s]."""
        self._service, self._wait = service, wait
        self._client = node.create_client(SetParametersAtomically, service)

    def refusal(self, values: Mapping[str, Any], timeout: float) -> str:
        """Why values were not accepted, or that no answer came within a time [s]; empty if they
        were."""
        messages = [Parameter(n, value=v).to_parameter_msg() for n, v in values.items()]
        if self._wait(self._client.service_is_ready, timeout):
            request = SetParametersAtomically.Request(parameters=messages)
            answer = self._client.call_async(request)
            if self._wait(answer.done, timeout):
                result = answer.result().result
                return "" if result.successful else str(result.reason) or "no reason given"
        return f"{self._service} did not answer within {timeout:.1f} s"

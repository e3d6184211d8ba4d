"""Another controller in the place of the one that commands, as a supervisor sees to it."""

import signal
import time
from collections.abc import Callable
from dataclasses import replace

from rclpy.node import Node
from rich.console import Console

from softcr_models.errors import UserError
from softcr_runtime.blocks.system import Part, System
from softcr_runtime.console.terminal import say
from softcr_runtime.ros.executor import run_nodes
from softcr_runtime.ros.executor.exchange import (
    LEAD,
    READY_TIMEOUT,
    TAKEN_TIMEOUT,
    Lost,
    Refused,
    Wait,
    Wanted,
    agree,
    permit,
)
from softcr_runtime.ros.executor.heard import Heard
from softcr_runtime.ros.executor.node_process import NodeProcess
from softcr_runtime.ros.executor.node_services import ACTIVATE, CONFIGURE
from softcr_runtime.ros.executor.progress import RunProgress
from softcr_runtime.ros.executor.run_nodes import RunNodes
from softcr_runtime.ros.executor.run_record import RunFailure, RunRecord
from softcr_runtime.wire.namespaces import absolute

OtherController = Callable[[Wanted], Part]
"""Makes the part of another controller for a running system; raises UserError."""


class ControllerExchange:
    """Brings another controller up beside the one that commands, and lets it command.

    Attributes:
        controller: name of the node that commands.
    """

    def __init__(
        self,
        node: Node,
        system: System,
        nodes: RunNodes,
        heard: Heard,
        record: RunRecord,
        console: Console,
        wait: Wait,
        other_controller: OtherController | None,
    ) -> None:
        """
        Args:
            node: that asks, in the system's namespace.
            system: whose controller it is.
            nodes: of the run; the controllers come and go there.
            heard: what they say.
            record: of what happens to them.
            console: where the person reads along.
            wait: spins the node until a condition holds; whether it did within a time [s].
            other_controller: None: controllers cannot be exchanged.
        """
        self.controller = system.controller
        self._node, self._system, self._nodes = node, system, nodes
        self._heard, self._record, self._console = heard, record, console
        self._wait, self._other_controller = wait, other_controller
        self._used_names = {part.name for part in system.parts}
        self._commanders = [system.controller]  # that were brought up, in their order
        self._beside: NodeProcess | None = None  # of a controller that does not command yet

    def close(self) -> None:
        """Leave no process of a controller that never commanded."""
        if self._beside is not None:
            self._beside.close()

    def exchange(self, wanted: Wanted, run: RunProgress) -> str:
        """Let another controller command; returns a line about it.

        Args:
            wanted: which one.
            run: that goes on meanwhile.

        Raises:
            Refused: it does not, and the old one goes on.
            RunFailure: neither of them commands, or the run ended meanwhile.
        """
        old, began = self.controller, time.monotonic()
        part = self._part_of(wanted)
        new = part.name
        self._used_names.add(new)
        self._commanders.append(new)
        try:
            self._permit(old)
            self._bring_up(part, run)
            moment = self._agree(old, new, run)
        except BaseException as error:
            self._let_go(new, gently=isinstance(error, Refused))
            if isinstance(error, Refused):
                self._record.add("refused", new, str(error))
            raise
        self._record.add("exchanged", new, f"answers from {moment:.6f} s on, in place of {old}")
        self._nodes.retire(old)
        try:
            self._permit(new)
        except Refused as error:  # both may still publish
            say(self._console, str(error), "yellow")
        line = f"{new} commands in place of {old}"
        say(self._console, f"{line}; {time.monotonic() - began:.1f} s after it was asked for")
        return line

    def _part_of(self, wanted: Wanted) -> Part:
        """The new controller's part, under a name that no node has.

        Raises:
            Refused: there can be none.
        """
        if self._system.simulated_time:
            raise Refused(
                "in lock-step all runs of a seed are equal, and the moment of an exchange would "
                "differ: choose --controller, or --mode wall"
            )
        if self._other_controller is None:
            raise Refused("this system has one controller")
        try:
            part = self._other_controller(wanted)
        except UserError as error:
            raise Refused(str(error)) from None
        except Exception as error:  # of somebody's own class; the robot goes on
            raise Refused(f"{wanted.controller}: {type(error).__name__}: {error}") from None
        # a bag tells nodes apart by name, and DDS does not forget a killed one at once
        name, number = part.name, 1
        while name in self._used_names:
            number += 1
            name = f"{part.name}_{number}"
        return replace(part, name=name, process="")

    def _bring_up(self, part: Part, run: RunProgress) -> None:
        """Start, configure and activate the new controller; it hears, and says nothing.

        Raises:
            Refused: it does not come so far.
        """
        name = part.name
        self._heard.listen_to(name)
        process = self._beside = self._nodes.start(part)
        client = self._nodes.clients[name]
        say(self._console, f"{name} is brought up beside {self.controller}")

        def over() -> bool:
            return process.has_ended() or run.look()

        def refusal(what: str) -> Refused:
            if run.look():
                return Refused("the run is over")
            complaint = process.complaint(name)
            return Refused(f"{name} {what}{f': {complaint}' if complaint else ''}")

        if not self._nodes.answers(name, run_nodes.START_TIMEOUT, over):
            raise refusal("did not start")
        for change in (CONFIGURE, ACTIVATE):
            answer = client.request(change)
            self._wait(_either(answer.done, over), run_nodes.CHANGE_TIMEOUTS[change])
            if not (answer.done() and answer.result().success):
                raise refusal(f"did not {change.verb}")
            client.state = change.goal
            self._record.add(change.done, name)
        heard = self._heard.hand_over
        self._wait(lambda: heard.get(name) == "ready" or over(), READY_TIMEOUT)
        if heard.get(name) != "ready":
            raise refusal(
                f"has not seen estimates, references and commands within {READY_TIMEOUT:.0f} s"
            )

    def _agree(self, old: str, new: str, run: RunProgress) -> float:
        """Both agree on the moment, and the new one commands; returns the moment [s].

        Raises:
            Refused: they do not agree.
        """
        if run.ends_within(LEAD + TAKEN_TIMEOUT):
            raise Refused("the run is about to end")
        try:
            moment = agree(self._node, old, new, self._wait)
        except Lost as error:
            raise RunFailure(str(error)) from None
        self._nodes.adopt(new)
        self._beside, self.controller = None, new
        heard = self._heard.hand_over
        self._wait(lambda: heard.get(new) == "commands" or run.look(), TAKEN_TIMEOUT)
        if heard.get(new) != "commands" and not run.look():
            raise self._nodes.failure(new, "does not command")
        return moment

    def _let_go(self, name: str, gently: bool) -> None:
        """Of a controller that never commanded."""
        process, self._beside = self._beside, None
        if process is None:
            return
        try:
            if gently:
                process.send(signal.SIGTERM)
                self._wait(process.has_ended, run_nodes.EXIT_TIMEOUT)
        finally:
            process.close()
            self._record.add("ended", name, str(process.exit()))
            del self._nodes.clients[name]

    def _permit(self, first: str) -> None:
        """Tell the actuators who may command, where they must know: of those before, too, of whom
        DDS may still tell.

        Args:
            first: who commands now.

        Raises:
            Refused: they do not agree.
        """
        if self._system.actuators:
            others = [name for name in self._commanders if name != first]
            names = [absolute(self._system.namespace, each) for each in [first, *others]]
            permit(self._node, self._system.actuators, names, self._wait)


def _either(one: Callable[[], bool], other: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: one() or other()

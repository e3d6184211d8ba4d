"""What a supervisor hears of a running system."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock

from softcr_runtime.blocks.guard import MOST_REFUSALS
from softcr_runtime.blocks.system import System
from softcr_runtime.ros.executor.connections import Ends, ends_in
from softcr_runtime.wire.diagnostics import diagnostics_from_message
from softcr_runtime.wire.safety_state import SafetyState
from softcr_runtime.wire.topics import qos


class Heard:
    """What a system's nodes have said so far; somebody must spin the node that listens.

    Attributes:
        connections: what each of its nodes sees of the others, by name.
        finished: whether a node has told that simulated time is at its end.
        disarmed: why the valves are vented; empty while they are enabled.
        safety: the newest state of the valves; None before the first.
        simulated_time: on the system's clock [s].
        refused: by node, the first mistake of its class.
        unusable: by node, likewise, of those that have given no usable answer for a second.
        hand_over: how it stands with the exchange of each controller that tells it, by name.
    """

    def __init__(self, node: Node, system: System) -> None:
        """Listen.

        Args:
            node: that listens, in the system's namespace.
            system: safety is heard where its beginning must be agreed, clock in simulated time.
        """
        self.connections: dict[str, Ends] = {}
        self.finished = False
        self.disarmed = ""
        self.safety: SafetyState | None = None
        self._generation: int | None = None  # that a beginning was first asked for
        self.simulated_time = 0.0
        self.refused: dict[str, str] = {}
        self.unusable: dict[str, str] = {}
        self._failing: set[str] = set()
        self.hand_over: dict[str, str] = {}
        self._namespace = system.namespace
        self._names = [part.name for part in system.parts]
        self._spare = {part.name for part in system.parts if part.spare}
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        if system.begin:
            topic = "safety/state"
            node.create_subscription(DiagnosticStatus, topic, self._on_safety, qos(topic))
        if system.simulated_time:
            newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
            node.create_subscription(Clock, "clock", self._on_clock, newest)

    def listen_to(self, name: str) -> None:
        """To one more node, of which nothing was heard yet."""
        self._names.append(name)
        self.hand_over.pop(name, None)

    @property
    def vented(self) -> str:
        """Why the valves are vented, and what is to be done about it."""
        latched = self.safety.latched if self.safety else ""
        return (
            f"{self.disarmed}; {latched}: reset it when you know why"
            if latched
            else (self.disarmed)
        )

    def may_ask_no_more(self) -> str:
        """Why a program may not ask for a beginning any more, in a line; empty while it may.

        What is latched is for a person to reset; and after a vent or a reset it is a person who
        asks again, for what was asked before was asked of other valves.
        """
        state = self.safety
        if state is None:
            return ""
        if state.latch:
            return (
                f"the valves are {state.latched}; find out why, reset it ('r' in softcr hold, the "
                "page of softcr view, or the service valves/reset) and start again"
            )
        if self._generation is None:
            self._generation = state.generation
        if state.generation != self._generation:
            return "the valves were vented and reset meanwhile: start again"
        return ""

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        """/diagnostics is everybody's: other robots' nodes are not listened to."""
        reports = [
            report
            for report in diagnostics_from_message(message)
            if report.node[0] == self._namespace and report.node[1] in self._names
        ]
        self.finished |= any(report.values.get("finished") is True for report in reports)
        self.connections |= ends_in(reports)
        for report in reports:
            self._notice_mistakes(report.node[1], report.values)
        self.hand_over |= {
            report.node[1]: str(report.values["hand_over"])
            for report in reports
            if "hand_over" in report.values
        }

    def _notice_mistakes(self, name: str, values: Mapping[str, Any]) -> None:
        """Diagnostics come once a second: who fails in two of them failed all the time between."""
        if name in self._spare:
            return
        for line in values.get("refusals") or ():
            self.refused.setdefault(name, line)
        failing = int(values.get("unusable_in_a_row") or 0) >= MOST_REFUSALS
        if failing and name in self._failing:
            self.unusable.setdefault(name, self.refused.get(name, "it raises"))
        (self._failing.add if failing else self._failing.discard)(name)

    def _on_safety(self, status: DiagnosticStatus) -> None:
        """A vent lasts until a person resets and enables the valves again: it ends the run."""
        (report,) = diagnostics_from_message(SimpleNamespace(status=[status]))
        self.safety = SafetyState.of(report)
        self.disarmed = "" if self.safety.enabled else status.message

    def _on_clock(self, message: Clock) -> None:
        self.simulated_time = message.clock.sec + message.clock.nanosec * 1e-9

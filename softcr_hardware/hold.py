"""`softcr hold`: the space bar of this terminal is the deadman's switch.

A terminal tells no release of a key, only that it repeats while it is held: the first time after
the keyboard's own delay, then many times a second. Whatever stops the repeating releases the
switch: the finger, another window in front, a lost connection; and the end of this process, of
which its last word or else its silence tells.
"""

import math
import os
import select
import sys
import termios
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

from rich.console import Console
from rich.markup import escape

from softcr_models.errors import UserError
from softcr_runtime.console.terminal import ended_by_signals, say
from softcr_runtime.ros.context import ros_context
from softcr_runtime.settings.command_line import command
from softcr_runtime.wire.diagnostics import diagnostics_from_message
from softcr_runtime.wire.namespaces import Namespace, absolute
from softcr_runtime.wire.safety_state import SafetyState

FIRST_GAP = 0.7
"""A keyboard repeats for the first time after 0.66 s at most, unless somebody changed it [s]."""

GAP = 0.3
"""Then it repeats at least so often; the slowest consoles take 0.09 s [s]."""

_PERIOD = 0.05  # between two words to the valves [s]
_LAST_WORDS_TIME = 0.1  # for the valves to hear that the switch was released [s]
_KEY, _QUIT, _RESET, _VENT = b" ", b"q", b"r", b"v"
_TOPIC = "safety/operator"


class Grip:
    """Whether a key is held, from the moments at which it came."""

    def __init__(self) -> None:
        """Not held."""
        self._last = -math.inf
        self._repeats = False

    def press(self, now: float) -> None:
        """The key came at `now` [s]."""
        self._repeats = now - self._last < GAP
        self._last = now

    def held(self, now: float) -> bool:
        """Whether it is held at `now` [s]."""
        return now - self._last < (GAP if self._repeats else FIRST_GAP)


@command
def hold(*, namespace: Namespace = "") -> int:
    """Use the space bar of this terminal as the deadman's switch.

    This replaces a joystick beside `softcr up hardware`: while you hold the space bar,
    safety/operator says so. Letting go, closing the window or leaving it releases the switch within
    0.3 s (0.7 s before the key repeats for the first time), and the valves vent. The key v vents at
    once. The key r resets a latched vent, once you know its cause and have let go. The valves can
    be armed only if the switch is pressed after their start and after the last vent or reset.

    Args:
        namespace: namespace of the robot whose switch it is.

    Raises:
        UserError: there is no terminal, or ROS does not start.
    """
    if not sys.stdin.isatty():
        raise UserError("softcr hold reads a key: its input must be a terminal, not a file or pipe")
    console = Console()
    with ended_by_signals() as stop, ros_context(), _single_keys(sys.stdin.fileno()) as keyboard:
        operator = _Operator(namespace)
        say(console, "the deadman's switch: hold the space bar; v vents, r resets, q ends")
        try:
            _hold(operator, keyboard, console, stop)
        finally:
            operator.close()
    return 0


def _hold(operator: "_Operator", keyboard: int, console: Console, stop: threading.Event) -> None:
    grip = Grip()
    with console.status("") as status:
        while not stop.is_set():
            if select.select([keyboard], [], [], _PERIOD)[0]:
                keys = _read(keyboard)
                if keys is None or _QUIT in keys:
                    return
                if _RESET in keys:
                    operator.reset()
                if _VENT in keys:
                    operator.say(False, vents=True)
                elif _KEY in keys:
                    grip.press(time.monotonic())
                stop.wait(_PERIOD)  # what repeats fast need not be told as often
            held = grip.held(time.monotonic())
            operator.say(held)
            switch = "[bold green]HELD[/]" if held else "[bold]released[/]"
            status.update(f"{switch}  {escape(operator.heard())}")


def _read(keyboard: int) -> bytes | None:
    """What was typed; None when the terminal is gone."""
    try:
        return os.read(keyboard, 4096) or None
    except OSError:
        return None


@contextmanager
def _single_keys(terminal: int) -> Iterator[int]:
    """A terminal that hands over each key at once and does not show it."""
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield terminal
    finally:
        with suppress(termios.error):  # it is gone
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class _Operator:
    """The operator's side of the topics."""

    def __init__(self, namespace: str) -> None:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from sensor_msgs.msg import Joy
        from std_srvs.srv import Trigger

        self._request = Trigger.Request
        from softcr_runtime.wire.messages import to_stamp
        from softcr_runtime.wire.topics import TOPICS, qos

        self._joy, self._to_stamp = Joy, to_stamp
        self._node = rclpy.create_node("hold", namespace=absolute(namespace))
        self._publisher = self._node.create_publisher(Joy, _TOPIC, qos(_TOPIC))
        place = f" in {absolute(namespace)}" if namespace else ""
        self._safety, self._answer = f"no valves seen yet{place}", ""
        self._reset = self._node.create_client(Trigger, "valves/reset")
        self._node.create_subscription(
            TOPICS["safety/state"].message_class(), "safety/state", self._hear, qos("safety/state")
        )
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)

    def say(self, held: bool, vents: bool = False) -> None:
        """Tell the valves whether the switch is held, and whether to vent."""
        message = self._joy(buttons=[int(held), int(vents)])
        message.header.stamp = self._to_stamp(self._node.get_clock().now().nanoseconds)
        self._publisher.publish(message)
        self._executor.spin_once(timeout_sec=0.0)

    def reset(self) -> None:
        """Ask the valves to forget what a vent has latched."""
        if not self._reset.service_is_ready():
            self._answer = "no answer from valves/reset"
            return
        self._answer = "asked to reset"
        answer = self._reset.call_async(self._request())
        answer.add_done_callback(self._hear_answer)

    def _hear_answer(self, answer: Any) -> None:
        result = answer.result()
        self._answer = result.message if result else "the valves' answer was lost: press r again"

    def heard(self) -> str:
        """What the valves' safety says, and who else is an operator."""
        if self._node.count_publishers(_TOPIC) > 1:
            return f"{self._safety}; ANOTHER NODE SPEAKS ON {_TOPIC}, TOO: end one of them"
        return "; ".join(filter(None, (self._safety, self._answer)))

    def close(self) -> None:
        """The last word: released."""
        self.say(False)
        time.sleep(_LAST_WORDS_TIME)
        self._node.destroy_node()

    def _hear(self, state: Any) -> None:
        told = SafetyState.of(diagnostics_from_message(SimpleNamespace(status=[state]))[0])
        more = told.latched or ", ".join(told.blockers)
        self._safety = f"valves: {'; '.join(filter(None, (state.message, more)))}"
        if told.enabled:
            self._answer = ""

"""The live view as a node: subscribes what there is, draws it, passes on what a person presses.

Beside the page it draws for RViz where no node `visuals` does: estimate/shape and markers, while
somebody subscribes them. It is no lifecycle node: it may come and go at any time without anybody
noticing. It asks for best-effort delivery, so that no publisher ever waits for a browser.
"""

import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from rclpy.context import Context
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSReliabilityPolicy
from rclpy.task import Future
from std_srvs.srv import Trigger

from softcr_models.robots.kinds import AnyRobot
from softcr_models.robots.robot import robot_of
from softcr_runtime.bags.signals import decoder
from softcr_runtime.blocks.cycle_timer import CycleTimer
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.ros.mailbox import Mailbox, NotExecuted
from softcr_runtime.wire import configuration
from softcr_runtime.wire.codecs import expected_of
from softcr_runtime.wire.diagnostics import diagnostics_from_message
from softcr_runtime.wire.messages import MessageError, from_stamp, pressures_to_message
from softcr_runtime.wire.topics import TOPICS, TRUTH, qos
from softcr_tools.viewer.drawing import markers_message, path_message
from softcr_tools.viewer.hand import HandControl, Surroundings
from softcr_tools.viewer.page import Page, Slid, Switched
from softcr_tools.viewer.picture import HEARD, Picture

RATE = 30.0  # of drawing, and of commands by hand [Hz]; valves hold after 0.1 s without one
MARKER_PERIOD = 0.1  # between two drawings for RViz [s]
ANSWER_TIME = 2.0  # how long an answer to a button is waited for [s]
LAST_WORD_TIME = 0.5  # for readers to take the last command before its publisher goes [s]
_BESIDE = (  # topics that are heard beside those whose flow is shown
    "estimate/tip/pose", "simulation/truth/rod", TRUTH, "safety/state",
    "/diagnostics", "simulation/truth/loads", "simulation/truth/contact/points",
)  # fmt: skip
_NAME = "viewer_"  # of every view, before its process's number; other views are heard if they speak
_COMMAND, _PLAN, _SHAPE = "pressure/command", "pressure/plan", "estimate/shape"
_CONFIGURATION = configuration.TOPIC
_DEPTH = 200  # messages that wait while the machine is busy elsewhere: seconds of each topic
_OWN_STAMPS = 100  # remembered, to tell our commands from those of others
_MOST_REASONS = 5  # of rejection, shown on the page


class Viewer(Node):
    """What goes on, on a browser page."""

    def __init__(
        self,
        robot: AnyRobot,
        host: str,
        port: int,
        with_hand: bool,
        namespace: str = "/",
        context: Context | None = None,
        follows: bool = False,
    ):
        """Subscribe what a robot's system says, in a namespace, and serve the page on an address
        and a free port.

        Args:
            robot: that is shown.
            host, port: of the page.
            with_hand: whether it has sliders, which an arm has not.
            namespace: of the robot's system.
            context: of ROS; None: the default one.
            follows: whether another robot is shown where the running system tells one.
        """
        # two views at a time must not take each other's commands for their own
        super().__init__(
            f"{_NAME}{os.getpid()}", namespace=namespace, context=context,
            start_parameter_services=False,
        )  # fmt: skip
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self)
        self._inbox = Mailbox(self.context, self._reject)
        self._follows, self._may_command = follows, with_hand
        self._know(robot)
        self._command: Any = None  # only while it is needed: the valves follow one node's commands
        self._commanded = -math.inf  # when a command was last sent [s]
        self._shape, self._markers = self._offer(_SHAPE), self._offer("markers")
        self._marked = -math.inf  # when it was drawn for RViz [s]
        self._own_stamps: deque[int] = deque(maxlen=_OWN_STAMPS)
        self._foreign = -math.inf  # when a command of another was heard [s]
        self._askable = {
            name: self.create_client(Trigger, f"valves/{name}") for name in ("vent", "reset")
        }
        self._asking: tuple[float, Future] | None = None
        for topic in (*HEARD, *_BESIDE, _CONFIGURATION, *((_COMMAND, _PLAN) if with_hand else ())):
            self._receive(topic)
        self.page = Page(robot, host, port, self.vent, with_hand, self.reset)

    def _know(self, robot: AnyRobot) -> None:
        """Begin anew with a robot."""
        self._robot, self._radius = robot, robot.radius
        self._decoders: dict[str, Callable[[Any], Any]] = {}
        self._rejected: Counter[str] = Counter()
        self.picture = Picture(robot)
        inputs = robot.shown_inputs if self.picture.has_valves else ()
        self._actuators = tuple(each.name for each in inputs)
        self.hand = HandControl(inputs)
        self._hand_page: int | None = None  # whose page switched the sliders on
        self._with_hand = self._may_command and self.picture.has_valves

    def _hear_configuration(self, told: AnyRobot | None, received: float) -> bool:
        """A node was configured: where nothing flows a run begins, of this robot or another.
        Returns whether another robot is shown now."""
        picture = self.picture
        if told is not None and told != self._robot:
            if self._follows:
                self.hand.switch(False)
                self._use_hand(passed=0.0)
                self._know(told)
                self.page.show(told)
                self.get_logger().info(f"the running system's robot is {told.name}")
                return True
            self._reject(
                _CONFIGURATION,
                f"the running system's robot is {told.name}: start the view without --robot",
            )
        elif picture.silent_for(received):
            picture.forget()
            self._rejected.clear()
        return False

    def run(self, stop: threading.Event) -> None:
        """Watch and draw until `stop` is set."""
        self._inbox.open()
        timer, last = CycleTimer(1.0 / RATE), time.monotonic()
        while not stop.is_set():
            timer.wait()
            self._executor.spin_once(timeout_sec=0.0)
            self._take_letters()
            now = time.monotonic()
            self._use_hand(now - last)
            self._tell_answer(now)
            self.page.draw(self.picture, self.hand, dict(self._rejected), now)
            self._draw_for_rviz(now)
            last = now

    def vent(self) -> None:
        """Ask the valves to vent, whatever state they are in; from any thread."""
        self.page.events.put(Switched(False, -1))  # the sliders must not work against it
        self._ask("vent")

    def reset(self) -> None:
        """Ask the valves to forget what a vent has latched; from any thread."""
        self._ask("reset")

    def _ask(self, name: str) -> None:
        client = self._askable[name]
        if not client.service_is_ready():
            self.page.say(f"no answer from valves/{name}: no valves are running here")
            return
        self.page.say(f"asked to {name} ...")
        self._asking = time.monotonic(), client.call_async(Trigger.Request())

    def close(self) -> None:
        """Say a last command of zero if the sliders were in use, and go."""
        self.hand.switch(False)
        self._use_hand(passed=0.0)
        self.page.close()
        self._inbox.destroy()
        self._executor.shutdown()
        self.destroy_node()

    def _offer(self, topic: str) -> Any:
        return self.create_publisher(TOPICS[topic].message_class(), topic, qos(topic))

    def _receive(self, topic: str) -> None:
        kind, profile = TOPICS[topic], qos(topic)
        if kind.profile not in ("latched", "diagnostics"):
            profile.reliability = QoSReliabilityPolicy.BEST_EFFORT
            profile.depth = _DEPTH
        if topic == _CONFIGURATION:  # each node tells its own
            profile.depth = _DEPTH
        subscription = self.create_subscription(
            kind.message_class(), kind.name, lambda _: None, profile, callback_group=NotExecuted(),
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
        )  # fmt: skip
        self._inbox.add(topic, subscription, partial(self._read, topic))

    def _read(self, topic: str, message: Any, received: float) -> Sample | None:
        try:
            stamp, value = self._decoded(topic, message)
        except MessageError as error:
            self._reject(error.topic, error.what)
            return None
        except Exception as error:  # whatever it was, the view goes on
            self._reject(topic, f"{type(error).__name__}: {error}")
            return None
        return Sample(topic, stamp, value, received)

    def _decoded(self, topic: str, message: Any) -> tuple[int, Any]:
        """Stamp [ns] and value of a message."""
        if topic == "safety/state":
            return 0, diagnostics_from_message(SimpleNamespace(status=[message]))[0]
        if topic == _CONFIGURATION:
            told = configuration.configurations([message]).values()
            return 0, next((robot_of(each.robot) for each in told if each.robot), None)
        if topic == "/diagnostics":
            said = diagnostics_from_message(message)
            return 0, [each for each in said if each.node[0] == self.get_namespace().strip("/")]
        frame = message.header.frame_id
        # before the frame's name there may be the robot's prefix
        if topic == "mocap/tip/pose" and frame and not frame.endswith(self.picture.frame):
            raise MessageError(topic, f"frame {frame!r} must be {self.picture.frame!r}")
        if topic not in self._decoders:  # the first message of a state tells what it holds
            self._decoders[topic] = decoder(topic, message, expected_of(self._robot))
        return from_stamp(message, topic), self._decoders[topic](message)

    def _reject(self, topic: str, reason: str) -> None:
        key = f"{topic}: {reason}"
        if key in self._rejected or len(self._rejected) < _MOST_REASONS:
            self._rejected[key] += 1

    def _take_letters(self) -> None:
        arrived = iter(partial(self._inbox.get, timeout=0.0), None)
        for letter in sorted(arrived, key=lambda letter: letter.stamp):
            if letter.topic in (_COMMAND, _PLAN):
                if letter.stamp not in self._own_stamps:
                    self._foreign = max(self._foreign, letter.received)
                continue
            if letter.topic == _CONFIGURATION:
                if self._hear_configuration(letter.value, letter.received):
                    return  # what came with it was decoded for the robot before
                continue
            self.picture.hear(letter.topic, letter.stamp, letter.value, letter.received)
            self.picture.sample()

    def _draw_for_rviz(self, now: float) -> None:
        picture = self.picture
        if now - self._marked < MARKER_PERIOD or not picture.stamp:
            return
        self._marked = now
        is_ours = picture.shape_topic != _SHAPE and not self._others_offering(_SHAPE)
        # and somebody else listens beside this node
        if picture.estimate and is_ours and self._shape.get_subscription_count() > 1:
            self._shape.publish(path_message(picture.estimate, picture.frame))
        if self._markers.get_subscription_count() and not self._others_offering("markers"):
            self._markers.publish(markers_message(picture, self._radius))

    def _use_hand(self, passed: float) -> None:
        """Do what persons did with the sliders, and command what is to be commanded."""
        while not self.page.events.empty():
            event = self.page.events.get()
            if isinstance(event, Switched):
                self.hand.switch(event.on)
                self._hand_page = event.client if self.hand.on else None
            elif isinstance(event, Slid):
                self.hand.want(event.chamber, event.pressure)
        pressures = self.hand.update(self._surroundings(), passed)
        if not self.hand.on:
            self._hand_page = None
        if pressures is not None and self._with_hand:
            self._command = self._command or self._offer(_COMMAND)
            stamp, self._commanded = self.get_clock().now().nanoseconds, time.monotonic()
            self._own_stamps.append(stamp)
            self._command.publish(pressures_to_message(pressures, self._actuators, stamp))
        elif self._command is not None and time.monotonic() - self._commanded > LAST_WORD_TIME:
            self.destroy_publisher(self._command)
            self._command = None

    def _surroundings(self) -> Surroundings:
        safety = self.picture.safety
        # what cannot be read locks the sliders, too
        enabled = None if safety is None else safety.values.get("enabled") is not False
        return Surroundings(
            others=self._others_offering(_COMMAND, _PLAN),
            foreign_age=time.monotonic() - self._foreign,
            valves=self.count_publishers("safety/state") > 0,
            enabled=enabled,
            simulated_clock=self.count_publishers("clock") > 0,
            page_open=self._hand_page is None or self._hand_page in self.page.clients(),
        )

    def _others_offering(self, *topics: str) -> tuple[str, ...]:
        """Names of the nodes that offer one of some topics; views are left out."""
        names = {
            each.node_name
            for topic in topics
            for each in self.get_publishers_info_by_topic(self.resolve_topic_name(topic))
        }
        return tuple(sorted(name for name in names if not name.startswith(_NAME)))

    def _tell_answer(self, now: float) -> None:
        if self._asking is None:
            return
        asked, answer = self._asking
        line = f"no answer within {ANSWER_TIME:g} s: press again, or shut the air"
        if answer.done():
            result = answer.result()
            line = result.message if result else "the valves' answer was lost: press again"
        if answer.done() or now - asked > ANSWER_TIME:
            self.page.say(line)
            self._asking = None

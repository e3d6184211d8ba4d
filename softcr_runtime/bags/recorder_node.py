"""The recorder as a node: every topic of its robot into one bag, byte by byte as it was sent.

Of the topics that all robots of a ROS domain share, the bag holds what the nodes of the recorder's
own namespace say.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from lifecycle_msgs.msg import TransitionEvent
from pydantic import Field
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.qos import QoSProfile
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)

from softcr_models.errors import UserError
from softcr_runtime.bags.message_bytes import header_stamp
from softcr_runtime.bags.own_messages import is_robots, is_shared
from softcr_runtime.bags.recording import BagRecording, RecordedTopic
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.ros.clocks import SystemClockSteps
from softcr_runtime.ros.mailbox import NotExecuted
from softcr_runtime.ros.node import LoopNode
from softcr_runtime.ros.process import leave, run
from softcr_runtime.settings.node_settings import NodeSettings
from softcr_runtime.wire.robot_topics import topics_of_robot
from softcr_runtime.wire.topics import TOPICS, qos

TAKING_PERIOD = 0.05
"""Between two looks at what has arrived [s]; far fewer wake-ups than one for every message."""

QUEUE_DEPTH = 1000
"""Messages of a topic that may arrive between two looks."""

LINGERING_TIME = 0.2
"""For the last words of nodes that were deactivated just before [s]."""

BACKLOG = 5000
"""More messages than this waiting for the disk are worth a warning."""

TRANSITIONS = "transition_event"
"""Last part of the topic on which a lifecycle node tells its transitions."""

_TRANSITION_TYPE = "lifecycle_msgs/msg/TransitionEvent"
_TRANSITIONS_DEPTH = 100  # of a node, that may arrive between two looks
_SEARCH_PERIOD = 0.5  # for lifecycle nodes that have come [s]

FAILED = 2
"""Exit code of a recorder that could not go on."""


class RecorderSettings(NodeSettings):
    """Where to record to."""

    bag: str = Field("", description="directory of the bag, which must not exist yet")
    compression: Literal["zstd", "none"] = Field("zstd", description="size of the bag's chunks")


class RecorderNode(LoopNode):
    """Records every topic that its robot may have, and transitions of lifecycle nodes, in a bag.

    The bag is made by configure, filled while the node is active and finished by cleanup. When the
    disk refuses, the bag is finished with what it holds and the process ends with exit code 2: a
    run without its record is worth little.
    """

    default_name = "recorder"
    Settings = RecorderSettings
    kinds = None
    settings: RecorderSettings
    failure: ClassVar[str | None] = None
    _recording: BagRecording | None = None

    def __init__(self, **node_options: Any) -> None:
        """See LoopNode; hears the transitions of other nodes from now on, to record the first."""
        super().__init__(**node_options)
        self._simulated = 0  # last time on /clock [ns]
        self._of_transitions: dict[str, Any] = {}  # subscriptions by their topics
        self._transitions: deque[tuple[str, Any]] = deque()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(_SEARCH_PERIOD, self._search, clock=steady)

    def on_configure_node(self) -> None:
        if not self.settings.bag:
            raise UserError("parameter bag = '': the directory of a new bag is needed")
        rows = topics_of_robot(self.any_robot)
        there = [topic for topic, row in rows.items() if row.is_available()]
        topics = {topic: self._recorded_topic(topic) for topic in there}
        self._last: dict[str, int] = {}  # by name: when a message of it came [ns]
        self._simulated = 0
        # by how much the system clock was set before its last step, and with it [ns]
        self._steps, self._set = SystemClockSteps(), (0, 0)
        self._names = {topic: recorded.name for topic, recorded in topics.items()}
        compressed = self.settings.compression != "none"
        directory = Path(self.settings.bag)
        self._recording = BagRecording(directory, list(topics.values()), compressed)
        for topic, recorded in topics.items():
            self.receive(topic, self._keeps(recorded), raw=True, depth=QUEUE_DEPTH)

        self._transitions = deque(self._of_transitions.items())  # that are not taken in yet
        self._search()

    def configured_with(self) -> str:
        return f"recording {len(self._names)} topics to {self.settings.bag}"

    def loop(self, stop: threading.Event) -> None:
        recording = cast(BagRecording, self._recording)  # made by configure
        while not stop.wait(TAKING_PERIOD) and recording.statistics.failure is None:
            self._take_in_transitions(recording)
            self._write(recording, self._arrived())
        self._take_in_transitions(recording)
        self._write(recording, self.inbox.leftover())
        if recording.statistics.failure:
            self._fail(recording.statistics.failure)
            self.on_finalized()

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: record the last words of the nodes that were deactivated before."""
        time.sleep(LINGERING_TIME)
        return super().on_deactivate(state)

    def on_cleanup_node(self) -> None:
        self._of_transitions.clear()  # they are destroyed with all inputs
        if self._recording is not None:
            failure = self._recording.close().failure
            if failure:
                self._fail(failure)
            self._recording = None

    def diagnostic_values(self) -> dict[str, Any]:
        if self._recording is None:
            return {}
        return {"bag": self.settings.bag, **asdict(self._recording.statistics)}

    def diagnostic_warnings(self) -> list[str]:
        waiting = self._recording.statistics.waiting if self._recording else 0
        return [f"{waiting} messages wait for the disk"] * (waiting > BACKLOG)

    def present(self) -> int:
        """See LoopNode; in lock-step the last time on /clock."""
        return self._simulated if self.settings.lockstep else super().present()

    def _search(self) -> None:
        """Subscribe to the transitions of nodes of this namespace that have come since."""
        for name, types in self.get_topic_names_and_types():
            if types != [_TRANSITION_TYPE] or name in self._of_transitions:
                continue
            node = name.removesuffix(f"/{TRANSITIONS}")
            if (node.rpartition("/")[0] or "/") != self.get_namespace():
                continue
            subscription = self.create_subscription(
                TransitionEvent, name, lambda _: None, _TRANSITIONS_DEPTH,
                callback_group=NotExecuted(), raw=True,
                event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
            )  # fmt: skip
            self._inputs.subscriptions.append(subscription)
            self._of_transitions[name] = subscription
            self._transitions.append((name, subscription))

    def _take_in_transitions(self, recording: BagRecording) -> None:
        """In the loop's thread, to which the inbox belongs."""
        while self._transitions:
            name, subscription = self._transitions.popleft()
            self._names[name] = name
            offered = QoSProfile(depth=_TRANSITIONS_DEPTH)
            recording.add(RecordedTopic(name, _TRANSITION_TYPE, _qos_of_bag(offered)))
            self.inbox.add(name, subscription, partial(_read, name), kept=True)

    def _write(self, recording: BagRecording, letters: list[Sample]) -> None:
        """In a bag the messages of a topic have the order of their times: clocks may not err."""
        if step := self._steps.look():
            self._set = self._set[1], self._set[1] + round(1e9 * step)
            self.get_logger().warning(
                f"the system clock was set by {step:+.3f} s: times in the bag go on without it"
            )
        now = time.time_ns() - self._set[1]
        for letter in letters:
            name = self._names[letter.topic]
            # received before the clock was set, or after it: one of both is the present
            moment = min((letter.stamp - each for each in self._set), key=lambda at: abs(now - at))
            moment = max(moment, self._last.get(name, 0) + 1)
            self._last[name] = moment
            recording.write(name, moment, letter.value)
            if letter.topic == "/clock":
                with suppress(ValueError):  # of bytes that are no clock
                    self._simulated = header_stamp(letter.value)

    def _arrived(self) -> list[Sample]:
        """What has arrived since the last look, in the order of reception."""
        letters = iter(partial(self.inbox.get, timeout=0.0), None)
        return sorted(letters, key=lambda letter: letter.stamp)

    def _keeps(self, topic: RecordedTopic) -> Callable[[Any], bytes | None]:
        """What makes a message's bytes of what has arrived; None of what is another robot's."""
        if not is_shared(topic.name, topic.type):
            return bytes
        namespace, prefix = self.get_namespace().strip("/"), self.settings.frame_prefix

        def own(message: Any) -> bytes | None:
            payload = bytes(message)
            return payload if is_robots(namespace, prefix, payload, topic.type) else None

        return own

    def _fail(self, failure: str) -> None:
        """Tell a failure, once."""
        if self.failure is None:
            type(self).failure = failure
            self.get_logger().error(failure)
            self.publish_diagnostics()

    def diagnostic_failure(self) -> str:
        return self.failure or ""

    def _recorded_topic(self, topic: str) -> RecordedTopic:
        offered = qos(topic, self.settings.lockstep, offered_period=self.settings.period)
        name = self.resolve_topic_name(topic)
        return RecordedTopic(name, TOPICS[topic].type, _qos_of_bag(offered))


def _read(topic: str, payload: Any, received: float) -> Sample:
    return Sample(topic, int(received), bytes(payload), received)


def _qos_of_bag(profile: QoSProfile) -> Qos:
    """A quality of service in the words of rosbags, which are those of ROS."""

    def duration(value: Duration) -> QosTime:
        return QosTime(*divmod(value.nanoseconds, 10**9))

    return Qos(
        history=QosHistory(profile.history.value),
        depth=profile.depth,
        reliability=QosReliability(profile.reliability.value),
        durability=QosDurability(profile.durability.value),
        deadline=duration(profile.deadline),
        lifespan=duration(profile.lifespan),
        liveliness=QosLiveliness(profile.liveliness.value),
        liveliness_lease_duration=duration(profile.liveliness_lease_duration),
        avoid_ros_namespace_conventions=profile.avoid_ros_namespace_conventions,
    )


def main() -> int:
    """Entry point of `softcr run recorder`."""
    return run(RecorderNode) or (FAILED if RecorderNode.failure else 0)


if __name__ == "__main__":
    leave(main())

"""The recorded sensors onto the wire again, with /clock, for live nodes on simulated time."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.progress import Progress

from softcr_models.errors import UserError
from softcr_runtime.bags.message_bytes import cdr_of, header_stamp
from softcr_runtime.bags.reading import Bag, BagMessage
from softcr_runtime.bags.robots import namespaces_of
from softcr_runtime.blocks.cycle_timer import MonotonicClock
from softcr_runtime.console.terminal import say
from softcr_runtime.replay.recorded_messages import require_topics
from softcr_runtime.wire.diagnostics import (
    DiagnosticReport,
    diagnostics_from_message,
    diagnostics_to_message,
)
from softcr_runtime.wire.messages import clock_to_message
from softcr_runtime.wire.namespaces import absolute
from softcr_runtime.wire.topics import TOPICS, qos
from softcr_tools.ros.participant import ANNOUNCED

INPUTS = (
    "pressure/state",
    "mocap/tip/pose",
    "mocap/body/poses",
    "tendon/lengths",
    "force_torque/wrench",
    "reference/rod",
    "simulation/truth/rod",
    "simulation/truth/tip/pose",
    "simulation/truth/loads",
    "simulation/truth/contact/points",
    "simulation/truth/contact/wrench",
)
"""What is published again: what came from sensors, references and simulator. What the live nodes
answer (estimates, commands, diagnostics) is theirs."""

DIAGNOSTICS, SIMULATOR = "/diagnostics", "simulator"
"""Of what the nodes said of themselves, what the simulator did is published again: it names loads
and obstacles, and does not run beside the bag."""

CLOCK_PERIOD = 0.01
"""Longest time between two messages on /clock [s of the recording]."""

_UNNAMED = "_NODE_NAME_UNKNOWN_"  # rclpy's word for a node that has not told its name yet
_SEARCH_PERIOD = 0.05  # between two looks for a subscriber [s]
_LOOK_PERIOD = 1.0  # between two looks at who else publishes [s]
_LAST_WORDS_TIME = 0.2  # for readers to take the last messages [s]


@dataclass(frozen=True)
class Moment:
    """Something to publish when the clock of the recording shows `time` [ns].

    `payload` is the CDR bytes of a message of `topic`, a name in the table; a moment without topic
    is only shown on the clock.
    """

    time: int
    topic: str | None = None
    payload: bytes = b""


def schedule(bag: Bag, namespace: str = "") -> Iterator[Moment]:
    """The moments of a bag in recorded order, at least one every `CLOCK_PERIOD`.

    The clock follows the stamps of inputs, the time that nodes compute with: in a lock-step run the
    recorder's own clock went at another speed. It never goes back; a message whose stamp is older
    than that of the one before follows at once. What the simulator said of itself follows the input
    before it, as said in `namespace`.
    """
    topics = {name: topic for topic in INPUTS if (name := bag.find(topic))}
    if name := bag.find(DIAGNOSTICS):
        topics[name] = DIAGNOSTICS
    step = round(1e9 * CLOCK_PERIOD)
    now: int | None = None
    early: list[bytes] = []  # said before the first input
    for message in bag.messages(*topics):
        try:
            stamp = header_stamp(message.payload)
        except ValueError:  # what has no stamp has no place on this clock
            continue
        if topics[message.topic] == DIAGNOSTICS:
            early += _of_simulator(message, stamp, namespace)
        else:
            now = stamp if now is None else now
            for tick in range(now + step, stamp, step):
                yield Moment(tick)
            now = max(now, stamp)
            yield Moment(now, topics[message.topic], message.payload)
        if now is not None:
            yield from (Moment(now, DIAGNOSTICS, payload) for payload in early)
            early.clear()


def _of_simulator(message: BagMessage, stamp: int, namespace: str) -> list[bytes]:
    """What the simulator said in a message of /diagnostics; nothing where it said nothing."""
    try:
        reports = diagnostics_from_message(message.decode())
    except ValueError:  # not diagnostics
        return []
    own = [_said_in(namespace, each) for each in reports if each.node[1] == SIMULATOR]
    return [cdr_of(diagnostics_to_message(own, stamp))] if own else []


def _said_in(namespace: str, report: DiagnosticReport) -> DiagnosticReport:
    node, colon, part = report.name.partition(":")
    node, robot = (
        absolute(namespace, each.rpartition("/")[2]).removeprefix("/")
        for each in (node, report.hardware_id)
    )
    return replace(report, name=node + colon + part, hardware_id=robot)


def publish(
    bag: Bag, rate: float, wait: float, console: Console, namespace: str | None = None
) -> None:
    """Publish the recorded inputs of a bag, and /clock, as fast as they were recorded times a rate.

    Somebody who subscribes the first of them is waited for `wait` [s] at most. Topics and clock are
    in the namespace that is named, or else in that of the record. Nothing is published beside a
    node that publishes one of them, which would mix a record with what happens now.

    Raises:
        UserError: a rate or time is not allowed, the bag has none of the inputs, or another node
            publishes one of the topics, now or later.
    """
    if not (math.isfinite(rate) and 0.01 <= rate <= 100.0):
        raise UserError(f"--rate {rate}: must be from 0.01 to 100")
    if not math.isfinite(wait) or wait < 0.0:
        raise UserError(f"--wait {wait}: must be at least 0 s")
    require_topics(bag, [topic for topic in INPUTS if bag.find(topic)] or INPUTS)
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    # Ctrl-C is Python's: rclpy would shut the context down in the middle of a message
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        space = namespace if namespace is not None else namespaces_of(bag)[0]
        node = rclpy.create_node("replay", namespace=absolute(space))
        held = [topic for topic in INPUTS if bag.find(topic)]
        # as in lock-step: reliable, so that readers of either kind get everything
        # diagnostics of all robots have one topic; the time is that of the namespace
        names = {topic: topic for topic in (*held, DIAGNOSTICS)} | {"/clock": "clock"}
        others = _Others(node, [name for topic, name in names.items() if topic != DIAGNOSTICS])
        others.listen()
        publishers = {
            topic: node.create_publisher(
                TOPICS[topic].message_class(), name, qos(topic, lockstep=True)
            )
            for topic, name in names.items()
        }
        if not _finds_a_reader(publishers[held[0]], wait):
            say(console, f"no subscriber within {wait:g} s: publishing all the same")
        _play(bag, space, publishers, rate, console, others)
        time.sleep(_LAST_WORDS_TIME)
        node.destroy_node()
    finally:
        rclpy.try_shutdown()


class _Others:
    """Whoever else publishes some topics."""

    def __init__(self, node: Any, topics: Sequence[str]):
        """Nobody was looked for yet; `topics` as `node` names them."""
        self._node, self._ours = node, node.get_fully_qualified_name()
        self._publishes = False  # we, on each topic
        self._topics = [node.resolve_topic_name(topic) for topic in topics]
        self._looked = -math.inf

    def listen(self) -> None:
        """Look until every node that is there has told of itself.

        Raises:
            UserError: see `look`.
        """
        end = time.monotonic() + ANNOUNCED
        while time.monotonic() < end:
            self._looked = -math.inf
            self.look(time.monotonic())
            time.sleep(_SEARCH_PERIOD)
        self._publishes = True

    def look(self, now: float) -> None:
        """Look once a second; `now` on the monotonic clock [s].

        Raises:
            UserError: another node publishes one of the topics.
        """
        if now - self._looked < _LOOK_PERIOD:
            return
        self._looked = now
        for topic in self._topics:
            names = [
                f"{each.node_namespace.rstrip('/')}/{each.node_name}"
                for each in self._node.get_publishers_info_by_topic(topic)
                if each.node_name != _UNNAMED  # it will be told soon
            ]
            if self._publishes and self._ours in names:  # another replay has the same name
                names.remove(self._ours)
            if names:
                raise UserError(
                    f"{topic} is published by {names[0]}: end it, or replay in another --namespace "
                    "or ROS_DOMAIN_ID"
                )


def _finds_a_reader(publisher: Any, wait: float) -> bool:
    """Whether somebody subscribes within `wait` [s]."""
    end = time.monotonic() + wait
    while not publisher.get_subscription_count():
        if time.monotonic() >= end:
            return False
        time.sleep(_SEARCH_PERIOD)
    return True


def _play(
    bag: Bag,
    space: str,
    publishers: Mapping[str, Any],
    rate: float,
    console: Console,
    others: _Others,
) -> None:
    """Publish everything, each moment when the clock, times `rate`, shows it."""
    first = last = 0
    for moment in schedule(bag, space):
        first, last = first or moment.time, moment.time
    clock = MonotonicClock()
    began = clock.now()
    with Progress(console=console) as progress:
        task = progress.add_task("publishing", total=1e-9 * (last - first))
        for moment in schedule(bag, space):
            passed = 1e-9 * (moment.time - first)
            clock.sleep_until(began + passed / rate)
            others.look(time.monotonic())
            publishers["/clock"].publish(clock_to_message(moment.time))
            if moment.topic is not None:
                publishers[moment.topic].publish(moment.payload)
            progress.update(task, completed=passed)

"""Received messages, for the loop's thread: it waits for them and takes them itself.
What comes from a block of the same process waits here, too, as it is.

An rclpy executor could take them in a thread of its own. But it builds the set of all it waits
for (a lifecycle node has more than ten services) twice per message, and then hands over to a thread
that must first get Python's lock. At 70 Hz on two busy cores a message took 1.0 ms from DDS to the
loop and cost 1.7 ms of CPU time, the answer included; a wait set of the subscriptions alone, in the
loop's thread, takes 0.5 ms and costs 1.0 ms.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.context import Context
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.subscription import Subscription

from softcr_runtime.blocks.sample import Sample
from softcr_runtime.ros.clocks import on_monotonic_clock

_MOST_AT_ONCE = 1000  # messages taken of one topic before the others have their turn
_LONGEST_NAP = (
    0.02  # between looks at topics that do not wake: 4 of 200 Hz, of which DDS keeps 5 [s]
)


class Mailbox:
    """The subscriptions of a loop. All methods but `close` belong to one thread at a time.

    What has arrived and was not taken yet waits in DDS, which keeps as many of the newest messages
    of a topic as the topic's quality of service says.
    """

    def __init__(self, context: Context, refuse: Callable[[str, str], None]):
        """A mailbox without subscriptions.

        Args:
            context: of the node.
            refuse: called with topic and reason for bytes that are no message.
        """
        self._context = context
        self._refuse = refuse
        self._sources: list[_Source] = []
        self._directs: list[_Direct] = []
        self._delivery = threading.Lock()  # a loop of the same process delivers in its own thread
        self._delivered = threading.Event()
        self._letters: deque[Sample] = deque()
        self._closed = True
        self._waker = GuardCondition(callback=None, callback_group=None, context=context)

    def add(
        self,
        topic: str,
        subscription: Subscription,
        read: Callable[[Any, float], Sample | None],
        wakes: bool = True,
        kept: bool = False,
    ) -> None:
        """Take the messages of a subscription.

        Args:
            topic: its name.
            subscription: in a group `NotExecuted`, without events: an executor that waits for them
                is woken by every message.
            read: makes a letter of a message and the time it was received (monotonic clock [s]; of
                raw bytes system clock [ns], as DDS tells it), or None when there is nothing to
                deliver; must not raise.
            wakes: whether its messages end a wait; others are taken along when something else does,
                 every 20 ms at least. To be woken costs more than to take a message.
            kept: whether what arrived before `open` is delivered, too.
        """
        self._sources.append(_Source(topic, subscription, read, wakes, kept))

    def add_direct(
        self,
        topic: str,
        read: Callable[[Any, float], Sample | None],
        depth: int,
        wakes: bool = True,
    ) -> Callable[[Any], None]:
        """Take what is delivered by hand; returns the function that does it, from any thread.

        Args:
            topic: its name.
            read: makes a letter of what was delivered; otherwise as in `add`.
            depth: how many of the newest wait.
            wakes: as in `add`.
        """
        direct = _Direct(topic, read, wakes, deque(maxlen=depth))
        self._directs.append(direct)

        def deliver(thing: Any) -> None:
            with self._delivery:
                if self._closed:
                    return
                direct.waiting.append((thing, time.monotonic()))
                if wakes:
                    self._wake()

        return deliver

    def remove(self, topic: str) -> None:
        """Take nothing more of a topic; while the mailbox is closed."""
        self._sources = [each for each in self._sources if each.topic != topic]
        self._directs = [each for each in self._directs if each.topic != topic]

    @property
    def closed(self) -> bool:
        """Whether nothing more comes out of it."""
        return self._closed

    def open(self) -> None:
        """Drop what has arrived and is not kept; let `get` deliver what comes from now on."""
        for source in self._sources:
            if not source.kept:
                _take_arrived(source.subscription)
        for direct in self._directs:
            direct.waiting.clear()
        self._letters.clear()
        self._delivered.clear()
        self._closed = False

    def get(self, timeout: float | None = None) -> Sample | None:
        """The next letter, waiting for it up to `timeout` [s] (None: for ever, 0: not at all).

        Returns:
            None when nothing came in time, or at once when the mailbox is closed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._closed:
            if self._letters:
                return self._letters.popleft()
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            self._read_arrived(left)
            if not self._letters and left == 0.0:
                return None
        return None

    def arrived(self) -> list[Sample]:
        """All letters that there are by now, without waiting; none when the mailbox is closed."""
        if self._closed:
            return []
        self._read_arrived(0.0)
        return self.read_along()

    def read_along(self) -> list[Sample]:
        """What came along with the last letter of `get`, without another look."""
        letters = list(self._letters)
        self._letters.clear()
        return [] if self._closed else letters

    def leftover(self) -> list[Sample]:
        """What has arrived and nobody got, once it is closed, too: for who must lose nothing."""
        self._read_arrived(0.0)
        letters = list(self._letters)
        self._letters.clear()
        return letters

    def forget_read(self) -> None:
        """Drop what was read and nobody has got: it is of before a jump of time."""
        self._letters.clear()

    def close(self) -> None:
        """Let every present and coming `get` return None; from any thread."""
        with self._delivery:
            self._closed = True
            self._wake()

    def destroy(self) -> None:
        """Forget the subscriptions, which the node may then destroy."""
        with self._delivery:
            self._closed = True
            self._sources.clear()
            self._directs.clear()
            self._waker.destroy()

    def _wake(self) -> None:
        self._delivered.set()
        if any(source.wakes for source in self._sources):
            self._waker.trigger()

    def _read_arrived(self, timeout: float | None) -> None:
        """Wait for messages, or for `close`, and read all that there are."""
        waking = [source for source in self._sources if source.wakes]
        if len(waking) < len(self._sources):
            timeout = _LONGEST_NAP if timeout is None else min(timeout, _LONGEST_NAP)
        look = timeout == 0.0  # at everything, which costs less than to ask first
        ready: set[int] = set()
        if waking and not look:
            ready = self._ready(waking, timeout)
        elif not look:  # a wait set costs ten times more
            self._delivered.wait(timeout)
        self._delivered.clear()
        for direct in self._directs:
            while direct.waiting:
                self._put(direct.read(*direct.waiting.popleft()))
        for source in self._sources:
            announced = source.subscription.handle.pointer in ready
            if announced or look or not source.wakes:
                self._read(source, announced)

    def _ready(self, waking: "list[_Source]", timeout: float | None) -> set[int]:
        """Handles of the subscriptions that something has come for."""
        wait_set = _rclpy.WaitSet(len(waking), 1, 0, 0, 0, 0, self._context.handle)
        wait_set.clear_entities()
        wait_set.add_guard_condition(self._waker.handle)
        for source in waking:
            wait_set.add_subscription(source.subscription.handle)
        wait_set.wait(-1 if timeout is None else int(timeout * 1e9))
        return set(wait_set.get_ready_entities("subscription"))

    def _read(self, source: "_Source", announced: bool) -> None:
        arrived = _take_arrived(source.subscription)
        if announced and not arrived:  # DDS could make nothing of the bytes
            self._refuse(source.topic, "not readable as a message of its type")
        for message, received in arrived:
            self._put(source.read(message, received))

    def _put(self, letter: Sample | None) -> None:
        if letter is not None:
            self._letters.append(letter)


@dataclass(frozen=True)
class _Source:
    topic: str
    subscription: Subscription
    read: Callable[[Any, float], Sample | None]
    wakes: bool
    kept: bool


@dataclass(frozen=True)
class _Direct:
    topic: str
    read: Callable[[Any, float], Sample | None]
    wakes: bool
    waiting: deque[tuple[Any, float]]


class NotExecuted(CallbackGroup):
    """The callback group of subscriptions whose callbacks no executor runs."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        return None


def _take_arrived(subscription: Subscription) -> list[tuple[Any, float]]:
    """Messages, and when they were received, up to the first that cannot be read."""
    arrived: list[tuple[Any, float]] = []
    while len(arrived) < _MOST_AT_ONCE:
        try:
            with subscription.handle:
                taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
        except Exception:  # its kinds are not public
            taken = None
        if taken is None:
            break
        message, information = taken
        received = information["received_timestamp"]
        arrived.append((message, received if subscription.raw else on_monotonic_clock(received)))
    return arrived

"""What a node receives: over DDS, or from its neighbours of the same process; stamps are checked.

Messages are decoded when the loop asks the inbox, in the loop's thread.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.subscription import Subscription

from softcr_runtime.blocks.sample import MAXIMUM_CLOCK_DIFFERENCE, Sample, check_stamp
from softcr_runtime.ros.intra_process import Encode, IntraProcess
from softcr_runtime.ros.mailbox import Mailbox, NotExecuted
from softcr_runtime.wire.messages import MessageError, from_stamp
from softcr_runtime.wire.topics import TOPICS, qos

if TYPE_CHECKING:
    from softcr_runtime.ros.node import LoopNode

Read = Callable[[Any, float], Sample | None]
"""Makes a sample of what has arrived and when, or None where it must not be used."""


@dataclass(eq=False)
class _SharedInput:
    """An input that comes over DDS, through `subscription`, or from this process (`inside`)."""

    topic: str
    name: str  # full
    decode: Callable[[Any], Any]
    depth: int | None
    wakes: bool
    inside: bool = False
    subscription: Subscription | None = None


class NodeInputs:
    """The inputs of one node.

    Attributes:
        inbox: where the loop gets samples from.
        subscriptions: that are the node's; they are destroyed with the rest.
        stamps: newest stamp [ns] by topic.
    """

    def __init__(self, node: "LoopNode", intra_process: IntraProcess) -> None:
        """Start with no inputs.

        Args:
            node: whose inputs they are.
            intra_process: the nodes of this process, one of which it becomes.
        """
        self._node, self._intra_process = node, intra_process
        self.inbox = Mailbox(node.context, node.reject)
        self.subscriptions: list[Subscription] = []
        self.stamps: dict[str, int] = {}
        self._shared: list[_SharedInput] = []
        intra_process.join(self.arrange)

    @property
    def inside(self) -> list[str]:
        """Full names of the topics that come from this process."""
        return [each.name for each in self._shared if each.inside]

    def receive(
        self, topic: str, decode: Callable[[Any], Any], raw: bool, depth: int | None, wakes: bool
    ) -> Subscription:
        return self._subscribe(topic, self._reader(topic, decode, raw), raw, depth, wakes)

    def receive_value(
        self, topic: str, decode: Callable[[Any], Any], depth: int | None, wakes: bool
    ) -> None:
        name = self._node.resolve_topic_name(TOPICS[topic].name)
        self._shared.append(_SharedInput(topic, name, decode, depth, wakes))
        self.arrange()

    def offer(self, topic: str, encode: Encode) -> Callable[[Any, int], None]:
        name = self._node.resolve_topic_name(TOPICS[topic].name)
        return self._intra_process.offer(self._node, name, encode)

    def arrange(self) -> None:
        """What a neighbour offers comes from there, all else over DDS; while not active."""
        if self._node.active:
            return
        for each in self._shared:
            inside = self._intra_process.offers(each.name, but=self._node)
            if inside and not each.inside:
                self._take_from_inside(each)
            elif not inside and each.subscription is None:
                self._take_from_outside(each)

    def release(self) -> None:
        """Receive and offer nothing any longer."""
        self._shared.clear()
        self._intra_process.withdraw(self._node)
        self.inbox.destroy()
        self.inbox = Mailbox(self._node.context, self._node.reject)
        for subscription in self.subscriptions:
            self._node.destroy_subscription(subscription)
        self.subscriptions.clear()

    # --- where they come from -----------------------------------------------------------------

    def _subscribe(
        self, topic: str, read: Read, raw: bool, depth: int | None, wakes: bool
    ) -> Subscription:
        node, row = self._node, TOPICS[topic]
        profile = qos(topic, node.settings.lockstep)
        profile.depth = depth or profile.depth
        with node.quality_of(node.resolve_topic_name(row.name), "subscription") as options:
            subscription = node.create_subscription(
                row.message_class(),
                row.name,
                lambda _: None,
                profile,
                callback_group=NotExecuted(),
                event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
                qos_overriding_options=options,
                raw=raw,
            )
        self.subscriptions.append(subscription)
        kept = row.profile in ("latched", "log")
        self.inbox.add(topic, subscription, read, wakes, kept)
        return subscription

    def _take_from_inside(self, each: _SharedInput) -> None:
        if each.subscription is not None:
            self.inbox.remove(each.topic)
            self.subscriptions.remove(each.subscription)
            self._node.destroy_subscription(each.subscription)
            each.subscription = None
        each.inside = True
        read = self._value_reader(each.topic, each.decode)
        depth = each.depth or qos(each.topic, self._node.settings.lockstep).depth
        put = self.inbox.add_direct(each.topic, read, depth, each.wakes)
        self._intra_process.listen(self._node, each.name, lambda *handed: put(handed))

    def _take_from_outside(self, each: _SharedInput) -> None:
        if each.inside:
            self.inbox.remove(each.topic)
            self._intra_process.leave(self._node, each.name)
            each.inside = False
        read = self._reader(each.topic, each.decode, raw=False)
        each.subscription = self._subscribe(each.topic, read, False, each.depth, each.wakes)

    # --- how they are read --------------------------------------------------------------------

    def _reader(self, topic: str, decode: Callable[[Any], Any], raw: bool) -> Read:
        def read(message: Any, received: float) -> Sample | None:
            try:
                stamp = (
                    int(received) if raw
                    else self._checked_stamp(topic, from_stamp(message, topic))
                )  # fmt: skip
                value = decode(message)
            except MessageError as error:
                self._node.reject(error.topic, error.what)
                return None
            except Exception:
                self._node.count_exception(topic)
                return None
            self.stamps[topic] = stamp
            return None if value is None else Sample(topic, stamp, value, received)

        return read

    def _value_reader(self, topic: str, decode: Callable[[Any], Any]) -> Read:
        """Reads what a neighbour hands over."""

        def read(handed: tuple[Any, int, Encode], received: float) -> Sample | None:
            value, stamp, encode = handed
            try:
                self._checked_stamp(topic, stamp)
                if topic not in self.stamps:
                    decode(encode(value, stamp))
            except MessageError as error:
                self._node.reject(error.topic, error.what)
                return None
            except Exception:
                self._node.count_exception(topic)
                return None
            self.stamps[topic] = stamp
            return Sample(topic, stamp, value, received)

        return read

    def _checked_stamp(self, topic: str, stamp: int) -> int:
        node = self._node
        node.notice_time()
        now = None if node.settings.lockstep else node.now()
        back = 1e-9 * (self.stamps.get(topic, 0) - stamp)
        if now is None and back > MAXIMUM_CLOCK_DIFFERENCE and not node.keeps_own_time:
            node.begin_other_time(-back)
        if now == 0 and node.time_is_unknown:
            nothing = f"nothing on {node.clock_topic}"
            raise MessageError(topic, f"time is not known: use_sim_time is set, {nothing}")
        check_stamp(topic, stamp, self.stamps.get(topic, 0), now)
        return stamp

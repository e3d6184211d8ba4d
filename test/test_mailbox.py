"""The inbox of a loop: what wakes it, and what it brings along."""

import time
from contextlib import contextmanager

from kit.processes import TIMEOUT, Peer
from rclpy.event_handler import SubscriptionEventCallbacks

from softcr_runtime.blocks.sample import Sample
from softcr_runtime.ros.mailbox import Mailbox, NotExecuted
from softcr_runtime.wire.messages import from_stamp, pressures_to_message
from softcr_runtime.wire.topics import TOPICS, qos

LOUD, QUIET = "pressure/command", "pressure/state"


@contextmanager
def _inbox():
    """An inbox that LOUD wakes and QUIET does not, and a function that sends to either."""
    peer, refused = Peer("tester"), []
    inbox = Mailbox(peer.context, lambda *reason: refused.append(reason))
    for topic in (QUIET, LOUD):
        peer.publisher(topic)
        kind = TOPICS[topic].message_class()
        subscription = peer.node.create_subscription(
            kind, topic, lambda _: None, qos(topic), callback_group=NotExecuted(),
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
        )  # fmt: skip

        def read(message, received, topic=topic):
            return Sample(topic, from_stamp(message, topic), None, received)

        inbox.add(topic, subscription, read, wakes=topic == LOUD)
    inbox.open()

    def send(topic, stamp):
        peer.publisher(topic).publish(pressures_to_message([0.0], ["chamber"], stamp))

    deadline = time.monotonic() + TIMEOUT
    for topic in (QUIET, LOUD):  # until both ends have found each other
        while inbox.get(0.1) is None or inbox.get(0.0) is not None:
            assert time.monotonic() < deadline
            send(topic, 1)
    try:
        yield inbox, send
        assert not refused
    finally:
        inbox.destroy()
        peer.close()


def test_what_does_not_wake_is_brought_along_and_not_for_ever_left():
    with _inbox() as (mail, send):
        while mail.get(0.1) is not None:
            pass
        for stamp in (2, 3, 4):
            send(QUIET, stamp)
        send(LOUD, 5)
        came = [mail.get(TIMEOUT) for _ in range(4)]
        assert {letter.stamp for letter in came} == {2, 3, 4, 5}
        quiet = [letter.stamp for letter in came if letter.topic == QUIET]
        assert quiet == [2, 3, 4]
        send(QUIET, 6)
        assert mail.get(TIMEOUT).stamp == 6  # nothing louder comes
        assert mail.get(0.05) is None
        mail.close()  # a closed one returns at once
        assert mail.get() is None

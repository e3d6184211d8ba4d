"""Blocks of one process: what one of them publishes reaches the others as it is, beside DDS.

A value survives its message to the bit (see `values`), so a block cannot tell whether it came as a
message or not; but encoding, sending, taking and decoding it cost more than many a block's tick.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Encode = Callable[[Any, int], Any]
"""(value, stamp [ns]) -> message."""

Deliver = Callable[[Any, int, Encode], None]
"""Takes value, stamp [ns] and what makes a message of them; in the speaker's thread."""


@dataclass(frozen=True, eq=False)
class _Listener:
    node: object
    topic: str
    deliver: Deliver


class IntraProcess:
    """The nodes of one process, and which topics they have between them.

    Offers and listeners change in the executor's thread only, which all of the nodes share; values
    are handed over in the loops' threads.
    """

    def __init__(self) -> None:
        self._offers: list[tuple[object, str]] = []
        self._listeners: dict[str, tuple[_Listener, ...]] = {}
        self._moved: list[Callable[[], None]] = []

    def join(self, moved: Callable[[], None]) -> None:
        """Be told whenever somebody begins or ends to offer a topic."""
        self._moved.append(moved)

    def offer(self, node: object, topic: str, encode: Encode) -> Callable[[Any, int], None]:
        """Offer a topic; returns what hands a value of a stamp [ns] to those who listen.

        Args:
            node: whose topic it is.
            topic: its full name.
            encode: makes a message of a value.
        """
        self._offers.append((node, topic))
        self._tell()

        def hand_over(value: Any, stamp: int) -> None:
            for listener in self._listeners.get(topic, ()):
                if listener.node is not node:
                    listener.deliver(value, stamp, encode)

        return hand_over

    def withdraw(self, node: object) -> None:
        """End all offers of a node, and all its listening."""
        for topic, listeners in list(self._listeners.items()):
            self._listeners[topic] = tuple(one for one in listeners if one.node is not node)
        kept = [offer for offer in self._offers if offer[0] is not node]
        if len(kept) < len(self._offers):
            self._offers = kept
            self._tell()

    def offers(self, topic: str, but: object) -> bool:
        """Whether a node other than `but` offers a topic (full name)."""
        return any(name == topic and node is not but for node, name in self._offers)

    def listen(self, node: object, topic: str, deliver: Deliver) -> None:
        """Let a node hear a topic (full name) that the others offer."""
        known = self._listeners.get(topic, ())
        self._listeners[topic] = (*known, _Listener(node, topic, deliver))

    def leave(self, node: object, topic: str) -> None:
        """The opposite of `listen`."""
        known = self._listeners.get(topic, ())
        self._listeners[topic] = tuple(one for one in known if one.node is not node)

    def _tell(self) -> None:
        for moved in self._moved:
            moved()

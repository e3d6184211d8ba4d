"""Reading a bag once for many readers."""

import copy
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import tee

from softcr_models.errors import UserError
from softcr_runtime.bags.message_bytes import header_stamp
from softcr_runtime.bags.reading import Bag, BagMessage
from softcr_runtime.topics import TOPICS


def require_topics(bag: Bag, topics: Iterable[str]) -> None:
    """Refuse a bag that lacks what is needed.

    Raises:
        UserError: names every topic of the table that is missing, or the first of another type.
    """
    topics = tuple(topics)
    missing = [topic for topic in topics if bag.find(topic) is None]
    if missing:
        held = ", ".join(sorted(bag.topics))
        raise UserError(f"bag {bag.path}: replay needs {', '.join(missing)}; it holds {held}")
    for topic in topics:
        found = bag.topics[bag.find(topic) or topic].type
        if found != TOPICS[topic].type:
            raise UserError(
                f"bag {bag.path}: topic {topic} is {found}, replay needs {TOPICS[topic].type}"
            )


class SharedReading:
    """A bag that is read once for many readers, who stay near each other."""

    def __init__(self, bag: Bag):
        self._bag = bag
        (self._start,) = tee(bag.messages(*bag.topics), 1)

    def messages(self, *topics: str) -> Iterator[BagMessage]:
        """A reader of some topics, from the beginning; nothing of those the bag does not have."""
        names = {self._bag.find(topic) for topic in topics}
        return (message for message in copy.copy(self._start) if message.topic in names)

    def begin(self) -> None:
        """Forget the beginning, so that what everybody has read need not be kept."""
        del self._start


class ByStamp:
    """Messages of a topic, asked for in the order of their stamps; one is held at a time."""

    def __init__(self, messages: Iterator[BagMessage]):
        """Of the messages of one topic; what has no stamp is passed over."""
        self._messages = messages
        self._head: tuple[int, BagMessage] | None = None

    def at(self, stamp: int) -> BagMessage | None:
        """The message of a stamp [ns], which is later than the last one asked for."""
        while self._head is None or self._head[0] < stamp:
            message = next(self._messages, None)
            if message is None:
                return None
            with suppress(ValueError):
                self._head = header_stamp(message.payload), message
        return self._head[1] if self._head[0] == stamp else None

"""The messages of a bag by topic and stamp, read once from the beginning to the end."""

import copy
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import tee
from typing import Any

from softcr_models.errors import UserError
from softcr_runtime.bags.message_bytes import header_stamp
from softcr_runtime.bags.reading import Bag, BagMessage
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.wire.messages import MessageError
from softcr_runtime.wire.topics import TOPICS

_REMEMBERED = 512  # messages of a topic that may be asked for once more
_DISORDER = 250_000_000  # stamps of a topic may have been recorded so much too late [ns]


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
    """Messages of a topic, asked for by stamps that hardly ever decrease."""

    def __init__(self, messages: Iterator[BagMessage]) -> None:
        """Of the messages of one topic; what has no stamp is passed over."""
        self._messages = messages
        self._read: deque[tuple[int, BagMessage]] = deque(maxlen=_REMEMBERED)
        self._last = -1

    def at(self, stamp: int) -> BagMessage | None:
        """The message of a stamp [ns]; None where there is none."""
        while self._last < stamp + _DISORDER:
            message = next(self._messages, None)
            if message is None:
                break
            try:
                found = header_stamp(message.payload)
            except ValueError:
                continue
            self._last = max(self._last, found)
            self._read.append((found, message))
        for found, message in reversed(self._read):
            if found == stamp:
                return message
        return None

    def stamps(self, first: int, last: int) -> list[int]:
        """Ascending, from one to another, both included [ns]; none twice."""
        self.at(last)
        return sorted({found for found, _ in self._read if first <= found <= last})


class RecordedSamples:
    """The samples of a bag by topic and stamp.

    Attributes:
        rejections: messages that are no samples, by topic and reason.
    """

    def __init__(
        self,
        readers: Mapping[str, Iterator[BagMessage]],
        decoders: Mapping[str, Callable[[Any], Any]],
    ) -> None:
        """
        Args:
            readers: the messages of each topic, from its beginning.
            decoders: by topic, what makes a value of a message; raises MessageError.
        """
        self.rejections: Counter[str] = Counter()
        self._decoders = decoders
        self._topics = {topic: ByStamp(messages) for topic, messages in readers.items()}

    def at(self, topic: str, stamp: int) -> Sample | None:
        """The sample of a topic and a stamp [ns]; None where the bag lacks it."""
        message = self._topics[topic].at(stamp)
        if message is None:
            return None
        try:
            value = self._decoders[topic](message.decode())
        except MessageError as error:
            self.rejections[str(error)] += 1
            return None
        except ValueError:
            self.rejections[f"{topic}: not readable as a message of its type"] += 1
            return None
        return Sample(topic, stamp, value, message.time * 1e-9)

    def stamps(self, topic: str, first: int, last: int) -> list[int]:
        """Of the messages of a topic, ascending, from one to another, both included [ns]."""
        return self._topics[topic].stamps(first, last)

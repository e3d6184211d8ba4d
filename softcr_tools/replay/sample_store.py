"""The samples of a bag by topic and stamp, read once from the beginning to the end."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from softcr_runtime.bags.message_bytes import header_stamp
from softcr_runtime.bags.reading import BagMessage
from softcr_runtime.messages import MessageError
from softcr_runtime.sample import Sample

_REMEMBERED = 512  # messages of a topic that may be asked for once more
_DISORDER = 250_000_000  # stamps of a topic may have been recorded so much too late [ns]


class SampleStore:
    """Looks up samples by stamps that hardly ever decrease."""

    def __init__(
        self,
        readers: Mapping[str, Iterator[BagMessage]],
        decode: Callable[[str, Any], Any],
        reject: Callable[[str, str], None],
    ) -> None:
        """
        Args:
            readers: the messages of each topic, from its beginning.
            decode: (topic, message) -> value; raises MessageError.
            reject: told topic and reason of a message that is no sample.
        """
        self._decode, self._reject = decode, reject
        self._topics = {topic: _Topic(messages) for topic, messages in readers.items()}

    def at(self, topic: str, stamp: int) -> Sample | None:
        """The sample of a topic and a stamp [ns]; None where the bag lacks it."""
        message = self._topics[topic].at(stamp)
        if message is None:
            return None
        try:
            value = self._decode(topic, message.decode())
        except MessageError as error:
            self._reject(error.topic, error.what)
            return None
        except ValueError:
            self._reject(topic, "not readable as a message of its type")
            return None
        return Sample(topic, stamp, value, message.time * 1e-9)


class _Topic:
    """One topic, as far as it has been read."""

    def __init__(self, messages: Iterator[BagMessage]) -> None:
        self._messages = messages
        self._read: deque[tuple[int, BagMessage]] = deque(maxlen=_REMEMBERED)
        self._last = -1

    def at(self, stamp: int) -> BagMessage | None:
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

"""A bag as an inbox: letters on the clock of the recording."""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import tee
from typing import Any

from softcr_estimation.sample_pairing import POSES, PRESSURES
from softcr_models.errors import UserError
from softcr_models.robot import Robot
from softcr_runtime.messages import (
    MessageError,
    from_stamp,
    pose_from_message,
    pressures_from_message,
)
from softcr_runtime.sample import Sample, check_stamp
from softcr_runtime.topics import TOPICS
from softcr_tools.bag_reading import Bag, BagMessage, in_order
from softcr_tools.replay.message_bytes import header_stamp
from softcr_tools.replay.recorded_run import UsedInputs


@dataclass
class RecordedSample(Sample):
    """A letter out of a bag; `bag_time` is when the recorder received it [ns]."""

    bag_time: int = field(kw_only=True)


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


class RecordedInbox:
    """Delivers recorded letters as if time passed; nothing waits, and it is the same each time."""

    def __init__(self, letters: Iterator[RecordedSample]):
        """An inbox whose clock starts with the first letter."""
        self._letters = letters
        self._next = next(letters, None)
        self._now = self._next.received if self._next else 0.0

    def now(self) -> float:
        """The clock of the recording [s]."""
        return self._now

    def get(self, timeout: float | None) -> RecordedSample | None:
        """The next letter, unless it was received more than `timeout` [s] from now.

        As `Mailbox.get`, on the recording's clock; None for good when the bag ends.
        """
        letter = self._next
        if letter is None or (timeout is not None and letter.received > self._now + timeout):
            self._now += timeout or 0.0
            return None
        self._now = max(self._now, letter.received)
        self._next = next(self._letters, None)
        return letter


def estimator_letters(
    messages: Iterator[BagMessage],
    robot: Robot,
    used: UsedInputs | None,
    reject: Callable[[str, str], None],
) -> Iterator[RecordedSample]:
    """Pressures and tip poses of a bag, decoded and checked as the estimator does it.

    Args:
        messages: of both topics.
        robot: its chambers are expected.
        used: deliver what the recorded estimator used, a pose together with its sample. None:
            deliver everything when the recorder received it.
        reject: told topic and reason of a message that is not delivered.
    """
    letters = _checked_letters(messages, robot, reject)
    if used is None:
        return letters
    taken = (letter for letter in letters if _was_taken(letter, used))
    on_stamps = (replace(letter, received=letter.stamp * 1e-9) for letter in taken)
    return in_order(on_stamps, lambda letter: letter.stamp)


def _was_taken(letter: Sample, used: UsedInputs) -> bool:
    if letter.topic == PRESSURES:
        return used.has_pressures(letter.stamp)
    return used.has_pose(letter.stamp)


def _checked_letters(
    messages: Iterator[BagMessage], robot: Robot, reject: Callable[[str, str], None]
) -> Iterator[RecordedSample]:
    decoders: dict[str, Callable[[Any], Any]] = {
        PRESSURES: lambda content: pressures_from_message(content, robot.chamber_names, PRESSURES),
        POSES: lambda content: pose_from_message(content, POSES),
    }
    last_stamps = dict.fromkeys(decoders, 0)
    for message in messages:
        topic = next(name for name in decoders if message.topic.endswith(name))
        try:
            content = message.decode()
            stamp = from_stamp(content, topic)
            check_stamp(topic, stamp, last_stamps[topic], None)
            value = decoders[topic](content)
        except MessageError as error:
            reject(error.topic, error.what)
            continue
        except ValueError:
            reject(topic, "not readable as a message of its type")
            continue
        last_stamps[topic] = stamp
        yield RecordedSample(topic, stamp, value, message.time * 1e-9, bag_time=message.time)


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

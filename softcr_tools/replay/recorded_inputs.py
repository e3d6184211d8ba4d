"""A bag as an inbox: letters on the clock of the recording."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from softcr_estimation.sample_pairing import POSES, PRESSURES
from softcr_models.robot import Robot
from softcr_models.runtime.letter import Letter, check_stamp
from softcr_models.runtime.messages import (
    MessageError,
    from_stamp,
    pose_from_message,
    pressures_from_message,
)
from softcr_tools.bag_reading import Bag, BagMessage, in_order
from softcr_tools.replay.recorded_run import UsedInputs


@dataclass(frozen=True)
class RecordedLetter(Letter):
    """A letter out of a bag; `bag_time` is when the recorder received it [ns]."""

    bag_time: int


class RecordedInbox:
    """Delivers recorded letters as if time passed; nothing waits, and it is the same each time.

    Attributes:
        rejections: how many messages were not used, by topic and reason.
    """

    def __init__(self, letters: Iterator[RecordedLetter]):
        """An inbox whose clock starts with the first letter."""
        self._letters = letters
        self._next = next(letters, None)
        self._now = self._next.received if self._next else 0.0
        self.rejections: Counter[str] = Counter()

    def now(self) -> float:
        """The clock of the recording [s]."""
        return self._now

    def get(self, timeout: float | None) -> RecordedLetter | None:
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

    def reject(self, topic: str, reason: str) -> None:
        """Count a message that was not used."""
        self.rejections[f"{topic}: {reason}"] += 1


def estimator_letters(
    bag: Bag, robot: Robot, used: UsedInputs | None, reject: Callable[[str, str], None]
) -> Iterator[RecordedLetter]:
    """Pressures and tip poses of a bag, decoded and checked as the estimator does it.

    Args:
        bag: has both topics.
        robot: its chambers are expected.
        used: deliver what the recorded estimator used, a pose together with its sample. None:
            deliver everything when the recorder received it.
        reject: told topic and reason of a message that is not delivered.
    """
    letters = _checked_letters(bag, robot, reject)
    if used is None:
        return letters
    taken = (letter for letter in letters if _was_taken(letter, used))
    on_stamps = (replace(letter, received=letter.stamp * 1e-9) for letter in taken)
    return in_order(on_stamps, lambda letter: letter.stamp)


def _was_taken(letter: Letter, used: UsedInputs) -> bool:
    if letter.topic == PRESSURES:
        return used.has_pressures(letter.stamp)
    return used.has_pose(letter.stamp)


def _checked_letters(
    bag: Bag, robot: Robot, reject: Callable[[str, str], None]
) -> Iterator[RecordedLetter]:
    decoders: dict[str | None, tuple[str, Callable[[Any], Any]]] = {
        bag.find(PRESSURES): (
            PRESSURES,
            lambda message: pressures_from_message(message, robot.chamber_names, PRESSURES),
        ),
        bag.find(POSES): (POSES, lambda message: pose_from_message(message, POSES)),
    }
    last_stamps = {PRESSURES: 0, POSES: 0}
    for message in bag.messages(PRESSURES, POSES):
        topic, decode = decoders[message.topic]
        try:
            content = message.decode()
            stamp = from_stamp(content, topic)
            check_stamp(topic, stamp, last_stamps[topic], None)
            value = decode(content)
        except MessageError as error:
            reject(error.topic, error.what)
            continue
        except ValueError:
            reject(topic, "not readable as a message of its type")
            continue
        last_stamps[topic] = stamp
        yield RecordedLetter(topic, stamp, value, message.time * 1e-9, message.time)


class ByStamp:
    """The messages of a topic, asked for in the order of their stamps; one is held at a time."""

    def __init__(self, bag: Bag, topic: str):
        """Empty when the bag does not have the topic."""
        self._topic = topic
        self._messages = iter(bag.messages(topic)) if bag.find(topic) else iter(())
        self._head: tuple[int, BagMessage] | None = None
        self._advance()

    def at(self, stamp: int) -> BagMessage | None:
        """The message of a stamp [ns], which is later than the last one asked for."""
        while self._head and self._head[0] < stamp:
            self._advance()
        return self._head[1] if self._head and self._head[0] == stamp else None

    def _advance(self) -> None:
        self._head = None
        for message in self._messages:
            try:
                self._head = from_stamp(message.decode(), self._topic), message
            except (MessageError, ValueError):
                continue
            return

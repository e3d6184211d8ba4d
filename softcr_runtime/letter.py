"""A received message as loops see it; live ones and recorded ones alike. No ROS here."""

from dataclasses import dataclass
from typing import Any

from softcr_runtime.messages import MessageError

MAXIMUM_CLOCK_DIFFERENCE = 0.5
"""How far a received stamp may lie from this machine's clock in wall mode, either way [s]."""


@dataclass(frozen=True)
class Letter:
    """One received and decoded message.

    Attributes:
        topic: name in the table of topics.
        stamp: header stamp [ns].
        value: what the decoder made of it.
        received: when DDS delivered it, on the monotonic clock; of a recorded one, on the
            recorder's clock [s].
    """

    topic: str
    stamp: int
    value: Any
    received: float


def check_stamp(topic: str, stamp: int, last_stamp: int, now: int | None) -> None:
    """Refuse a message that is not newer than the one before, or far from the present.

    Args:
        topic: where it came from.
        stamp: of the message [ns].
        last_stamp: of the message before; 0 when there was none [ns].
        now: the present [ns]; None in lock-step, where stamps are simulated time.

    Raises:
        MessageError: it must not be used.
    """
    if stamp <= last_stamp:
        raise MessageError(topic, "stale: stamp not newer than the last one")
    if now is None:
        return
    age = (now - stamp) * 1e-9
    limit = f"{MAXIMUM_CLOCK_DIFFERENCE} s"
    if age > MAXIMUM_CLOCK_DIFFERENCE:
        raise MessageError(topic, f"stale: stamp more than {limit} old")
    if age < -MAXIMUM_CLOCK_DIFFERENCE:
        raise MessageError(topic, f"stamp more than {limit} in the future")

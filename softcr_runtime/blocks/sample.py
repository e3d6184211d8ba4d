"""A received message as blocks and loops see it; live ones, simulated ones and recorded ones alike.
No ROS here."""

from dataclasses import dataclass, field
from typing import Any

from softcr_runtime.wire.messages import MessageError

MAXIMUM_CLOCK_DIFFERENCE = 0.5
"""How far a received stamp may lie from this machine's clock in wall mode, either way [s]."""


@dataclass(slots=True)
class Sample:
    """One received and decoded message. Nobody changes a sample once it is made.

    Attributes:
        topic: name in the table of topics.
        stamp: header stamp [ns].
        value: what the decoder made of it.
        received: when DDS delivered it, on the monotonic clock; of a recorded one, on the
            recorder's clock; on virtual time, virtual time [s].
        older: of an interpolated sample, the stamp of the earlier one of the two that it lies
            between; otherwise 0 [ns].
        newer: of an interpolated sample, the stamp of the later one; otherwise 0 [ns].
    """

    topic: str
    stamp: int
    value: Any
    received: float
    older: int = field(default=0, kw_only=True)
    newer: int = field(default=0, kw_only=True)


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

"""What each node of a recorded run did, tick by tick.

A bag with tick records says it itself. Without them samples are joined again in the order and at
the times at which the recorder received them.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from softcr_runtime.bags.message_bytes import header_stamp
from softcr_runtime.bags.reading import Bag
from softcr_runtime.blocks.block import CLOCK, BlockBase
from softcr_runtime.blocks.join import Join, Tick
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.tick_records import (
    JUMP,
    RESET,
    TOPIC,
    TickRecord,
    record_of,
    records_from_message,
)
from softcr_runtime.wire.messages import MessageError

_AT_ONCE = 5e-4  # messages received within so long belong to one look of a node [s]


def recorded_events(bag: Bag) -> dict[str, list[TickRecord]]:
    """Node -> its records, in their order; empty for a bag without any."""
    found: dict[str, list[TickRecord]] = {}
    if bag.find(TOPIC) is None:
        return found
    for message in bag.messages(TOPIC):
        try:
            node, records = records_from_message(message.decode())
        except (MessageError, ValueError):  # not a cloud of records: it tells nothing
            continue
        found.setdefault(node, []).extend(records)
    return found


def before_time_went_back(records: list[TickRecord]) -> tuple[list[TickRecord], float]:
    """The records up to where stamps went back, and by how much [s], 0 where they never did.

    What comes after is not to be found by its stamps, which are there twice.
    """
    for index, record in enumerate(records):
        if record.event == JUMP and record.age < 0.0:
            return records[:index], -record.age
    return records, 0.0


def joined_by_time(bag: Bag, block: BlockBase) -> list[TickRecord]:
    """What a block's join makes of the samples, in the order in which they were recorded."""
    # stamps alone matter here: nothing is interpolated
    inputs = [replace(each, blend=lambda older, newer, part: older) for each in block.inputs]
    join = Join(inputs, block.keep, block.settings.period)
    records = [TickRecord(RESET, 1)]
    for moment, sample in _in_order(bag, block):
        records += [_record(tick) for tick in _until(join, moment)]
        join.put(sample)
        records += [_record(tick) for tick in _all(join, moment)]
    return records + [_record(tick) for tick in _all(join, math.inf)]


def _in_order(bag: Bag, block: BlockBase) -> Iterator[tuple[float, Sample]]:
    found = {bag.find(each.topic): each.topic for each in block.inputs if each.topic != CLOCK}
    topics = {name: topic for name, topic in found.items() if name is not None}
    last: dict[str, int] = {}
    for message in bag.messages(*topics):
        topic = topics[message.topic]
        try:
            stamp = header_stamp(message.payload)
        except ValueError:
            continue
        if stamp > last.get(topic, 0):
            last[topic] = stamp
            moment = 1e-9 * message.time
            yield moment, Sample(topic, stamp, None, moment)


def _until(join: Join, moment: float) -> Iterator[Tick]:
    """Ticks whose patience ended before a moment [s]."""
    while (wake := join.wake()) < moment - _AT_ONCE:
        tick = join.take(wake)
        if tick is None:
            return
        yield tick


def _all(join: Join, now: float) -> Iterator[Tick]:
    while (tick := join.take(now)) is not None:
        yield tick


def _record(tick: Tick) -> TickRecord:
    return record_of(tick, math.nan)

"""What each node of a recorded run did, tick by tick.

A bag with tick records says it itself. Older bags say which stamps were estimated, which had no
tip pose, and which estimates were answered; where even that is missing, samples are joined again
in the order and at the times at which the recorder received them.
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
    TICK,
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


def told_estimates(bag: Bag, estimator: BlockBase, unpaired: frozenset[int]) -> list[TickRecord]:
    """Of a run that told its estimates and the stamps [ns] without a pose, but no tick records."""
    lead, partner = (each.topic for each in estimator.inputs[:2])
    estimated = frozenset(stamps(bag, estimator.outputs[0]))
    records = [TickRecord(RESET, 1)]
    for stamp in stamps(bag, lead):
        if stamp in estimated or stamp in unpaired:
            used = {lead: (stamp, stamp)}
            if stamp not in unpaired:
                used[partner] = (stamp, stamp)
            records.append(TickRecord(TICK, stamp, math.nan, used))
    return records


def answered_estimates(bag: Bag, controller: BlockBase, lockstep: bool) -> list[TickRecord]:
    """A controller's ticks without records: the estimates that it answered, as old as the answers.

    Where the run has no command at all, every estimate that has all other inputs.
    """
    lead, *others = (each.topic for each in controller.inputs)
    sent = dict(_times(bag, controller.outputs[0]))
    there = [frozenset(stamps(bag, topic)) for topic in others]
    records = [TickRecord(RESET, 1)]
    for stamp in stamps(bag, lead):
        if all(stamp in known for known in there) and (stamp in sent or not sent):
            age = math.nan if lockstep or not sent else 1e-9 * (sent[stamp] - stamp)
            used = dict.fromkeys((lead, *others), (stamp, stamp))
            records.append(TickRecord(TICK, stamp, age, used))
    return records


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


def stamps(bag: Bag, topic: str) -> Iterator[int]:
    """The stamps [ns] of a topic; nothing where the bag does not have it."""
    return (stamp for stamp, _ in _times(bag, topic))


def _times(bag: Bag, topic: str) -> Iterator[tuple[int, int]]:
    """Stamps and times of reception [ns] of a topic; what has no stamp is passed over."""
    if bag.find(topic) is None:
        return
    for message in bag.messages(topic):
        try:
            yield header_stamp(message.payload), message.time
        except ValueError:
            continue


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

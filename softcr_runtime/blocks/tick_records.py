"""What a block did in each tick: which samples it used, which it lacked, how old its answer was.

With these records any bag can be replayed to the bit, however starved the machine was: what a tick
used cannot be seen from outside, because messages may come too late for their tick, or not at all.
Records travel once a second as a point cloud on `ticks`, one point per tick; its frame is the
block's node. Stamps are float64 nanoseconds from the cloud's stamp on, which is exact. A change of
live parameters between two ticks is a point, too, and holds their new values. How much a tick with
a limited budget computed is told as well: a replay computes as much.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softcr_runtime.blocks.join import Tick
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.wire.messages import (
    MessageError,
    cloud_fields,
    cloud_message,
    cloud_values,
    from_stamp,
)

TOPIC = "ticks"
END, CHANGE, JUMP, TICK, IDLE, RESET, ACTION = range(-3, 4)
"""Events: `idle` because the block stops or time jumps, a change of live parameters, time jumped, a
tick, `idle` because inputs are overdue, `reset`, an action; the number of the action is added to
the last."""

_PARAMETER = "parameter "  # before its name, in the name of a field
_EFFORT = "effort"  # a field that is there where some tick had a limited budget

Used = tuple[int, int]
"""Stamps of the first and the last message that a sample was made of; equal for one message."""


@dataclass(frozen=True)
class TickRecord:
    """One event of a block.

    Attributes:
        event: END, CHANGE, JUMP, TICK, IDLE, RESET, or ACTION + number.
        stamp: of the tick; of an idle event, the one that was given to the block; of a change, that
            of the tick before it [ns].
        age: of the answer when it was ready [s]; NaN where there is none; of a jump, by how
            much, negative where time went back.
        used: topic -> what the tick used of it; a topic that it lacked is not there.
        changed: parameter -> its new value, exact as float64; a boolean is 0 or 1.
        effort: how much of its work the tick did, see `Budget`.
    """

    event: int
    stamp: int
    age: float = math.nan
    used: Mapping[str, Used] = field(default_factory=dict)
    changed: Mapping[str, float] = field(default_factory=dict)
    effort: float = math.nan


def record_of(tick: Tick, age: float, effort: float = math.nan) -> TickRecord:
    """The record of a tick whose answer was `age` [s] old; `effort` is that of its budget."""
    used = {topic: _used(sample) for topic, sample in tick.samples.items() if sample != ()}
    return TickRecord(TICK, tick.stamp, age, used, effort=effort)


def _used(sample: Sample | tuple[Sample, ...]) -> Used:
    if isinstance(sample, tuple):
        return sample[0].stamp, sample[-1].stamp
    if sample.newer:
        return sample.older, sample.newer
    return sample.stamp, sample.stamp


def records_to_message(node: str, topics: Sequence[str], records: Sequence[TickRecord]) -> Any:
    """sensor_msgs/PointCloud2 of some records of one node.

    Args:
        node: name of it.
        topics: of all inputs of its block.
        records: at least one.
    """
    base = records[0].stamp
    parameters = sorted({name for record in records for name in record.changed})
    width = 3 + 2 * len(topics)
    table = np.full((1, len(records), width + len(parameters)), np.nan)
    for row, record in zip(table[0], records, strict=True):
        row[:3] = record.event, record.stamp - base, record.age
        for column, topic in enumerate(topics):
            if topic in record.used:
                first, last = record.used[topic]
                row[3 + 2 * column : 5 + 2 * column] = first - base, last - base
        for column, name in enumerate(parameters, width):
            row[column] = record.changed.get(name, math.nan)
    names = [name for topic in topics for name in (f"{topic} first", f"{topic} last")]
    names += [_PARAMETER + name for name in parameters]
    efforts = np.array([record.effort for record in records])
    if not np.isnan(efforts).all():
        names.append(_EFFORT)
        table = np.concatenate((table, efforts[None, :, None]), axis=2)
    return cloud_message(table, ("event", "stamp", "age", *names), base, node)


def records_from_message(message: Any) -> tuple[str, list[TickRecord]]:
    """The node and its records.

    Raises:
        MessageError: the cloud holds something else.
    """
    columns = cloud_fields(message, TOPIC)
    base = from_stamp(message, TOPIC)
    missing = [name for name in ("event", "stamp", "age") if name not in columns]
    if missing or message.height != 1:
        raise MessageError(TOPIC, f"fields {missing} are missing, or height is not 1")
    rows = cloud_values(message, TOPIC)[0]
    topics = [name.removesuffix(" first") for name in columns if name.endswith(" first")]
    return message.header.frame_id, [_record(row, columns, topics, base) for row in rows]


def _record(
    row: np.ndarray, columns: Mapping[str, int], topics: Sequence[str], base: int
) -> TickRecord:
    used = {}
    for topic in topics:
        first, last = row[columns[f"{topic} first"]], row[columns[f"{topic} last"]]
        if not math.isnan(first):
            used[topic] = base + int(first), base + int(last)
    event, stamp, age = (float(row[columns[name]]) for name in ("event", "stamp", "age"))
    changed = {
        name.removeprefix(_PARAMETER): float(row[column])
        for name, column in columns.items()
        if name.startswith(_PARAMETER) and not math.isnan(row[column])
    }
    effort = float(row[columns[_EFFORT]]) if _EFFORT in columns else math.nan
    return TickRecord(int(event), base + int(stamp), age, used, changed, effort)

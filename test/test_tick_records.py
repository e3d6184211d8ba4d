"""What a block did in a tick survives its message to the nanosecond."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sensor_msgs", reason="messages need ROS")

from softcr_runtime.blocks.join import Tick
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.tick_records import (
    ACTION,
    END,
    IDLE,
    RESET,
    TICK,
    TickRecord,
    record_of,
    records_from_message,
    records_to_message,
)
from softcr_runtime.wire.messages import MessageError

TOPICS = ("pressure/state", "mocap/tip/pose")
NOW = 1_790_000_000_123_456_789  # of today's clocks: float64 alone would round it [ns]
stamps = st.integers(NOW - 10**9, NOW + 10**9)
ages = st.one_of(st.just(math.nan), st.floats(0.0, 1.0))
records = st.builds(
    TickRecord,
    st.sampled_from([END, TICK, IDLE, RESET, ACTION, ACTION + 2]),
    stamps,
    ages,
    st.dictionaries(st.sampled_from(TOPICS), st.tuples(stamps, stamps)),
)


@given(st.lists(records, min_size=1, max_size=20))
def test_records_come_back_as_they_were(told):
    node, back = records_from_message(records_to_message("estimator", TOPICS, told))
    assert node == "estimator"
    assert len(back) == len(told)
    for one, other in zip(told, back, strict=True):
        assert (one.event, one.stamp, dict(one.used)) == (other.event, other.stamp, other.used)
        assert one.age == other.age or (math.isnan(one.age) and math.isnan(other.age))


def test_a_record_names_the_messages_that_a_tick_was_made_of():
    between = Sample("mocap/tip/pose", 70, None, 0.0, older=60, newer=80)
    several = (Sample("a", 10, None, 0.0), Sample("a", 20, None, 0.0))
    tick = Tick(70, 0.0, {"pressure/state": Sample("pressure/state", 70, None, 0.0),
                          "mocap/tip/pose": between, "a": several, "b": ()})  # fmt: skip
    record = record_of(tick, 0.004)
    assert (record.event, record.stamp, record.age) == (TICK, 70, 0.004)
    assert record.used == {
        "pressure/state": (70, 70), "mocap/tip/pose": (60, 80), "a": (10, 20),
    }  # fmt: skip


def test_a_cloud_of_something_else_is_refused():
    import numpy as np

    from softcr_runtime.wire.messages import cloud_message

    with pytest.raises(MessageError, match="missing"):
        records_from_message(cloud_message(np.zeros((1, 2, 2)), ("x", "y"), 1, "node"))

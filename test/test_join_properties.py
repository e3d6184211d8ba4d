"""Which samples belong to a tick, whatever comes when."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcr_runtime.blocks.block import Input
from softcr_runtime.blocks.join import MOST_WAITING, Join, ticks
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.tick_grid import Resampler

PERIOD = 0.01
STEP = 10_000_000  # [ns]
TOPICS = ("lead", "same", "newest", "latest", "all")


def sample(topic, tick, received=0.0):
    return Sample(topic, tick * STEP, (topic, tick), received)


def join_of(*inputs, keep="every"):
    return Join(inputs, keep, PERIOD)


@st.composite
def arrivals(draw):
    """Samples of all topics: some lost, in the order of stamps within a topic, mixed at will."""
    queues = {
        topic: [k for k in range(1, 15) if draw(st.booleans()) or topic == "lead"]
        for topic in TOPICS
    }
    order = []
    while any(queues.values()):
        topic = draw(st.sampled_from([name for name, queue in queues.items() if queue]))
        order.append((topic, queues[topic].pop(0)))
    return order


@given(arrivals(), st.sampled_from(["every", "newest"]))
def test_ticks_come_in_order_and_each_sample_serves_as_its_rule_says(order, keep):
    join = join_of(
        Input("lead", "lead"),
        Input("same", "same"),
        Input("newest", "newest", needed=False),
        Input("latest", "latest", needed=False),
        Input("all", "all", needed=False),
        keep=keep,
    )
    made, heard, put = [], [], []
    for topic, tick in order:
        join.put(sample(topic, tick))
        put.append((topic, tick))
        for each in ticks(join, 0.0):
            made.append(each)
            heard.append(list(put))
    stamps = [each.stamp for each in made]
    assert stamps == sorted(set(stamps))
    used = Counter()
    for each, known in zip(made, heard, strict=True):
        assert each.samples["lead"].stamp == each.samples["same"].stamp == each.stamp
        used.update(("newest", s.stamp) for s in [each.samples.get("newest")] if s)
        used.update(("all", s.stamp) for s in each.samples["all"])
        latest = [tick for topic, tick in known if topic == "latest"]
        assert ("latest" in each.samples) == bool(latest)
        if latest:
            assert each.samples["latest"].stamp == latest[-1] * STEP
    assert not used or max(used.values()) == 1
    if keep == "every":
        both = {k for t, k in order if t == "lead"} & {k for t, k in order if t == "same"}
        assert stamps == [k * STEP for k in sorted(both)]


def test_a_partner_that_later_ones_have_overtaken_is_not_waited_for():
    join = join_of(Input("lead", "lead"), Input("eye", "same", needed=False, patience=9.0))
    join.put(sample("lead", 5))
    join.put(sample("eye", 6))
    assert join.take(0.0).samples.keys() == {"lead"}
    join.put(sample("lead", 6))
    assert join.take(0.0).samples["eye"].stamp == 6 * STEP


def test_the_newest_complete_tick_wins_and_what_it_overtakes_is_counted():
    join = join_of(Input("lead", "lead"), Input("wish", "same"), keep="newest")
    for tick in (1, 2, 3):
        join.put(sample("lead", tick))
    for tick in (1, 2):
        join.put(sample("wish", tick))
    assert join.take(0.0).stamp == 2 * STEP
    assert join.dropped == {
        ("lead", "a newer tick was complete"): 1, ("wish", "came after its cycle"): 1,
    }  # fmt: skip
    join.put(sample("wish", 3))
    assert join.take(0.0).stamp == 3 * STEP


def test_an_answer_is_to_the_tick_before():
    join = join_of(Input("clock", "lead"), Input("command", "answer", needed=False, patience=2.0))
    join.put(sample("clock", 1))
    assert "command" not in join.take(0.0).samples  # nothing was asked yet
    join.put(sample("clock", 2))
    assert join.take(0.0) is None
    join.put(sample("command", 1))
    assert join.take(0.0).samples["command"].stamp == STEP


def test_a_needed_bystander_keeps_everybody_waiting():
    join = join_of(Input("lead", "lead"), Input("setpoint", "latest"))
    join.put(sample("lead", 1))
    assert join.take(math.inf) is None
    join.put(sample("setpoint", 1))
    assert join.take(0.0).stamp == STEP


@given(st.lists(st.integers(1, 4 * 10**6), min_size=2, max_size=60))
def test_a_resampled_lead_is_what_a_resampler_makes_of_it(steps):
    stamps = np.cumsum(np.array(steps) * 10).tolist()
    samples = [Sample("lead", int(t), np.array([1e-9 * t]), 0.0) for t in stamps]
    join = join_of(Input("lead", "lead", resampled=True))
    made = []
    for each in samples:
        join.put(each)
        made += [(tick.stamp, float(tick.samples["lead"].value[0])) for tick in ticks(join, 0.0)]
    plain = Resampler(PERIOD)
    expected = [(s.stamp, float(s.value[0])) for each in samples for s in plain.add(each)]
    assert made == expected
    assert all(stamp % STEP == 0 for stamp, _ in made)
    assert all(value == pytest.approx(1e-9 * stamp, abs=1e-12) for stamp, value in made)


def test_forgotten_is_forgotten():
    join = join_of(Input("lead", "lead"), Input("same", "same"), Input("all", "all", needed=False))
    for topic in ("lead", "all"):
        join.put(sample(topic, 1))
    join.forget()
    join.put(sample("same", 1))
    assert join.take(math.inf) is None
    join.put(sample("lead", 2))
    join.put(sample("same", 2))
    assert join.take(0.0).samples["all"] == ()


def test_no_more_than_some_wait():
    join = join_of(Input("lead", "lead"), Input("same", "same"))
    for tick in range(1, MOST_WAITING + 4):
        join.put(sample("lead", tick))
    assert join.dropped == {("lead", "too many were waiting"): 3}
    join.put(sample("same", 4))
    assert join.take(0.0).stamp == 4 * STEP


@pytest.mark.parametrize("inputs", [(), (Input("a", "lead"), Input("b", "lead"))])
def test_exactly_one_input_leads(inputs):
    with pytest.raises(ValueError, match=f"{len(inputs)} of them lead, must be one"):
        join_of(*inputs)

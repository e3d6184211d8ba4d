"""Virtual time: clocks and their phases, wires, computing time, answers that are held back, and
what a system begins with."""

import numpy as np
import pytest

from softcr_models.errors import UserError
from softcr_runtime import virtual
from softcr_runtime.block import CLOCK, BlockBase, Input, Output
from softcr_runtime.settings import NodeSettings
from softcr_runtime.system import Part, System, Wire
from softcr_runtime.tick_records import ACTION
from softcr_runtime.virtual import VirtualExecutor

MS = 1_000_000  # [ns]


class Speaker(BlockBase):
    """Says its stamp at every tick of its clock; begins when it has been asked thrice."""

    name = "speaker"
    inputs = (Input(CLOCK, "lead"),)
    outputs = ("said",)
    actions = ("begin",)
    asked = 0

    def act(self, action):
        self.asked += 1
        if self.asked < 3:
            raise UserError(f"asked {self.asked} times")
        return "begun"

    def tick(self, now, samples):
        return [Output("said", now, now)]


class Listener(BlockBase):
    """Repeats what it hears."""

    name = "listener"
    inputs = (Input("said", "lead"),)
    outputs = ("heard",)
    wanted = 0.0

    def __init__(self, robot, settings):
        super().__init__(robot, settings)
        self.ages, self.received = [], []

    def tick(self, now, samples):
        self.received.append(samples["said"].received)
        return [Output("heard", now, now)]

    def answered(self, age):
        self.ages.append(age)

    def age_to_send(self):
        return self.wanted


def run(duration=1.0, begin=(), wanted=0.0, note=None, phase=0.0, wire=None, **listener):
    """(listener, when what was sent, by topic [(ns, stamp)]) of a speaker of 100 Hz and it."""
    settings = NodeSettings(rate_hz=100.0)
    blocks = {"speaker": Speaker(None, settings), "listener": Listener(None, settings)}
    blocks["listener"].wanted = wanted
    parts = (
        Part("speaker", "here:Speaker", phase=phase),
        Part("listener", "here:Listener", wires={"said": wire or Wire()}, **listener),
    )
    system = System("pair", parts, tuple(blocks), duration, False, "listener", begin)
    sent = {"said": [], "heard": []}
    executor = VirtualExecutor(
        system,
        lambda name, output: sent[output.topic].append((executor.now, output.stamp)),
        note,
        make=lambda part: blocks[part.name],
        guarded=False,  # its topics are in no table
    )
    executor.run()
    return blocks["listener"], sent


def test_clocks_tick_at_whole_periods_and_phases_after_them():
    assert [stamp for _, stamp in run(0.1)[1]["said"]] == [10 * MS * k for k in range(1, 11)]
    said = run(0.1, phase=0.003)[1]["said"]
    assert said == [((10 * k + 3) * MS,) * 2 for k in range(1, 10)]


def test_latency_and_computing_time_add_up():
    listener, sent = run(wire=Wire(latency=0.002), computing=0.003)
    assert all(now - stamp == 5 * MS for now, stamp in sent["heard"])
    assert listener.ages == pytest.approx([0.005] * len(listener.ages))


def test_a_wire_loses_its_share_and_delays_by_its_mean_without_overtaking():
    listener, sent = run(100.0, wire=Wire(jitter=0.02, lost=0.2, seed=5))
    heard = np.array([stamp for _, stamp in sent["heard"]])
    # 10000 draws: 5 standard deviations of the share
    assert len(heard) / len(sent["said"]) == pytest.approx(0.8, abs=0.02)
    assert (np.diff(heard) > 0).all()
    assert (np.diff(listener.received) >= 0).all()
    late = np.array(listener.received) - 1e-9 * heard
    # none overtakes another, so they are later than the exponential's mean
    assert late.min() >= 0.0
    assert 0.02 < late.mean() < 0.06


def test_wires_of_one_seed_lose_the_same_messages():
    first, again, other = (
        [stamp for _, stamp in run(wire=Wire(lost=0.5, seed=seed))[1]["heard"]]
        for seed in (3, 3, 4)
    )
    assert first == again != other


def test_a_held_back_answer_leaves_at_its_age_and_makes_the_next_no_older():
    listener, sent = run(0.2, wanted=0.025, computing=0.002)
    assert all(now - stamp == 25 * MS for now, stamp in sent["heard"])
    # the second had waited for the first to leave, which is no work
    assert listener.ages == pytest.approx([0.002] * len(listener.ages))


def test_a_system_begins_when_everybody_has_agreed_in_order():
    records = []
    run(0.1, ("speaker/begin",), note=lambda name, record: records.append((name, record)))
    actions = [(name, record.stamp) for name, record in records if record.event == ACTION]
    # asked once at each instant, the third of which is that of the third tick
    assert actions == [("speaker", 30 * MS)]


def test_who_refuses_for_too_long_ends_the_run_in_one_line(monkeypatch):
    monkeypatch.setattr(virtual, "LONGEST_BEGINNING", 0.015)
    with pytest.raises(UserError, match=r"speaker/begin refused for 0\.015 s: asked 2 times"):
        run(1.0, ("speaker/begin",))

"""Virtual time: clocks and their phases, wires, computing time, and what a system begins with."""

import numpy as np
import pytest

from softcr_models.errors import UserError
from softcr_runtime.blocks import virtual
from softcr_runtime.blocks.block import CLOCK, BlockBase, Input, Output
from softcr_runtime.blocks.system import Computing, Missing, Part, Stop, System, Wire
from softcr_runtime.blocks.tick_records import ACTION, END, IDLE
from softcr_runtime.blocks.virtual import VirtualExecutor
from softcr_runtime.settings.node_settings import NodeSettings

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

    def __init__(self, robot, settings):
        super().__init__(robot, settings)
        self.ages, self.received = [], []

    def tick(self, now, samples):
        self.received.append(samples["said"].received)
        return [Output("heard", now, now)]

    def answered(self, age):
        self.ages.append(age)


STOPPED = Computing(stops=(Stop(0.2, at=0.402),))


def run(*arguments, **options):
    """(listener, when what was sent, by topic [(ns, stamp)]) of a speaker of 100 Hz and it."""
    executor, sent = executed(*arguments, **options)
    return executor.block("listener"), sent


def executed(
    duration=1.0, begin=(), note=None, phase=0.0, wire=None, stops=(),
    silence=np.inf, **listener,
):  # fmt: skip
    """(executor after its run, when what was sent); `stops` are the speaker's."""
    settings = NodeSettings(rate_hz=100.0)
    blocks = {"speaker": Speaker(None, settings), "listener": Listener(None, settings)}
    blocks["listener"].silence = silence
    parts = (
        Part("speaker", "here:Speaker", phase=phase, computing=Computing(stops=stops)),
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
    return executor, sent


def test_clocks_tick_at_whole_periods_and_phases_after_them():
    assert [stamp for _, stamp in run(0.1)[1]["said"]] == [10 * MS * k for k in range(1, 11)]
    said = run(0.1, phase=0.003)[1]["said"]
    assert said == [((10 * k + 3) * MS,) * 2 for k in range(1, 10)]


def test_latency_and_computing_time_add_up():
    listener, sent = run(wire=Wire(latency=0.002), computing=Computing(0.003))
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


def test_a_range_of_computing_times_is_drawn_evenly_for_each_tick_and_anew_for_a_seed():
    slow = Computing(0.002, 0.008, seed=3)
    listener, sent = run(20.0, computing=slow)
    took = np.array([now - stamp for now, stamp in sent["heard"]]) / MS
    assert 2.0 <= took.min() < 2.1
    assert 7.9 < took.max() <= 8.0
    # 2000 draws of a uniform distribution: 5 standard deviations of mean and of spread
    assert took.mean() == pytest.approx(5.0, abs=5 * 6 / np.sqrt(12 * 2000))
    assert took.std() == pytest.approx(6 / np.sqrt(12), rel=0.1)
    assert listener.ages[:-1] == pytest.approx(1e-3 * took[: len(listener.ages) - 1])
    assert run(20.0, computing=slow)[1] == sent
    assert run(20.0, computing=Computing(0.002, 0.008, seed=4))[1] != sent


def test_what_stops_begins_nothing_and_ends_later_what_it_was_at():
    computing = Computing(0.004, stops=(Stop(0.05, at=0.302), Stop(0.02, at=0.7)))
    _, sent = run(computing=computing)
    late = {stamp // MS: (now - stamp) / MS for now, stamp in sent["heard"]}
    assert all(late[stamp] == 4.0 for stamp in late if stamp < 300 or 430 < stamp < 700)
    assert late[300] == 54.0  # 2 of its 4 ms were done
    # the others had waited, and are answered one after the other
    assert [late[stamp] for stamp in (310, 320, 330, 340, 350)] == [48.0, 42.0, 36.0, 30.0, 24.0]
    assert late[700] == 24.0  # it comes when the stop begins


def test_a_stopped_clock_misses_its_ticks_and_goes_on_at_the_next_whole_period():
    _, sent = run(0.2, stops=(Stop(0.025, at=0.1),))
    said = [stamp // MS for stamp, _ in sent["said"]]
    assert said == [*range(10, 100, 10), *range(130, 201, 10)]


def test_who_stands_still_is_not_idle_for_it():
    noted = []
    run(1.0, note=lambda *told: noted.append(told), silence=0.03, computing=STOPPED)
    events = [record.event for name, record in noted if name == "listener"]
    assert (events.count(IDLE), events[-1]) == (0, END)


@pytest.mark.parametrize(
    ("missing", "lacking"),
    [
        (Missing(3, at=0.5), [500, 510, 520]),
        (Missing(3, at=0.501), [510, 520, 530]),
        (Missing(2, at=0.3, every=0.25), [300, 310, 550, 560, 800, 810]),
        (Missing(100, at=0.95, every=0.01), [950, 960, 970, 980, 990, 1000]),
    ],
)
def test_messages_are_missing_from_a_time_on_and_again(missing, lacking):
    _, sent = run(1.0, wire=Wire(missing=(missing,)))
    assert sorted({t for t, _ in sent["said"]} - {t for _, t in sent["heard"]}) == [
        each * MS for each in lacking
    ]


def test_missing_messages_change_nothing_of_what_else_is_lost():
    lossy = Wire(lost=0.3, seed=2)
    heard, rest = (
        {stamp for _, stamp in run(2.0, wire=wire)[1]["heard"]}
        for wire in (lossy, Wire(lost=0.3, seed=2, missing=(Missing(20, at=1.0),)))
    )
    assert heard - rest == {stamp for stamp in heard if 1000 * MS <= stamp < 1200 * MS}


def test_ticks_that_are_longer_than_the_period_are_told():
    executor, _ = executed(computing=Computing(0.013), duration=0.5)
    ticks = len(executor.block("listener").ages)
    assert executor.missed == {"speaker": 0, "listener": ticks}
    assert executor.tick_times["listener"] == pytest.approx([0.013] * executor.missed["listener"])


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

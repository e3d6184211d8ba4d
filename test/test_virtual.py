"""Systems on virtual time: what comes when, in which order, and that nothing depends on more."""

import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_runtime.bags.virtual_recording import status
from softcr_runtime.blocks import virtual
from softcr_runtime.blocks.block import CLOCK, BlockBase, Input, Output
from softcr_runtime.blocks.system import Computing, Missing, Part, Stop, System, Wire
from softcr_runtime.blocks.tick_records import ACTION, END, IDLE, TICK
from softcr_runtime.blocks.virtual import VirtualExecutor
from softcr_runtime.settings.node_settings import NodeSettings
from softcr_runtime.wire.diagnostics import OK, WARN

PERIOD = 0.01
MS, STEP = 1_000_000, 10_000_000  # [ns]
STATE, COMMAND = "pressure/state", "pressure/command"


class Speaker(BlockBase):
    """Says three pressures at each tick of the clock, and keeps the commands that it heard; begins
    when it has been asked thrice."""

    name = "speaker"
    inputs = (Input(CLOCK, "lead"), Input(COMMAND, "all", needed=False))
    outputs = (STATE,)
    actions = ("begin",)

    def reset(self):
        self.heard, self.asked = [], 0

    def act(self, action):
        self.asked += 1
        if self.asked < 3:
            raise UserError(f"asked {self.asked} times")
        return "begun"

    def tick(self, now, samples):
        self.heard += [(now, sample.stamp) for sample in samples.get(COMMAND, ())]
        return [Output(STATE, now, np.full(3, 1e-9 * now))]


class Echo(BlockBase):
    """Answers each sample; says so when it is left alone."""

    name = "echo"
    inputs = (Input(STATE, "lead"),)
    outputs = (COMMAND,)

    def reset(self):
        self.ages, self.whys, self.received = [], [], []

    def tick(self, now, samples):
        self.received.append(samples[STATE].received)
        return [Output(COMMAND, now, samples[STATE].value)]

    def answered(self, age):
        self.ages.append(age)

    def idle(self, now, why):
        self.whys.append(why)
        return [Output(COMMAND, now, np.zeros(3))]


class Newest(Echo):
    keep = "newest"


SILENCE, AT_ONCE = 0.035, Computing()


def played(
    wire=None, computing=AT_ONCE, echo=Echo, mode="wall", duration=1.0, order=(0, 1),
    silence=SILENCE, begin=(), phase=0.0, stops=(),
):  # fmt: skip
    """The executor after a run, its outputs as (now, part, topic, stamp), its records by part;
    `stops` are the speaker's."""
    place, common = __name__, {"rate_hz": 1.0 / PERIOD, "mode": mode}
    stopped, wires = Computing(stops=stops), {STATE: wire or Wire()}
    parts = (
        Part("speaker", f"{place}:Speaker", common, phase=phase, computing=stopped),
        Part("echo", f"{place}:{echo.__name__}", common, computing=computing, wires=wires),
    )
    names = tuple(parts[k].name for k in order)
    system = System("s", tuple(parts[k] for k in order), names, duration, False, "echo", begin)
    sent, records = [], {"speaker": [], "echo": []}
    settings = NodeSettings(rate_hz=1.0 / PERIOD, mode=mode)
    blocks = {"speaker": Speaker(Robot, settings), "echo": echo(Robot, settings)}
    blocks["echo"].silence = silence
    executor = VirtualExecutor(
        system,
        observe=lambda part, o: sent.append((executor.now, part, o.topic, o.stamp)),
        note=lambda part, record: records[part].append(record),
        make=lambda part: blocks[part.name],
    )
    executor.run()
    return executor, sent, records


def run(duration=1.0, **given):
    """The echo after a run without words of its own, and when what was said and answered, as
    (now, stamp) [ns]."""
    executor, sent, _ = played(duration=duration, **{"silence": np.inf} | given)
    said, answered = sent_of(sent, STATE), sent_of(sent, COMMAND)
    return executor.block("echo"), said, answered[:-1]  # without the last words


def sent_of(sent, topic):
    return [(now, stamp) for now, _, each, stamp in sent if each == topic]


class Robot:
    """As much of one as a block of this file needs."""

    actuator_names = ("a", "b", "c")
    bodies_seen = ()
    in_world = False


def answers(sent):
    """(T, 2) when commands were sent and their stamps [ns], without the last words."""
    return np.array(sent_of(sent[:-1], COMMAND))


# --- clocks, wires, computing, beginning ---------------------------------------------------------


def test_clocks_tick_at_whole_periods_and_phases_after_them_but_not_while_they_are_stopped():
    assert run(0.1)[1] == [(10 * MS * k,) * 2 for k in range(1, 11)]
    assert run(0.1, phase=0.003)[1] == [((10 * k + 3) * MS,) * 2 for k in range(1, 10)]
    _, said, _ = run(0.2, stops=(Stop(0.025, at=0.1),))
    assert [stamp // MS for stamp, _ in said] == [*range(10, 100, 10), *range(130, 201, 10)]


def test_latency_and_computing_time_add_up():
    echo, _, answered = run(wire=Wire(latency=0.002), computing=Computing(0.003))
    assert all(now - stamp == 5 * MS for now, stamp in answered)
    assert echo.ages == pytest.approx([0.005] * len(echo.ages))
    assert len(answered) == len(echo.ages) == 99  # the last one comes when the run is over


def test_a_wire_loses_its_share_and_delays_by_its_mean_without_overtaking():
    echo, said, answered = run(100.0, wire=Wire(jitter=0.02, lost=0.2, seed=5))
    heard = np.array([stamp for _, stamp in answered])
    # 10000 draws: 5 standard deviations of the share
    assert len(heard) / len(said) == pytest.approx(0.8, abs=0.02)
    assert (np.diff(heard) > 0).all()
    received = np.array(echo.received)[: len(heard)]
    assert (np.diff(received) >= 0).all()
    late = received - 1e-9 * heard
    # none overtakes another, so they are later than the exponential's mean
    assert late.min() >= 0.0
    assert 0.02 < late.mean() < 0.06


def test_a_range_of_computing_times_is_drawn_evenly_for_each_tick_and_anew_for_a_seed():
    slow = Computing(0.002, 0.008, seed=3)
    echo, *sent = run(20.0, computing=slow)
    took = np.array([now - stamp for now, stamp in sent[1]]) / MS
    assert 2.0 <= took.min() < 2.1
    assert 7.9 < took.max() <= 8.0
    # 2000 draws of a uniform distribution: 5 standard deviations of mean and of spread
    assert took.mean() == pytest.approx(5.0, abs=5 * 6 / np.sqrt(12 * 2000))
    assert took.std() == pytest.approx(6 / np.sqrt(12), rel=0.1)
    assert echo.ages[:-1] == pytest.approx(1e-3 * took[: len(echo.ages) - 1])
    assert run(20.0, computing=slow)[1:] == tuple(sent)
    assert run(20.0, computing=Computing(0.002, 0.008, seed=4))[1:] != tuple(sent)


def test_what_stops_begins_nothing_and_ends_later_what_it_was_at():
    computing = Computing(0.004, stops=(Stop(0.05, at=0.302), Stop(0.02, at=0.7)))
    _, _, answered = run(computing=computing)
    late = {stamp // MS: (now - stamp) / MS for now, stamp in answered}
    assert all(late[stamp] == 4.0 for stamp in late if stamp < 300 or 430 < stamp < 700)
    assert late[300] == 54.0  # 2 of its 4 ms were done
    # the others had waited, and are answered one after the other
    assert [late[stamp] for stamp in (310, 320, 330, 340, 350)] == [48.0, 42.0, 36.0, 30.0, 24.0]
    assert late[700] == 24.0  # it comes when the stop begins


def test_who_stands_still_is_not_idle_for_it():
    stopped = Computing(stops=(Stop(0.2, at=0.402),))
    _, _, records = played(silence=0.03, computing=stopped)
    events = [record.event for record in records["echo"]]
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
    _, said, answered = run(wire=Wire(missing=(missing,)))
    found = {stamp for _, stamp in said} - {stamp for _, stamp in answered}
    assert sorted(found) == [each * MS for each in lacking]


def test_missing_messages_change_nothing_of_what_else_is_lost():
    lossy = Wire(lost=0.3, seed=2)
    wires = (lossy, replace(lossy, missing=(Missing(20, at=1.0),)))
    heard, rest = ({stamp for _, stamp in run(2.0, wire=wire)[2]} for wire in wires)
    assert heard - rest == {stamp for stamp in heard if 1000 * MS <= stamp < 1200 * MS}


def test_ticks_that_are_longer_than_the_period_are_told():
    executor, _, _ = played(computing=Computing(0.013), duration=0.5, silence=np.inf)
    ticks = len(executor.block("echo").ages)
    assert executor.missed == {"speaker": 0, "echo": ticks}
    assert executor.tick_times["echo"] == pytest.approx([0.013] * ticks)


def test_a_system_begins_when_everybody_has_agreed_or_ends_in_one_line(monkeypatch):
    _, _, records = played(duration=0.1, begin=("speaker/begin",))
    actions = [record.stamp for record in records["speaker"] if record.event == ACTION]
    # asked once at each instant, the third of which is that of the third tick
    assert actions == [30 * MS]
    monkeypatch.setattr(virtual, "LONGEST_BEGINNING", 0.015)
    with pytest.raises(UserError, match=r"speaker/begin refused for 0\.015 s: asked 2 times"):
        played(begin=("speaker/begin",))


# --- a system of two blocks -----------------------------------------------------------------------


def test_without_delays_everything_of_an_instant_is_answered_in_it():
    executor, sent, records = played()
    np.testing.assert_array_equal(answers(sent), STEP * np.arange(1, 101)[:, None] * [1, 1])
    assert executor.block("echo").ages == [0.0] * 100
    assert [r.event for r in records["echo"]].count(TICK) == 100


def test_jitter_is_never_early_and_has_the_size_it_is_told():
    _, sent, _ = played(Wire(latency=0.001, jitter=0.0005, seed=3), duration=20.0)
    late = 1e-9 * (answers(sent)[:, 0] - answers(sent)[:, 1]) - 0.001
    assert late.min() >= 0.0
    # an exponential distribution has its mean as standard deviation: 2000 samples
    assert late.mean() / 0.0005 == pytest.approx(1.0, abs=4 / np.sqrt(2000))


def test_who_computes_longer_than_a_period_answers_in_order_or_the_newest_alone():
    every = answers(played(computing=Computing(0.025))[1])
    np.testing.assert_array_equal(np.diff(every[:, 1]), STEP)  # each one, later and later
    assert every[-1, 0] - every[-1, 1] > 20 * STEP
    newest = answers(played(computing=Computing(0.025), echo=Newest)[1])
    assert set(np.diff(newest[:, 1])) <= {2 * STEP, 3 * STEP}
    assert (newest[:, 0] - newest[:, 1]).max() <= 3.5 * STEP


@pytest.mark.parametrize("mode", ["wall", "lockstep"])
def test_who_hears_nothing_is_asked_to_be_idle_except_in_lockstep(mode):
    executor, _, records = played(Wire(lost=1.0), mode=mode)
    *overdue, last = executor.block("echo").whys
    assert last == "stopped"
    if mode == "lockstep":
        assert overdue == []
    else:
        assert set(overdue) == {"inputs overdue"}
        assert len(overdue) == int(1.0 / SILENCE)
        stamps = [r.stamp for r in records["echo"] if r.event == IDLE]
        np.testing.assert_allclose(np.diff(stamps), 1e9 * SILENCE)


def test_equal_seeds_give_equal_runs_and_others_do_not():
    rough = Wire(latency=0.002, jitter=0.003, lost=0.1, seed=7)
    first = played(rough)[1]
    assert played(rough)[1] == first
    assert played(replace(rough, seed=8))[1] != first


def test_the_order_of_parts_changes_the_order_within_an_instant_alone():
    one, other = played(order=(0, 1))[1], played(order=(1, 0))[1]
    assert {e[1:] for e in one} == {e[1:] for e in other}
    assert answers(one).tolist() == answers(other).tolist()


def test_a_command_is_heard_at_the_next_tick_of_the_clock():
    executor, _, _ = played()
    heard = np.array(executor.block("speaker").heard)
    np.testing.assert_array_equal(heard[:, 0] - heard[:, 1], STEP)


def test_of_a_run_that_nobody_keeps_nothing_is_left_in_the_next():
    """A process that makes many runs would otherwise grow with each."""
    left = weakref.ref(played()[0])
    kept = played()[0]
    assert left() is None
    assert kept.block("echo").ages


def test_what_a_block_warns_of_is_in_the_bag_of_a_run_on_virtual_time():
    block = SimpleNamespace(
        settings=NodeSettings(), robot=load_robot("licher2025"), describe=dict,
        warnings=lambda: ["commands swing", "estimate is late"],
    )  # fmt: skip
    told = status("rod_mpc", block, [0.005], 0, {})
    assert (told.level, told.message) == (WARN, "commands swing, estimate is late")
    block.warnings = list
    assert status("rod_mpc", block, [0.005], 0, {}).level == OK

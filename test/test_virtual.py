"""Systems on virtual time: what comes when, in which order, and that nothing depends on more."""

import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from softcr_models import load_robot
from softcr_runtime.bags.virtual_recording import status
from softcr_runtime.blocks.block import CLOCK, BlockBase, Input, Output
from softcr_runtime.blocks.system import Computing, Part, System, Wire
from softcr_runtime.blocks.tick_records import IDLE, TICK
from softcr_runtime.blocks.virtual import VirtualExecutor
from softcr_runtime.settings.node_settings import NodeSettings
from softcr_runtime.wire.diagnostics import OK, WARN

PERIOD = 0.01
STEP = 10_000_000  # [ns]
STATE, COMMAND = "pressure/state", "pressure/command"


class Speaker(BlockBase):
    """Says three pressures at each tick of the clock, and keeps the commands that it heard."""

    name = "speaker"
    inputs = (Input(CLOCK, "lead"), Input(COMMAND, "all", needed=False))
    outputs = (STATE,)

    def reset(self):
        self.heard = []

    def tick(self, now, samples):
        self.heard += [(now, sample.stamp) for sample in samples.get(COMMAND, ())]
        return [Output(STATE, now, np.full(3, 1e-9 * now))]


class Echo(BlockBase):
    """Answers each sample; says so when it is left alone."""

    name = "echo"
    inputs = (Input(STATE, "lead"),)
    outputs = (COMMAND,)
    silence = 0.035

    def reset(self):
        self.ages, self.whys = [], []

    def tick(self, now, samples):
        return [Output(COMMAND, now, samples[STATE].value)]

    def answered(self, age):
        self.ages.append(age)

    def idle(self, now, why):
        self.whys.append(why)
        return [Output(COMMAND, now, np.zeros(3))]


class Newest(Echo):
    keep = "newest"


def played(wire=None, computing=0.0, echo=Echo, mode="wall", duration=1.0, order=(0, 1)):
    """The executor after a run, its outputs as (now, part, topic, stamp), its records by part."""
    place, common = __name__, {"rate_hz": 1.0 / PERIOD, "mode": mode}
    parts = (
        Part("speaker", f"{place}:Speaker", dict(common)),
        Part("echo", f"{place}:{echo.__name__}", dict(common), computing=Computing(computing),
             wires={STATE: wire or Wire()}),
    )  # fmt: skip
    names = tuple(parts[k].name for k in order)
    system = System("s", tuple(parts[k] for k in order), names, duration, False, "echo")
    sent, records = [], {"speaker": [], "echo": []}
    blocks = {"speaker": Speaker, "echo": echo}
    executor = VirtualExecutor(
        system,
        observe=lambda part, o: sent.append((executor.now, part, o.topic, o.stamp)),
        note=lambda part, record: records[part].append(record),
        make=lambda part: blocks[part.name](Robot, NodeSettings(rate_hz=1.0 / PERIOD, mode=mode)),
    )
    executor.run()
    return executor, sent, records


class Robot:
    """As much of one as a block of this file needs."""

    actuator_names = ("a", "b", "c")
    bodies_seen = ()
    in_world = False


def answers(sent):
    """(T, 2) when commands were sent and their stamps [ns], without the last words."""
    return np.array([(now, s) for now, part, topic, s in sent[:-1] if topic == COMMAND])


def test_without_delays_everything_of_an_instant_is_answered_in_it():
    executor, sent, records = played()
    times = answers(sent)
    assert len(times) == 100
    np.testing.assert_array_equal(times[:, 0], times[:, 1])
    np.testing.assert_array_equal(times[:, 1], STEP * np.arange(1, 101))
    assert executor.block("echo").ages == [0.0] * 100
    assert [r.event for r in records["echo"]].count(TICK) == 100


def test_latency_of_a_wire_and_computing_time_add_up():
    executor, sent, _ = played(Wire(latency=0.004), computing=0.003)
    times = answers(sent)
    np.testing.assert_array_equal(times[:, 0] - times[:, 1], 7_000_000)
    np.testing.assert_allclose(executor.block("echo").ages[:90], 0.007, atol=1e-12)


def test_jitter_is_never_early_and_has_the_size_it_is_told():
    _, sent, _ = played(Wire(latency=0.001, jitter=0.0005, seed=3), duration=20.0)
    late = 1e-9 * (answers(sent)[:, 0] - answers(sent)[:, 1]) - 0.001
    assert late.min() >= 0.0
    # an exponential distribution has its mean as standard deviation: 2000 samples
    assert late.mean() / 0.0005 == pytest.approx(1.0, abs=4 / np.sqrt(2000))


def test_messages_are_lost_as_often_as_told():
    _, sent, _ = played(Wire(lost=0.25, seed=5), duration=20.0)
    share = np.isin(STEP * np.arange(1, 2001), answers(sent)[:, 1]).mean()
    assert share == pytest.approx(0.75, abs=4 * np.sqrt(0.25 * 0.75 / 2000))


def test_who_computes_longer_than_a_period_answers_in_order_or_the_newest_alone():
    _, sent, _ = played(computing=0.025)
    every = answers(sent)
    np.testing.assert_array_equal(np.diff(every[:, 1]), STEP)  # each one, later and later
    assert every[-1, 0] - every[-1, 1] > 20 * STEP
    _, sent, _ = played(computing=0.025, echo=Newest)
    newest = answers(sent)
    assert set(np.diff(newest[:, 1])) <= {2 * STEP, 3 * STEP}
    assert (newest[:, 0] - newest[:, 1]).max() <= 3.5 * STEP


@pytest.mark.parametrize("mode", ["wall", "lockstep"])
def test_who_hears_nothing_is_asked_to_be_idle_except_in_lockstep(mode):
    executor, _, records = played(Wire(lost=1.0), mode=mode)
    whys = executor.block("echo").whys
    assert whys[-1] == "stopped"
    overdue = whys[:-1]
    if mode == "lockstep":
        assert overdue == []
    else:
        assert set(overdue) == {"inputs overdue"}
        assert len(overdue) == int(1.0 / Echo.silence)
        stamps = [r.stamp for r in records["echo"] if r.event == IDLE]
        np.testing.assert_allclose(np.diff(stamps), 1e9 * Echo.silence)


def test_equal_seeds_give_equal_runs_and_others_do_not():
    rough = Wire(latency=0.002, jitter=0.003, lost=0.1, seed=7)
    first, second = played(rough)[1], played(rough)[1]
    assert first == second
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

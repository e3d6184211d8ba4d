"""Latches and the handshake: the table of latches, and random sequences beside a reference."""

import math
from dataclasses import replace

import pytest
from test_safety import DT, GOOD, MATRIX, MAXIMUM, Bench

from softcr_hardware.safety.safety import Action, Latch, Safety
from softcr_hardware.safety.settings import SafetySettings
from softcr_studies.robustness.handshake import SHORT, Oracle, RandomBench

# rows of the matrix whose vents a machine's fault latches; the others are an operator's or his
# program's doing
MACHINES = {
    "24 V lost", "valves off", "valves stuck", "valves garbage", "valves wrong", "valves reconnect",
    "watchdog lost", "NaN for a pressure",
}  # fmt: skip
VENTS = [row for row in MATRIX if row[3] >= Action.RAMP_TO_VENT]


@pytest.mark.parametrize("row", VENTS, ids=lambda row: row[0])
def test_every_vent_is_latched_by_its_cause_and_nobody_who_keeps_asking_arms(row):
    name, fault, *_ = row
    latch = Latch.MACHINE if name in MACHINES else Latch.OPERATOR
    bench = Bench().enable()
    before = replace(bench.flags, highest_pressure=0.0)
    vented = bench.run(5.0, **fault)
    assert (vented.enabled, vented.latch, vented.generation) == (False, latch, 1)
    assert vented.cause == vented.reason
    bench.flags = replace(before, enable=True)
    asked = bench.run(20.0)
    assert (asked.enabled, asked.latch) == (False, latch)
    assert len(asked.blockers) == 1
    assert asked.blockers[0].startswith(f"latched {latch.letter}, {vented.cause}: ")
    assert bench.reset().generation == 2
    assert not bench.run(0.297, enable=True).enabled  # a handshake of its own
    assert bench.run(0.003).enabled


def test_a_vent_while_disarmed_is_latched_too_but_takes_nothing_from_a_higher_class():
    bench = Bench()
    decision = bench.run(0.1, vent=True)
    assert (decision.latch, decision.cause) == (Latch.OPERATOR, "vent asked for")
    assert decision.generation == 1  # asked for once, for 0.1 s
    bench = Bench().enable()
    bench.run(DT, watchdog_armed=False)
    decision = bench.run(DT, vent=True)
    assert (decision.latch, decision.cause) == (Latch.MACHINE, "output watchdog not armed")
    assert decision.generation == 2
    # of several causes the hardest is latched
    decision = Bench().enable().run(DT, vent=True, pressure_fault="chamber_1: sensor frozen")
    assert (decision.reason, decision.latch.letter) == ("vent asked for", "M")
    assert decision.cause == "pressure fault: chamber_1: sensor frozen"


def supply(kilopascals):
    return f"supply {kilopascals:.0f} kPa, must be 105 kPa within 10%"


@pytest.mark.parametrize(
    ("minutes", "cause", "again", "latch"),
    [
        (9.0, supply(120.0), supply(131.0), Latch.HELD),
        (11.0, supply(120.0), supply(131.0), Latch.MACHINE),
        (9.0, "chamber_1: sensor frozen", "chamber_2: sensor frozen", Latch.MACHINE),
    ],
)
def test_the_same_cause_again_in_ten_minutes_is_held_until_a_check(minutes, cause, again, latch):
    bench = Bench().enable()
    assert bench.run(DT, pressure_fault=cause).latch is Latch.MACHINE
    bench.reset(pressure_fault="")
    coarse = 0.1  # nothing happens meanwhile
    for _ in range(round(60.0 * minutes / coarse)):
        bench.time += coarse
        bench.safety.update(bench.time, bench.flags)
    bench.enable()
    assert bench.run(DT, pressure_fault=again).latch is latch
    bench.reset(pressure_fault="")
    assert bench.run(1.0, enable=True).enabled == (latch is Latch.MACHINE)
    if latch is Latch.HELD:
        assert "pass a check, then reset it" in bench.safety.decision.blockers[0]
        bench.reset(checked=True)
        assert bench.run(1.0, enable=True).enabled


@pytest.mark.parametrize("since", ["the valves' process before", "settings that changed"])
def test_what_is_held_stays_so_until_a_check_has_passed(since):
    """As when the valves' process ended; or terminals came back with other settings."""
    bench = Bench()
    if since == "settings that changed":
        bench.enable().run(DT, exchange_age=1.0)
        decision = bench.run(DT, exchange_age=0.0, changed="EL4004: 0x8000:05 is 2, must be 0")
        assert decision.cause == "settings changed: EL4004: 0x8000:05 is 2, must be 0"
    else:
        bench.safety = Safety(SafetySettings(), MAXIMUM, held="bus silent, again within 10 minutes")
        decision = bench.run(1.0, enable=True)
    assert decision.latch is Latch.HELD
    assert bench.reset(changed="").latch is Latch.HELD
    assert bench.reset(checked=True).latch is Latch.NONE


def test_a_reset_beside_a_vent_that_lasts_forgets_nothing():
    bench = Bench().enable()
    bench.run(2 * DT, vent=True)
    decision = bench.run(DT, vent=True, reset=True)
    assert (decision.latch, decision.cause) == (Latch.OPERATOR, "vent asked for")
    assert not bench.run(1.0, vent=False, reset=False, enable=True, highest_pressure=0.0).enabled


@pytest.mark.parametrize("seed", [(7 << 32) + 2258, (13 << 32) + 4204])
def test_sequences_that_once_armed_unseen(seed):
    RandomBench(seed).run(100)


@pytest.mark.parametrize("source", ["command_age", "mocap_age", "operator_age"])
def test_time_that_is_clear_is_not_enough_a_source_must_speak(source):
    """One message that is young enough for a moment is no stream of messages."""
    bench = Bench(handshake_samples=20, handshake_time=0.02)
    bench.run(0.5, **{source: math.inf})
    bench.flags = replace(bench.flags, **{source: 0.0})
    decision = bench.run(0.04, silent=[source], enable=True)
    assert (decision.enabled, decision.blockers) == (False, ("handshake under way",))


def test_a_gap_in_the_cycles_is_no_time_that_was_clear():
    bench = Bench()
    bench.run(0.1)
    for pause in (0.15, 5.0, math.nan, -5.0):
        bench.time += 0.0 if math.isnan(pause) else pause
        now = math.nan if math.isnan(pause) else bench.time
        assert not bench.safety.update(now, replace(GOOD, enable=True)).enabled


def test_counts_say_how_far_the_handshake_is():
    bench = Bench(require_mocap=False)
    counts = bench.run(0.199).counts
    needed = {"cycles": 300, "commands": 10, "operator": 10}
    assert {name: count for name, _, count in counts} == needed
    (cycles,) = [found for name, found, _ in counts if name == "cycles"]
    assert 190 < cycles <= 200
    assert Bench().enable().run(DT).counts == ()


def test_an_untested_bench_is_tested_before_it_is_enabled_and_a_failure_is_named_and_latched():
    bench = Bench()
    asked = bench.run(1.0, untested=True)
    assert (asked.testing, asked.blockers) == (False, ("arming test: ask to begin it",))
    assert bench.run(DT, enable=True).testing
    # it goes on by itself, over chambers that are not empty
    decision = bench.run(0.5, enable=False, highest_pressure=6e3, pressure_error=6e3)
    assert (decision.testing, decision.enabled) == (True, False)
    passed = bench.run(DT, untested=False, enable=True)
    assert (passed.testing, passed.enabled) == (False, False)
    assert bench.run(0.5, highest_pressure=0.0, pressure_error=0.0).enabled
    bench = Bench()
    bench.run(1.0, untested=True, enable=True)
    failed = bench.run(DT, test_failed="chamber_2: no rise")
    assert (failed.testing, failed.latch) == (False, Latch.MACHINE)
    assert failed.cause == "arming test: chamber_2: no rise"


@pytest.mark.parametrize(
    "change", [{"vent": True}, {"operator_pressed": False}, {"mocap_age": 1.0}, {"reset": True}]
)
def test_whatever_stands_in_the_way_of_enabling_ends_the_arming_test(change):
    bench = Bench()
    assert bench.run(1.0, untested=True, enable=True).testing
    assert not bench.run(DT, enable=False, **change).testing
    assert not bench.run(1.0, vent=False, reset=False, operator_pressed=True, mocap_age=0.0).testing


def test_one_time_far_ahead_is_a_fault_and_freezes_nothing():
    """Hold, ramp and clearing go on by the own time, which never waits for the other to come."""
    bench = Bench().enable()
    decision = bench.safety.update(bench.time + 1e9, bench.flags)
    assert (decision.action, decision.latch) == (Action.VENT_NOW, Latch.MACHINE)
    assert decision.reason == "clock jumped"
    bench.reset()
    bench.enable()
    assert bench.run(0.15, silent=["command_age"]).action == Action.HOLD
    assert bench.run(0.45, silent=["command_age"]).action == Action.RAMP_TO_VENT
    assert bench.run(2.1).action == Action.VENT_NOW


@pytest.mark.parametrize("age", ["command_age", "mocap_age", "operator_age", "exchange_age"])
def test_what_is_yet_to_come_is_not_fresh(age):
    assert Bench().enable().run(3.0, **{age: -5.0}).enabled is False


def test_random_sequences_arm_only_what_the_reference_has_seen():
    assert sum(RandomBench(seed).run(400) for seed in range(150)) > 100


def test_the_reference_finds_a_state_machine_that_arms_too_early():
    """A test of the test: without the count of samples, of resets or of generations it fails."""
    for weak in ({"handshake_samples": 11}, {"handshake_messages": 2}):
        settings = SHORT.model_copy(update=weak)
        with pytest.raises(AssertionError, match="armed"):
            sum(RandomBench(seed, settings, Oracle(SHORT)).run(400) for seed in range(300))

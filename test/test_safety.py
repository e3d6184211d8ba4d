"""The safety state machine on virtual time: the fault matrix as a table, and random faults."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kit.bench import HEALTHY

from softcr_hardware.safety.rules import RULES
from softcr_hardware.safety.safety import Action, Safety
from softcr_hardware.safety.setpoint import Setpoint
from softcr_hardware.safety.settings import SafetySettings
from softcr_models.robots.robot import PressureLimits

MAXIMUM = 1e5
LIMITS = PressureLimits(minimum=0.0, maximum=MAXIMUM, maximum_rate=2e6)
DT = 0.001
GOOD = replace(HEALTHY, operator_age=0.01, command_age=0.01, mocap_age=0.005, force_torque_age=0.01)


class Bench:
    """A safety on its own clock, whose ages grow for what is switched off."""

    def __init__(self, **settings):
        self.safety = Safety(SafetySettings(**settings), MAXIMUM)
        self.time = 100.0
        self.flags = GOOD
        self.let_go()

    def run(self, duration, silent=(), **changes):
        """Let time pass in steps of 1 ms, the `silent` ages growing."""
        self.flags = replace(self.flags, **changes)
        for _ in range(round(duration / DT)):
            self.time += DT
            ages = {name: getattr(self.flags, name) + DT for name in silent}
            self.flags = replace(self.flags, **ages)
            decision = self.safety.update(self.time, self.flags)
        return decision

    def let_go(self):
        """The operator releases the switch for a moment and holds it again."""
        self.run(DT, operator_pressed=False)
        return self.run(DT, operator_pressed=True)

    def reset(self, checked=False, **changes):
        """Somebody resets while the switch is released; then it is held again."""
        self.run(DT, reset=True, checked=checked, enable=False, vent=False, operator_pressed=False)
        self.run(DT, **{"reset": False, "checked": False, "highest_pressure": 0.0} | changes)
        return self.run(DT, operator_pressed=True)

    def enable(self):
        self.run(0.5)
        decision = self.run(DT, enable=True)
        assert decision.enabled, decision
        self.flags = replace(self.flags, enable=False, highest_pressure=5e4)
        return self


@pytest.mark.parametrize(
    ("change", "blocker"),
    [
        ({"mocap_age": math.inf}, "poses silent"),
        ({"slaves_operational": False}, "slaves not operational"),
        ({"watchdog_armed": False}, "output watchdog not armed"),
        ({"highest_pressure": 2e4}, "chambers not empty"),
        ({"pressure_error": 1e4}, "pressures not near the command"),
        ({"pressure_age": math.inf}, "pressures not believable"),
        ({"pressure_fault": "chamber_1: frozen"}, "pressure fault: chamber_1: frozen"),
        ({"command_age": math.inf}, "commands silent"),
        ({"operator_age": math.inf}, "operator silent"),
        ({"operator_pressed": False}, "deadman released"),
        ({"exchange_age": 1.0}, "bus silent"),
        ({"vent": True}, "vent asked for"),
        ({"stopped": True}, "emergency stop"),
        ({"unpowered": True}, "24 V missing"),
        ({"mocap_age": math.nan}, "poses silent"),
    ],
)
def test_enabling_needs_each_part_of_the_handshake(change, blocker):
    bench = Bench()
    bench.run(1.0)
    bench.run(1.0, **change)
    decision = bench.run(DT, enable=True)
    assert not decision.enabled
    assert blocker in decision.blockers


# The fault matrix as the valves see it: fault, how it looks, the action after a time, the reason.
# "Stuck" and "garbage" of a source are rejected where it is decoded: here they are its silence.
MATRIX = [
    ("mocap off, soon", {"silent": ["mocap_age"]}, 0.06, Action.PREDICT_ONLY, "poses missing"),
    ("mocap off, later", {"silent": ["mocap_age"]}, 0.35, Action.HOLD, "poses late"),
    ("mocap off, for good", {"silent": ["mocap_age"]}, 1.1, Action.RAMP_TO_VENT, "poses silent"),
    ("mocap slow", {"impaired": ("mocap rate",)}, 1.0, Action.WARN, "impaired: mocap rate"),
    ("mocap delayed", {"mocap_age": 0.06}, 5.0, Action.PREDICT_ONLY, "poses missing"),
    ("force-torque off", {"silent": ["force_torque_age"]}, 60.0, Action.WARN, "wrenches silent"),
    ("stop pressed", {"stopped": True}, DT, Action.VENT_NOW, "emergency stop"),
    ("24 V lost", {"unpowered": True}, DT, Action.VENT_NOW, "24 V missing"),
    ("valves off", {"silent": ["exchange_age"]}, 0.06, Action.VENT_NOW, "bus silent"),
    ("valves stuck", {"pressure_fault": "chamber_2: sensor frozen"}, DT, Action.VENT_NOW,
     "pressure fault: chamber_2: sensor frozen"),
    ("valves garbage", {"silent": ["pressure_age"]}, 0.06, Action.VENT_NOW, "pressures not"),
    ("valves wrong", {"highest_pressure": 1.3e5}, DT, Action.VENT_NOW, "overpressure"),
    ("valves slow", {"impaired": ("bus",)}, 1.0, Action.WARN, "impaired: bus"),
    ("valves delayed", {"pressure_age": 0.049}, 5.0, Action.NONE, "all clear"),
    ("valves reconnect", {"slaves_operational": False}, DT, Action.VENT_NOW, "slaves not"),
    ("watchdog lost", {"watchdog_armed": False}, DT, Action.VENT_NOW, "output watchdog"),
    ("controller off, soon", {"silent": ["command_age"]}, 0.1, Action.HOLD, "commands late"),
    ("controller off", {"silent": ["command_age"]}, 0.52, Action.RAMP_TO_VENT, "commands silent"),
    ("controller slow", {"impaired": ("commands",)}, 1.0, Action.WARN, "impaired: commands"),
    ("operator silent, soon", {"silent": ["operator_age"]}, 0.25, Action.HOLD, "operator late"),
    ("operator silent", {"silent": ["operator_age"]}, 0.52, Action.RAMP_TO_VENT, "operator silent"),
    ("deadman released", {"operator_pressed": False}, DT, Action.RAMP_TO_VENT, "deadman released"),
    ("a second operator", {"operators": "hold and joy"}, DT, Action.RAMP_TO_VENT,
     "operator's signal of several nodes: hold and joy"),
    ("vent service", {"vent": True}, DT, Action.VENT_NOW, "vent asked for"),
    ("the further action wins", {"command_age": 0.1, "operator_pressed": False, "vent": True}, DT,
     Action.VENT_NOW, "vent asked for"),
    ("a ramp that empties nothing", {"operator_pressed": False}, 2.1, Action.VENT_NOW,
     "deadman released"),
    ("a second controller, soon", {"commanders": "mpc and view"}, DT, Action.HOLD,
     "commands of several nodes: mpc and view"),
    ("a second controller", {"commanders": "mpc and view"}, 0.52, Action.RAMP_TO_VENT,
     "commands still of several nodes: mpc and view"),
    ("held for ever", {"command_age": 0.2}, 2.1, Action.RAMP_TO_VENT, "held too long: commands"),
    ("NaN for an age", {"command_age": math.nan}, DT, Action.RAMP_TO_VENT, "commands silent"),
    ("NaN for a pressure", {"highest_pressure": math.nan}, DT, Action.VENT_NOW, "overpressure"),
]  # fmt: skip


@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row[0])
def test_each_fault_ends_where_the_matrix_says(row):
    _, fault, after, action, reason = row
    decision = Bench().enable().run(after, **fault)
    assert decision.action == action
    assert decision.reason.startswith(reason)
    assert decision.enabled == (action < Action.VENT_NOW)


@pytest.mark.parametrize("before", [Action.NONE, Action.HOLD, Action.RAMP_TO_VENT])
def test_a_pressure_fault_vents_from_every_state_and_is_latched(before):
    """Holding and ramping would go on regulating on the sensor that lies."""
    bench = Bench().enable()
    silence = {Action.NONE: 0.01, Action.HOLD: 0.15, Action.RAMP_TO_VENT: 0.6}[before]
    assert bench.run(silence, command_age=silence).action == before
    fault = "chamber_2: air that the sensor does not show"
    decision = bench.run(DT, pressure_fault=fault)
    assert (decision.action, decision.enabled) == (Action.VENT_NOW, False)
    assert (decision.reason, decision.latch.letter) == (f"pressure fault: {fault}", "M")
    # all is well again, and somebody keeps asking
    asked = bench.run(10.0, pressure_fault="", command_age=0.01, highest_pressure=0.0, enable=True)
    first = "let go of the deadman's switch, then reset it"
    assert asked.blockers == (f"latched M, pressure fault: {fault}: {first}",)


def test_short_gaps_neither_vent_nor_flap():
    bench = Bench().enable()
    for _ in range(20):  # a pose comes every 80 ms: each gap is bridged, and the bridge stays
        bench.run(0.08, silent=["mocap_age"], mocap_age=0.0)
    assert bench.safety.decision.action == Action.PREDICT_ONLY
    assert bench.safety.transition_count == 2  # enabled, predict only
    assert bench.run(0.5, mocap_age=0.0).action == Action.NONE


def test_a_hold_ends_when_commands_come_back_but_a_ramp_does_not():
    bench = Bench().enable()
    assert bench.run(0.15, silent=["command_age"]).action == Action.HOLD
    assert bench.run(0.4, command_age=0.0).action == Action.NONE
    assert bench.run(0.6, silent=["command_age"]).action == Action.RAMP_TO_VENT
    assert bench.run(0.4, command_age=0.0).action == Action.RAMP_TO_VENT
    decision = bench.run(DT, highest_pressure=1e3)
    assert (decision.action, decision.enabled) == (Action.VENT_NOW, False)
    assert decision.reason == "commands silent"


def test_every_transition_is_recorded_with_time_and_reason():
    bench = Bench().enable()
    bench.run(0.15, silent=["command_age"])
    bench.run(DT, vent=True)
    changes = [(t.before, t.after, t.enabled, t.reason) for t in bench.safety.transitions]
    assert changes == [
        (Action.VENT_NOW, Action.NONE, True, "enabled"),
        (Action.NONE, Action.HOLD, True, "commands late"),
        (Action.HOLD, Action.VENT_NOW, False, "vent asked for"),
    ]
    times = [t.time for t in bench.safety.transitions]
    assert times == sorted(times)


@pytest.mark.parametrize("jump", [-3600.0, math.nan, -math.inf])
def test_a_clock_that_jumps_back_stands_still(jump):
    bench = Bench().enable()
    assert bench.safety.update(bench.time + jump, bench.flags).action == Action.NONE
    assert bench.safety.update(bench.time + jump, replace(bench.flags, vent=True)).enabled is False


def test_without_operator_and_mocap_a_bench_may_be_told_to_run():
    bench = Bench(require_operator=False, require_mocap=False)
    bench.flags = replace(GOOD, operator_pressed=False, operator_age=math.inf, mocap_age=math.inf)
    assert bench.enable().run(1.0).action == Action.NONE


HELD_ON = "deadman's switch held since before: let go of it, then hold it again"
SINCE = {
    "the start": lambda bench: bench,
    "a vent": lambda bench: bench.run(DT, vent=True),
    "a reset": lambda bench: bench.reset() and bench.run(DT, reset=True),
    "other numbers": lambda bench: bench.safety.use(SafetySettings(command_vent=1.0)),
}


@pytest.mark.parametrize("since", SINCE)
def test_arming_needs_the_switch_let_go_and_held_anew_since(since):
    """Whoever else vents, resets, changes numbers and asks, while an operator holds on."""
    bench = Bench()
    if since == "the start":
        bench.safety = Safety(SafetySettings(), MAXIMUM)
    SINCE[since](bench)
    blocked = bench.run(1.0, vent=False, reset=False, enable=True).blockers
    if since == "a vent":  # a reset does not help, either, while the switch is held
        bench.run(DT, reset=True)
        blocked = bench.run(1.0, reset=False).blockers
        assert "let go of the deadman's switch, then reset it" in blocked[0]
    else:
        assert blocked == (HELD_ON,)
    # silence and another node's word are no letting go
    bench.run(1.0, operator_age=math.inf, operator_pressed=False)
    bench.run(1.0, operator_age=0.01, operators="hold and joy")
    assert bench.run(1.0, operators="", operator_pressed=True).blockers == blocked
    assert not bench.safety.decision.enabled
    bench.reset() if since == "a vent" else bench.let_go()
    assert bench.run(1.0, enable=True).enabled


def test_settings_out_of_order_are_refused():
    with pytest.raises(ValueError, match="mocap: ages"):
        SafetySettings(mocap_hold=0.01)


# --- random faults --------------------------------------------------------------------------------

AGES = ["operator_age", "command_age", "mocap_age", "force_torque_age", "exchange_age"]
AGES += ["pressure_age"]
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
ODD = st.sampled_from([math.nan, math.inf, -1.0, 0.04, 0.3, 5.0, 4e4, 1.3e5])


class World:
    """Safety and setpoint together, over chambers that follow the setpoint with a lag."""

    def __init__(self):
        # how long a handshake takes is not looked at here, and many are made
        self.safety = Safety(SafetySettings(handshake_samples=8, handshake_messages=4), MAXIMUM)
        self.setpoint = Setpoint(LIMITS, 3, command_period=1 / 70, vent_rate=2e5)
        self.time = 0.0
        self.silent = set()
        self.flags = GOOD
        self.follows = True
        self.chambers = np.zeros(3)
        self.let_go()

    def tick(self, dt=0.01):
        self.time += dt
        ages = {name: getattr(self.flags, name) + dt for name in self.silent}
        if self.follows:
            ages["highest_pressure"] = float(self.chambers.max())
            ages["pressure_error"] = float(np.abs(self.chambers - self.setpoint.pressures).max())
        self.flags = replace(self.flags, **ages)
        decision = self.safety.update(self.time, self.flags)
        before = self.setpoint.pressures
        sent = self.setpoint.advance(decision.action, dt)
        vented = decision.action == Action.VENT_NOW
        self.chambers += (sent - self.chambers) * (0.5 if vented else 0.2)
        assert np.all((sent >= 0.0) & (sent <= MAXIMUM))
        if vented:
            assert not decision.enabled
            assert np.all(sent == 0.0)
        else:
            assert decision.enabled
            assert np.all(np.abs(sent - before) <= LIMITS.maximum_rate * dt * (1 + 1e-9))
        if decision.action == Action.RAMP_TO_VENT:
            assert np.all(sent <= before)
        return decision

    def let_go(self):
        """The operator releases the switch for a moment and holds it again."""
        for pressed in (False, True):
            self.flags = replace(self.flags, operator_pressed=pressed)
            self.tick()

    def end_vented(self):
        """Whatever else has happened: commands end, too."""
        self.flags = replace(self.flags, enable=False)
        self.silent.add("command_age")
        self.follows = True
        assert any(not self.tick(0.05).enabled for _ in range(60))
        assert not any(self.tick(0.05).enabled for _ in range(3))

    def mend(self):
        self.silent.clear()
        self.flags = GOOD
        self.follows = True


class RandomFaults(RuleBasedStateMachine):
    """Whatever comes: limits hold, vented is reachable, and after mending it can run again."""

    @initialize()
    def start(self):
        self.world = World()
        self.a_mended_bench_can_be_enabled_again()

    @rule(command=st.lists(NUMBERS, min_size=0, max_size=4))
    def command(self, command):
        self.world.setpoint.command(np.array(command))

    @rule(age=st.sampled_from(AGES))
    def goes_silent(self, age):
        self.world.silent.add(age)

    @rule(name=st.sampled_from([*AGES, "highest_pressure", "pressure_error"]), value=NUMBERS)
    def garbage(self, name, value):
        self.world.follows = False
        self.world.flags = replace(self.world.flags, **{name: value})

    @rule(name=st.sampled_from(["operator_pressed", "slaves_operational", "watchdog_armed"]))
    def lost(self, name):
        self.world.flags = replace(self.world.flags, **{name: False})

    @rule()
    def impaired(self):
        self.world.flags = replace(self.world.flags, impaired=("something",))

    @rule(vent=st.booleans(), enable=st.booleans(), reset=st.booleans())
    def asks(self, vent, enable, reset):
        self.world.flags = replace(self.world.flags, vent=vent, enable=enable, reset=reset)

    @rule(jump=st.floats(allow_nan=True, allow_infinity=True))
    def the_clock_jumps(self, jump):
        self.world.safety.update(jump, self.world.flags)

    @rule(ticks=st.integers(1, 30))
    def time_passes(self, ticks):
        for _ in range(ticks):
            self.world.tick()

    @rule()
    def all_is_mended(self):
        self.world.mend()

    @precondition(lambda self: self.world.safety.decision.enabled)
    @rule()
    def vent_is_always_obeyed_at_once(self):
        self.world.flags = replace(self.world.flags, vent=True)
        assert self.world.tick().action == Action.VENT_NOW

    @precondition(lambda self: self.world.safety.decision.enabled)
    @rule(
        silent=st.sets(st.sampled_from(AGES)),
        given=st.dictionaries(st.sampled_from([*AGES, "pressure_error"]), ODD, max_size=3),
        follows=st.booleans(),
    )
    def silent_commands_end_vented(self, silent, given, follows):
        self.world.silent |= silent
        self.world.follows = follows
        self.world.flags = replace(self.world.flags, **given)
        for _ in range(5):
            self.world.tick()
        self.world.end_vented()

    @rule()
    def a_mended_bench_can_be_enabled_again(self):
        self.world.mend()
        self.world.flags = replace(self.world.flags, vent=True)
        for _ in range(50):
            self.world.tick()
        self.world.flags = replace(self.world.flags, vent=False, reset=False)
        self.world.let_go()
        self.world.flags = replace(self.world.flags, reset=True, checked=True)
        self.world.tick()
        self.world.flags = replace(self.world.flags, reset=False, checked=False)
        self.world.let_go()
        for _ in range(50):
            self.world.tick()
        self.world.flags = replace(self.world.flags, enable=True)
        assert self.world.tick().enabled
        self.world.flags = replace(self.world.flags, enable=False)

    @invariant()
    def disarmed_means_vented(self):
        if hasattr(self, "world"):
            decision = self.world.safety.decision
            assert decision.enabled == (decision.action < Action.VENT_NOW)

    def teardown(self):
        if hasattr(self, "world"):
            self.world.end_vented()


TestRandomFaults = RandomFaults.TestCase
TestRandomFaults.settings = hypothesis_settings(max_examples=300, stateful_step_count=25)


def test_each_rule_has_a_row_in_the_matrix():
    reasons = {reason for *_, reason in MATRIX}
    for reason, *_ in RULES:
        assert any(reason.startswith(seen) or seen.startswith(reason) for seen in reasons), reason

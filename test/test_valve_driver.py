"""The valve driver on virtual time, over a bus without a wire: real bytes, chambers that fill."""

import math
import os
import sys
import threading
import time
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from kit.processes import until
from kit.refusals import one_line

from softcr_hardware.backoff import Backoff
from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.emulation.faults import DELAY, FAULT_KINDS, FaultInjector
from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.interfaces import own_interface
from softcr_hardware.ethercat.process_data import INPUT, ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.ethercat.valve_process import ValveProcess, ValveTask
from softcr_hardware.nodes.valves import Operator, Valves
from softcr_hardware.safety.commands import CommandJudge
from softcr_hardware.safety.safety import Action
from softcr_hardware.safety.settings import SafetySettings
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.sample import Sample

ROBOT = load_robot("licher2025")
STATION = load_station("licher2025").model_copy(update={"arming_test": False, "sample_age": 0.0})
DT = 0.001
PERIOD = 1 / 70  # of the commands [s]
AHEAD = 1.5 * DT + STATION.valve.lag  # the setpoint moves so long before pressures follow [s]


def one(due, pressures):
    """One command that is due at a time [s]."""
    return CommandPacket.single(round(1e9 * due), pressures)


def plan(due, rows):
    """Commands (N, 3), or (N,) of all three chambers, the first one due at a time [s]."""
    rows = np.asarray(rows, float)
    rows = np.repeat(rows[:, None], 3, axis=1) if rows.ndim == 1 else rows
    return CommandPacket.regular(round(1e9 * due), round(1e9 * PERIOD), rows)


class WirelessBus:
    """The bytes and watchdog of the terminals without a network, and faults by type."""

    def __init__(self, data):
        self.now = self._fed = 0.0
        self.actuator = EmulatedActuator(STATION)
        self.faults = FaultInjector(np.full(3, 1.2), np.zeros(3), np.full(3, 10.0))
        self.watchdog_armed = self.is_open = self.tripped = self._toggle = False
        self.raises = None
        self.noise = np.random.default_rng(0)
        self._data, self._volts = data, np.zeros(3)

    def open(self):
        if not self.faults.answers():
            raise UserError("no EtherCAT terminal answers")
        self.is_open = self.watchdog_armed = True
        self.tripped = False
        self._fed = self.now

    def close(self):
        self.is_open = self.watchdog_armed = False
        self._volts = np.zeros(3)

    def check(self):
        return "EL4004: SAFEOP with error" if self.tripped else ""

    def pass_time(self, now):
        self.now = now
        if now - self._fed > STATION.watchdog:
            self.tripped = True
            self._volts = np.zeros(3)
        return self.actuator.advance(now, self._volts)

    def exchange(self, volts):
        if self.raises:
            raise self.raises
        if not self.is_open or not self.faults.answers():
            return None
        packed = np.frombuffer(self._data.pack(volts)[3], "<i2") * 10.0 / 0x7FFF
        self._fed = self.now
        if not self.tripped:
            self._volts = packed[:3]
        words = np.zeros(4, INPUT)
        pressures = self.actuator.pressures + 50.0 * self.noise.standard_normal(3)
        signals = self.faults.signals(self.now, self._data.volts(pressures))
        self._toggle ^= self.faults.renewed
        words["value"][:3] = np.rint(np.clip(signals, 0, 10) / 10.0 * 0x7FFF)
        words["status"] = 0x8000 if self._toggle else 0
        return self._data.unpack({2: words.tobytes()})


class Controller:
    """Commands on their way to the valves, and faults by type; `lateness` is its usual one [s]."""

    lateness = 0.02

    def __init__(self):
        self.faults = FaultInjector(np.full(3, 6e4), np.full(3, -1e9), np.full(3, 1e9))
        self.noise = np.random.default_rng(0)
        self._way = []

    def answer(self, now, command):
        """Ask for pressures at `now`, as an answer to a noisy camera would."""
        if not self.faults.answers():
            return
        if command.any():
            command = command + 1.0 * self.noise.standard_normal(len(command))
        said = self.faults.signals(now, command)
        if self.faults.kind == "delayed":
            said = command  # the whole message is late, its stamp with it
        if self.faults.renewed:
            late = DELAY if self.faults.kind == "delayed" else 0.0
            self._way.append((now + late, said, self.lateness + late))

    def commands(self, now):
        """Those that arrive by `now`, each with its age."""
        arrived = [(said, age) for time, said, age in self._way if time <= now]
        self._way = [item for item in self._way if item[0] > now]
        return arrived


class Bench:
    """Driver, bus and the messages of the rest of the stack, all on one virtual clock."""

    def __init__(self, **about):
        data = ProcessData(STATION)
        self.bus, self.controller = WirelessBus(data), Controller()
        self.said, self.silent = [], set()
        self.driver = ValveDriver(
            STATION, ROBOT.pressure_limits, data, self.bus, SafetySettings(), most_reconnects=5,
            say=self.said.append, **about,
        )  # fmt: skip
        self.now, self.command, self.pressed = 10.0, np.zeros(3), True
        self.bus.pass_time(self.now)
        self.driver.open()

    def run(self, duration):
        for step in range(round(duration / DT)):
            self.now += DT
            self.bus.pass_time(self.now)
            if step % 14 == 0:
                self.send()
            for command, age in self.controller.commands(self.now):
                self.driver.hear("command", self.now, one(self.now, command), age)
            report = self.driver.tick(self.now)
            assert np.all((report.sent >= 0.0) & (report.sent <= 1e5))
            assert np.all((report.volts >= 0.0) & (report.volts <= 10.0))
            if not report.decision.enabled:
                assert np.all(report.volts == STATION.valve.exhaust)
        return report

    def send(self):
        for source in ("operator", "mocap", "force_torque"):
            if source not in self.silent:
                value = self.pressed if source == "operator" else None
                self.driver.hear(source, self.now, value)
        if "command" not in self.silent:
            self.controller.answer(self.now, self.command)

    def let_go(self, reset=False, checked=False):
        """The operator releases the switch, resets where asked to, and holds it again."""
        pressed, self.pressed = self.pressed, False
        self.run(0.02)
        if reset:
            self.driver.reset(checked)
            self.run(0.02)
        self.pressed = pressed

    def enable(self, command=4e4, commanded=True):
        """Enabled, and a while at a command, which goes on only where it is `commanded`."""
        self.command = np.zeros(3)
        # where there is a latch an operator has looked, and a check has passed
        self.let_go(reset=bool(self.driver.report.decision.latch), checked=True)
        self.run(0.48)
        self.driver.enable()
        report = self.run(0.002)
        assert report.decision.enabled, report.decision
        self.command = np.full(3, command)
        self.run(0.8)
        self.silent |= set() if commanded else {"command"}
        return self


def test_enabled_driver_regulates_the_commanded_pressures_and_vents_on_request():
    bench = Bench().enable(4e4)
    report = bench.run(0.5)
    assert np.allclose(bench.bus.actuator.pressures, 4e4, atol=1500)
    assert np.allclose(report.pressures, bench.bus.actuator.pressures, atol=300)
    assert report.decision.action == Action.NONE
    bench.driver.vent()
    report = bench.run(0.3)
    assert (report.decision.enabled, report.decision.reason) == (False, "vent asked for")
    assert bench.bus.actuator.pressures.max() < 500.0


def test_open_loop_fills_chambers_by_the_flow_model_alone():
    bench = Bench(closed_loop=False).enable(0.0)
    for wanted in np.linspace(0.0, 4e4, 20):  # slower than the lag of the valves
        bench.command = np.full(3, wanted)
        bench.run(0.02)
    bench.run(1.0)
    assert np.allclose(bench.bus.actuator.pressures, 4e4, atol=2e3)


def test_reported_pressures_are_means_stamped_with_their_middle():
    """Of five samples: less noise by the root of five, and no lag on a ramp of 40 kPa in 0.4 s."""
    bench = Bench(averaged=5).enable(1e4)
    off, true = [], {}
    for step in range(400):
        bench.command = np.full(3, 1e4 + 1e2 * step)
        report = bench.run(DT)
        true[round(bench.now, 3)] = bench.bus.actuator.pressures
        assert report.measured <= report.time
        if round(report.measured, 3) in true and step > 100:
            off.append(report.pressures - true[round(report.measured, 3)])
    off = np.array(off)
    assert off.std() == pytest.approx(50.0 / math.sqrt(5), rel=0.25)
    assert abs(off.mean()) < 20.0  # a lag of 2 ms would be 200 Pa


def test_a_command_step_reaches_the_valves_as_a_ramp_within_the_limits():
    bench = Bench().enable(0.0)
    bench.command = np.array([1.9e5, 5e4, -0.9e5])
    sent = np.array([bench.run(DT).sent for _ in range(200)])
    assert np.abs(np.diff(sent, axis=0)).max() <= 2e6 * DT * 1.001
    assert np.allclose(sent[-1], [1e5, 5e4, 0.0], atol=5.0)
    assert bench.driver.report.decision.reason == "impaired: commands beyond the limits"
    bench.command = np.array([np.nan, 0, 0])
    assert np.allclose(bench.run(0.05).sent, [1e5, 5e4, 0.0], atol=5.0)


def test_a_command_that_is_early_is_followed_when_it_is_due():
    """The setpoint begins to move by the valves' lag before the moment, whenever in a wait the
    command came, and the pressures a few ms after it: a small opening waits for its pulse."""
    begins, follows = [], []
    for early in (0.002, 0.0083, 0.0171):
        bench = Bench().enable(2e4, commanded=False)
        bench.run(0.0305 - early)
        due = bench.now + early
        bench.driver.hear("command", bench.now, one(due, np.full(3, 4e4)))
        before = bench.driver.report.sent[0]
        while bench.driver.report.sent[0] < before + 30.0:
            bench.run(DT)
        begins.append(bench.now - due)
        lowest = bench.bus.actuator.pressures[0]
        while bench.bus.actuator.pressures[0] < lowest + 30.0:
            bench.run(DT)
            lowest = min(lowest, bench.bus.actuator.pressures[0])
        follows.append(bench.now - due)
    assert np.allclose(begins, -STATION.valve.lag, atol=0.002)
    assert max(follows) <= 0.009
    assert bench.driver.report.decision.enabled


def test_neither_commands_that_wait_nor_an_enable_on_its_way_outlive_a_vent():
    bench = Bench().enable(2e4)
    bench.driver.hear("command", bench.now, plan(bench.now + 0.02, np.full(40, 4e4)))
    seen = bench.driver.report.decision.generation
    bench.driver.vent()
    assert bench.run(0.05).sent.max() == 0.0
    bench.run(0.25)
    bench.command = np.zeros(3)
    bench.let_go(reset=True)
    bench.run(0.5)
    bench.driver.enable(seen)
    assert not bench.run(0.01).decision.enabled
    bench.driver.enable()
    assert bench.run(0.01).decision.enabled
    assert bench.run(0.8).sent.max() == 0.0


def test_a_released_deadman_ramps_the_pressures_down_and_disarms():
    bench = Bench().enable(5e4)
    bench.pressed = False
    reports = [bench.run(DT) for _ in range(400)]
    ramp = [r.sent[0] for r in reports if r.decision.action == Action.RAMP_TO_VENT]
    slopes = np.diff(ramp) / DT
    assert len(ramp) > 100
    assert np.all(slopes <= 1e-6)
    assert slopes.min() == pytest.approx(-2e5, rel=1e-3)
    assert ramp[0] - ramp[100] == pytest.approx(2e4, rel=0.05)
    assert not reports[-1].decision.enabled
    assert reports[-1].decision.reason == "deadman released"


# fault of the valves' bus -> the action it ends in, whether enabled, a word of the reason
END_STATES = {
    "ok": (Action.NONE, True, ""),
    "off": (Action.VENT_NOW, False, "bus silent"),
    "stuck": (Action.VENT_NOW, False, "air that the sensor does not show"),
    "garbage": (Action.VENT_NOW, False, "overpressure"),
    "wrong": (Action.VENT_NOW, False, "air that nobody let in"),
    "slow": (Action.WARN, True, "impaired: pressure samples"),
    "delayed": (Action.VENT_NOW, False, "air that the sensor does not show"),
    "intermittent": (Action.WARN, True, "impaired: bus"),
    "reconnect": (Action.VENT_NOW, False, "slaves not operational"),
}


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_each_fault_of_the_bus_has_a_named_end_state(kind):
    bench = Bench().enable()
    bench.command = np.full(3, 8e4)
    if kind == "reconnect":
        bench.bus.tripped = True
    bench.bus.faults.kind = "ok" if kind == "reconnect" else kind
    report = bench.run(1.0)
    action, enabled, reason = END_STATES[kind]
    assert (report.decision.action, report.decision.enabled) == (action, enabled)
    assert reason in report.decision.reason
    if not enabled:
        assert bench.bus.actuator.pressures.max() < 5e3


# fault of the controller -> the action it ends in, and its reason
CONTROLLER_STATES = {
    "ok": (Action.NONE, ""),
    "off": (Action.VENT_NOW, "commands silent"),
    "stuck": (Action.WARN, "impaired: commands frozen"),
    "garbage": (Action.VENT_NOW, "commands silent"),
    "wrong": (Action.WARN, "impaired: commands beyond the limits"),
    "slow": (Action.WARN, "impaired: commands slow"),
    "delayed": (Action.WARN, "impaired: commands late"),
    "intermittent": (Action.NONE, ""),
    "reconnect": (Action.VENT_NOW, "commands silent"),
}


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_each_fault_of_the_controller_has_a_named_end_state(kind):
    bench = Bench().enable(8e4)
    restarting = kind == "reconnect"  # a process that starts again takes a while
    bench.controller.faults.kind = "off" if restarting else kind
    bench.run(1.2)
    if restarting:
        bench.controller.faults.kind = "ok"
    report = bench.run(0.8)
    action, reason = CONTROLLER_STATES[kind]
    assert (report.decision.action, report.decision.reason) == (action, reason or "all clear")
    assert report.decision.enabled == (action < Action.VENT_NOW)
    wanted = {"wrong": 1e5}.get(kind, 8e4) if report.decision.enabled else 0.0
    assert np.allclose(bench.bus.actuator.pressures, wanted, atol=3e3)
    if kind in ("ok", "intermittent"):
        assert bench.driver.safety.transition_count == 1  # enabled, and no flapping since
    if restarting:
        assert report.decision.blockers[0].startswith("latched O, commands silent: ")
        bench.enable()  # an operator may


def test_every_reason_to_refuse_a_command_is_counted_and_refused_is_not_heard():
    judge = CommandJudge(SafetySettings(), ROBOT.pressure_limits, 3, PERIOD)
    one_is_none, one_is_high = np.full((4, 3), 5e4), np.full((4, 3), 5e4)
    one_is_none[3, 1], one_is_high[3, 1] = np.nan, 2.1e5
    cases = [
        (np.full((1, 3), 5e4), 0.02, ""),
        (np.full((4, 3), 5e4), 0.02, ""),
        (np.full((1, 3), 5e4), 0.3, "too old"),
        (np.full((1, 3), 5e4), np.nan, "too old"),
        (np.full((1, 3), 5e4), -0.3, "stamped ahead of time"),
        (one_is_none, 0.02, "not a finite pressure for each chamber"),
        (np.array([[np.inf, 0, 0]]), 0.02, "not a finite pressure for each chamber"),
        (np.zeros((4, 2)), 0.02, "not a finite pressure for each chamber"),
        (np.zeros(3), 0.02, "not a finite pressure for each chamber"),
        (one_is_high, 0.02, "far beyond the limits"),
        (np.array([[0, -1.1e5, 0]]), 0.02, "far beyond the limits"),
    ]
    for number, (pressures, age, reason) in enumerate(cases):
        before = judge.refused[reason]
        assert judge.follows(10.0 + 0.01 * number, pressures, age) == (reason == "")
        assert judge.refused[reason] == before + bool(reason)
    assert judge.impaired(10.11) == ["commands refused"]
    assert judge.impaired(12.0) == []


# --- packets --------------------------------------------------------------------------------------


# what comes every period instead of packets that are followed -> why none is
REFUSED = {
    "came late": lambda now: plan(now - 3.2 * PERIOD, np.full(20, 8e4)),
    "reaches too far": lambda now: plan(now, np.full(72, 8e4)),
    "not a finite pressure for each chamber": lambda now: plan(now, [[8e4] * 3, [8e4, np.nan, 0]]),
    "far beyond the limits": lambda now: plan(now, [8e4, 8e4, 3e5]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_packets_that_are_refused_are_counted_and_are_silence(reason):
    bench = Bench().enable(5e4, commanded=False)
    began, reasons = bench.now, set()
    for number in range(1, 86):
        bench.driver.hear("command", bench.now, REFUSED[reason](bench.now))
        assert bench.driver.commands.refused == {reason: number}
        reasons.add(bench.run(0.014).decision.reason)
        assert bench.driver.report.sent.max() < 5.001e4
    assert "impaired: commands refused" in reasons
    actions = [each.after for each in bench.driver.safety.transitions if each.time > began]
    ending = [Action.HOLD, Action.RAMP_TO_VENT, Action.VENT_NOW]
    assert [each for each in actions if each > Action.WARN] == ending
    assert bench.driver.report.decision.reason == "commands silent"
    assert bench.bus.actuator.pressures.max() < 5e3


def test_packets_play_their_commands_at_their_due_cycles_along_ramps():
    """Each command's ramp begins so long before it is due as valves need, and takes a period; the
    first one's begins at 20 kPa. A cycle more or less is 1.4 kPa of a ramp of 20 kPa. A newer
    packet overrides from its first due time on."""
    bench = Bench().enable(2e4, commanded=False)
    bench.run(0.02)
    rows = np.array([[4e4, 2e4, 2e4], [4e4, 3e4, 0.0], [2e4, 4e4, 1e4], [3e4, 4e4, 3e4]])
    first = bench.now + 0.017
    older = np.vstack([rows[:2], np.full((9, 3), 9e4)])
    bench.driver.hear("command", bench.now, plan(first, older))
    knots = first + PERIOD * np.arange(5)
    values = np.vstack([bench.driver.report.sent, rows])
    while bench.now < knots[-1] + 0.01:
        if abs(bench.now - knots[1]) < 0.6 * DT:
            bench.driver.hear("command", bench.now, plan(knots[2], rows[2:]))
        report = bench.run(DT)
        wanted = [np.interp(bench.now + AHEAD + 0.5 * DT, knots, each) for each in values.T]
        assert np.allclose(report.sent, wanted, atol=1.4e3)
    assert np.allclose(report.sent, rows[-1], atol=1.0)
    assert report.decision.action == Action.NONE


def test_a_packet_that_runs_out_holds_and_then_ramps_to_vent():
    """Ages count from when its last command was due, not from when it came."""
    bench = Bench().enable(2e4, commanded=False)
    reaches = bench.now + 0.4
    commands = np.linspace(2e4, 6e4, 29)
    bench.driver.hear("command", bench.now, plan(reaches - 28 * PERIOD, commands))
    reports = [bench.run(DT) for _ in range(1600)]
    actions = [each.decision.action for each in reports]
    ages = np.array([each.time for each in reports]) - reaches
    sent = np.array([each.sent[0] for each in reports])
    assert ages[actions.index(Action.HOLD)] == pytest.approx(0.1, abs=2 * DT)
    assert ages[actions.index(Action.RAMP_TO_VENT)] == pytest.approx(0.5, abs=2 * DT)
    assert actions[-1] == Action.VENT_NOW
    held = (ages > PERIOD + DT) & (ages < 0.5 - DT)
    assert np.allclose(sent[held], 6e4, atol=1.0), "the last command stays"
    assert set(actions[: round(0.49 / DT)]) == {Action.NONE}, "the packet still told what to do"
    ramp = sent[[action == Action.RAMP_TO_VENT for action in actions]]
    assert np.allclose(ramp, np.maximum(6e4 - 2e5 * DT * np.arange(1, len(ramp) + 1), 0.0), atol=1)
    assert reports[-1].decision.reason == "commands silent"


def test_a_packet_that_is_late_but_not_too_late_goes_on_where_it_is():
    """Its first two commands are past: the third one counts, and nothing of those before it."""
    bench = Bench().enable(2e4, commanded=False)
    began = bench.now - 2.5 * PERIOD
    bench.driver.hear("command", bench.now, plan(began, [9e4, 9e4, 1e4, 1e4]))
    sent = [bench.run(DT).sent[0] for _ in range(30)]
    assert np.all(np.diff(sent) <= 1e-6)
    assert sent[-1] == pytest.approx(1e4, abs=1.0)


WALL, CAME = 10**18, 99.99  # now [ns], when letters came on the clock that now says 100 s


def handed_over(monkeypatch, letters, several=""):
    """What the node's part in the loop hands to the driver, and whose letters it ignores."""
    heard, ignored = [], Counter()
    inbox = SimpleNamespace(arrived=lambda: letters)
    node = SimpleNamespace(inbox=inbox, _several=lambda driver: several, _ignored=ignored)
    for clock, now in (("monotonic", 100.0), ("monotonic_ns", 100 * 10**9), ("time_ns", WALL)):
        monkeypatch.setattr(time, clock, lambda now=now: now)
    driver = SimpleNamespace(hear=lambda *words: heard.append(words))
    Valves._hand_over_messages(node, driver)
    return heard, ignored


def test_messages_are_handed_over_with_their_age(monkeypatch):
    """A pose is as old as its exposure; a command is heard when it came, and told how late."""
    letters = [
        Sample("pressure/command", WALL - 70 * 10**6, np.zeros(3), CAME),
        Sample("force_torque/wrench", WALL - 5 * 10**9, np.zeros(6), CAME),  # long ago
        Sample("mocap/tip/pose", WALL - 40 * 10**6, np.eye(4), CAME),
        # stamped by a clock ahead of ours, then one that was long under way
        Sample("safety/operator", WALL + 5 * 10**6, Operator(True, False), CAME),
        Sample("safety/operator", WALL - 300 * 10**6, Operator(True, False), CAME),
    ]
    handed, _ = handed_over(monkeypatch, letters)
    heard = {source: (100.0 - moment, age) for source, moment, _, age in handed}
    operator = [100.0 - moment for source, moment, _, _ in handed if source == "operator"]
    assert heard["command"] == pytest.approx((0.01, 0.06))
    assert heard["mocap"] == pytest.approx((0.04, 0.0))
    assert operator == pytest.approx([0.01, 0.3]), "a switch was held when that was said"
    assert all(value is True for source, _, value, _ in handed if source == "operator")
    assert heard["force_torque"] == pytest.approx((0.01, 4.99)), "an age is not belittled"


def test_commands_are_due_on_the_clock_of_the_valves(monkeypatch):
    """Single ones when they come; those of a plan at their times, which are told by the other."""
    stamp = WALL - 30 * 10**6
    planned = CommandPacket((stamp + 25 * 10**6, stamp + 39 * 10**6), np.array([[1.0], [2.0]]))
    letters = [
        Sample("pressure/command", stamp, np.full(3, 5e4), CAME),
        Sample("pressure/plan", stamp, planned, CAME),
    ]
    handed, _ = handed_over(monkeypatch, letters)
    (_, came, single, single_age), (_, plan_came, packet, age) = handed
    assert (came, plan_came) == (CAME, CAME)
    assert (single_age, age) == pytest.approx((0.02, 0.02))
    assert single.due == (round(1e9 * CAME),)
    assert np.array_equal(single.commands, np.full((1, 3), 5e4))
    assert np.array(packet.due) == pytest.approx([99.995e9, 100.009e9], abs=1e3)
    assert packet.due[1] - packet.due[0] == 14 * 10**6
    assert packet.commands is planned.commands


def test_of_two_publishers_no_packet_is_handed_over_and_each_is_counted(monkeypatch):
    letters = [
        Sample("pressure/command", WALL, np.full(3, 5e4), CAME),
        Sample("pressure/plan", WALL, plan(1e9, [5e4]), CAME),
        Sample("mocap/tip/pose", WALL, np.eye(4), CAME),
    ]
    handed, ignored = handed_over(monkeypatch, letters, "/mpc and /view")
    assert [source for source, *_ in handed] == ["mocap"]
    assert ignored == {"/mpc and /view": 2}


def test_while_several_command_the_valves_hold_and_then_vent():
    bench = Bench().enable(5e4, commanded=False)
    bench.driver.hear("command", bench.now, plan(bench.now, np.full(60, 8e4)))
    bench.driver.offered_by("/mpc and /view", "")
    sent = [bench.run(DT).sent[0] for _ in range(290)]
    assert max(sent) < 5.001e4, "what an unknown node has planned is not played"
    assert bench.driver.report.decision.reason == "commands of several nodes: /mpc and /view"
    assert bench.driver.report.decision.action == Action.HOLD
    report = bench.run(0.5)
    assert report.decision.reason == "commands still of several nodes: /mpc and /view"
    assert (report.decision.enabled, report.sent.max()) == (False, 0.0)


@pytest.mark.parametrize("glitch", [1e9, -1e9, 3600.0, math.nan, math.inf])
def test_one_wrong_time_of_the_clock_freezes_nothing_behind_it(glitch):
    """Nothing is remembered at a time that is yet to come: states, commands, ages go on."""
    bench = Bench().enable()
    bench.driver.tick(bench.now + glitch)
    if bench.driver.report.decision.latch or glitch < 0.0:
        bench.run(0.3)
        bench.enable(4e4)
    assert bench.run(1.0).decision.action == Action.NONE
    assert np.allclose(bench.bus.actuator.pressures, 4e4, atol=1.5e3)
    bench.bus.tripped = True  # seen by the look at the states, ten times a second
    assert not bench.run(0.15).decision.enabled
    bench.bus.tripped = False
    bench.run(2.0)
    bench.enable(commanded=False)
    assert not bench.run(1.5).decision.enabled


def test_a_command_for_a_time_that_never_comes_holds_up_nobody():
    bench = Bench().enable(2e4)
    bench.driver.hear("command", bench.now, one(1e9, np.full(3, 3e4)))
    assert bench.driver.commands.refused == {"reaches too far": 1}
    bench.driver.hear("command", bench.now, one(bench.now + 0.99, np.full(3, 3e4)))
    bench.command = np.full(3, 5e4)
    bench.run(1.1)
    assert np.allclose(bench.bus.actuator.pressures, 5e4, atol=1.5e3)


def test_a_message_from_a_time_far_away_is_not_heard():
    bench = Bench().enable(2e4, commanded=False)
    bench.driver.hear("command", bench.now + 1e6, one(bench.now, np.full(3, 3e4)))
    assert bench.run(0.2).decision.action == Action.HOLD


def test_a_bad_sample_begins_the_handshake_again_behind_the_driver():
    bench = Bench()
    bench.let_go()
    bench.run(0.25)
    bench.driver.hear("command", bench.now, one(bench.now, np.full(3, np.nan)))
    assert bench.run(DT).decision.blockers == ("bad samples: command",)
    bench.bus.faults.kind = "off"
    assert bench.run(DT).decision.blockers == ("bad samples: bus",)
    bench.bus.faults.kind = "ok"
    bench.run(0.25)
    bench.driver.enable()
    assert not bench.run(0.002).decision.enabled
    bench.run(0.1)
    bench.driver.enable()
    assert bench.run(0.002).decision.enabled


def test_other_safety_numbers_only_while_disarmed():
    bench = Bench()
    bench.driver.use_safety(SafetySettings(command_vent=1.0))
    bench.enable()
    with pytest.raises(UserError, match="the valves are enabled, vent them first"):
        bench.driver.use_safety(SafetySettings())
    bench.silent.add("command")
    assert bench.run(0.9).decision.action == Action.HOLD


def test_a_lost_bus_is_said_once_reopened_within_bounds_and_waits_for_the_operator():
    bench = Bench().enable()
    bench.bus.faults.kind = "off"
    bench.run(1.0)
    assert sum("bus lost" in line for line in bench.said) == 1
    bench.bus.faults.kind = "ok"
    report = bench.run(2.0)
    assert (report.reconnects, report.bus, report.decision.enabled) == (1, "", False)
    bench.enable()


def test_a_bus_that_comes_back_with_other_settings_is_held():
    bench = Bench().enable()
    bench.bus.mended = ["EL4004: 0x8000:05 was 2"]
    bench.bus.tripped = True
    bench.run(2.0)
    assert bench.driver.report.reconnects == 1
    decision = bench.driver.report.decision
    assert decision.latch.letter == "H"
    assert decision.cause == "settings changed: EL4004: 0x8000:05 was 2"


def test_a_bus_that_never_comes_back_is_given_up_after_a_stated_number_of_attempts():
    bench = Bench().enable()
    bench.bus.faults.kind = "off"
    report = bench.run(12.0)
    assert report.gave_up
    assert bench.said[-1].startswith("bus lost: gave up after 5 attempts")


def test_an_exception_of_the_master_vents_and_the_thread_lives_on():
    bench = Bench()
    stop = threading.Event()
    bench.bus.raises = RuntimeError("broken library")
    thread = threading.Thread(target=bench.driver.run, args=(stop,), daemon=True)
    thread.start()
    line = "bus lost: RuntimeError: broken library"
    until(lambda: any(line in each for each in bench.said), line, 20.0)
    alive = thread.is_alive()
    stop.set()
    thread.join(20.0)
    assert alive
    assert not bench.driver.report.decision.enabled
    assert not bench.bus.is_open  # left closed, hence safe


def test_zero_calibration_only_when_disarmed_and_within_reason():
    def refused(why):
        with pytest.raises(UserError, match=why):
            bench.driver.calibrate_zero()

    bench = Bench()
    bench.run(0.6)
    refused("the deadman's switch is pressed, must be released")
    bench.pressed = False
    bench.run(0.1)
    bench.driver.offered_by("", "/hold and /joy")
    bench.run(DT)
    refused("told by several nodes, must be released")
    bench.driver.offered_by("", "")
    bench.run(DT)
    assert np.allclose(bench.driver.calibrate_zero(), 1.0, atol=1e-3)
    bench.pressed = True
    bench.enable()
    refused("vent them first")


@pytest.mark.parametrize(
    ("library", "said"),
    [
        ("raise ImportError", "EtherCAT needs pysoem"),
        ("raise RuntimeError('built for another machine')", "RuntimeError: built for another"),
        ("import os; os._exit(3)", "ended with exit code 3"),
    ],
)
def test_what_stops_the_valves_process_early_is_one_line(tmp_path, monkeypatch, library, said):
    (tmp_path / "pysoem.py").write_text(library)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    task = ValveTask(STATION, ROBOT.pressure_limits, "lo", SafetySettings(), {}, 0)
    with one_line(says=said):
        ValveProcess(task, say=lambda line: None).open()


def test_one_process_owns_an_interface_until_it_lets_go():
    refused = pytest.raises(UserError, match=f"process {os.getpid()} is the EtherCAT master")
    with own_interface("a-test"), refused:
        own_interface("a-test")
    own_interface("a-test").close()


def test_backoff_doubles_its_pauses_and_ends():
    backoff = Backoff(0.2, 1.0, 5)
    backoff.lost(0.0)
    tried = [step / 100 for step in range(1000) if backoff.due(step / 100)]
    assert tried == pytest.approx([0.2, 0.4, 0.8, 1.6, 2.6])
    assert backoff.given_up
    backoff.lost(10.0)
    assert not backoff.given_up


class RandomBus(RuleBasedStateMachine):
    """Whatever the bus and the messages do: limits hold, nothing escapes, vented is reachable."""

    @initialize()
    def start(self):
        self.bench = Bench().enable()

    @rule(kind=st.sampled_from(FAULT_KINDS))
    def fault(self, kind):
        self.bench.bus.faults.kind = kind

    @rule(tripped=st.booleans())
    def watchdog(self, tripped):
        self.bench.bus.tripped = tripped

    @rule(command=st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=0, max_size=4))
    def command(self, command):
        self.bench.command = np.array(command)

    @rule(source=st.sampled_from(["command", "operator", "mocap", "force_torque"]))
    def silence(self, source):
        self.bench.silent ^= {source}

    @rule(pressed=st.booleans(), enable=st.booleans())
    def operate(self, pressed, enable):
        self.bench.pressed = pressed
        if enable:
            self.bench.driver.enable()

    @rule(ticks=st.integers(1, 300))
    def live(self, ticks):
        self.bench.run(ticks * DT)

    @rule()
    def vent(self):
        self.bench.driver.vent()
        assert not self.bench.run(DT).decision.enabled

    def teardown(self):
        if hasattr(self, "bench"):
            self.bench.driver.vent()
            self.bench.run(0.4)
            assert self.bench.bus.actuator.pressures.max() < 2e3


TestRandomBus = RandomBus.TestCase
TestRandomBus.settings = hypothesis_settings(max_examples=8, stateful_step_count=12, deadline=None)

"""A real EtherCAT master against the emulated terminals, over a veth pair of its own."""

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
import yaml
from kit.processes import until
from kit.refusals import one_line
from kit.wire import Emulator, cable
from valve_process import valve_driver

from softcr_hardware.ethercat.bus import EtherCatBus
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.safety.safety import Action
from softcr_models.errors import UserError
from softcr_models.files.config import config_directory
from softcr_runtime.blocks.command_packets import CommandPacket

pysoem = pytest.importorskip("pysoem", reason="pip install 'softcr[ethercat]'")
pytestmark = pytest.mark.network

STATION = load_station("licher2025")


@pytest.fixture(scope="module")
def wire():
    with cable() as made:
        yield made


@pytest.fixture(scope="module")
def terminals(wire, tmp_path_factory):
    emulator = Emulator(wire, tmp_path_factory.mktemp("wire") / "terminals.jsonl")
    yield emulator
    emulator.stop()


@pytest.fixture
def emulator(terminals):
    terminals.fault("ok")
    return terminals


def new_bus(interface, station=STATION):
    data = ProcessData(station)
    return EtherCatBus(interface, station, data), data


@contextmanager
def other_terminals(name, log, *options, changed="", station=STATION):
    """A bus before terminals of its own, and their emulator."""
    with cable(name) as other:
        emulator = Emulator(other, log, *options, changed=changed)
        bus, _ = new_bus(other.near, station)
        try:
            yield bus, emulator
        finally:
            bus.close()
            emulator.stop()


def station_content():
    return yaml.safe_load((config_directory() / "ethercat/licher2025.yaml").read_text())


class Running:
    """A driver in its thread, fed with one command; enabled and filled once made."""

    def __init__(self, wire):
        self.said = []
        self.driver = valve_driver(wire.near, self.said.append)
        self.driver.open()
        self.command = np.zeros(3)
        self._stop = threading.Event()
        driving = threading.Thread(target=self.driver.run, args=(self._stop,))
        self._threads = [driving, threading.Thread(target=self._feed)]
        for thread in self._threads:
            thread.start()

    def _feed(self):
        while not self._stop.wait(1 / 140):  # late on a busy machine, but not slow
            now = time.monotonic()
            packet = CommandPacket.single(round(1e9 * now), self.command)
            self.driver.hear("command", now, packet)
            self.driver.hear("force_torque", time.monotonic())

    def enable(self, pressure=5e4):
        if self.report.decision.latch:  # an operator has looked, and a check has passed
            self.driver.reset(checked=True)

        def enabled():
            self.driver.enable()
            return self.report.decision.enabled

        until(enabled, "enabling")
        self.command = np.full(3, pressure)
        until(lambda: self.report.pressures.min() > 0.8 * pressure, "pressure")
        return self

    @property
    def report(self):
        return self.driver.report

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def test_master_reaches_operation_with_a_proven_watchdog_and_moves_bytes(wire, emulator):
    bus, data = new_bus(wire.near)
    began = time.monotonic()
    bus.open()
    try:
        assert bus.watchdog_armed
        assert bus.check() == ""
        tripped = emulator.events("watchdog", since=began)
        assert [event["terminal"] for event in tripped] == ["EL4004"]  # the proof
        closed = np.full(3, STATION.valve.closed)
        samples = [bus.exchange(closed) for _ in range(200)]
        complete = [sample for sample in samples if sample is not None]
        assert len(complete) == 200 - bus.incomplete > 150
        assert np.allclose(data.pressures(complete[-1].volts), 0.0, atol=300.0)  # 6 sigma of noise
        assert len({tuple(sample.toggles) for sample in complete}) == 2
        with pytest.raises(UserError, match=r"process \d+ is the EtherCAT master already"):
            new_bus(wire.near)[0].open()
        assert bus.check() == ""
    finally:
        bus.close()
    assert bus.check() == "the bus is not open"
    last = until(lambda: emulator.events("state", since=began)[-3:], "states")
    assert {event["state"] for event in last} == {"INIT"}


def test_a_late_frame_is_late_and_not_incomplete(tmp_path):
    change = (
        "import time; from softcr_hardware.ethercat.emulator import EtherCatEmulator as Emulator\n"
        "answer = Emulator._answer\n"
        "def late(self, frame, now):\n"
        "    time.sleep(0.009)\n"
        "    answer(self, frame, now)\n"
        "def inject(self, kind):\n"
        "    Emulator._answer = late\n"
        "    self._log('fault', kind=kind)\n"
        "Emulator.inject = inject\n"
    )
    with other_terminals("l", tmp_path / "log", changed=change) as (bus, emulator):
        bus.open()
        emulator.fault("slow")
        before, began = bus.incomplete, time.monotonic()
        assert bus.exchange(np.full(3, STATION.valve.closed)) is not None
        assert time.monotonic() - began > 0.009
        assert bus.incomplete == before


def test_terminals_without_mailbox_are_mapped_from_their_eeprom_and_proven_by_a_wire(tmp_path):
    content = station_content()
    for terminal in content["terminals"]:  # known by nothing but what the file says
        terminal["name"] = f"{terminal['name']}-0099"
    wire = {"output": {"terminal": 3, "channel": 4}, "input": {"terminal": 2, "channel": 4}}
    content["watchdog_wires"] = [wire]
    path = tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump(content))
    change = "import softcr_hardware.ethercat.slave as s; s.has_mailbox = lambda terminal: False"
    told = ("e", tmp_path / "log", "--station", path)
    with other_terminals(*told, changed=change, station=load_station(path)) as (bus, _):
        bus.open()
        assert bus.check() == ""


def test_a_silent_interface_and_one_that_is_none_say_so_in_a_line(wire, emulator):
    emulator.fault("off")
    with pytest.raises(UserError, match="no EtherCAT terminal answers"):
        new_bus(wire.near)[0].open()
    with pytest.raises(UserError, match=r"interface 'eth99': not found; there are lo"):
        new_bus("eth99")[0].open()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("swap", r"position 2: found EL4004 \(vendor 0x2, product 0x0FA43052\), must be EL3164"),
        ("drop", r"found 2 terminals, must be 3: EK1100, EL3164, EL4004"),
        ("add", r"found 4 terminals, must be 3: EK1100, EL3164, EL4004"),
    ],
)
def test_a_wrong_terminal_is_refused_in_one_line(tmp_path, change, says):
    content = station_content()
    chain = content["terminals"]
    if change == "swap":
        chain[1], chain[2] = chain[2], chain[1]
        for chamber in content["chambers"]:
            chamber["sensor"]["terminal"], chamber["valve"]["terminal"] = 3, 2
    elif change == "add":
        chain.append(dict(chain[0]))
    else:
        # one terminal less: both kinds of channels on the second
        chain[1] |= {"outputs": 4, "family": "EL40xx"}
        del chain[2]
        for chamber in content["chambers"]:
            chamber["valve"]["terminal"] = 2
    path = tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump(content))
    with other_terminals("x", tmp_path / "log", "--station", path) as (bus, _), one_line(says):
        bus.open()


WORSE_TERMINALS = {
    "OP refused": (
        "control = slave.EmulatedSlave._control\n"
        "slave.EmulatedSlave._control = lambda self, word: control(self, word & 0xF7 or 4)",
        "OP not reached in 3 attempts: EK1100: SAFEOP",
    ),
    "more channels than the station file says": (
        "objects = emulated_objects.process_objects\n"
        "more = lambda terminal: terminal.model_copy(update={'inputs': terminal.inputs + 1})\n"
        "emulated_objects.process_objects = lambda terminal: objects(more(terminal))\n"
        "slave.EmulatedSlave._wrong_configuration = lambda self: 0",
        r"position 2 EL3164: process data of 20 bytes in, 0 out; must be 16 and 0",
    ),
    "sync manager that keeps the watchdog off": (
        "write = slave.EmulatedSlave.write\n"
        "def off(self, address, data):\n"
        "    write(self, address, data)\n"
        "    self._memory[0x0814] &= ~0x40\n"
        "slave.EmulatedSlave.write = off",
        r"EL4004: its output watchdog is switched off in sync manager 2: control 0x0814 is 0x24, "
        "bit 6 must be set",
    ),
    "watchdog time that cannot be written": (
        "slave._READ_ONLY += (slice(0x0420, 0x0422),)\n"
        "on = slave.EmulatedSlave.power_on\n"
        "def slow(self):\n"
        "    on(self)\n"
        "    self._memory[0x0420:0x0422] = bytes([0xB8, 0x0B])\n"
        "slave.EmulatedSlave.power_on = slow",
        r"EL4004: its output watchdog is 300 ms \(divider 0x0400 2498, time 0x0420 3000\), must be "
        "100 ms",
    ),
    "terminal that leaves operation for another reason": (
        "set_state = slave.EmulatedSlave._set_state\n"
        "def leaves(self, state, code):\n"
        "    if code == slave.WATCHDOG_TRIPPED:\n"
        "        self._memory[0x0440] |= 1\n"
        "    set_state(self, state, code)\n"
        "slave.EmulatedSlave._set_state = leaves",
        r"EL4004: left operation, but not by its output watchdog \(state 0x0440 0x0001",
    ),
}


@pytest.mark.parametrize("worse", WORSE_TERMINALS)
def test_terminals_that_cannot_be_trusted_are_refused_in_one_line(tmp_path, worse):
    change, says = WORSE_TERMINALS[worse]
    change = f"from softcr_hardware.ethercat import emulated_objects, slave\n{change}"
    with other_terminals("w", tmp_path / "log", changed=change) as (bus, _):
        with one_line(says):
            bus.open()
        assert not bus.watchdog_armed


def test_cable_off_is_said_vents_and_is_reconnected_for_the_operator_to_enable(wire, emulator):
    with Running(wire) as running:
        running.enable()
        pulled = time.monotonic()
        wire.unplug()
        try:
            until(lambda: not running.report.decision.enabled, "disarmed")
            assert running.report.decision.reason in ("bus silent", "slaves not operational")
            until(lambda: emulator.events("watchdog", since=pulled), "the slaves' own watchdog")
            until(lambda: "no EtherCAT terminal" in running.report.bus, "an attempt")
        finally:
            wire.plug()
        until(lambda: running.report.bus == "", "the bus again")
        assert running.report.reconnects == 1
        assert not running.report.decision.enabled
        lost = [line for line in running.said if line.startswith("bus lost")]
        assert len(lost) == 1
        again = "bus operational again; an operator must reset and enable the valves"
        assert running.said[-1] == again
        running.command = np.zeros(3)
        running.enable()


# fault -> the action it ends in, whether the valves stay enabled, what the reason begins with
END_STATES = {
    "ok": (Action.NONE, True, ""),
    "off": (Action.VENT_NOW, False, ("bus silent", "slaves not operational")),
    "stuck": (Action.VENT_NOW, False, "pressure fault: chamber_"),
    "garbage": (Action.VENT_NOW, False, ("pressure fault: chamber_", "pressures not believable")),
    "wrong": (Action.VENT_NOW, False, ("pressure fault: chamber_", "pressures not believable")),
    "slow": (Action.WARN, True, "impaired: pressure samples"),
    "delayed": (Action.VENT_NOW, False, "pressure fault: chamber_"),
    "intermittent": (Action.WARN, True, "impaired: bus"),
    "reconnect": (Action.VENT_NOW, False, ("bus silent", "slaves not operational")),
}


@pytest.mark.parametrize("kind", END_STATES)
def test_each_fault_type_ends_in_its_state(wire, emulator, kind):
    action, enabled, reason = END_STATES[kind]
    with Running(wire) as running:
        running.enable(3e4)
        emulator.fault(kind)
        running.command = np.full(3, 8e4)

        def ended():
            decision = running.report.decision
            busy = "fast cycle" in decision.reason  # this machine, not the fault
            as_stated = decision.action == action and decision.reason.startswith(reason)
            return as_stated or (enabled and busy)

        until(ended, f"{action.words}, not {running.report.decision}")
        if enabled:
            time.sleep(0.5)
        assert running.report.decision.enabled == enabled
        if kind == "reconnect":
            until(lambda: running.report.bus == "", "the bus again")
            assert running.report.reconnects == 1

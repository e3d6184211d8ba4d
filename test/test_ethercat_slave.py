"""Emulated terminals without a network: states, EEPROM, watchdog, and any bytes at all."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.emulation.chambers import ChamberErrors
from softcr_hardware.ethercat import slave as esc
from softcr_hardware.ethercat.datagrams import APRD, APWR, BRD, FPRD, FPWR, LRW, pass_slaves
from softcr_hardware.ethercat.emulated_objects import ObjectDictionary
from softcr_hardware.ethercat.mailbox import answer
from softcr_hardware.ethercat.pressure_loop import valve_volts
from softcr_hardware.ethercat.slave import INIT, OP, PREOP, SAFEOP, EmulatedSlave, eeprom
from softcr_hardware.ethercat.terminal_faults import TerminalFaults
from softcr_hardware.ethercat.terminals import load_station
from softcr_models import load_robot
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant

STATION = load_station("licher2025")


class Chain:
    """A master of a few lines."""

    def __init__(self):
        self.events = []
        self.slaves = [
            EmulatedSlave(
                each, each is STATION.terminals[-1], lambda *a, **k: self.events.append(a)
            )
            for each in STATION.terminals
        ]

    def send(self, command, position, address, data):
        """One datagram; returns data and working counter."""
        frame = bytes(6) + b"\x10" * 6 + b"\x88\xa4" + struct.pack("<H", 0x1000 | 12 + len(data))
        frame += struct.pack("<BBHHHH", command, 7, position, address, len(data), 0)
        answer = pass_slaves(frame + data + b"\0\0", self.slaves, 0.0)
        return answer[26:-2], struct.unpack("<H", answer[-2:])[0]

    def request(self, position, state):
        """Ask a slave for a state; returns its status and code."""
        at = -position & 0xFFFF
        self.send(APWR, at, esc.AL_CONTROL, struct.pack("<H", state))
        status, _ = self.send(APRD, at, esc.AL_STATUS, bytes(6))
        return status[0], struct.unpack_from("<H", status, 4)[0]

    def operate(self, position=2):
        """The output terminal into OP, its eight bytes mapped to logical address 0."""
        at = -position & 0xFFFF
        self.request(position, PREOP)
        manager = struct.pack("<HHBBBB", esc.OUTPUT_AREA, 8, 0x64, 0, 1, 0)
        self.send(APWR, at, esc.SYNC_MANAGERS + 16, manager)
        fmmu = struct.pack("<IHBBHBBBBH", 0, 8, 0, 7, esc.OUTPUT_AREA, 0, 2, 1, 0, 0)
        self.send(APWR, at, esc.FMMUS, fmmu)
        assert self.request(position, SAFEOP) == (SAFEOP, 0)
        assert self.request(position, OP) == (OP, 0)


def test_a_broadcast_counts_the_slaves_and_positions_address_them_in_turn():
    chain = Chain()
    _, counter = chain.send(BRD, 0, 0, b"\0\0")
    assert counter == 3
    for position in range(3):
        _, counter = chain.send(APWR, -position & 0xFFFF, esc.STATION, struct.pack("<H", 0x1001))
        assert counter == 1
    assert [slave.station for slave in chain.slaves] == [0x1001] * 3
    assert chain.send(FPRD, 0x1001, esc.STATION, b"\0\0") == (b"\x01\x10", 3)
    assert chain.send(FPWR, 0x2002, esc.STATION, b"\0\0")[1] == 0


def test_identity_is_read_through_the_eeprom_registers():
    chain = Chain()
    for position, terminal in enumerate(STATION.terminals):
        at = -position & 0xFFFF
        chain.send(APWR, at, esc.EEPROM_CONTROL, struct.pack("<HI", 0x0100, 0x0008))
        data, _ = chain.send(APRD, at, esc.EEPROM_DATA, bytes(8))
        assert struct.unpack("<II", data) == (terminal.vendor, terminal.product)


def test_every_category_of_the_eeprom_ends_where_the_next_begins():
    for terminal in STATION.terminals:
        data, place, found = eeprom(terminal), 0x80, []
        while True:
            (category,) = struct.unpack_from("<H", data, place)
            if category == 0xFFFF:
                break
            found.append(category)
            place += 4 + 2 * struct.unpack_from("<H", data, place + 2)[0]
        assert place + 2 == len(data)
        pdos = [50] * bool(terminal.inputs) + [51] * bool(terminal.outputs)
        assert found == [10, 30, 40, 41, *pdos]


def ask(index, subindex, command=0x40):
    """The reply of the input terminal to a request for an object: service, command, value."""
    request = struct.pack("<HHBBHBHBI", 10, 0, 0, 0x13, 0x2000, command, index, subindex, 0)
    chain = Chain()
    chain.request(1, PREOP)
    at = -1 & 0xFFFF
    chain.send(APWR, at, 0x1000, request)
    assert chain.send(APRD, at, 0x080D, b"\0")[0] == b"\x08"  # full
    reply, _ = chain.send(APRD, at, 0x1080, bytes(16))
    assert chain.send(APRD, at, 0x080D, b"\0")[0] == b"\x00"  # taken
    _, _, _, kind, header, code, _, _, value = struct.unpack("<HHBBHBHBI", reply)
    assert kind & 0x0F == 3
    return header >> 12, code, value


def test_mailbox_tells_the_process_data_and_aborts_what_it_has_not():
    assert ask(0x1C13, 0) == (3, 0x4F, 4)
    assert ask(0x1C13, 4) == (3, 0x4B, 0x1A03)
    assert ask(0x1A03, 2) == (3, 0x43, 0x60301110)  # object 0x6030, subindex 0x11, 16 bits
    assert ask(0x1C12, 0) == (3, 0x4F, 0)
    assert ask(0x7777, 0) == (2, 0x80, 0x06020000)
    assert ask(0x1C13, 9) == (2, 0x80, 0x06090011)
    assert ask(0x1C13, 0, command=0xE0) == (2, 0x80, 0x05040001)


@given(st.binary(max_size=40))
def test_any_mailbox_message_is_answered_or_ignored(message):
    reply = answer(message, ObjectDictionary(STATION.terminals[1], TerminalFaults()))
    assert reply is None or len(reply) == 16


def test_states_go_up_one_by_one_and_errors_stay_until_acknowledged():
    chain = Chain()
    assert chain.request(0, OP) == (INIT | esc.ERROR, esc.INVALID_STATE_CHANGE)
    assert chain.request(0, PREOP) == (INIT | esc.ERROR, esc.INVALID_STATE_CHANGE)
    assert chain.request(0, PREOP | esc.ERROR) == (PREOP, 0)
    assert chain.request(0, 7) == (PREOP | esc.ERROR, esc.UNKNOWN_STATE)
    assert chain.request(0, INIT) == (INIT, 0)
    chain.request(2, PREOP)
    assert chain.request(2, SAFEOP) == (PREOP | esc.ERROR, esc.INVALID_OUTPUTS)
    chain.request(1, PREOP)
    assert chain.request(1, SAFEOP) == (PREOP | esc.ERROR, esc.INVALID_INPUTS)


def test_outputs_live_in_op_only_and_the_watchdog_takes_them_back():
    chain = Chain()
    chain.operate()
    terminal = chain.slaves[2]
    assert terminal.outputs is None  # none came yet
    outputs = struct.pack("<4h", 1000, 2000, 3000, 0)
    assert chain.send(LRW, 0, 0, outputs)[1] == 2
    assert terminal.outputs == outputs
    terminal.watch(0.0999)
    assert terminal.outputs == outputs
    terminal.watch(0.1002)
    assert terminal.outputs is None
    assert chain.request(2, SAFEOP) == (SAFEOP | esc.ERROR, esc.WATCHDOG_TRIPPED)
    # in SAFEOP the counter still counts: it alone tells nothing of a tripped watchdog
    assert chain.send(LRW, 0, 0, outputs)[1] == 2
    assert terminal.outputs is None
    assert [event[0] for event in chain.events].count("watchdog") == 1
    chain.send(APWR, -2 & 0xFFFF, esc.WATCHDOG_TIME, struct.pack("<H", 250))
    assert chain.slaves[2].watchdog_time == pytest.approx(0.025)


def test_no_write_reaches_what_is_read_only_or_no_memory_at_all():
    chain = Chain()
    chain.operate()
    for address in (0, esc.AL_STATUS - 4, esc.AL_STATUS, 0x1FFE, 0xFFFF):
        chain.send(APWR, -2 & 0xFFFF, address, b"\xff" * 16)
    assert chain.slaves[2].state == OP
    assert chain.send(BRD, 0, 0, b"\0\0")[0] == b"\x11\0"
    for physical in (esc.AL_STATUS, 0x1FFC, 0xFFF0):  # FMMUs that point where they must not
        fmmu = struct.pack("<IHBBHBBBBH", 0, 8, 0, 7, physical, 0, 2, 1, 0, 0)
        chain.send(APWR, -2 & 0xFFFF, esc.FMMUS, fmmu)
        assert chain.send(LRW, 0, 0, b"\xff" * 8)[1] == 0
    assert chain.slaves[2].state == OP


@settings(max_examples=500)
@given(st.lists(st.binary(max_size=120), min_size=1, max_size=5))
def test_any_bytes_are_answered_or_dropped_but_never_raise(frames):
    chain = Chain()
    for frame in frames:
        answer = pass_slaves(frame, chain.slaves, 0.0)
        assert answer is None or len(answer) == len(frame)


@settings(max_examples=500)
@given(st.integers(0, 255), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.binary(max_size=200))
def test_any_datagram_is_answered(command, position, address, data):
    chain = Chain()
    chain.operate()
    back, _ = chain.send(command, position, address, data)
    assert len(back) == len(data)
    for slave in chain.slaves:
        slave.watch(1.0)


AT_ONCE = ChamberErrors(lag=-STATION.valve.lag)
"""Valves without a lag: what chambers do is analytic."""


def test_chambers_fill_to_the_supply_and_empty_when_the_terminal_is_dead():
    actuator = EmulatedActuator(STATION, errors=AT_ONCE)
    actuator.advance(0.0, np.full(3, 10.0))
    assert np.allclose(actuator.advance(1.0, np.full(3, 10.0)), STATION.flow.supply, rtol=1e-3)
    assert actuator.advance(1.5, np.full(3, STATION.valve.when_dead)).max() < 1.0
    # time constant of the emptying, against its analytic solution
    actuator.advance(2.0, np.full(3, 10.0))
    full = actuator.pressures[0]
    after = actuator.advance(2.02, np.full(3, 0.0))[0]
    assert after == pytest.approx(full * np.exp(-25.0 * 0.02), rel=0.02)


def test_the_rod_feels_the_pressures_of_its_moment_whenever_it_is_asked():
    """A filling chamber against its analytic course; the master cycles, cameras look in between."""
    robot, opening = load_robot("licher2025"), 0.1
    behind_valves, alone = (
        SimulatedPlant(robot, PlantErrors.noiseless(), intervals=3) for _ in range(2)
    )
    actuator = EmulatedActuator(STATION, behind_valves, AT_ONCE)
    volts = np.array([valve_volts(STATION.valve, opening), 5.0, 5.0])
    cameras = iter(0.0047 + np.arange(12) / 120)
    look = next(cameras)
    for now in 0.001 * np.arange(90):
        while look < now:  # up to a millisecond after the chambers were asked
            actuator.move_rod(look)
            look = next(cameras)
        actuator.advance(now, volts)
    times = np.linspace(0.0, look - 1 / 120, 1000)
    filling = 1.0 - np.exp(-opening * STATION.flow.fill_rate * times)
    filled = STATION.flow.supply * np.column_stack([filling, np.zeros((1000, 2))])
    alone.impose(0.0047, times[-1], times, filled)
    assert np.allclose(behind_valves.pressures, alone.pressures, atol=50.0)  # of 270 a ms
    tips = [plant.measure(1).true_tip_pose[:3, 3] for plant in (behind_valves, alone)]
    assert np.allclose(*tips, atol=5e-5)
    assert np.linalg.norm(tips[1] - [0.0, 0.0, tips[1][2]]) > 1e-3  # it did move

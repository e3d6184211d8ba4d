"""A chain of emulated terminals on a network interface: what a real EtherCAT master talks to.

Frames of type 0x88A4 come in through a raw socket, pass every slave in turn and go back, as on a
wire. Valves and chambers are those of `EmulatedActuator`; faults are injected by type. What happens
is logged with the monotonic time at which it happened.
"""

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Mapping
from threading import Event
from typing import Any

import numpy as np

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.emulation.faults import FAULT_KINDS, FaultInjector, FaultKind
from softcr_hardware.ethercat.datagrams import pass_slaves
from softcr_hardware.ethercat.emulated_signals import EmulatedInputs, EmulatedOutputs
from softcr_hardware.ethercat.fast_core import stay_on_fast_core
from softcr_hardware.ethercat.interfaces import check_interface, needs_privileges
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.slave import EmulatedSlave
from softcr_hardware.ethercat.terminal_faults import TerminalFaults
from softcr_hardware.ethercat.terminals import FULL_SCALE_VOLTS, Sensor, Station
from softcr_models.errors import UserError

ETHERCAT = 0x88A4
_SOL_PACKET, _QDISC_BYPASS = 263, 20  # of Linux; Python has no names for them
_TIMEVAL = struct.Struct("@ll")
_POLL = 0.005  # [s] at most between looks at the watchdogs
_WRONG = 3e4  # [Pa] that a wrong sensor reads too much
_LARGEST_FRAME = 1600
_SETTINGS = {"stop": ("pressed", "released"), "power": ("lost", "back")}


class _Driving:
    """An output terminal."""

    def __init__(self, slave: EmulatedSlave, outputs: EmulatedOutputs, position: int):
        self.slave, self.outputs, self.position = slave, outputs, position
        self.layout = struct.Struct(f"<{slave.terminal.outputs}h")


class _Sensing:
    """An input terminal."""

    def __init__(self, slave: EmulatedSlave, inputs: EmulatedInputs, position: int):
        self.slave, self.inputs, self.position = slave, inputs, position
        self.layout = struct.Struct("<" + "Hh" * slave.terminal.inputs)


class EtherCatEmulator:
    """Slaves of a station on an interface.

    Attributes:
        slaves: in their order on the wire.
        actuator: what they drive and read.
    """

    def __init__(
        self,
        interface: str,
        station: Station,
        actuator: EmulatedActuator,
        log: Callable[[dict[str, Any]], None] = lambda event: None,
        terminal_faults: Mapping[int, TerminalFaults] | None = None,
    ):
        """Powered on; `log` is called with {"time": monotonic [s], "event": name, ...}.

        Args:
            interface: of the network.
            station: what hangs on it.
            actuator: what the terminals drive and read.
            log: of events.
            terminal_faults: how terminals differ from well-kept ones, by position from 1.

        Raises:
            UserError: the interface cannot be used.
        """
        self.actuator = actuator
        self._log_event = log
        self._station = station
        self._data = ProcessData(station)
        count, faults = len(station.terminals), terminal_faults or {}
        self.slaves = [
            EmulatedSlave(terminal, position == count, self._log, faults.get(position))
            for position, terminal in enumerate(station.terminals, 1)
        ]
        self._signals = {
            position: [0.0] * terminal.outputs
            for position, terminal in enumerate(station.terminals, 1)
        }
        self._valve_volts = np.zeros(len(station.chambers))
        self._driving = [
            _Driving(slave, EmulatedOutputs(slave.terminal, slave.objects), position)
            for position, slave in enumerate(self.slaves, 1)
            if slave.terminal.outputs and not slave.terminal.digital
        ]
        self._driven: list[tuple[bytes | None, int]] = []  # what voltages came from last
        self._sensing = [
            _Sensing(slave, EmulatedInputs(slave.terminal, slave.objects), position)
            for position, slave in enumerate(self.slaves, 1)
            if slave.terminal.inputs and not slave.terminal.digital
        ]
        self._stop_pressed = self._power_lost = False
        self._switch()
        self._told: tuple[bool, list[float]] | None = None
        self._pressures = np.zeros(len(station.chambers))
        self._renewed = True
        sensors = [chamber.sensor for chamber in station.chambers]
        self._faults = FaultInjector(
            np.array([_WRONG / sensor.pascal_per_volt for sensor in sensors]),
            np.zeros(len(sensors)),
            np.full(len(sensors), FULL_SCALE_VOLTS),
        )
        self._socket = _open(interface)

    def inject(self, kind: FaultKind) -> None:
        """Begin a fault; `ok` ends it. A reconnect is a power cycle, over at once.

        Raises:
            UserError: no such fault.
        """
        if kind not in FAULT_KINDS:
            raise UserError(f"fault {kind!r}: unknown; known are {', '.join(FAULT_KINDS)}")
        self._log("fault", kind=kind)
        if kind == "reconnect":
            for slave in self.slaves:
                slave.power_on()
            kind = "ok"
        self._faults.kind = kind

    def set(self, name: str, value: str) -> None:
        """`stop pressed` or `released`; `power lost` or `back`: the 24 V of valves and sensors.

        Raises:
            UserError: another setting or value.
        """
        if name not in _SETTINGS or value not in _SETTINGS[name]:
            raise UserError(
                f"setting {name} {value}: unknown; must be stop pressed, stop released, "
                "power lost or power back"
            )
        on = value == _SETTINGS[name][0]
        if name == "stop":
            self._stop_pressed = on
        else:
            self._power_lost = on
        self._log("setting", setting=name, value=value)
        self._switch()

    def run(self, stop: Event) -> None:
        """Answer frames until `stop`, in this thread, which stays on the core of the fast cycle."""
        if problem := stay_on_fast_core():
            self._log("core", problem=problem)
        while not stop.is_set():
            frame = b""
            with contextlib.suppress(OSError):  # nothing came, or the link is down
                frame = self._socket.recv(_LARGEST_FRAME)
            now = time.monotonic()
            self._live(now)
            if frame:
                self._answer(frame, now)
        self._socket.close()

    def _answer(self, frame: bytes, now: float) -> None:
        if not self._faults.answers():
            return
        answer = pass_slaves(frame, self.slaves, now)
        if answer is None:
            self._log("malformed", length=len(frame))
            return
        with contextlib.suppress(OSError):  # the link is down
            self._socket.send(answer)
        self._see_outputs(now)
        self._convert(now)

    # --- the analog side ----------------------------------------------------------------------

    def _live(self, now: float) -> None:
        """Watchdogs, valves, chambers and inputs without a frame's help up to now."""
        for slave in self.slaves:
            slave.watch(now)
        self._see_outputs(now)
        self._see_dump_valve()
        volts = self._valve_volts
        if self._power_lost:
            volts = np.full(len(volts), self._station.valve.unpowered)
        self._pressures = self.actuator.advance(now, volts)
        self._convert(now)

    def _convert(self, now: float) -> None:
        """Input terminals convert: those that a frame made do so, and those whose time it is."""
        due = []
        for each in self._sensing:
            read, each.slave.was_read = each.slave.was_read, False
            free = each.inputs.free_running
            if now >= each.inputs.due if free else read:
                due.append(each)
        if not due:
            return
        readings, _ = self.actuator.sensors.read(now, self._pressures)
        volts = self._faults.signals(now, self._data.volts(readings))
        signals = self._wired_signals(volts.tolist())
        for each in due:
            here = [
                signals.get((each.position, channel), 0.0)
                for channel in range(1, each.inputs.count + 1)
            ]
            words = each.inputs.convert(now, here, self._faults.renewed)
            each.slave.input_bytes = each.layout.pack(*words)

    def _wired_signals(self, volts: list[float]) -> dict[tuple[int, int], float]:
        """What comes in at terminals and channels [V], or [mA]."""
        found = {}
        for index, chamber in enumerate(self._station.chambers):
            found[chamber.sensor.terminal, chamber.sensor.channel] = volts[index]
            if (second := chamber.second_sensor) is not None:
                found[second.terminal, second.channel] = _signal(
                    second, self.actuator.sensors.honest(self._pressures[index])
                )
        if (gauge := self._station.supply.gauge) is not None:
            found[gauge.terminal, gauge.channel] = _signal(
                gauge,
                self.actuator.sensors.honest(self.actuator.supply_pressure),
            )
        for wire in self._station.watchdog_wires:
            there = self._signals[wire.output.terminal][wire.output.channel - 1]
            found[wire.input.terminal, wire.input.channel] = there
        return found

    def _switch(self) -> None:
        """What the digital inputs see: 24 V through the chain of stops, and 24 V."""
        chain = self._station.stop_chain
        for place, on in (
            (chain.stop_input, not self._stop_pressed and not self._power_lost),
            (chain.supply_24v_input, not self._power_lost),
        ):
            if place is not None:
                slave, bit = self.slaves[place.terminal - 1], place.channel - 1
                word = int.from_bytes(slave.input_bytes, "little") & ~(1 << bit) | on << bit
                slave.input_bytes = word.to_bytes(len(slave.input_bytes), "little")

    def _see_dump_valve(self) -> None:
        """Its current comes through the chain of stops, from the terminal's output."""
        if (place := self._station.stop_chain.dump_valve_output) is None:
            return
        outputs = self.slaves[place.terminal - 1].outputs or b""  # outside of operation: off
        on = bool(int.from_bytes(outputs, "little") >> place.channel - 1 & 1)
        on = on and not self._stop_pressed and not self._power_lost
        if on != self.actuator.air_on:
            self.actuator.air_on = on
            self._log("dump valve", air_on=on)

    def _see_outputs(self, now: float) -> None:
        """Signals as the output terminals drive them now."""
        driven = [(each.slave.outputs, each.slave.objects.changes) for each in self._driving]
        if driven == self._driven and not any(each.outputs.ramping for each in self._driving):
            return
        self._driven = driven
        for each, (outputs, _) in zip(self._driving, driven, strict=True):
            words = None if outputs is None else each.layout.unpack(outputs)
            self._signals[each.position] = each.outputs.signals(now, words)
        valve = self._station.valve
        volts = [
            self._signals[chamber.valve.terminal][chamber.valve.channel - 1]
            for chamber in self._station.chambers
        ]
        self._valve_volts = np.array(volts)
        safe = all(valve.is_exhausting(each) for each in volts)
        operating = all(outputs is not None for outputs, _ in driven)
        told = safe, [] if operating else self._valve_volts.round(3).tolist()
        if told != self._told:
            self._told = told
            self._log("outputs", safe=safe, volts=self._valve_volts.round(3).tolist())

    def _log(self, event: str, **values: Any) -> None:
        self._log_event({"time": time.monotonic(), "event": event, **values})


def _signal(sensor: Sensor, pressure: float) -> float:
    """What a sensor says [V] at a pressure [Pa]."""
    return sensor.zero + pressure / sensor.pascal_per_volt


def _open(interface: str) -> socket.socket:
    check_interface(interface)
    try:
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERCAT))
    except PermissionError:
        raise needs_privileges(interface) from None
    raw.bind((interface, ETHERCAT))
    # the socket itself waits: a poll before each frame would cost as much as the frame
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEVAL.pack(0, round(1e6 * _POLL)))
    raw.setsockopt(_SOL_PACKET, _QDISC_BYPASS, 1)  # nothing shapes a cable's traffic
    return raw

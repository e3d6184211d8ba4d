"""A chain of emulated terminals on a network interface: what a real EtherCAT master talks to.

Frames of type 0x88A4 come in through a raw socket, pass every slave in turn and go back, as on a
wire. Valves and chambers are those of `EmulatedActuator`; faults are injected by type. What happens
is logged with the monotonic time at which it happened.
"""

import contextlib
import math
import socket
import struct
import time
from collections.abc import Callable
from threading import Event
from typing import Any

import numpy as np

from softcr_hardware.actuator import EmulatedActuator
from softcr_hardware.emulated_chambers import SENSOR_NOISE
from softcr_hardware.ethercat.datagrams import pass_slaves
from softcr_hardware.ethercat.interfaces import check_interface, needs_privileges
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.slave import EmulatedSlave
from softcr_hardware.ethercat.terminals import (
    FULL_SCALE_COUNTS,
    FULL_SCALE_VOLTS,
    STATUS_TOGGLE,
    Station,
)
from softcr_hardware.faults import FAULT_KINDS, FaultInjector, FaultKind
from softcr_models.errors import UserError

ETHERCAT = 0x88A4
_SOL_PACKET, _QDISC_BYPASS = 263, 20  # of Linux; Python has no names for them
_TIMEVAL = struct.Struct("@ll")
_POLL = 0.005  # [s] at most between looks at the watchdogs
_CONVERSION = 0.0005  # [s] between new values of an input terminal
_WRONG = 3e4  # [Pa] that a wrong sensor reads too much
_LARGEST_FRAME = 1600


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
    ):
        """Powered on; `log` is called with {"time": monotonic [s], "event": name, ...}.

        Raises:
            UserError: the interface cannot be used.
        """
        self.actuator = actuator
        self._log_event = log
        self._station = station
        self._data = ProcessData(station)
        count = len(station.terminals)
        self.slaves = [
            EmulatedSlave(terminal, index == count - 1, self._log)
            for index, terminal in enumerate(station.terminals)
        ]
        self._valve_volts = np.full(len(station.chambers), station.valve.when_dead)
        self._driving = {  # slaves with outputs, and how theirs are laid out
            position: (slave, struct.Struct(f"<{slave.terminal.outputs}h"))
            for position, slave in enumerate(self.slaves, 1)
            if slave.terminal.outputs
        }
        self._driven: list[bytes | None] = []  # output bytes of those, as last seen
        self._sensing = [
            (slave, struct.Struct("<" + "Hh" * slave.terminal.inputs), self._wires(position))
            for position, slave in enumerate(self.slaves, 1)
            if slave.terminal.inputs
        ]
        self._safe = True
        self._toggles = False
        self._converted = -1.0
        sensors = [chamber.sensor for chamber in station.chambers]
        self._faults = FaultInjector(
            np.array([_WRONG / sensor.pascal_per_volt for sensor in sensors]),
            np.zeros(len(sensors)),
            np.full(len(sensors), FULL_SCALE_VOLTS),
        )
        self._random = np.random.default_rng(0)  # of the sensors' noise
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

    def run(self, stop: Event) -> None:
        """Answer frames until `stop`."""
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
        self._see_outputs()

    # --- the analog side ----------------------------------------------------------------------

    def _live(self, now: float) -> None:
        """Watchdogs, valves, chambers and sensors up to now."""
        for slave, _ in self._driving.values():
            slave.watch(now)
        self._see_outputs()
        pressures = self.actuator.advance(now, self._valve_volts)
        if now - self._converted >= _CONVERSION:
            self._converted = now
            pressures += SENSOR_NOISE * self._random.standard_normal(len(pressures))
            self._sense(self._faults.signals(now, self._data.volts(pressures)))

    def _sense(self, volts: np.ndarray) -> None:
        self._toggles ^= self._faults.renewed
        status = STATUS_TOGGLE if self._toggles else 0
        shares = [min(max(each / FULL_SCALE_VOLTS, -1.0), 1.0) for each in volts.tolist()]
        counts = [round(share * FULL_SCALE_COUNTS) for share in shares]
        for slave, layout, wires in self._sensing:
            words = [status, 0] * slave.terminal.inputs
            for chamber, channel in wires:
                words[2 * channel + 1] = counts[chamber]
            slave.input_bytes = layout.pack(*words)

    def _wires(self, position: int) -> list[tuple[int, int]]:
        """Chambers whose sensors hang on a terminal, and the channels (from 0) they hang on."""
        return [
            (index, chamber.sensor.channel - 1)
            for index, chamber in enumerate(self._station.chambers)
            if chamber.sensor.terminal == position
        ]

    def _see_outputs(self) -> None:
        """Valve voltages as the output terminals drive them now."""
        driven = [slave.outputs for slave, _ in self._driving.values()]
        if driven == self._driven:
            return
        self._driven = driven
        valve = self._station.valve
        counts = {
            position: None if outputs is None else layout.unpack(outputs)
            for (position, (_, layout)), outputs in zip(self._driving.items(), driven, strict=True)
        }
        volts = []
        for chamber in self._station.chambers:
            there = counts[chamber.valve.terminal]
            volts.append(
                valve.when_dead
                if there is None
                else there[chamber.valve.channel - 1] * FULL_SCALE_VOLTS / FULL_SCALE_COUNTS
            )
        self._valve_volts = np.array(volts)
        side = math.copysign(1.0, valve.exhaust - valve.closed)
        safe = min(side * (each - valve.closed) for each in volts) > valve.dead_band
        if safe != self._safe:
            self._safe = safe
            self._log("outputs", safe=safe, volts=self._valve_volts.round(3).tolist())

    def _log(self, event: str, **values: Any) -> None:
        self._log_event({"time": time.monotonic(), "event": event, **values})


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

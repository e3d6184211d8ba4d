"""A Net F/T box in software: records over UDP as its RDT interface sends them, its page over HTTP.

`NetFtBox` has neither sockets nor clock; `NetFtEmulator` runs it. Requests and records are those of
ATI's manual (9620-05-NET FT, "UDP interface using RDT"): `>HHI` and `>III6i`.

A tool transform moves and then turns the frame that the box reports in, about x, y and z one after
the other; that order is ours, for the manual at hand does not tell it.
"""

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pinocchio as pin

from softcr_hardware.emulation.faults import DELAY, FAULT_KINDS, FaultInjector, FaultKind
from softcr_hardware.force_torque.box import PAGE
from softcr_hardware.force_torque.client import HTTP_PORT, RDT_PORT
from softcr_hardware.force_torque.readings import SENSOR_RATE
from softcr_models.errors import UserError

OVERLOAD = 0x80020000
"""A status with the error bit; any such makes a client connect again."""

_REQUEST, _RECORD = struct.Struct(">HHI"), struct.Struct(">III6i")
_MAGIC, _STOP, _START, _BIAS = 0x1234, 0, 2, 0x42
_WRONG = np.array([5.0, 0.0, 0.0, 0.0, 0.0, 0.0])  # [N]
_GARBAGE = np.repeat([2000.0, 2000.0], 3)  # [N], [N m]: just what counts of 32 bits can hold
_NOISE = np.repeat([0.01, 2e-4], 3)  # [N], [N m] standard deviation
_LONGEST_BURST = 0.1  # [s] records are not made up for beyond
_INTEGER = 2**31 - 1
_GAGE_COUNTS = 100.0  # of a strain gage, per newton or newton metre: made up

Address = tuple[str, int]

SETTINGS: dict[str, str] = {
    "serial": "of the sensor's calibration, as FT1",
    "tool-transform": "six numbers between semicolons, as 0;0;10;0;0;90 [mm, degrees]",
    "yaw": "of the mounted sensor about z, against the base [degrees]",
    "name": "plain, or latin: one that is not UTF-8",
    "filter": "number of the low-pass filter that the box says it has, 0 to 12",
}
"""What may be set in a box while it runs."""

_NAMES = {"plain": "Net F/T (emulated)", "latin": "Net F/T\xae (\xe9mul\xe9)"}


class NetFtBox:
    """A box with its sensor.

    Attributes:
        status: in every record; 0 for good.
        frozen: whether the sensor's own count stands still while records go on.
        counts_per_force, counts_per_moment, force_unit, moment_unit: of its calibration.
        serial: of its sensor's calibration.
        name: of the product.
        filter: number of the low-pass filter that it says it has.
        tool_transform: (6,) displacement [mm] and angles [degrees].
        yaw: of the mounted sensor about z, against the base [rad].
    """

    def __init__(
        self,
        wrench: Callable[[float], np.ndarray],
        rate: float = 1000.0,
        start: float = 0.0,
        seed: int = 0,
    ):
        """A box switched on at `start`.

        Args:
            wrench: (6,) force [N], moment [N m] at a time [s].
            rate: of records [Hz], at most 7000.
            start: [s] on the clock of `answer` and `records`.
            seed: of noise and garbage.
        """
        self.status, self.frozen = 0, False
        self.counts_per_force = self.counts_per_moment = 1_000_000.0
        self.force_unit, self.moment_unit = "N", "Nm"
        self.serial, self.name, self.filter = "FT00000", _NAMES["plain"], 0
        self.tool_transform, self.yaw = np.zeros(6), 0.0
        self._wrench, self._period = wrench, 1.0 / rate
        self._faults = FaultInjector(_WRONG, -_GARBAGE, _GARBAGE, seed)
        self._random = np.random.default_rng(seed)
        self._next = start
        self._restart(start)

    def inject(self, kind: FaultKind) -> None:
        """Begin a fault; `ok` ends it. A reconnect is a power cycle, over at once.

        Raises:
            UserError: no such fault.
        """
        if kind not in FAULT_KINDS:
            raise UserError(f"fault {kind!r}: unknown; known are {', '.join(FAULT_KINDS)}")
        if kind == "reconnect":
            self._restart(self._next)
            kind = "ok"
        self._faults.kind = kind

    def set(self, name: str, value: str) -> None:
        """Change one of SETTINGS.

        Raises:
            UserError: no such setting, or a value that it cannot have.
        """
        if name not in SETTINGS:
            raise UserError(f"setting {name!r}: unknown; known are {', '.join(SETTINGS)}")
        try:
            if name == "serial":
                self.serial = value
            elif name == "tool-transform":
                self.tool_transform = _finite(value).reshape(6)
            elif name == "yaw":
                self.yaw = float(np.radians(_finite(value).item()))
            elif name == "name":
                self.name = _NAMES[value]
            else:
                self.filter = int(value)
        except (ValueError, KeyError):
            raise UserError(f"setting {name} = {value!r}: must be {SETTINGS[name]}") from None

    def _restart(self, now: float) -> None:
        """Counts from zero, streams to nobody, its bias is gone."""
        self._began, self._sequence, self._sensor_sequence = now, 0, 0
        self._bias = np.zeros(6)
        self._last = np.zeros(6)
        self.client: Address | None = None

    def answer(self, datagram: bytes, client: Address) -> None:
        """A request; the box answers with records alone."""
        if self._faults.kind == "off" or len(datagram) != _REQUEST.size:
            return
        magic, command, _ = _REQUEST.unpack(datagram)
        if magic != _MAGIC:
            return
        if command == _START:
            self.client = client
        elif command == _STOP and client == self.client:
            self.client = None
        elif command == _BIAS:
            self._bias = self._last

    @property
    def next_moment(self) -> float:
        """When the next record is due [s]."""
        return self._next

    def records(self, now: float) -> list[bytes]:
        """Records to send to `client` at `now` [s]."""
        if now - self._next > _LONGEST_BURST:
            self._next = now
        due = []
        while self._next <= now:
            record = self._measure(self._next)
            self._next += self._period
            if record and self.client:
                due.append(record)
        return due

    def page(self) -> bytes | None:
        """What the box tells of itself over HTTP; None when it is off."""
        if self._faults.kind == "off":
            return None
        return (
            '<?xml version="1.0" encoding="ISO-8859-1"?>\n<netft>\n'
            f"<runstat>0x{self.status:08x}</runstat><runrate>{SENSOR_RATE:.0f}</runrate>\n"
            f"<scfgfu>{self.force_unit}</scfgfu><scfgtu>{self.moment_unit}</scfgtu>\n"
            f"<cfgcpf>{self.counts_per_force:g}</cfgcpf>"
            f"<cfgcpt>{self.counts_per_moment:g}</cfgcpt>\n"
            "<cfgmr>100;100;100;10;10;10</cfgmr>\n"
            f"<cfgcalsel>0</cfgcalsel><cfgcalsn>{self.serial}</cfgcalsn>\n"
            f"<cfgnam>emulated</cfgnam><setcfgsel>0</setcfgsel>\n"
            f"<cfgtfx>{_listed(self.tool_transform)}</cfgtfx>"
            "<scfgtdu>mm</scfgtdu><scfgtau>degrees</scfgtau>\n"
            f"<setbias>{_listed(np.rint(self._bias * _GAGE_COUNTS))}</setbias>"
            f"<setuserfilter>{self.filter}</setuserfilter>\n"
            f"<comrdte>Enabled</comrdte><comrdtrate>{1.0 / self._period:.0f}</comrdtrate>\n"
            "<mfgdigsn>LOT0000</mfgdigsn><mfgdigver>2.2.59</mfgdigver>\n"
            f"<prodname>{self.name}</prodname>\n</netft>\n"
        ).encode("iso-8859-1", "replace")

    def _measure(self, moment: float) -> bytes | None:
        queued = self._faults.kind == "delayed"  # the way is longer: old records with their count
        count = round((moment - DELAY * queued - self._began) * SENSOR_RATE) + 1
        if queued and count <= self._sensor_sequence:
            return None  # the first is still on its way
        if not self.frozen:
            self._sensor_sequence = count
        measured = self._sensed(self._wrench(moment)) + _NOISE * self._random.standard_normal(6)
        signals = self._faults.signals(moment, measured)
        self._sequence += 1
        if not self._faults.answers() or not self._faults.renewed:
            return None
        self._last = signals
        scale = np.repeat([self.counts_per_force, self.counts_per_moment], 3)
        counts = np.clip(np.rint((signals - self._bias) * scale), -_INTEGER, _INTEGER)
        record = _RECORD.pack(
            self._sequence & 0xFFFFFFFF,
            self._sensor_sequence & 0xFFFFFFFF,
            self.status,
            *counts.astype(int).tolist(),
        )
        if self._faults.kind == "garbage" and self._sequence % 3 == 0:
            return record[: self._random.integers(len(record))]
        return record

    def _sensed(self, wrench: np.ndarray) -> np.ndarray:
        """(6,) a wrench of the base frame, in the frame that the box reports in."""
        if not self.yaw and not self.tool_transform.any():
            return wrench
        displacement, angles = 1e-3 * self.tool_transform[:3], np.radians(self.tool_transform[3:])
        sensor = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, self.yaw), np.zeros(3))
        turned = np.eye(3)
        for axis, angle in enumerate(angles):
            turned = turned @ pin.exp3(angle * np.eye(3)[axis])
        reported = sensor * pin.SE3(turned, displacement)
        return np.array(reported.actInv(pin.Force(wrench[:3], wrench[3:])).vector)


class NetFtEmulator:
    """A NetFtBox on the network.

    Attributes:
        box: what it runs.
        rdt_port, http_port: where.
    """

    def __init__(
        self,
        box: NetFtBox,
        host: str = "127.0.0.1",
        rdt_port: int = RDT_PORT,
        http_port: int = HTTP_PORT,
        log: Callable[[dict[str, Any]], None] = lambda event: None,
    ):
        """Listening; port 0 takes a free one.

        Raises:
            UserError: a port cannot be had.
        """
        self.box, self._log = box, log
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind((host, rdt_port))
            self._http = ThreadingHTTPServer((host, http_port), _handler(box))
        except OSError as error:
            self._socket.close()
            port = f"ports {rdt_port} (UDP) and {http_port} (TCP)"
            raise UserError(f"{host} {port}: {error.strerror or error}") from None
        self._socket.setblocking(False)
        self.rdt_port = self._socket.getsockname()[1]
        self.http_port = self._http.server_port

    def inject(self, kind: FaultKind) -> None:
        self.box.inject(kind)
        self._log({"time": time.monotonic(), "event": "fault", "kind": kind})

    def set(self, name: str, value: str) -> None:
        self.box.set(name, value)
        self._log({"time": time.monotonic(), "event": "setting", "name": name, "value": value})

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop`."""
        pages = threading.Thread(target=self._http.serve_forever, args=(0.5,), daemon=True)
        pages.start()
        known = None
        while not stop.is_set():
            wait = min(max(self.box.next_moment - time.monotonic(), 0.0), 0.05)
            with contextlib.suppress(OSError):  # a client that has gone
                if select.select([self._socket], [], [], wait)[0]:
                    self.box.answer(*self._socket.recvfrom(64))
                for record in self.box.records(time.monotonic()):
                    if self.box.client is not None:
                        self._socket.sendto(record, self.box.client)
            if self.box.client != known:
                known = self.box.client
                client = f"{known[0]}:{known[1]}" if known else ""
                self._log({"time": time.monotonic(), "event": "client", "client": client})
        self._http.shutdown()
        self._http.server_close()
        self._socket.close()


def _finite(value: str) -> np.ndarray:
    """Numbers between semicolons; raises ValueError for what is none."""
    numbers = np.array(value.split(";"), float)
    if not np.isfinite(numbers).all():
        raise ValueError
    return numbers


def _listed(values: np.ndarray) -> str:
    return ";".join(f"{value:g}" for value in values)


def _handler(box: NetFtBox) -> type[BaseHTTPRequestHandler]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = box.page() if self.path.split("?")[0] == PAGE else None
            if page is None:
                self.send_error(503 if self.path.startswith(PAGE) else 404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Page

"""A server that speaks NatNet as Motive does: one rigid body, frames with exposure stamps, faults.

`MotiveServer` has neither sockets nor clock: datagrams in, datagrams out. `MotiveEmulator` runs it
over UDP. The bytes are packed here by hand, after NatNet's published packet layout, so that reading
and writing share nothing.
"""

import contextlib
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

from softcr_hardware.emulation.faults import FAULT_KINDS, FaultInjector, FaultKind, chosen
from softcr_hardware.optitrack.calibration import MocapCalibration
from softcr_hardware.optitrack.protocol import (
    COMMAND_PORT,
    CONNECT,
    DATA_PORT,
    FRAME,
    HEADER,
    KEEP_ALIVE,
    MODEL_DEFINITIONS,
    MODEL_REQUEST,
    SERVER_INFO,
)
from softcr_models.errors import UserError

FREQUENCY = 10_000_000
"""Of the clock of a Windows machine [Hz]."""

_UNRECOGNISED = 100
_LATENCY = 0.0045  # [s] from exposure to sending
_WRONG = np.array([0.05, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])  # [m] and quaternion, stamp
_GARBAGE = np.array([10.0, 10.0, 10.0, 1.0, 1.0, 1.0, 1.0, 0.0])
_RIGID_BODY, _FORCE_PLATE, _TRACKED = 1, 3, 1
_RECORDING, _MODELS_CHANGED, _EDIT = 1, 2, 4  # bits of a frame
_FORGOTTEN = 10.0  # [s] after which a client that says nothing gets no more frames
_LARGEST_JUMP = 0.5  # [s] exposures are not made up for beyond

_PLATE_CHANNELS = ("Fx", "Fy", "Fz", "Mx", "My", "Mz")

Address = tuple[str, int]

SETTINGS: dict[str, tuple[str, ...]] = {
    "stamps": ("mid-exposure", "received", "none"),
    "mode": ("live", "recording", "edit"),
    "force-plate": ("no", "yes"),
}
"""What may be set in a server while it runs, the default first. Without the exposure's stamp (USB
cameras) there may be that of the data; in Edit mode there is no exposure."""


class MotiveServer:
    """A Motive that tracks the tip.

    Attributes:
        name, body_id: of the rigid body; change them at will.
        tracked: whether the cameras see it.
        present: whether it is in the frames at all.
        settings: see SETTINGS.
    """

    def __init__(
        self,
        tip: Callable[[float], np.ndarray],
        calibration: MocapCalibration,
        rate: float = 120.0,
        version: tuple[int, int] = (4, 1),
        group: str = "",
        start: float = 0.0,
        seed: int = 0,
    ):
        """A server switched on at `start`.

        Args:
            tip: the (4, 4) tip in the base frame at a time [s]; asked for once per exposure, in
                order of time.
            calibration: of its cameras to the robot.
            rate: of the cameras [Hz].
            version: of the protocol: 3.0 to 4.2.
            group: of a multicast server; empty for unicast.
            start: [s] on the clock of `answer` and `frames`.
            seed: of garbage.
        """
        self.name, self.body_id = "tip", 1
        self.tracked = self.present = True
        self.settings = {name: values[0] for name, values in SETTINGS.items()}
        self._described: tuple[str, int, str] | None = None  # as the last frame had it
        self._tip, self._calibration = tip, calibration
        self._period, self._version, self._group = 1.0 / rate, version, group
        self._faults = FaultInjector(_WRONG, -_GARBAGE, _GARBAGE, seed)
        self._random = np.random.default_rng(seed)
        self._pending: deque[tuple[float, bytes, bytes]] = deque()  # when, before and after it
        self._next = start
        self._restart(start)

    def inject(self, kind: FaultKind) -> None:
        """Begin a fault; `ok` ends it. A reconnect is a restart of the server, over at once.

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
            UserError: no such setting, or not one of its values.
        """
        self.settings[name] = chosen(SETTINGS, name, value)

    def _restart(self, now: float) -> None:
        """Ticks and frames count from zero, nobody is known."""
        self._began, self._number = now, 0
        self._clients: dict[Address, float] = {}
        self._pending.clear()

    # --- what clients ask ---------------------------------------------------------------------

    def answer(self, now: float, datagram: bytes, client: Address) -> bytes | None:
        """What goes back to a client's datagram."""
        if self._faults.kind == "off" or len(datagram) < HEADER.size:
            return None
        message = HEADER.unpack_from(datagram)[0]
        if message == CONNECT:
            self._clients[client] = now
            return _datagram(SERVER_INFO, self._server_info())
        if client in self._clients:
            self._clients[client] = now
        if message == MODEL_REQUEST:
            return _datagram(MODEL_DEFINITIONS, self._definitions())
        return None if message == KEEP_ALIVE else _datagram(_UNRECOGNISED, b"")

    def clients(self, now: float) -> list[Address]:
        """Who gets unicast frames."""
        return [who for who, heard in self._clients.items() if now - heard < _FORGOTTEN]

    # --- what the cameras see -----------------------------------------------------------------

    @property
    def next_moment(self) -> float:
        """When there is something to do again [s]: an exposure or a frame to send."""
        return min(self._next, self._pending[0][0]) if self._pending else self._next

    def frames(self, now: float) -> list[bytes]:
        """Frames to send at `now` [s]; exposures that are due are taken."""
        if now - self._next > _LARGEST_JUMP:
            self._next = now
        while self._next <= now:
            self._expose(self._next)
            self._next += self._period
        ready = []
        while self._pending and self._pending[0][0] <= now:
            _, before, after = self._pending.popleft()
            stamp = struct.pack("<Q", self._ticks(now))
            ready.append(_datagram(FRAME, before + stamp + after))
        if self._faults.kind == "garbage" and ready and self._number % 3 == 0:
            ready[0] = self._noise(ready[0])
        return ready

    def _expose(self, moment: float) -> None:
        body = self._calibration.body(self._tip(moment))
        pose = pin.SE3ToXYZQUAT(pin.SE3(body))
        signals = self._faults.signals(moment, np.append(pose, moment))
        self._number += 1
        if not self._faults.answers() or not self._faults.renewed:
            return
        exposed = float(signals[7]) if self._faults.kind == "delayed" else moment
        if self._faults.kind == "garbage" and self._number % 3 == 1:
            signals[:3] = np.nan
        self._pending.append((moment + _LATENCY, *self._frame(exposed, signals[:7])))

    def _noise(self, datagram: bytes) -> bytes:
        """A datagram with some bytes changed and its end cut off."""
        noisy = bytearray(datagram[: self._random.integers(1, len(datagram))])
        for place in self._random.integers(0, len(noisy), 8):
            noisy[place] = self._random.integers(256)
        return bytes(noisy)

    # --- bytes --------------------------------------------------------------------------------

    def _ticks(self, moment: float) -> int:
        return max(round((moment - self._began) * FREQUENCY), 0)

    def _server_info(self) -> bytes:
        major, minor = self._version
        group = bytes(map(int, self._group.split("."))) if self._group else bytes(4)
        return (
            struct.pack("<256s4B4B", b"Motive", 3, 1, 0, 1, major, minor, 0, 0)
            + struct.pack("<QHB", FREQUENCY, DATA_PORT, bool(self._group))
            + group
        )

    def _definitions(self) -> bytes:
        described = _text(self.name) + struct.pack("<II3f", self.body_id, 0, 0.0, 0.0, 0.0)
        if self._version >= (4, 2):
            described += struct.pack("<4f", 0.0, 0.0, 0.0, 1.0)
        described += struct.pack("<I", 0)  # markers
        kinds = [struct.pack("<I", _RIGID_BODY) + self._sized(described)]
        if self.settings["force-plate"] == "yes":
            kinds.insert(0, struct.pack("<I", _FORCE_PLATE) + self._sized(_force_plate()))
        return struct.pack("<I", len(kinds)) + b"".join(kinds)

    def _frame(self, exposed: float, pose: np.ndarray) -> tuple[bytes, bytes]:
        """A frame's content before and after the stamp of its sending."""
        body = struct.pack("<I7ffH", self.body_id, *pose, 2e-4, _TRACKED * self.tracked)
        bodies = [body] if self.present else []
        sections: list[list[bytes]] = [
            [],
            [],
            bodies,
            [],
        ]  # marker sets, markers, bodies, skeletons
        if self._version >= (4, 1):
            sections.append([])  # assets
        has_plate = self.settings["force-plate"] == "yes"
        one_sample = struct.pack("<If", 1, 0.5) * len(_PLATE_CHANNELS)
        plates = [struct.pack("<II", 1, len(_PLATE_CHANNELS)) + one_sample] if has_plate else []
        sections += [[], plates, []]  # labelled markers, force plates, devices
        suffix = struct.pack("<IId", 0, 0, exposed - self._began) + self._stamps(exposed)
        precision = struct.pack("<II", 0, 0) if self._version >= (4, 1) else b""
        end = struct.pack("<HI", self._parameters(), 0)  # parameters, end of data
        content = b"".join(
            struct.pack("<I", len(section)) + self._sized(b"".join(section)) for section in sections
        )
        return struct.pack("<I", self._number) + content + suffix, precision + end

    def _stamps(self, exposed: float) -> bytes:
        """Middle of the exposure and when the data was there, 0 for what is not known."""
        stamps, edit = self.settings["stamps"], self.settings["mode"] == "edit"
        middle = 0 if edit or stamps != "mid-exposure" else self._ticks(exposed)
        received = 0 if stamps == "none" else self._ticks(exposed + 0.6 * _LATENCY)
        return struct.pack("<QQ", middle, received)

    def _parameters(self) -> int:
        described = (self.name, self.body_id, self.settings["force-plate"])
        changed = self._described not in (None, described)
        self._described = described
        mode = self.settings["mode"]
        return (
            _RECORDING * (mode == "recording")
            | _MODELS_CHANGED * changed
            | _EDIT * (mode == "edit")
        )

    def _sized(self, content: bytes) -> bytes:
        """With its size before it, as 4.1 has it."""
        return (struct.pack("<I", len(content)) if self._version >= (4, 1) else b"") + content


class MotiveEmulator:
    """A MotiveServer over UDP.

    Attributes:
        server: what it runs.
        port: of its commands.
    """

    def __init__(
        self,
        server: MotiveServer,
        host: str = "127.0.0.1",
        port: int = COMMAND_PORT,
        group: Address | None = None,
        log: Callable[[dict[str, Any]], None] = lambda event: None,
    ):
        """Listening; port 0 takes a free one; `group` is where a multicast server streams to.

        Raises:
            UserError: the port cannot be had.
        """
        self.server, self._group, self._log = server, group, log
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise UserError(f"{host} port {port}: {error.strerror or error}") from None
        if group is not None:
            interface = socket.inet_aton(host)
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]

    def inject(self, kind: FaultKind) -> None:
        self.server.inject(kind)
        self._log({"time": time.monotonic(), "event": "fault", "kind": kind})

    def set(self, name: str, value: str) -> None:
        self.server.set(name, value)
        self._log({"time": time.monotonic(), "event": "setting", "name": name, "value": value})

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop`."""
        known: list[Address] = []
        while not stop.is_set():
            wait = min(max(self.server.next_moment - time.monotonic(), 0.0), 0.05)
            ready = select.select([self._socket], [], [], wait)[0]
            now = time.monotonic()
            with contextlib.suppress(OSError):  # a client that has gone
                if ready:
                    self._answer(now)
            for frame in self.server.frames(now):
                for client in [self._group] if self._group else self.server.clients(now):
                    with contextlib.suppress(OSError):
                        self._socket.sendto(frame, client)
            if (clients := self.server.clients(now)) != known:
                known = clients
                names = [f"{host}:{port}" for host, port in known]
                self._log({"time": now, "event": "clients", "clients": names})
        self._socket.close()

    def _answer(self, now: float) -> None:
        datagram, client = self._socket.recvfrom(2048)
        if answer := self.server.answer(now, datagram, client):
            self._socket.sendto(answer, client)


def _datagram(message: int, content: bytes) -> bytes:
    return HEADER.pack(message, len(content)) + content


def _force_plate() -> bytes:
    """The description of one: serial number, sizes, calibration, four corners, six channels."""
    numbers = [0.4, 0.6, *[0.0] * 3, *np.eye(12).ravel(), *[0.2, 0.0, 0.3] * 4]
    described = struct.pack("<I", 1) + _text("plate 1")
    described += struct.pack(f"<{len(numbers)}f", *numbers)
    described += struct.pack("<III", 2, 1, len(_PLATE_CHANNELS))
    return described + b"".join(map(_text, _PLATE_CHANNELS))


def _text(text: str) -> bytes:
    return text.encode() + b"\0"

"""The sockets of a NatNet session and the thread that owns them."""

import contextlib
import select
import socket
import struct
import threading
import time
from collections import deque
from dataclasses import dataclass

from softcr_hardware.backoff import Backoff
from softcr_hardware.optitrack.protocol import COMMAND_PORT, DATA_PORT, MULTICAST_GROUP
from softcr_hardware.optitrack.session import NatNetSession, TipPose
from softcr_models.errors import UserError
from softcr_runtime.ros.clocks import on_monotonic_clock

_TIMESTAMP = 35  # of Linux: SO_TIMESTAMPNS, for which Python has no name
_TIMESPEC = struct.Struct("@ll")
_NOTES = socket.CMSG_SPACE(_TIMESPEC.size)
_POLL = 0.02  # [s] at most between looks at what is due
_LARGEST = 65536
_BUFFER = 1 << 20
_KEPT = 100  # poses nobody has taken
_FIRST_PAUSE, _LONGEST_PAUSE, _MOST_RESTARTS = 0.1, 5.0, 1000  # of sockets that fail


@dataclass(frozen=True)
class Address:
    """Where the server is and how it streams.

    Attributes:
        server: IP address of Motive's machine.
        local: IP address of our interface towards it; 0.0.0.0 for any.
        multicast: whether it streams to a group, otherwise to us.
        group: that group.
        command_port, data_port: of the server; of the group.
    """

    server: str = "127.0.0.1"
    local: str = "0.0.0.0"
    multicast: bool = False
    group: str = MULTICAST_GROUP
    command_port: int = COMMAND_PORT
    data_port: int = DATA_PORT


class NatNetClient:
    """Runs a session over UDP in a thread of its own. Only the server's datagrams are read.

    Attributes:
        restarts: times the sockets were opened again after an error.
        problem: the last error; empty for none.
    """

    def __init__(self, session: NatNetSession, address: Address):
        """Touches no network yet.

        Raises:
            UserError: an address is none.
        """
        for name, value in (("server", address.server), ("local", address.local)):
            if not _is_address(value):
                raise UserError(f"{name} {value!r}: must be an IP address, as 192.168.1.10")
        if address.multicast and not _is_group(address.group):
            raise UserError(f"group {address.group!r}: must be from 224.0.0.0 to 239.255.255.255")
        self.session = session
        self.restarts = 0
        self.problem = ""
        self._address = address
        self._poses: deque[TipPose] = deque(maxlen=_KEPT)
        self._fresh = threading.Condition()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Start to listen; the server need not be there yet.

        Raises:
            UserError: the sockets cannot be opened.
        """
        try:
            sockets = self._sockets()
        except OSError as error:
            raise UserError(
                f"local {self._address.local}: cannot be listened on: {error.strerror or error}"
            ) from None
        self._thread = threading.Thread(
            target=self._run, args=(sockets,), name="natnet", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening; any number of times."""
        self._stop.set()
        with self._fresh:
            self._fresh.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def take(self, timeout: float) -> TipPose | None:
        """The next believed pose in order, waiting up to `timeout` [s]; None if none came."""
        with self._fresh:
            self._fresh.wait_for(lambda: self._poses or self._stop.is_set(), timeout)
            return self._poses.popleft() if self._poses else None

    def forget(self) -> None:
        """Leave out the poses nobody has taken."""
        with self._fresh:
            self._poses.clear()

    # --- the thread ---------------------------------------------------------------------------

    def _run(self, sockets: list[socket.socket]) -> None:
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, _MOST_RESTARTS)
        while not self._stop.is_set():
            try:
                self._listen(sockets)
            except Exception as error:  # a link that went down, or a mistake of ours
                self.problem = f"{type(error).__name__}: {error}"
                if not self._reopened(sockets, backoff):
                    break
        _close(sockets)

    def _reopened(self, sockets: list[socket.socket], backoff: Backoff) -> bool:
        _close(sockets)
        backoff.lost(time.monotonic())
        while not self._stop.wait(_POLL) and not backoff.given_up:
            if not backoff.due(time.monotonic()):
                continue
            self.restarts += 1
            with contextlib.suppress(OSError):
                sockets[:] = self._sockets()
                return True
        return False

    def _listen(self, sockets: list[socket.socket]) -> None:
        server = (self._address.server, self._address.command_port)
        while not self._stop.is_set():
            for datagram in self.session.due(time.monotonic()):
                with contextlib.suppress(OSError):  # nobody there, or no way there, yet
                    sockets[0].sendto(datagram, server)
            for ready in select.select(sockets, [], [], _POLL)[0]:
                self._read(ready)

    def _read(self, ready: socket.socket) -> None:
        try:
            datagram, notes, _, (source, _) = ready.recvmsg(_LARGEST, _NOTES)
        except (ConnectionError, BlockingIOError):  # nobody there, says ICMP
            return
        if source != self._address.server:
            self.session.ignore(source)
            return
        pose = self.session.receive(_received(notes), datagram)
        if pose is not None:
            with self._fresh:
                self._poses.append(pose)
                self._fresh.notify()

    def _sockets(self) -> list[socket.socket]:
        """For commands, where a unicast server also sends frames; and for a group's frames."""
        address = self._address
        opened: list[socket.socket] = []
        try:
            opened.append(_socket(address.local, 0))
            if address.multicast:
                opened.append(_socket(address.group, address.data_port))
                membership = struct.pack(
                    "4s4s", socket.inet_aton(address.group), socket.inet_aton(address.local)
                )
                opened[1].setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        except OSError:
            _close(opened)
            raise
        return opened


def _received(notes: list[tuple[int, int, bytes]]) -> float:
    """When the kernel received a datagram [s]: the fitted clock need not count how late we look."""
    for level, kind, note in notes:
        if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMP):
            seconds, nanoseconds = _TIMESPEC.unpack(note)
            return on_monotonic_clock(10**9 * seconds + nanoseconds)
    return time.monotonic()


def _socket(host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
    with contextlib.suppress(OSError):  # a system without it
        made.setsockopt(socket.SOL_SOCKET, _TIMESTAMP, 1)
    try:
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    made.setblocking(False)
    return made


def _close(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()


def _is_address(text: str) -> bool:
    try:
        return bool(socket.inet_aton(text)) and text.count(".") == 3
    except OSError:
        return False


def _is_group(text: str) -> bool:
    return _is_address(text) and 224 <= int(text.split(".")[0]) <= 239

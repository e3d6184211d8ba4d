"""The valve driver in a process of its own: its 1 kHz cycle shares Python's lock with nobody.

`ValveProcess` stands in the node for the `ValveDriver` that the child runs. They talk through a
pair of sockets, a pickled message a packet, and what is told in every cycle lies in shared memory
(`SharedReport`); neither ever waits for the other:

- the node ends, however it does: the child reads the end of the socket in its next cycle, opens the
  exhausts, takes the terminals to INIT and ends;
- the node hangs: commands fall silent, and the child's own state machine holds, then vents;
- the child ends or hangs: the terminals vent by their watchdog, and `report` says so.
"""

import contextlib
import gc
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from softcr_hardware.ethercat.bus import EtherCatBus
from softcr_hardware.ethercat.driver import ValveDriver, ValveReport
from softcr_hardware.ethercat.fast_core import stay_on_fast_core
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.shared_report import SharedReport
from softcr_hardware.ethercat.terminals import Station
from softcr_hardware.safety.safety import Action, Decision, Transition
from softcr_hardware.safety.settings import SafetySettings
from softcr_models.errors import UserError
from softcr_models.robots.robot import PressureLimits
from softcr_runtime.ros.realtime import lock_memory, schedule_realtime

_COMMAND = f"import sys; from {__name__} import main; sys.exit(main())"
_LARGEST = 1 << 16  # bytes of a message
_COUNTED = 1000  # cycles between counts
_TOLD = 20  # transitions among them
_START_TIME = 60.0  # [s] of a machine that has to read everything from disk
_END_TIME = 1.5  # [s] with the terminals taken to INIT; then it is killed, and they vent
_ANSWER_TIME = 0.5  # [s]
_SILENT = 0.25  # [s] without a report: the terminals' watchdog has long vented


@dataclass(frozen=True)
class ValveTask:
    """What the child is to drive: arguments of ValveDriver, its interface and priority; the cause
    of a latch that was held, and zeros (m,) [V] that were kept."""

    station: Station
    limits: PressureLimits
    interface: str
    safety: SafetySettings
    options: Mapping[str, Any]
    priority: int
    held: str = ""
    zero: np.ndarray | None = None

    def driver(self, say: Callable[[str], None]) -> ValveDriver:
        """The driver on its bus; touches nothing yet."""
        data = ProcessData(self.station)
        if self.zero is not None:
            data.zero = self.zero
        bus = EtherCatBus(self.interface, self.station, data, say)
        return ValveDriver(
            self.station,
            self.limits,
            data,
            bus,
            self.safety,
            **self.options,
            say=say,
            held=self.held,
        )


@dataclass(frozen=True)
class Counts:
    """What is told once a second: of fast cycle, pressure guard, commands and safety; and what the
    system does not permit the fast cycle, of priority and memory."""

    cycle: dict[str, Any] = field(default_factory=dict)
    guard: dict[str, list[float]] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    transitions: tuple[Transition, ...] = ()
    not_permitted: tuple[str, ...] = ()


class ValveProcess:
    """A ValveDriver in a child, as far as the node needs it. Any thread may call.

    Attributes:
        counts: told last.
    """

    def __init__(self, task: ValveTask, say: Callable[[str], None]):
        """Starts nothing yet; `say` is told what the driver says."""
        self.counts = Counts()
        self._task, self._say = task, say
        self._answered = threading.Condition()
        self._answers: list[tuple[str, Any]] = []
        self._ended = False
        self._board: SharedReport | None = None
        self._board_lock = threading.Lock()  # for the loop and for services

    @property
    def report(self) -> ValveReport:
        """Of the last cycle that was told; vented, where the child has ended or fallen silent."""
        board = self._board
        assert board is not None  # opened
        with self._board_lock:
            report = board.read()
        assert report is not None  # written before the child has answered
        if self._reader.is_alive() and time.monotonic() - report.time <= _SILENT:
            return report
        if self._reader.is_alive() and report.decision.action == Action.VENT_NOW:
            return report  # it may take seconds to bring the bus up
        what = "valve process silent" if self._reader.is_alive() else "valve process ended"
        before = report.decision
        vented = Decision(
            Action.VENT_NOW, False, what, (what,), before.latch, before.cause, before.generation
        )
        return replace(report, decision=vented, bus=what)

    def open(self) -> None:
        """Start the child and let it bring the bus up.

        Raises:
            UserError: what keeps the child from driving: the bus is not as the station says, the
                master is not installed, ...; or that it did not start.
        """
        board = SharedReport(len(self._task.station.chambers))
        self._board = board
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, str(theirs.fileno()), str(board.file)],
                pass_fds=[theirs.fileno(), board.file],
                stdin=subprocess.DEVNULL,
            )
        self._socket, self._ended = ours, False
        self._reader = threading.Thread(target=self._read, name="valves", daemon=True)
        self._reader.start()
        self._send("task", self._task)
        kind, said = self._answer(_START_TIME)
        if kind != "opened":
            runs = not self._ended and self._child.poll() is None
            self.close()
            why = f"ended with exit code {self._child.returncode}"
            if runs:
                why = f"did not bring the bus up within {_START_TIME:.0f} s"
            log = "what it said is in the log of the valves' node"
            raise UserError(said or f"the valves' process {why}; {log}")

    def close(self) -> None:
        """Let the child leave the valves safe and end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        try:
            self._child.wait(_END_TIME)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._reader.join(_END_TIME)
        self._socket.close()
        if self._board is not None:
            self._board.read()  # the last words
            self._board.close()

    def hear(self, *arguments: Any) -> None:
        self._send("hear", arguments)

    def enable(self, generation: int | None = None) -> None:
        seen = self.report.decision.generation if generation is None else generation
        self._send("enable", seen)

    def vent(self) -> None:
        self._send("vent")

    def reset(self, checked: bool = False) -> None:
        self._send("reset", checked)

    def offered_by(self, commanders: str, operators: str) -> None:
        self._send("offered", (commanders, operators))

    def use_safety(self, settings: SafetySettings) -> None:
        """See ValveDriver.

        Raises:
            UserError: see there; or the child does not answer.
        """
        self._answers.clear()
        self._send("safety", settings)
        kind, said = self._answer(_ANSWER_TIME)
        if kind != "used":
            raise UserError(said or "safety settings: the valves' process does not answer")

    def calibrate_zero(self) -> np.ndarray:
        """See ValveDriver.

        Raises:
            UserError: see there; or the child does not answer.
        """
        self._answers.clear()
        self._send("calibrate")
        kind, said = self._answer(_ANSWER_TIME)
        if kind != "zero":
            raise UserError(said or "zero calibration: the valves' process does not answer")
        return np.asarray(said)

    def _send(self, kind: str, content: Any = None) -> None:
        with contextlib.suppress(OSError):  # it has ended, or hangs: `report` tells
            self._socket.send(pickle.dumps((kind, content)), socket.MSG_DONTWAIT)

    def _answer(self, most: float) -> tuple[str, Any]:
        with self._answered:
            self._answered.wait_for(lambda: self._answers or self._ended, most)
            return self._answers.pop(0) if self._answers else ("", "")

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while packet := self._socket.recv(_LARGEST):
                kind, content = pickle.loads(packet)
                if kind == "counts":
                    self.counts = content
                elif kind == "say":
                    self._say(content)
                else:
                    with self._answered:
                        self._answers.append((kind, content))
                        self._answered.notify_all()
        with self._answered:
            self._ended = True
            self._answered.notify_all()


class _Child:
    """The other end."""

    def __init__(self, end: socket.socket, board: int):
        self._socket = end
        self._board_file = board
        self._arriving = select.poll()
        self._arriving.register(end, select.POLLIN)
        self._stop = threading.Event()
        self._cycle = 0
        self._not_permitted: tuple[str, ...] = ()
        self._told_to_end = self._running = False
        signal.signal(signal.SIGTERM, self._end)

    def run(self) -> int:
        try:
            self._begin()
        except UserError as error:
            self._send("failed", str(error))
            return 1
        except Exception as error:
            self._send("failed", f"the valves' process: {type(error).__name__}: {error}")
            raise
        self._running = True
        # from here on there is no garbage, and the collector would take longer than a cycle
        gc.collect()
        gc.freeze()
        self._board.write(replace(self._driver.report, time=time.monotonic()))
        self._send("opened", "")
        self._driver.run(self._stop, self._between)
        return 0

    def _begin(self) -> None:
        """Make the driver that the node wants, and bring its bus up.

        Raises:
            UserError: one line about what keeps it from that.
        """
        _, task = pickle.loads(self._socket.recv(_LARGEST))
        self._board = SharedReport(len(task.station.chambers), self._board_file)
        self._driver = task.driver(lambda line: self._send("say", line))
        problems = [stay_on_fast_core()]
        if task.priority:
            problems += [schedule_realtime(task.priority), lock_memory()]
        self._not_permitted = tuple(filter(None, problems))
        for problem in self._not_permitted:
            self._send("say", f"fast cycle: {problem}")
        self._driver.open()

    def _between(self) -> None:
        """After each cycle: what the node wants, and what it is told."""
        if self._told_to_end:
            self._driver.vent()
            self._stop.set()
        while not self._stop.is_set() and (packet := self._packet()) is not None:
            if packet:
                self._obey(*pickle.loads(packet))
            else:  # the node has ended, or asks us to
                self._driver.vent()
                self._stop.set()
        self._board.write(self._driver.report)
        self._cycle += 1
        if self._cycle % _COUNTED == 0:
            self._send("counts", self._counts())

    def _packet(self) -> bytes | None:
        if not self._arriving.poll(0):
            return None
        try:
            return self._socket.recv(_LARGEST, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    def _obey(self, kind: str, content: Any) -> None:
        driver = self._driver
        if kind == "hear":
            driver.hear(*content)
        elif kind == "enable":
            driver.enable(content)
        elif kind == "vent":
            driver.vent()
        elif kind == "reset":
            driver.reset(content)
        elif kind == "offered":
            driver.offered_by(*content)
        else:
            try:
                self._answer(kind, content)
            except UserError as error:
                self._send("refused", str(error))

    def _answer(self, kind: str, content: Any) -> None:
        """What the node waits for."""
        if kind == "safety":
            self._driver.use_safety(content)
            self._send("used")
        elif kind == "calibrate":
            self._send("zero", self._driver.calibrate_zero())

    def _counts(self) -> Counts:
        cycle = self._driver.statistics.summary()
        cycle.pop("tick_time_histogram_ms")
        transitions = tuple(self._driver.safety.transitions)[-_TOLD:]
        refused = dict(self._driver.commands.refused)
        guard = self._driver.guard.summary()
        return Counts(cycle, guard, refused, transitions, self._not_permitted)

    def _end(self, number: int, frame: Any) -> None:
        """SIGTERM: exhausts open by command, terminals to INIT, then the end. A cycle under way is
        completed first, for it may be half-way through an exchange."""
        self._told_to_end = True
        if not self._running:
            sys.exit(1)

    def _send(self, kind: str, content: Any = None) -> None:
        with contextlib.suppress(OSError):  # nobody there, or too busy to read: the next one counts
            self._socket.send(pickle.dumps((kind, content)), socket.MSG_DONTWAIT)


def main() -> int:
    """The child of a ValveProcess; its arguments are its end of the sockets and of the memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's is for the node, which ends us
    with socket.socket(fileno=int(sys.argv[1])) as end:
        return _Child(end, int(sys.argv[2])).run()

"""Node processes: started apart from the terminal, ended with their parent, watched and reaped."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from softcr_runtime.blocks.system import Part
from softcr_runtime.ros.log_levels import LogLevels
from softcr_runtime.ros.parent import end_with
from softcr_runtime.wire.namespaces import in_namespace

_LOG_LINE = re.compile(r"\[(DEBUG|INFO|WARN|ERROR|FATAL)\] \[[^]]*\] \[([^]]*)\]: (.*)")


@dataclass(frozen=True)
class Exit:
    """How a process ended: killed by a signal, or on its own with an exit code."""

    signal: int | None
    code: int | None

    @classmethod
    def of(cls, return_code: int) -> "Exit":
        """From the number that `subprocess` and launch give: a signal is below zero."""
        return cls(-return_code, None) if return_code < 0 else cls(None, return_code)

    def __str__(self) -> str:
        return f"exit code {self.code}" if self.signal is None else f"signal {self.signal}"


@dataclass(frozen=True)
class LogLine:
    """A line a node wrote; `level` and `node` are empty for what did not come from a ROS logger."""

    level: str
    node: str
    text: str


class NodeProcess:
    """One node, or several, in a process of their own, the output in a file.

    The process leads its own session: Ctrl-C in the terminal reaches the supervisor only. When the
    supervisor dies, of whatever, the kernel sends the node SIGTERM. Start it from the main thread,
    because the kernel takes the end of the starting thread for the parent's death.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        parameters: Path,
        log: Path,
        environment: Mapping[str, str],
        namespace: str = "",
        log_levels: LogLevels | None = None,
    ) -> None:
        """Start the process.

        Args:
            parts: its nodes.
            parameters: ROS parameter file with a section for each of them.
            log: file for everything they print.
            environment: variables beside, and above, those of this process.
            namespace: of the nodes, without the slashes around it; empty: the root.
            log_levels: how much they log; None: as ROS does.
        """
        self.names = tuple(part.name for part in parts)
        command = [
            *(sys.executable, "-m", *_words(parts), *in_namespace(namespace)),
            *("--params-file", str(parameters), "--disable-external-lib-logs"),
            *(log_levels.arguments(namespace) if log_levels else ()),
        ]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    # the form `LogLine`s are read from
                    "RCUTILS_CONSOLE_OUTPUT_FORMAT": "[{severity}] [{time}] [{name}]: {message}",
                    "RCUTILS_COLORIZED_OUTPUT": "0",
                    "PYTHONUNBUFFERED": "1",
                    **environment,
                },
                start_new_session=True,
                preexec_fn=partial(end_with, os.getpid()),
            )
        self._logger_prefix = namespace.replace("/", ".") + "." if namespace else ""
        self._log = log.open("rb")
        self._unfinished = b""
        self._last_errors: dict[str, str] = {}
        self._last_line = ""

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def exit(self) -> Exit | None:
        """How it ended, and reaped; None while it runs."""
        code = self._process.poll()
        return None if code is None else Exit.of(code)

    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self.exit() is not None

    def is_busy(self) -> bool:
        """Whether one of its threads runs, waits for a core or a disk, or is suspended."""
        for stat in Path(f"/proc/{self.pid}/task").glob("*/stat"):
            with suppress(OSError):  # it has just ended
                if stat.read_text().rpartition(")")[2].split()[0] in "RDTt":
                    return True
        return False

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the node and to whatever it started; nothing when all have ended."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def new_lines(self) -> list[LogLine]:
        """What was logged since the last call, whole lines only."""
        *lines, self._unfinished = (self._unfinished + self._log.read()).split(b"\n")
        logged = [
            _parsed(line.decode(errors="replace"), self._logger_prefix)
            for line in lines
            if line.strip()
        ]
        for line in logged:
            if line.level not in ("DEBUG", "INFO"):
                self._last_line = line.text
            if line.level in ("ERROR", "FATAL"):
                self._last_errors[line.node] = line.text
        return logged

    def complaint(self, name: str = "") -> str:
        """The last error that a node logged, or else any of its process, or else the last line that
        is no news; empty when nothing was said. Without a name, of any."""
        self.new_lines()
        errors = self._last_errors
        said = errors.get(name) or next(reversed(errors.values()), "") or self._last_line
        return said.removeprefix(f"{self.names[0]}: error: ") if len(self.names) == 1 else said

    def close(self) -> None:
        """End it for good: kill what still runs of its group, reap it, close the log."""
        self.send(signal.SIGKILL)
        self._process.wait()
        self._log.close()


def _parsed(line: str, prefix: str) -> LogLine:
    """A line, of whose logger's name the namespace is left out."""
    match = _LOG_LINE.match(line)
    level, node, text = match.groups() if match else ("", "", line.strip())
    return LogLine(level, node.removeprefix(prefix), text)


def _words(parts: Sequence[Part]) -> tuple[str, ...]:
    """What runs some nodes as a process, behind `python -m`."""
    if len(parts) == 1:
        return (*parts[0].command, "--ros-args", "-r", f"__node:={parts[0].name}")
    pairs = [word for part in parts for word in (part.runs, part.name)]
    return ("softcr_runtime.ros.run_blocks", *pairs, "--ros-args")

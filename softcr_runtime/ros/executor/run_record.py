"""system.json: what happened to a system, from its start to its end."""

import json
import os
import shlex
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from softcr_runtime.console.terminal import FAILED
from softcr_runtime.ros.executor.node_process import Exit

EndReason = Literal["duration", "interrupt", "death", "failure"]


@dataclass(frozen=True)
class Outcome:
    """How a run ended: the command's exit code, and whether the run began at all."""

    exit_code: int
    ran: bool


class RunFailure(Exception):
    """The run cannot go on; the text is the line for the person."""

    def __init__(self, line: str, reason: EndReason = "failure", exit_code: int = FAILED) -> None:
        """
        Args:
            line: for the person.
            reason: for the record.
            exit_code: of the command.
        """
        super().__init__(line)
        self.reason = reason
        self.exit_code = exit_code


@dataclass
class RunRecord:
    """The record of one run; written anew at each event, so that a killed supervisor leaves it too.

    A record that cannot be written (disk full) must not end the run: `unwritten` then holds the
    reason, and is None again after a write that went well.
    """

    path: Path
    system: str
    options: dict[str, Any]
    nodes: list[str]
    ended_by: EndReason | None = None
    error: str | None = None
    exit_code: int | None = None
    unwritten: str | None = None
    _events: list[dict[str, Any]] = field(default_factory=list)
    _deaths: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._start = time.monotonic()
        self._command = shlex.join(["softcr", *sys.argv[1:]])
        self._started = datetime.now(timezone.utc).isoformat(timespec="milliseconds")

    def add(self, event: str, node: str | None = None, detail: str | None = None) -> None:
        """Note that something happened now, to a node or (None) to the system."""
        self._events.append({"time": self._now(), "node": node, "event": event, "detail": detail})
        self.write()

    def add_death(self, node: str, end: Exit) -> None:
        """Note that a node ended before it was asked to."""
        death = {"node": node, "signal": end.signal, "exit_code": end.code, "time": self._now()}
        self._deaths.append(death)
        self.add("died", node, str(end))

    def write(self) -> None:
        """Write the file anew, in one piece."""
        content = {
            "system": self.system,
            "started": self._started,
            "command": self._command,
            "softcr": version("softcr"),
            "options": self.options,
            "nodes": self.nodes,
            "events": self._events,
            "deaths": self._deaths,
            "ended_by": self.ended_by,
            "error": self.error,
            "exit_code": self.exit_code,
        }
        draft = self.path.with_suffix(".json.new")
        try:
            draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            os.replace(draft, self.path)
            self.unwritten = None
        except OSError as error:
            self.unwritten = f"{self.path}: {error.strerror}"

    def _now(self) -> float:
        """Time since the start [s]."""
        return round(time.monotonic() - self._start, 3)

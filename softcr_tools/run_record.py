"""system.json: what happened to a system, from its start to its end."""

import json
import os
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from softcr_tools.processes import Exit

EndReason = Literal["duration", "interrupt", "death", "failure"]


@dataclass(frozen=True)
class Event:
    """Something that happened `time` seconds after the start, to a node or (None) to the system."""

    time: float
    node: str | None
    event: str
    detail: str | None


@dataclass(frozen=True)
class Death:
    """A node that ended before it was asked to."""

    node: str
    signal: int | None
    exit_code: int | None
    time: float


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
    started: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    events: list[Event] = field(default_factory=list)
    deaths: list[Death] = field(default_factory=list)
    ended_by: EndReason | None = None
    error: str | None = None
    exit_code: int | None = None
    unwritten: str | None = None

    def __post_init__(self) -> None:
        self._start = time.monotonic()

    def add(self, event: str, node: str | None = None, detail: str | None = None) -> None:
        """Note that something happened now."""
        self.events.append(Event(self._now(), node, event, detail))
        self.write()

    def add_death(self, node: str, end: Exit) -> None:
        """Note that a node ended before it was asked to."""
        self.deaths.append(Death(node, end.signal, end.code, self._now()))
        self.add("died", node, str(end))

    def write(self) -> None:
        """Write the file anew, in one piece."""
        content = {
            "system": self.system,
            "started": self.started.isoformat(timespec="milliseconds"),
            "options": self.options,
            "nodes": self.nodes,
            "events": [asdict(event) for event in self.events],
            "deaths": [asdict(death) for death in self.deaths],
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
        return round(time.monotonic() - self._start, 3)

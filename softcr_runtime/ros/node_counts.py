"""What a node counts while it is active, and what its diagnostics say of it. No ROS here."""

import threading
from collections import Counter
from typing import Any

from softcr_runtime.wire.diagnostics import ERROR, OK, STALE, WARN

_MOST_REASONS = 50  # distinct reasons of rejection that are kept apart


class NodeCounts:
    """Rejected messages, exceptions and jumps of time since the node was activated.

    Any thread may count.

    Attributes:
        rejections: how many messages were not used, by topic and reason.
        exceptions: how many were caught.
        time_jumps: how often time has jumped.
        last_time_jump: by how much [s].
    """

    def __init__(self) -> None:
        """Nothing has happened."""
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.rejections: Counter[str] = Counter()
        self.exceptions = self.time_jumps = 0
        self._last_exception, self.last_time_jump = "", 0.0
        # exceptions, rejections, missed, cycles, jumps of time at the last report
        self._reported = (0, 0, 0, 0, 0)

    def reject(self, key: str) -> str:
        """Count a rejection; returns what it is counted as where it is the first of its kind."""
        with self._lock:
            if key not in self.rejections and len(self.rejections) >= _MOST_REASONS:
                key = "other"
            self.rejections[key] += 1
            return key if self.rejections[key] == 1 else ""

    def catch(self, where: str, error: BaseException | None) -> str:
        """Count an exception; returns it in words."""
        with self._lock:
            self.exceptions += 1
            self._last_exception = f"{where}: {type(error).__name__}: {error}"
            return self._last_exception

    def jump(self, seconds: float) -> None:
        """Count a jump of time [s]."""
        with self._lock:
            self.time_jumps += 1
            self.last_time_jump = seconds

    def values(self) -> dict[str, Any]:
        """All of them, for the diagnostics."""
        with self._lock:
            rejections = dict(self.rejections)
        return {
            "rejected_messages": sum(rejections.values()),
            "rejections": rejections,
            "exceptions": self.exceptions,
            "time_jumps": self.time_jumps,
            "last_time_jump_s": self.last_time_jump,
        }

    def assessment(
        self, summary: dict[str, Any], idle: str, warnings: list[str], period: float
    ) -> tuple[int, str]:
        """Level and line for what happened since the last call.

        Args:
            summary: of the ticks, see `TickStatistics.summary`.
            idle: the node's state where it is not active; else empty.
            warnings: what else is not as it should be.
            period: between two calls [s].
        """
        exceptions, rejected, missed, cycles, jumps = self._new(summary)
        if exceptions:
            return ERROR, f"{counted(exceptions, 'exception')}, last in {self._last_exception}"
        if idle:
            return OK, idle
        if jumps:
            warnings = [*warnings, f"time jumped, last by {self.last_time_jump:+.3f} s"]
        if cycles == 0 and summary["cycles"] > 0:
            return STALE, ", ".join([f"no cycle for {period:.0f} s", *warnings])
        warnings = warnings + [f"{counted(rejected, 'message')} rejected"] * bool(rejected)
        warnings = warnings + [f"{counted(missed, 'cycle')} missed"] * bool(missed)
        if warnings:
            return WARN, ", ".join(warnings)
        if summary["cycles"] == 0:
            return OK, "active, no cycle yet"
        return OK, f"{summary['rate_hz']:.1f} Hz, p99 {summary['p99_ms']:.2f} ms"

    def _new(self, summary: dict[str, Any]) -> list[int]:
        """Exceptions, rejections, missed cycles, cycles and jumps since the last report."""
        with self._lock:
            counts = (
                self.exceptions,
                sum(self.rejections.values()),
                summary["missed_cycles"],
                summary["cycles"],
                self.time_jumps,
            )
        before, self._reported = self._reported, counts
        return [count - old for count, old in zip(counts, before, strict=True)]


def counted(number: int, what: str) -> str:
    """A number of things in words: `1 cycle`, `2 cycles`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

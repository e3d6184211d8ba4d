"""Keeping a period, and saying how well it was kept. Every clock is injected; no ROS here."""

import math
import threading
import time
from typing import Any, Protocol

import numpy as np

HISTOGRAM_EDGES = 0.05e-3 * 2000 ** (np.arange(41) / 40)
"""(41,) edges of the reported histogram of tick times [s], evenly spaced in log."""

_FINE = 20  # bins per reported bin: 0.95 % wide, so that a quantile is known to better than 1 %
_FINE_EDGES = 0.05e-3 * 2000 ** (np.arange(40 * _FINE + 1) / (40 * _FINE))
_SHORTEST, _LOG_RANGE = float(_FINE_EDGES[0]), math.log(2000)
_LATENESS_TOLERANCE = 1e-6  # of a period: below this a grid point is met, not missed (rounding)


class Clock(Protocol):
    """A source of time in seconds that can be slept on."""

    def now(self) -> float:
        """Time [s] since some fixed moment."""
        ...

    def sleep_until(self, moment: float) -> None:
        """Return when `now()` is at least `moment`; at once when it already is."""
        ...


class MonotonicClock:
    """The machine's monotonic clock: no jumps when somebody sets the date."""

    def now(self) -> float:
        """Seconds since the machine started."""
        return time.monotonic()

    def sleep_until(self, moment: float) -> None:
        """Sleep until `moment`; wakes about 0.1 ms late on an idle machine, never early."""
        while (left := moment - time.monotonic()) > 0:
            time.sleep(left)


class CycleTimer:
    """Paces a loop on the grid start + index * period.

    Deadlines are absolute, so lateness never accumulates. A grid point that passed before `wait`
    was called is missed: it is counted and left out, and the loop goes on at the next one.

    Attributes:
        period: distance of grid points [s].
        start: time of grid point 0 on the clock [s].
        index: the grid point of the last `wait`.
        missed: grid points left out so far.
    """

    def __init__(self, period: float, clock: Clock | None = None, start: float | None = None):
        """Start a grid, now or at `start`; the first `wait` is for grid point 1.

        Raises:
            ValueError: the period is not positive and finite.
        """
        self.period = _checked_period(period)
        self._clock = clock or MonotonicClock()
        self.start = self._clock.now() if start is None else start
        self.index = 0
        self.missed = 0

    def wait(self) -> int:
        """Sleep to the next grid point.

        Returns:
            How many grid points were missed since the last call.
        """
        cycles_gone = (self._clock.now() - self.start) / self.period
        following = max(self.index + 1, math.ceil(cycles_gone - _LATENESS_TOLERANCE))
        skipped = following - self.index - 1
        self.index = following
        self.missed += skipped
        self._clock.sleep_until(self.start + self.index * self.period)
        return skipped


class TickStatistics:
    """How long ticks took, in bounded memory. Safe to add in one thread and to read in another."""

    def __init__(self, period: float, clock: Clock | None = None, lockstep: bool = False):
        """Statistics of ticks that must be done within `period` [s]; in lock-step, where everybody
        waits, none is missed.

        Raises:
            ValueError: the period is not positive and finite.
        """
        self.period = _checked_period(period)
        self._clock = clock or MonotonicClock()
        self._deadline = math.inf if lockstep else self.period
        self._lock = threading.Lock()
        self._counts = np.zeros(len(_FINE_EDGES) - 1, dtype=np.int64)
        self._cycles = 0
        self._missed = 0
        self._sum = 0.0
        self._shortest = math.inf
        self._longest = 0.0
        self._first_end = self._last_end = math.nan

    @property
    def cycles(self) -> int:
        """Ticks done."""
        return self._cycles

    @property
    def missed(self) -> int:
        """Ticks that took longer than the period, and ticks skipped."""
        return self._missed

    def add(self, duration: float, periods: int = 1) -> None:
        """Count a tick that took `duration` [s], may take so many periods, and ended now."""
        # log spacing makes the bin a formula; what lies outside the edges goes into the outer bins
        position = math.log(max(duration, _SHORTEST) / _SHORTEST) / _LOG_RANGE
        bin_index = min(int(position * len(self._counts)), len(self._counts) - 1)
        now = self._clock.now()
        with self._lock:
            self._counts[bin_index] += 1
            self._missed += duration > periods * self._deadline
            self._sum += duration
            self._shortest = min(self._shortest, duration)
            self._longest = max(self._longest, duration)
            self._cycles += 1
            if self._cycles == 1:
                self._first_end = now
            self._last_end = now

    def skip(self, count: int = 1) -> None:
        """Count `count` ticks that should have been done and were not."""
        with self._lock:
            self._missed += count

    def summary(self) -> dict[str, Any]:
        """All of it since the beginning; times in ms, NaN where there were too few ticks.

        Returns:
            rate_hz, p50_ms, p99_ms, max_ms, mean_ms, missed_cycles, cycles, deadline_ms and
            tick_time_histogram_ms ({"edges": 41 values, "counts": 40 integers}; the outer bins hold
            what lies beyond the outer edges too).
        """
        with self._lock:
            some = self._cycles > 0
            elapsed = self._last_end - self._first_end
            return {
                "rate_hz": (self._cycles - 1) / elapsed if elapsed > 0 else math.nan,
                "p50_ms": 1e3 * self._quantile(0.5),
                "p99_ms": 1e3 * self._quantile(0.99),
                "max_ms": 1e3 * self._longest if some else math.nan,
                "mean_ms": 1e3 * self._sum / self._cycles if some else math.nan,
                "missed_cycles": self._missed,
                "cycles": self._cycles,
                "deadline_ms": 1e3 * self.period,
                "tick_time_histogram_ms": {
                    "edges": [round(1e3 * edge, 6) for edge in HISTOGRAM_EDGES],
                    "counts": self._counts.reshape(-1, _FINE).sum(axis=1).tolist(),
                },
            }

    def _quantile(self, share: float) -> float:
        if self._cycles == 0:
            return math.nan
        cumulative = np.cumsum(self._counts)
        wanted = share * self._cycles
        bin_index = int(np.searchsorted(cumulative, wanted))
        inside = 1.0 - (cumulative[bin_index] - wanted) / self._counts[bin_index]
        low = max(_FINE_EDGES[bin_index] if bin_index > 0 else 0.0, self._shortest)
        last = bin_index == len(self._counts) - 1
        high = self._longest if last else min(_FINE_EDGES[bin_index + 1], self._longest)
        return float(low + inside * (high - low))


def _checked_period(period: float) -> float:
    if not (math.isfinite(period) and period > 0.0):
        raise ValueError(f"period is {period} s, must be positive and finite")
    return period

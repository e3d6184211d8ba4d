"""Moments of the system clock and of the monotonic clock, one told as the other."""

import time

_AT_ONCE = 20_000  # what is read within so long is read at once [ns]
_LOOKS = 5  # at both clocks at most

LEAST_STEP = 0.1
"""Of the system clock, that counts as one [s]; what is less, nobody tells from slewing."""


def on_monotonic_clock(system_time: int, oldest: float = 1.0) -> float:
    """A moment of the system clock on the monotonic clock [s]: not in the future.

    Args:
        system_time: the moment [ns].
        oldest: what is older counts as so old [s]; infinite where an age must not be belittled.
    """
    moment, now = 1e-9 * (system_time - _apart()), time.monotonic()
    return min(max(moment, now - oldest), now)


def on_system_clock(moment: float) -> int:
    """A moment of the monotonic clock [s] on the system clock [ns]."""
    return round(1e9 * moment) + _apart()


def _apart() -> int:
    """The system clock less the monotonic clock [ns].

    They are read one after the other, and a busy machine may let 0.1 s pass between: then again.
    """
    looks = []
    for _ in range(_LOOKS):
        before, system, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        looks.append((after - before, system - (before + after) // 2))
        if after - before < _AT_ONCE:
            break
    return min(looks)[1]


class SystemClockSteps:
    """Steps of the system clock, which NTP or a person makes, seen from the monotonic clock.

    A clock that is only slewed, as NTP does with small errors, makes none.
    """

    def __init__(self) -> None:
        """Start with no step seen."""
        self._before = _apart()

    def look(self) -> float:
        """By how much the clock was set since the last look [s]; 0 below `LEAST_STEP`."""
        steps = [self._step(), self._step()]  # who was stopped in the middle of one looks again
        self._before += round(1e9 * steps[1])
        return steps[1] if min(map(abs, steps)) >= LEAST_STEP else 0.0

    def _step(self) -> float:
        return 1e-9 * (_apart() - self._before)

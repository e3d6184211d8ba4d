"""Moments of the system clock and of the monotonic clock, one told as the other."""

import time

_AT_ONCE = 20_000  # what is read within so long is read at once [ns]
_LOOKS = 5  # at both clocks at most


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

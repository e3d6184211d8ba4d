"""Limits of a command, box and slew rate: the last stage before it is published or sent."""

import numpy as np


def limit_command(
    command: np.ndarray,
    previous: np.ndarray,
    low: float | np.ndarray,
    high: float | np.ndarray,
    max_rate: float | np.ndarray,
    dt: float,
) -> tuple[np.ndarray, bool]:
    """The last stage before a command is published, and again before it reaches the valves.

    First the slew limit round `previous`, then the box, which therefore wins when both cannot hold.
    A command that is not finite or has the wrong shape is refused as a whole.

    Args:
        command: (m,) wanted pressures [Pa], or other inputs in their unit.
        previous: (m,) pressures sent last [Pa], finite.
        low, high: lowest and highest pressure [Pa].
        max_rate: largest change per second [unit of the command / s].
        dt: time since `previous` was sent [s].

    Returns:
        (m,) pressures to send [Pa], and whether they differ from `command`.
    """
    command, previous = np.asarray(command, float), np.asarray(previous, float)
    if command.shape != previous.shape or not np.all(np.isfinite(command)):
        return np.clip(previous, low, high), True
    limited = np.clip(command, previous - max_rate * dt, previous + max_rate * dt)
    limited = np.clip(limited, low, high)
    return limited, not np.array_equal(limited, command)


def limit_value(command: float, previous: float, low: float, high: float, most: float) -> float:
    """`limit_command` of one finite pressure, `most` away from the previous one at most [Pa].

    For loops so fast that arrays of a few numbers cost more than the rest of a cycle.
    """
    return min(max(min(max(command, previous - most), previous + most), low), high)

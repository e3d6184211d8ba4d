"""Limits of the command, box and slew rate: a guard, and a projection of candidates."""

import numpy as np


def limit_command(
    command: np.ndarray,
    previous: np.ndarray,
    low: float | np.ndarray,
    high: float | np.ndarray,
    max_rate: float,
    dt: float,
) -> tuple[np.ndarray, bool]:
    """The last stage before a command is published.

    First the slew limit round `previous`, then the box, which therefore wins when both cannot hold.
    A command that is not finite or has the wrong shape is refused as a whole.

    Args:
        command: (m,) wanted pressures [Pa].
        previous: (m,) pressures sent last [Pa], finite.
        low, high: lowest and highest pressure [Pa].
        max_rate: largest change of a pressure per second [Pa/s].
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


def limit_knots(
    knots: np.ndarray,
    previous: np.ndarray,
    low: float,
    high: float,
    max_steps: np.ndarray,
) -> None:
    """Makes piecewise-linear candidates feasible, in place.

    Each knot is moved into the box and then towards the knot before it (the first towards
    `previous`) until the line between them keeps the slew limit; what is interpolated between them
    then keeps it.

    Args:
        knots: (B, K, m) pressures at the knots [Pa].
        previous: (m,) command active before the first knot [Pa], inside the box.
        low, high: the box [Pa].
        max_steps: (K,) largest change from the knot before to each knot [Pa].
    """
    np.clip(knots, low, high, out=knots)
    before = previous
    for index, step in enumerate(max_steps):
        np.clip(knots[:, index], before - step, before + step, out=knots[:, index])
        before = knots[:, index]

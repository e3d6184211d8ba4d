"""Piecewise-linear input trajectories: few knots stand for the commands of a whole horizon."""

from typing import Any

import numpy as np


def even_knots(segments: int, horizon: int, first_fixed: bool) -> np.ndarray:
    """Times of segments + 1 evenly spaced knots [ticks], see `Knots`."""
    return np.linspace(-1.0 if first_fixed else 0.0, horizon - 1.0, segments + 1)


class Knots:
    """Where the knots lie and how commands, time shift and slew follow from them (Fig. 10b, c).

    Times are counted in ticks from the first command that is optimised. Command i is held over the
    tick [i, i + 1) and is the value of the polyline at the BEGINNING of that tick. A free first
    knot lies at tick 0, so it is the command sent next; a fixed one lies at tick -1 and is the
    command active now. The last knot lies at the beginning of the last tick.

    Attributes:
        count: number of knots K.
        times: (K,) ascending [ticks].
        first_fixed: whether the first knot is the command active now.
        spans: (K,) [ticks] from the knot before (from the command active now) to each knot.
        to_commands: (K m, N m), what `mapped` makes `commands` with.
    """

    def __init__(self, times: np.ndarray, horizon: int, channels: int) -> None:
        self.times = np.asarray(times, float)
        self.count = len(self.times)
        self.first_fixed = bool(self.times[0] < 0.0)
        self.spans = np.diff(self.times, prepend=-1.0)
        self.to_commands = self._matrix(np.arange(horizon, dtype=float), channels)
        self._channels = channels
        self._shifts: dict[int, np.ndarray] = {}

    def commands(self, knots: np.ndarray) -> np.ndarray:
        """Knots (B, K, m) to the commands of the horizon (B, N, m)."""
        return mapped(knots, self.to_commands)

    def shifted(self, knots: np.ndarray, ticks: int = 1) -> np.ndarray:
        """Knots (B, K, m) of the same polylines some ticks later; past the end the last value
        holds, before the beginning the first."""
        return mapped(knots, self.to_later(ticks))

    def to_later(self, ticks: int) -> np.ndarray:
        """(K m, K m), what `mapped` makes `shifted` with."""
        if ticks not in self._shifts:
            times = np.minimum(self.times + ticks, self.times[-1])
            self._shifts[ticks] = self._matrix(times, self._channels)
        return self._shifts[ticks]

    def _matrix(self, times: np.ndarray, channels: int) -> np.ndarray:
        """(K m, T m): knots to the polyline's values at `times`, both flat.

        One product for all channels and candidates: many times faster than one small product each.
        """
        weights = np.array([np.interp(times, self.times, row) for row in np.eye(self.count)])
        return np.kron(weights, np.eye(channels))


def mapped(knots: Any, matrix: Any) -> Any:
    """Knots (B, K, m) times a matrix (K m, T m) of `Knots`: (B, T, m); arrays or tensors."""
    return (knots.reshape(len(knots), -1) @ matrix).reshape(len(knots), -1, knots.shape[-1])

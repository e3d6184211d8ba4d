"""Commands that swing from limit to limit for longer than any reference explains.

A loop that has lost its robot sends full inputs from side to side. Tracking as fast as the robot
can move, inputs travel up to some two of their ranges in a second.
"""

from collections import deque

import numpy as np

SWINGS = "commands swing from limit to limit for longer than any reference explains"
_WINDOW = 2.0  # over which the travel of inputs is counted [s]
_MOST = 11.0  # ranges that an input may travel in it [-]


class SwingWatch:
    """Sees commands one after the other.

    Args:
        ranges: (m,) highest minus lowest value of each input.
    """

    def __init__(self, ranges: np.ndarray) -> None:
        self._ranges = np.asarray(ranges, float)
        self.reset()

    def reset(self) -> None:
        """Nothing seen yet."""
        self._steps: deque[tuple[float, np.ndarray]] = deque()
        self._travel = np.zeros(self._ranges.shape)
        self._last: np.ndarray | None = None

    def swings(self, time: float, command: np.ndarray) -> bool:
        """Whether an input has travelled too far lately.

        Args:
            time: of the command, on any clock that goes on [s].
            command: (m,) finite, in the unit of the ranges.
        """
        if self._last is not None:
            step = np.abs(command - self._last) / self._ranges
            self._steps.append((time, step))
            self._travel += step
        self._last = command
        while self._steps and self._steps[0][0] < time - _WINDOW:
            self._travel -= self._steps.popleft()[1]
        return bool(self._travel.max() > _MOST)

"""The way back to a reference that went on while the robot was held or at rest."""

import numpy as np

DURATION = 1.0
"""Of the way back [s]."""


class Approach:
    """Leads from where the tip is to a moving reference without a jump.

    The aim goes from the tip's position to the reference in equal steps. It is never faster than
    the reference by more than their distance over `DURATION`, and lies between the two, where the
    robot can be. Wanted states of a reference are left as they are: a controller that follows those
    instead of the tip's position goes back at once.
    """

    def __init__(self) -> None:
        """There is nothing to come back from."""
        self._begin = 0
        self._from: np.ndarray | None = None

    def begin(self, tip: np.ndarray, now: int) -> None:
        """It begins where the tip is.

        Args:
            tip: (3,) estimated position [m], base frame.
            now: stamp of the estimate [ns].
        """
        self._from, self._begin = tip, now

    def towards(self, tips: np.ndarray, now: int, period: float) -> np.ndarray:
        """Wanted positions on the way; those that are given once it has ended.

        Args:
            tips: (H, 3) of the reference, a period apart, the first one now [m], base frame.
            now: stamp of the estimate [ns].
            period: [s].
        """
        if self._from is None:
            return tips
        passed = 1e-9 * (now - self._begin)
        if passed >= DURATION:
            self._from = None
            return tips
        share = np.minimum((passed + period * np.arange(len(tips))) / DURATION, 1.0)[:, None]
        on_the_way: np.ndarray = (1.0 - share) * self._from + share * tips
        return on_the_way

"""The way back to a reference that went on while the robot was held or at rest."""

import numpy as np

DURATION = 1.0
"""Of the way back [s]."""

_RECENT = 0.1  # between two positions of the tip that tell how fast it moves, at most [s]


class Approach:
    """Leads from where the tip is to a moving reference without a jump.

    The aim goes from the tip's position to the reference in equal steps. It is never faster than
    the reference by more than their distance over `DURATION`, and lies between the two, where the
    robot can be. A tip that moves is not asked to stop at once: where it begins moves on along the
    reference, by the share of the reference's velocity that the tip has, 1 at most; one that was
    led away from the reference for a moment goes beside it and back to it. Wanted states of a
    reference are left as they are: a controller that follows those instead of the tip's position
    goes back at once.
    """

    def __init__(self) -> None:
        """There is nothing to come back from."""
        self._begin, self._along = 0, 0.0
        self._from: np.ndarray | None = None
        self._beside = np.zeros(3)

    def begin(self, tip: np.ndarray, now: int, tips: np.ndarray, period: float) -> None:
        """It begins where the tip is, and as fast as that was since it began before, if only just.

        Args:
            tip: (3,) estimated position [m], base frame.
            now: stamp of the estimate [ns].
            tips: (H, 3) of the reference, a period apart, the first one now [m], base frame.
            period: [s].
        """
        self._along, self._beside = 0.0, tips[0]
        passed = 1e-9 * (now - self._begin)
        if self._from is not None and 0.0 < passed <= _RECENT and len(tips) > 1:
            velocity, wanted = (tip - self._from) / passed, (tips[1] - tips[0]) / period
            square = float(wanted @ wanted)
            self._along = min(max(float(velocity @ wanted) / square, 0.0), 1.0) if square else 0.0
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
        begin = self._from + self._along * (tips - self._beside)
        on_the_way: np.ndarray = (1.0 - share) * begin + share * tips
        return on_the_way

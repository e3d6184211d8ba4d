"""Whether a filter is wrong, from the colour of its innovations; it then opens its parameters.

Where model and noises are right, the innovations of a Kalman filter are white (Mehra, IEEE
Transactions on Automatic Control 15, 1970, p. 175). Measurement noise of any size is white, too, so
it moves no mean of the products of neighbouring innovations; an error of the model does, because it
pushes every one of them the same way. How quickly parameters may then walk is raised with the
colour, as process noise, and goes back by itself once the parameters have moved. The windows, the
ramps and the cut are ours.
"""

import math
from collections import deque
from functools import cache

import numpy as np

from softcr_estimation.filters.gaussian import chi_square_quantile

FAST_WINDOW, SLOW_WINDOW = 5, 70
"""How many products the two means go over [samples]."""

FAST_RAMP, SLOW_RAMP = (1.0, 4.0), (0.25, 0.6)
"""Means at which the opening begins, and at which it is whole [-]."""

SLOW_CUT = 1.5
"""A product counts for at most so much in the slow mean: an event, as of a payload that is picked
up, is no lasting error [-]."""

FAST_SHARE = 5.0
"""Of the square of a parameter's walk, at a whole opening by the fast window [-]."""

LASTING_MEMORY = 350.0
"""Over how many products the mean goes that tells of a lasting error [samples]."""

LASTING = 0.1
"""Such a mean beyond which the model is told to be wrong, and beyond four of its deviations [-]."""

CALM = 5.0
"""A filter that has fallen back to its safe parameters opens them again after so long without
coloured innovations [s]."""

TRIED = 2.0
"""A filter that has just begun anew is not lost again before so long [s]."""

_LONGEST = 15.0  # an innovation counts for at most so many standard deviations


class InnovationColour:
    """Means of the products of neighbouring whitened innovations, over a short and a long window.

    A product is innovation . last innovation / their size / max(1, median of NIS / its median where
    the model is right). Without the last divisor, noise that is larger than the filter believes
    would pass for colour: its products vary with its square.

    Attributes:
        fast, slow: how far the parameters are opened by either window, 0 to 1 [-].
        correlation: mean of the slow window, 0 on average where the model is right [-].
        lasting: the same over a longer time, see `LASTING_MEMORY` [-].
        lasts: whether that is far beyond chance.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Nothing is known."""
        self._last = np.zeros(0)
        self._nis: deque[float] = deque(maxlen=SLOW_WINDOW)
        self._fast: deque[float] = deque([0.0] * FAST_WINDOW, FAST_WINDOW)
        self._slow: deque[float] = deque([0.0] * SLOW_WINDOW, SLOW_WINDOW)
        self._count, self._weight = 0, 0.0
        self.fast = self.slow = self.correlation = self.lasting = 0.0
        self.lasts = False

    @property
    def is_white(self) -> bool:
        """Whether nothing speaks against the model."""
        return self.correlation <= SLOW_RAMP[0]

    @property
    def is_lost(self) -> bool:
        """Whether the parameters have been open for most of the slow window, in vain."""
        return self.correlation >= SLOW_RAMP[1]

    def add(self, innovation: np.ndarray) -> None:
        """The whitened innovation (nz,) of one stamp; one of another size than the last is not
        compared with it."""
        nis = float(innovation @ innovation)
        last, self._last = self._last, limited(innovation, nis)
        size = innovation.size
        self._nis.append(min(nis, _LONGEST**2))
        if last.size != size:
            return
        usual = sorted(self._nis)[len(self._nis) // 2] / _median_of_chi_square(size)
        product = float(self._last @ last) / size / max(1.0, usual)
        self._fast.append(product)
        cut = min(max(product, -SLOW_CUT), SLOW_CUT)
        self._slow.append(cut)
        kept = 1.0 - 1.0 / LASTING_MEMORY
        self._count += 1
        self._weight = kept * self._weight + 1.0
        self.lasting += (cut - self.lasting) / self._weight
        chance = 4.0 / math.sqrt(size * min(self._count, 2.0 * LASTING_MEMORY))
        self.lasts = self.lasting > max(LASTING, chance)
        self.correlation = sum(self._slow) / SLOW_WINDOW
        self.fast = _ramp(sum(self._fast) / FAST_WINDOW, FAST_RAMP)
        self.slow = _ramp(self.correlation, SLOW_RAMP)


def limited(innovation: np.ndarray, nis: float) -> np.ndarray:
    """An innovation (nz,), or a part of one, that a single wrong measurement cannot make large.

    Args:
        innovation: in any unit.
        nis: the whole innovation's normalised square [-].
    """
    return innovation * (_LONGEST / math.sqrt(nis)) if nis > _LONGEST**2 else innovation


def _ramp(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return min(max((value - low) / (high - low), 0.0), 1.0)


@cache
def _median_of_chi_square(size: int) -> float:
    return chi_square_quantile(0.5, size)

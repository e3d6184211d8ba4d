"""How large an error of the estimate is that lasts, from what its measurements leave over.

A filter's covariance speaks of noise; an error of the model is not in it. But such an error lasts
from one stamp to the next, and noise does not: where e is the error of what was predicted and v
the noise, neighbouring innovations e + v have the mean product E[e e'], because the noises are
independent of each other. Of a filter that is right the mean is zero: what the gain takes of a
noise into the next error takes as much off it (Mehra, IEEE Transactions on Automatic Control 15,
1970, p. 175). So a positive mean is the covariance that the filter's own lacks.

A mean over so many products has a deviation of its own, and an error that is smaller than this
cannot be told from none: with a noise of 0.2 mm that is 0.04 mm. A filter that has run for long
believes in much less, where all its points lie in one surface: it has then found parameters that
put the measurements on that surface on the average, and not at every moment. So the deviation is
added. That it is, the memory, and that directions of a negative mean count as zero, are ours.
"""

import math

import numpy as np
from scipy.linalg import lapack

MEMORY = 350.0
"""Over how many products the mean goes: its deviation is then 4 % of the innovation's variance, and
five seconds at 70 Hz still follow a robot that changes [samples]."""

_FEWEST = (
    70.0  # products by which the mean is divided at least: the first ones tell next to nothing
)


class LastingError:
    """Covariance of an error that lasts, of one measured point.

    Attributes:
        covariance: (3, 3) what was found, and what may have been missed; positive semidefinite
            [m^2]; 0 until two measurements were compared.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Nothing is known."""
        self._last: np.ndarray | None = None
        self._mean, self._square, self._weight = np.zeros((3, 3)), np.zeros((3, 3)), 0.0
        self.covariance = np.zeros((3, 3))

    def add(self, difference: np.ndarray) -> None:
        """What was measured (3,) at one stamp minus what was expected [m]."""
        last, self._last = self._last, difference
        if last is None:
            return
        product = difference[:, None] * last
        self._weight = (1.0 - 1.0 / MEMORY) * self._weight + 1.0
        share = 1.0 / max(self._weight, _FEWEST)
        self._mean += share * (0.5 * (product + product.T) - self._mean)
        self._square += share * (difference[:, None] * difference - self._square)
        # numpy's own eigh takes five times as long for three rows
        sizes, directions, _ = lapack.dsyev(self._mean)
        found = directions * np.maximum(sizes, 0.0) @ directions.T
        self.covariance = found + self._deviation * self._square

    @property
    def _deviation(self) -> float:
        """Of the mean, of noise alone, over the variance of the noise [-].

        One over the square root of how many equally weighted products would tell as much.
        """
        count = 2.0 * MEMORY * self._weight / (2.0 * MEMORY - self._weight)
        return 1.0 / math.sqrt(max(count, _FEWEST))

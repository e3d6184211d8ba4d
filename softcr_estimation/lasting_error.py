"""How large an error of the estimate is that lasts, from what its measurements leave over.

A filter's covariance speaks of noise; an error of the model is not in it. But such an error lasts
from one stamp to the next, and noise does not: where e is the error of what was predicted and v
the noise, neighbouring innovations e + v have the mean product E[e e'], because the noises are
independent of each other. Of a filter that is right the mean is zero: what the gain takes of a
noise into the next error takes as much off it (Mehra, IEEE Transactions on Automatic Control 15,
1970, p. 175). So a positive mean is the covariance that the filter's own lacks. Its memory, and
that directions of a negative mean count as zero, are ours.
"""

import numpy as np

MEMORY = 350.0
"""Over how many products the mean goes: its chance is then 4 % of the innovation's variance, and
five seconds at 70 Hz still follow a robot that changes [samples]."""

_FEWEST = (
    70.0  # products by which the mean is divided at least: the first ones tell next to nothing
)


class LastingError:
    """Covariance of an error that lasts, of one measured point.

    Attributes:
        covariance: (3, 3), positive semidefinite [m^2]; 0 until two measurements were compared.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Nothing is known."""
        self._last: np.ndarray | None = None
        self._mean, self._weight = np.zeros((3, 3)), 0.0
        self.covariance = np.zeros((3, 3))

    def add(self, difference: np.ndarray) -> None:
        """What was measured (3,) at one stamp minus what was expected [m]."""
        last, self._last = self._last, difference
        if last is None:
            return
        product = np.outer(difference, last)
        self._weight = (1.0 - 1.0 / MEMORY) * self._weight + 1.0
        share = 1.0 / max(self._weight, _FEWEST)
        self._mean += share * (0.5 * (product + product.T) - self._mean)
        sizes, directions = np.linalg.eigh(self._mean)
        self.covariance = directions * np.maximum(sizes, 0.0) @ directions.T

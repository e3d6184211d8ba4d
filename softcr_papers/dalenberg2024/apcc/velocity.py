"""How fast the inferred configuration changes: a Savitzky-Golay filter at its window's end.

Dalenberg, Sec. IV-B and Fig. 4: a polynomial through the last configurations, differentiated at the
newest. The thesis gives neither the window nor the order. Fitted over the stamps, so uneven ticks
do no harm; at even ones it is scipy's `savgol_coeffs(..., deriv=1, pos=window - 1)`.
"""

from collections import deque

import numpy as np


class WindowVelocity:
    """Rates from the last few configurations."""

    def __init__(self, window: int, order: int) -> None:
        """
        Args:
            window: how many configurations are looked at, more than `order`.
            order: of the polynomial, at least 1.
        """
        self._order = order
        self._stamps: deque[float] = deque(maxlen=window)
        self._configurations: deque[np.ndarray] = deque(maxlen=window)

    def add(self, stamp: float, configuration: np.ndarray) -> np.ndarray:
        """(3 n,) rate [m/s] with the newest configuration (3 n,) [m], at `stamp` [s].

        Zero until the window is full.
        """
        self._stamps.append(stamp)
        self._configurations.append(configuration)
        if len(self._stamps) < (self._stamps.maxlen or 0):
            return np.zeros_like(configuration)
        times = np.array(self._stamps) - stamp
        scale = -times[0]
        powers = np.vander(times / scale, self._order + 1, increasing=True)
        rate: np.ndarray = np.linalg.pinv(powers)[1] @ np.array(self._configurations) / scale
        return rate

    def forget(self) -> None:
        """Begin anew, after a jump in time or in the model."""
        self._stamps.clear()
        self._configurations.clear()

"""What a chain of pressures remembers of its readings: stop operators and lags.

A stop operator of radius r follows a reading's changes and is clipped to -r ... r: a spring behind
a slider (Prandtl and Ishlinskii; Brokate and Sprekels, Hysteresis and Phase Transitions, 1996,
Sec. 2.3). It depends on the readings alone, so it is known without a filter, and what a chain makes
of it is linear in the weights.
"""

from collections.abc import Sequence

import numpy as np

from softcr_models.chain import acting


class ChainMemory:
    """An `InputMemory` of stop operators and first-order lags, of m inputs each.

    What is remembered, (m (J + K),): for each input its J stops; then, for each of K lags, of all
    inputs how far the lagging value is from the reading. All in the unit of the inputs.
    """

    def __init__(self, inputs: int, radii: Sequence[float], times: Sequence[float]) -> None:
        """
        Args:
            inputs: m.
            radii: (J,) of the stops [unit of the inputs].
            times: (K,) time constants of the lags [s].
        """
        self._inputs = inputs
        self.radii, self.times = np.array(radii, float), np.array(times, float)
        self.size = inputs * (len(radii) + len(times))
        # inside the play of a stop an input does nothing: a difference must reach beyond it
        self.least_change = float(np.median(self.radii)) if len(radii) else 0.0

    def begin(self, inputs: np.ndarray) -> np.ndarray:
        """(size,) after inputs (m,) have slowly risen from zero and stayed for long."""
        stops = np.clip(inputs[:, None], -self.radii, self.radii)
        return np.concatenate((stops.ravel(), np.zeros(self._inputs * len(self.times))))

    def along(self, remembered: np.ndarray, inputs: np.ndarray, dt: float) -> np.ndarray:
        """(B, T + 1, size) at each of inputs (B, T + 1, m), `dt` [s] apart and linear in between.

        Args:
            remembered: (size,) at the first of them.
            inputs: float64.
            dt: [s].
        """
        batch, levels, _ = inputs.shape
        found = np.empty((batch, levels, self.size))
        acting.along(remembered, inputs, dt, self.radii, self.times, found)
        return found

    def lag_tick(self, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """(K,) time constants / dt and (K,) what is left of lags after a tick of dt [s]."""
        behind, left = acting.tick_of(self.times, dt)
        return behind, left

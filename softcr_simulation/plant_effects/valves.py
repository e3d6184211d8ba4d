"""Valves with a lag, a slower way down and a dead band."""

import math

import numpy as np

from softcr_models.room_kernels import compiled


@compiled
def valve_levels(levels, aim, fill_decay, vent_decay, dead_band):
    """Fill rows 1 to S of `levels` from row 0: pressures at the valves after each sub-step.

    Exact for an aim that is held: a pressure goes to it exponentially, and stays where it is while
    it is closer to it than the dead band.

    Args:
        levels: (S + 1, m) [Pa], changed.
        aim: (m,) where the lag leads in the end [Pa].
        fill_decay, vent_decay: exp(-pole * sub-step) while a pressure rises and falls.
        dead_band: [Pa].
    """
    for step in range(levels.shape[0] - 1):
        for i in range(levels.shape[1]):
            apart = levels[step, i] - aim[i]
            if abs(apart) <= dead_band:
                levels[step + 1, i] = levels[step, i]
            else:
                levels[step + 1, i] = aim[i] + apart * (vent_decay if apart > 0 else fill_decay)


class Valves:
    """First-order valves of a robot's chambers."""

    def __init__(
        self, gain: float, pole: float, vent_pole_factor: float = 1.0, dead_band: float = 0.0
    ) -> None:
        """
        Args:
            gain: pressure at rest over the command [-].
            pole: while a pressure rises [1/s].
            vent_pole_factor: on the pole while it falls.
            dead_band: [Pa].
        """
        self._gain, self._dead_band = gain, dead_band
        self._poles = pole, vent_pole_factor * pole

    def levels(
        self, pressures: np.ndarray, command: np.ndarray, dt: float, steps: int
    ) -> np.ndarray:
        """(steps + 1, m) [Pa] from pressures (m,) on, after each sub-step of `dt` [s]."""
        levels = np.empty((steps + 1, len(pressures)))
        levels[0] = pressures
        fill, vent = (math.exp(-pole * dt) for pole in self._poles)
        valve_levels(levels, self._gain * command, fill, vent, self._dead_band)
        return levels

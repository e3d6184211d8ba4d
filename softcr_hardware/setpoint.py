"""What the chambers are asked for: commands as far as safety allows, limited last."""

import numpy as np

from softcr_hardware.safety import Action
from softcr_models.limits import limit_command
from softcr_models.robot import PressureLimits


class Setpoint:
    """Commands of a slow loop, ramped in a fast one; the limiter stands last.

    Attributes:
        pressures: (m,) sent last [Pa], always within the limits.
        limited: how often the limiter changed what was wanted.
        refused: commands that were no finite pressures.
    """

    def __init__(
        self, limits: PressureLimits, chambers: int, command_period: float, vent_rate: float
    ):
        """At the lowest pressure.

        Args:
            limits: absolute, and of the rate of change.
            chambers: m.
            command_period: time between commands, over which the way to a new one is spread [s].
            vent_rate: slope of RAMP_TO_VENT [Pa/s].
        """
        self._limits = limits
        self._command_period = command_period
        self._vent_rate = vent_rate
        self._empty = np.clip(np.zeros(chambers), limits.minimum, limits.maximum)
        self.limited = self.refused = 0
        self.reset()

    def reset(self) -> None:
        """Empty chambers and no command: whatever comes after venting starts from here."""
        self.pressures = self._empty.copy()
        self._target = self._empty.copy()
        self._slope = np.zeros_like(self._empty)

    def command(self, pressures: np.ndarray) -> None:
        """A new command (m,) [Pa]; one that is not m finite numbers is counted and left out."""
        pressures = np.asarray(pressures, dtype=float)
        if pressures.shape != self._target.shape or not np.all(np.isfinite(pressures)):
            self.refused += 1
            return
        self._target = pressures
        self._slope = np.abs(pressures - self.pressures) / self._command_period

    def advance(self, action: Action, dt: float) -> np.ndarray:
        """The pressures (m,) [Pa] of the next fast cycle, `dt` [s] after the last."""
        if action == Action.VENT_NOW:
            self.reset()
            return self.pressures
        if action == Action.HOLD:
            wanted = self._target = self.pressures
        elif action == Action.RAMP_TO_VENT:
            self._target = self._empty
            wanted = self._towards(self._empty, self._vent_rate * dt)
        else:
            wanted = self._towards(self._target, self._slope * dt)
        limits = self._limits
        self.pressures, changed = limit_command(
            wanted, self.pressures, limits.minimum, limits.maximum, limits.maximum_rate, dt
        )
        self.limited += changed
        return self.pressures

    def _towards(self, target: np.ndarray, step: np.ndarray | float) -> np.ndarray:
        return self.pressures + np.clip(target - self.pressures, -step, step)

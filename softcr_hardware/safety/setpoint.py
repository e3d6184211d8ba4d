"""What the chambers are asked for: commands as far as safety allows, limited last.

Plain numbers, as in the pressure loop: it is computed a thousand times a second.
"""

import math

import numpy as np

from softcr_control.command_limits import limit_value
from softcr_hardware.safety.safety import Action
from softcr_models.robots.robot import PressureLimits


class Setpoint:
    """Commands of a slow loop, ramped in a fast one; the limiter stands last.

    Attributes:
        pressures: (m,) sent last [Pa], always within the limits.
        limited: how often the limiter changed what was wanted.
        refused: commands that were no finite pressures.
        ceiling: what the supply allows [Pa]; the limits hold besides.
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
        self.ceiling = math.inf
        self.reset()

    def reset(self) -> None:
        """Empty chambers and no command: whatever comes after venting starts from here."""
        self.pressures = self._empty.copy()
        self._target: list[float] = self._empty.tolist()
        self._slopes = [0.0] * len(self._target)

    def command(self, pressures: np.ndarray) -> None:
        """A new command (m,) [Pa]; one that is not m finite numbers is counted and left out."""
        pressures = np.asarray(pressures, dtype=float)
        if pressures.shape != self._empty.shape or not np.all(np.isfinite(pressures)):
            self.refused += 1
            return
        self._target = pressures.tolist()
        self._slopes = (np.abs(pressures - self.pressures) / self._command_period).tolist()

    def advance(self, action: Action, dt: float) -> np.ndarray:
        """The pressures (m,) [Pa] of the next fast cycle, `dt` [s] after the last."""
        if action == Action.VENT_NOW:
            self.reset()
            return self.pressures
        now: list[float] = self.pressures.tolist()
        if action == Action.HOLD:
            wanted = self._target = now
        elif action == Action.RAMP_TO_VENT:
            self._target = self._empty.tolist()
            wanted = _towards(now, self._target, [self._vent_rate] * len(now), dt)
        else:
            wanted = _towards(now, self._target, self._slopes, dt)
        limits = self._limits
        low, most = limits.minimum, limits.maximum_rate * dt
        high = max(min(limits.maximum, self.ceiling), low)
        sent = [
            limit_value(each, before, low, high, most)
            for each, before in zip(wanted, now, strict=True)
        ]
        self.limited += sent != wanted
        self.pressures = np.array(sent)
        return self.pressures


def _towards(now: list[float], target: list[float], slopes: list[float], dt: float) -> list[float]:
    """Pressures [Pa] after `dt` [s] on the way to a target, at slopes [Pa/s]."""
    return [
        here + min(max(there - here, -slope * dt), slope * dt)
        for here, there, slope in zip(now, target, slopes, strict=True)
    ]

"""The pressure chain between a command and a chamber: first-order lag, eq. (32)."""

import math

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from softcr_models.files.number_types import Positive

PRESSURE_OFFSET, PRESSURE_GAIN = "pressure_offset_", "pressure_gain_"
"""Names of what is estimated of the sensors, a number from 1 behind: a chamber's true pressure is
gain [-] * reading + offset [Pa]."""


def chamber_names(prefix: str, chambers: int) -> tuple[str, ...]:
    """prefix1, prefix2, ...: a name for each chamber."""
    return tuple(f"{prefix}{i + 1}" for i in range(chambers))


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PressureLag:
    """G_p(s) = gain / (s + pole) per chamber, Licher et al. (32), discretised exactly."""

    gain: Positive = Field(description="numerator of G_p(s) = gain / (s + pole) [1/s]")
    pole: Positive = Field(description="pole of G_p(s) = gain / (s + pole) [1/s]")

    def step(self, pressures: np.ndarray, command: np.ndarray, dt: float) -> np.ndarray:
        """Pressures (..., m) [Pa] after `dt` [s] under a command (..., m) [Pa] held constant."""
        final = self.gain / self.pole * np.asarray(command)
        return final + (np.asarray(pressures) - final) * math.exp(-self.pole * dt)

    def trajectory(self, measured: np.ndarray, commands: np.ndarray, dt: float) -> np.ndarray:
        """Pressures at the grid points under commands held over each step.

        Args:
            measured: (m,) pressures now [Pa].
            commands: (B, T, m) commands [Pa], each held for `dt` [s].

        Returns:
            (B, T + 1, m) pressures [Pa]; row 0 is `measured`.
        """
        batch, steps, chambers = commands.shape
        pressures = np.empty((batch, steps + 1, chambers), commands.dtype)
        pressures[:, 0] = measured
        for step in range(steps):
            pressures[:, step + 1] = self.step(pressures[:, step], commands[:, step], dt)
        return pressures

    def commands_along(self, pressures: np.ndarray, dt: float) -> np.ndarray:
        """(T - 1, m) commands [Pa], each held for `dt` [s], that lead along pressures (T, m) [Pa].

        The inverse of `step`; nothing says that valves can do them.
        """
        decay = math.exp(-self.pole * dt)
        final = (pressures[1:] - decay * pressures[:-1]) / (1.0 - decay)
        commands: np.ndarray = self.pole / self.gain * final
        return commands

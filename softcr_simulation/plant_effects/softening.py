"""Softening over the first cycles (Mullins): a body is stiffer before it was first moved."""

import math

import numpy as np

from softcr_simulation.errors.plant_errors import CYCLES


class Softening:
    """Factor on the bending compliance, by how far the inputs have travelled.

    Attributes:
        cycles: mean over the inputs of their travel, in parts of their range and back.
    """

    def __init__(self, share: float, ranges: np.ndarray) -> None:
        """
        Args:
            share: by how much the compliance is less at first [-].
            ranges: (m,) of the inputs [Pa], [N].
        """
        self._share, self._ranges = share, ranges
        self.cycles = 0.0

    def reset(self) -> None:
        """A new body."""
        self.cycles = 0.0

    @property
    def factor(self) -> float:
        """On the bending compliance now."""
        return 1.0 - self._share * math.exp(-3.0 * self.cycles / CYCLES)

    def travelled(self, levels: np.ndarray) -> None:
        """The inputs have gone along levels (S + 1, m)."""
        self.cycles += float(
            np.mean(np.abs(np.diff(levels, axis=0)).sum(axis=0) / self._ranges) / 2
        )

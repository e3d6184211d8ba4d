"""What a model remembers of its inputs' past, and candidates' readings that it goes on from."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np


class InputMemory(Protocol):
    """What a model feels of its inputs' past, as columns behind them; known, not estimated.

    Attributes:
        size: k, how many columns.
        least_change: of an input, for a finite difference that means something [its unit]; 0 for
            any.
    """

    size: int
    least_change: float

    def begin(self, inputs: np.ndarray) -> np.ndarray:
        """(k,) after inputs (m,) have slowly risen from zero and stayed for long."""
        ...

    def along(self, remembered: np.ndarray, inputs: np.ndarray, dt: float) -> np.ndarray:
        """(B, T + 1, k) at each of inputs (B, T + 1, m), `dt` [s] apart and linear in between.

        Args:
            remembered: (k,) at the first of them.
            inputs: float64.
            dt: [s].
        """
        ...


@dataclass(frozen=True, eq=False)
class Readings:
    """Readings of the inputs of a model with a memory, at grid points, linear in between.

    The model feels gain * reading + offset, and behind it what is remembered of the readings
    themselves. How it goes on being remembered is the model's to compute, beside the rest.

    Attributes:
        values: (B, T + 1, m) readings [unit of the inputs].
        remembered: (k,) of the past of all of them, at the first grid point.
        gain: (m,) [-].
        offset: (m,) [unit of the inputs].
    """

    values: np.ndarray
    remembered: np.ndarray
    gain: np.ndarray
    offset: np.ndarray

    def __getitem__(self, rows: np.ndarray | slice) -> "Readings":
        """Of some candidates."""
        return replace(self, values=self.values[rows])

    def felt(self, memory: InputMemory, dt: float) -> np.ndarray:
        """(B, T + 1, m + k) what the model feels of them, `dt` [s] apart."""
        past = memory.along(self.remembered, self.values, dt)
        return np.concatenate((self.gain * self.values + self.offset, past), axis=-1)

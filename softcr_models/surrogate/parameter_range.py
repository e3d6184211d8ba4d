"""Which parameters a network was trained for, and whether it is asked for others."""

from collections.abc import Sequence

import numpy as np

_ROUNDING = 1e-6  # of a bound: the network's own numbers are float32


class ParameterRange:
    """The parameters that a network was trained for. It computes with the nearest inside.

    Attributes:
        outside: rows of parameters, of all that were checked, with one outside.
    """

    def __init__(self, names: Sequence[str], low: np.ndarray, high: np.ndarray) -> None:
        """
        Args:
            names: of P parameters.
            low, high: (P,) smallest and largest, in the unit of each.
        """
        self._names, self._low, self._high = tuple(names), low, high
        self._least, self._most = (1.0 - _ROUNDING) * low, (1.0 + _ROUNDING) * high
        self.outside = 0
        self._asked: np.ndarray = low

    def check(self, parameters: np.ndarray) -> None:
        """Counts the rows of (B, P) parameters that are outside."""
        wrong = (parameters < self._least) | (parameters > self._most)
        self.outside += int(np.count_nonzero(wrong.any(axis=1)))
        self._asked = parameters.mean(axis=0)

    def warnings(self) -> list[str]:
        """A line for each parameter whose mean over the rows checked last is outside."""
        wrong = (self._asked < self._least) | (self._asked > self._most)
        return [
            f"{self._names[p]} {self._asked[p]:.4g}: the network was trained for "
            f"{self._low[p]:.4g} to {self._high[p]:.4g}, and computes with the nearest of them"
            for p in np.flatnonzero(wrong)
        ]

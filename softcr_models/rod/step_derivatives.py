"""A computed step of the rod with its exact derivatives."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class StepDerivatives:
    """A step x -> x+ under inputs from u0 to u1 and parameters p, and the tip's pose there.

    Attributes:
        state: (nx,) x+.
        tip: (3, 4) pose of the tip, rotation beside position [m].
        by_state: (nx, nx); by_begin, by_end: (nx, m) by u0 and u1; by_parameters: (nx, P).
        tip_by_state, tip_by_begin, tip_by_end, tip_by_parameters: (3, 4, ...) alike.
    """

    state: np.ndarray
    tip: np.ndarray
    by_state: np.ndarray
    by_begin: np.ndarray
    by_end: np.ndarray
    by_parameters: np.ndarray
    tip_by_state: np.ndarray
    tip_by_begin: np.ndarray
    tip_by_end: np.ndarray
    tip_by_parameters: np.ndarray

    @classmethod
    def of(cls, size: int, values: np.ndarray, parts: Sequence[np.ndarray]) -> "StepDerivatives":
        """From (nx + 12,) values and (nx + 12, ...) changes by x, u0, u1 and p."""
        tips = (part[size:].reshape(3, 4, -1) for part in parts)
        return cls(
            values[:size], values[size:].reshape(3, 4), *(part[:size] for part in parts), *tips
        )

"""The layout of a rod's state vector, in one place."""

from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError


def state_size(intervals: int, segments: int = 1) -> int:
    """Number of states of a rod of N intervals in K segments: 12 N + 6 K + 6."""
    return 12 * intervals + 6 * segments + 6


def intervals_of(size: int, segments: int = 1) -> int:
    """Number of intervals of a rod with `size` states.

    Raises:
        UserError: if no rod has that many states.
    """
    rest = size - 6 * segments - 6
    if rest < 12 * segments or rest % 12:
        form = "12 (n + 1)" if segments == 1 else f"12 n + {6 * segments + 6}"
        raise UserError(
            f"state of {size} numbers: a rod of {segments} segment{'s' * (segments > 1)} has "
            f"{form}, n >= {segments} intervals"
        )
    return rest // 12


@dataclass(frozen=True)
class RodState:
    """Named views of a state vector, or of a batch of them; they share its memory.

    Attributes:
        array: (..., 12 N + 6 K + 6) of N intervals in K segments.
        segments: K.
    """

    array: np.ndarray
    segments: int = 1

    @property
    def intervals(self) -> int:
        """Number of intervals N."""
        return intervals_of(self.array.shape[-1], self.segments)

    @property
    def velocities(self) -> np.ndarray:
        """(..., N, 6) of the nodes after the base: linear [m/s], angular [rad/s], in their frames.

        Of a boundary that is the node before the connector.
        """
        n = self.intervals
        return self.array[..., : 6 * n].reshape(*self.array.shape[:-1], n, 6)

    @property
    def wrenches(self) -> np.ndarray:
        """(..., N + K, 6) elastic wrenches x2 of nodes 0+..n-: force [N], moment [N m].

        Of a boundary there are two, before and after it.
        """
        rows = self.intervals + self.segments
        wrenches = self.array[..., 6 * self.intervals : -6]
        return wrenches.reshape(*self.array.shape[:-1], rows, 6)

    @property
    def base_wrench(self) -> np.ndarray:
        """(..., 6) elastic wrench x2(0-) on the mounting side of the base jump."""
        return self.array[..., -6:]

    @classmethod
    def join(
        cls,
        velocities: np.ndarray,
        wrenches: np.ndarray,
        base_wrench: np.ndarray,
        segments: int = 1,
    ) -> "RodState":
        """A state from its parts, shapes as the attributes."""
        lead = base_wrench.shape[:-1]
        parts = (velocities.reshape(*lead, -1), wrenches.reshape(*lead, -1), base_wrench)
        return cls(np.concatenate(parts, axis=-1), segments)

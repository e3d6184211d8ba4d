"""Which inputs hold a tip somewhere: a search inside their limits."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import least_squares

_EDGE = 1e-3  # of the range: a search begins inside the limits


class _NearEnough(Exception):
    """Ends a search: (m,) parts of the range and the distance left [m]."""

    def __init__(self, parts: np.ndarray, distance: float) -> None:
        super().__init__(distance)
        self.parts, self.distance = parts, distance


def holding_numbers(
    tip_of: Callable[[np.ndarray], np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray,
    tip: np.ndarray,
    enough: float = 0.0,
) -> tuple[np.ndarray, float]:
    """Numbers (m,) that bring the tip closest to a point (3,) [m], and the distance left [m].

    Args:
        tip_of: (3,) where the tip stands with (m,) numbers [m]; what it raises comes through.
        low, high: (m,) limits of the numbers.
        start: (m,) where the search begins.
        tip: wanted.
        enough: distance at which the search ends [m]; 0: where it comes no nearer.
    """
    span = high - low

    def away(parts: np.ndarray) -> np.ndarray:
        rest = np.asarray(tip_of(low + span * parts) - tip)
        if np.linalg.norm(rest) < enough:
            raise _NearEnough(parts.copy(), float(np.linalg.norm(rest)))
        return 1e3 * rest

    begin = np.clip((start - low) / span, _EDGE, 1.0 - _EDGE)
    try:
        found = least_squares(away, begin, bounds=(0.0, 1.0), diff_step=1e-4)
    except _NearEnough as near:
        return low + span * near.parts, near.distance
    return low + span * found.x, 1e-3 * float(np.linalg.norm(found.fun))

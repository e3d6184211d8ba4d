"""Which inputs hold a tip somewhere: a search inside their limits."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import least_squares

_EDGE = 1e-3  # of the range: a search begins inside the limits


def holding_numbers(
    tip_of: Callable[[np.ndarray], np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray,
    tip: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Numbers (m,) that bring the tip closest to a point (3,) [m], and the distance left [m].

    Args:
        tip_of: (3,) where the tip stands with (m,) numbers [m]; what it raises comes through.
        low, high: (m,) limits of the numbers.
        start: (m,) where the search begins.
        tip: wanted.
    """
    span = high - low

    def away(parts: np.ndarray) -> np.ndarray:
        return np.asarray(1e3 * (tip_of(low + span * parts) - tip))

    begin = np.clip((start - low) / span, _EDGE, 1.0 - _EDGE)
    found = least_squares(away, begin, bounds=(0.0, 1.0), diff_step=1e-4)
    return low + span * found.x, 1e-3 * float(np.linalg.norm(found.fun))

"""What the steps of a motion count, as weights of squared distances between tip and goal.

A goal that stands still has to be reached once: what counts is the approach. The steps' weights are
those of a soft minimum over time, whose width follows the least distance, so that a motion that
fails still knows where it was nearest, and one that succeeds is judged sharply. Saturated costs of
single steps, such as (4.40), are flat where goals are far.
"""

import numpy as np

_DISCOUNT = 0.98  # of a step that comes later: a policy does not know the time
_WIDTH = 0.3  # of the soft minimum, over the least distance [-]


def nearest_weights(distances: np.ndarray, floor: float) -> np.ndarray:
    """(B, T) weights [1/m^2] of motions whose tips shall come near their goals once.

    Args:
        distances: (B, T) [m], infinite after a motion's end.
        floor: least width of the soft minimum [m].
    """
    width = np.maximum(floor, _WIDTH * distances.min(axis=1, keepdims=True))
    later = np.log(_DISCOUNT) * np.arange(distances.shape[1])
    logarithm = -0.5 * (distances / width) ** 2 + later
    share = np.exp(logarithm - logarithm.max(axis=1, keepdims=True))
    weights: np.ndarray = share / share.sum(axis=1, keepdims=True) / width**2
    return weights


def even_weights(distances: np.ndarray, width: float) -> np.ndarray:
    """(B, T) weights [1/m^2] of motions whose tips shall stay near moving goals: every step counts
    alike.

    Args:
        distances: (B, T) [m], infinite after a motion's end.
        width: distance that matters [m].
    """
    weights: np.ndarray = np.isfinite(distances) / width**2
    return weights

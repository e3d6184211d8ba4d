"""Stumpff's functions, in which exponentials and their tangents have no special case at zero.

c_k(t) = sum_j (-t)^j / (2 j + k)!, with t = theta^2 the square of an angle:

    c_0 = cos(theta)    c_1 = sin(theta) / theta    c_2 = (1 - cos(theta)) / theta^2    ...
    c_k = 1/k! - t c_(k+2)        dc_k/dt = (k c_(k+2) - c_(k+1)) / 2
"""

import math

import numpy as np

COUNT = 7
"""Number of functions that are needed: c_0 to c_6."""

BORDER = 4.0
"""Below it [rad^2] series, above it closed forms, which lose no more than a digit there."""

TERMS = 14
"""Of the series: enough below `BORDER` for float64."""

INVERSE_FACTORIALS = np.array([1.0 / math.factorial(k) for k in range(COUNT)])


def stumpff(t: np.ndarray) -> np.ndarray:
    """(COUNT, ...) of t (...) >= 0 [rad^2]."""
    t = np.asarray(t, float)
    near = t < BORDER
    small, large = np.where(near, t, 0.0), np.where(near, BORDER, t)
    series, closed = np.empty((COUNT, *t.shape)), np.empty((COUNT, *t.shape))
    for k in (COUNT - 2, COUNT - 1):
        total = np.ones_like(t)
        for j in range(TERMS, 0, -1):
            total = 1.0 - small * total / ((k + 2 * j - 1) * (k + 2 * j))
        series[k] = INVERSE_FACTORIALS[k] * total
    for k in range(COUNT - 3, -1, -1):
        series[k] = INVERSE_FACTORIALS[k] - small * series[k + 2]
    theta = np.sqrt(large)
    closed[0], closed[1] = np.cos(theta), np.sin(theta) / theta
    for k in range(COUNT - 2):
        closed[k + 2] = (INVERSE_FACTORIALS[k] - closed[k]) / large
    return np.where(near, series, closed)


def inverse_tangent(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """e and de/dt of dexp^-1 = 1 - w^/2 + e w^ w^, from c (COUNT, ...); infinite at 2 pi.

    e = (1 - c_1 / (2 c_2)) / t = (c_3 - 2 c_4) / (2 c_2).
    """
    above, below = c[3] - 2.0 * c[4], 2.0 * c[2]
    above_rate = 2.5 * c[5] - 0.5 * c[4] - 4.0 * c[6]
    below_rate = 2.0 * c[4] - c[3]
    e = above / below
    return e, (above_rate - e * below_rate) / below

"""Projection of candidates onto the limits of the command; `softcr_models.limits` guards it."""

import numpy as np


def limit_knots(
    knots: np.ndarray,
    previous: np.ndarray,
    low: float,
    high: float,
    max_steps: np.ndarray,
) -> None:
    """Makes piecewise-linear candidates feasible, in place.

    Each knot is moved into the box and then towards the knot before it (the first towards
    `previous`) until the line between them keeps the slew limit; what is interpolated between them
    then keeps it.

    Args:
        knots: (B, K, m) pressures at the knots [Pa].
        previous: (m,) command active before the first knot [Pa], inside the box.
        low, high: the box [Pa].
        max_steps: (K,) largest change from the knot before to each knot [Pa].
    """
    np.clip(knots, low, high, out=knots)
    before = previous
    for index, step in enumerate(max_steps):
        np.clip(knots[:, index], before - step, before + step, out=knots[:, index])
        before = knots[:, index]

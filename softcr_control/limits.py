"""Projection of candidates onto the limits of the command; `softcr_models.limits` guards it."""

from typing import Any

import numpy as np


def limit_knots(
    knots: Any,
    previous: Any,
    low: float,
    high: float,
    max_steps: np.ndarray,
) -> None:
    """Makes piecewise-linear candidates feasible, in place.

    Each knot is moved into the box and then towards the knot before it (the first towards
    `previous`) until the line between them keeps the slew limit; what is interpolated between them
    then keeps it.

    Knots and previous command are both numpy arrays or both tensors of torch.

    Args:
        knots: (B, K, m) pressures at the knots [Pa].
        previous: (m,) command active before the first knot [Pa], inside the box.
        low, high: the box [Pa].
        max_steps: (K,) largest change from the knot before to each knot [Pa].
    """
    knots[:] = knots.clip(low, high)
    before = previous
    for index, step in enumerate(max_steps.tolist()):
        if step < high - low:
            knots[:, index] = knots[:, index].clip(before - step, before + step)
        before = knots[:, index]

"""Projection of candidates onto the limits of the command, which `command_limits` guards."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def largest_steps(max_steps: np.ndarray, span: np.ndarray) -> list[np.ndarray | None]:
    """For each knot the largest change (m,) from the knot before; None where no step is too large.

    Args:
        max_steps: (K, m) from the knot before to each knot [unit of the inputs].
        span: (m,) highest minus lowest value of each input.
    """
    return [step if (step < span).any() else None for step in max_steps]


def limit_knots(
    knots: Any,
    previous: Any,
    low: Any,
    high: Any,
    max_steps: Sequence[Any | None],
    clip: Callable[..., Any] = np.clip,
) -> None:
    """Makes piecewise-linear candidates feasible, in place.

    Each knot is moved into the box and then towards the knot before it (the first towards
    `previous`) until the line between them keeps the slew limit; what is interpolated between them
    then keeps it.

    All are numpy arrays or all tensors of torch, in the unit of the inputs.

    Args:
        knots: (B, K, m) values at the knots.
        previous: (m,) command active before the first knot, inside the box.
        low, high: (m,) the box.
        max_steps: of each knot, see `largest_steps`.
        clip: of arrays; of tensors torch.clamp.
    """
    clip(knots, low, high, out=knots)
    before = previous
    for index, step in enumerate(max_steps):
        if step is not None:
            clip(knots[:, index], before - step, before + step, out=knots[:, index])
        before = knots[:, index]

"""Refinement of the best candidate by a Gauss-Newton step: ours, not in the paper.

Best-of-population alone leaves the command jittering by the spacing of the candidates. Costs are
sums of squares, and near the optimum their residuals are nearly linear in the knots: the population
has already paid for many samples of them, so a fit says the derivatives that no model is asked for.
"""

import numpy as np

from softcr_control.predictive.bounded_minimum import bounded_minimum

# Fractions of the predicted step that are tried.
STEP_FRACTIONS = np.linspace(0.25, 2.0, 8)
SAMPLES_PER_NUMBER = 4  # candidates that the fit looks at, for each number that makes one
FIT_RIDGE, STEP_DAMPING = 1e-6, 1e-6  # added to a matrix, of its mean diagonal
TINY = float(np.finfo(float).tiny)


def cheapest(costs: np.ndarray, best: int, dimension: int) -> np.ndarray:
    """(1 + S,) indices of the candidates to fit, the best first and once more among them.

    Args:
        costs: (B,) inf where not finite.
        best: index of the lowest cost, which is finite.
        dimension: numbers that make a candidate.
    """
    count = min(SAMPLES_PER_NUMBER * dimension, int(np.isfinite(costs).sum()))
    return np.concatenate(([best], np.argpartition(costs, count - 1)[:count]))


def gauss_newton_proposals(
    candidates: np.ndarray, residuals: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Candidates on the line from the first one through the minimum of the linearised cost.

    Residuals are fitted as r = r_0 + (x - x_0) J by least squares, exact at the first candidate;
    |r|^2 is then minimised inside the box of the inputs.

    Args:
        candidates: (S, K, m) inside the box [unit of the inputs], the best first.
        residuals: (S, R) whose squares add up to the costs, all finite.
        low, high: (m,) the box.

    Returns:
        (8, K, m) candidates, not yet limited.
    """
    knots = candidates.shape[1]
    span, low, high = (np.tile(bound, knots) for bound in (high - low, low, high))
    points = candidates.reshape(len(candidates), -1) / span
    start, offsets = points[0], points[1:] - points[0]
    slopes = np.linalg.solve(
        _with_diagonal(offsets.T @ offsets, FIT_RIDGE), offsets.T @ (residuals[1:] - residuals[0])
    )
    step = bounded_minimum(
        _with_diagonal(slopes @ slopes.T, STEP_DAMPING),
        slopes @ residuals[0],
        np.minimum(low / span - start, 0.0),  # the start lies inside, but for rounding
        np.maximum(high / span - start, 0.0),
    )
    moved = (start + STEP_FRACTIONS[:, None] * step) * span
    return moved.reshape(-1, *candidates.shape[1:])


def _with_diagonal(matrix: np.ndarray, part: float) -> np.ndarray:
    """The matrix, in place, with a part of its mean diagonal added to the diagonal."""
    diagonal = matrix.reshape(-1)[:: len(matrix) + 1]
    diagonal += part * diagonal.sum() / len(matrix) + TINY
    return matrix

"""Refinement of the best candidate by a quadratic model of the cost: ours, not in the paper.

Best-of-population alone leaves the command jittering by the spacing of the candidates. Near the
optimum the cost is smooth, and the population has already paid for many samples of it: a least-
squares quadratic through the best of them predicts where the minimum lies.
"""

import numpy as np

from softcr_control.bounded_minimum import bounded_minimum

# Fractions of the predicted step that are tried: 16 candidates fill one vector register of lanes.
STEP_FRACTIONS = np.linspace(0.125, 2.0, 16)


def quadratic_proposals(
    population: np.ndarray, costs: np.ndarray, best: int, low: float, high: float
) -> np.ndarray:
    """Candidates on the line from the best one through the minimum of a fitted quadratic.

    The quadratic is fitted to the best candidates, two for each of its coefficients, fewer where
    the population is small; its minimum is sought inside the pressure box and inside the region
    these candidates span.

    Args:
        population: (B, K, m) candidates inside the box [Pa].
        costs: (B,) their costs.
        best: index of the lowest cost, which is finite.
        low, high: the box [Pa].

    Returns:
        (16, K, m) candidates [Pa], not yet limited; (0, K, m) if too few costs are finite.
    """
    dimension = population[0].size
    rows, columns = np.triu_indices(dimension)
    sought = 1 + dimension + len(rows)
    samples = min(2 * sought, int(np.isfinite(costs).sum()))
    if samples <= sought:
        return population[:0]
    elite = np.argpartition(costs, samples - 1)[:samples]
    start = population[best].ravel()
    offsets = population[elite].reshape(samples, dimension) - start
    reach = np.abs(offsets).max(axis=0) + 1e-6 * (high - low)  # never zero
    offsets /= reach

    features = np.hstack([np.ones((samples, 1)), offsets, offsets[:, rows] * offsets[:, columns]])
    normal = features.T @ features + 1e-9 * samples * np.eye(features.shape[1])
    coefficients = np.linalg.solve(normal, features.T @ costs[elite])
    gradient = coefficients[1 : dimension + 1]
    hessian = np.zeros((dimension, dimension))
    hessian[rows, columns] = coefficients[dimension + 1 :]
    hessian += hessian.T

    least = np.maximum(-1.0, (low - start) / reach) - 1e-9  # the start lies inside
    most = np.minimum(1.0, (high - start) / reach) + 1e-9
    step = bounded_minimum(_convex(hessian), gradient, least, most) * reach
    return (start + STEP_FRACTIONS[:, None] * step).reshape(-1, *population.shape[1:])


def _convex(hessian: np.ndarray) -> np.ndarray:
    """The same, but for curvatures that are not positive: a small positive one replaces them."""
    curvatures, directions = np.linalg.eigh(hessian)
    floor = max(1e-6 * np.abs(curvatures).max(), np.finfo(float).tiny)
    convex: np.ndarray = (directions * np.maximum(curvatures, floor)) @ directions.T
    return convex

"""Particle swarm optimisation as the papers use it: the rival of least squares, nothing more.

Global best, inertia and accelerations of Clerc and Kennedy (2002). None of the libraries we use
holds one.
"""

from collections.abc import Callable, Iterable

import numpy as np

INERTIA, ACCELERATION = 0.7298, 1.49618


def particle_swarm(
    cost: Callable[[np.ndarray], float],
    low: np.ndarray,
    high: np.ndarray,
    particles: int,
    iterations: int,
    seed: int,
    progress: Callable[[int], None] = lambda evaluations: None,
    start: np.ndarray | None = None,
    evaluate: Callable[..., Iterable[float]] = map,
) -> tuple[np.ndarray, float]:
    """The best position found in a box, and its cost.

    Args:
        cost: (P,) -> number; what is not finite is worse than anything.
        low, high: (P,) the box.
        particles, iterations: their product is the number of evaluations.
        seed: of the only generator.
        progress: called with the number of evaluations done.
        start: (P,) where the first particle begins; None: anywhere, as the others.
        evaluate: (cost, positions) -> costs of one iteration in order, as `map`; a pool's `map`
            computes them side by side.
    """
    draw = np.random.default_rng(seed)
    shape = (particles, len(low))
    positions = low + (high - low) * draw.random(shape)
    if start is not None:
        positions[0] = start
    velocities = 0.1 * (high - low) * draw.standard_normal(shape)
    own_best, own_costs = positions.copy(), np.full(particles, np.inf)
    for _ in range(iterations):
        for index, value in enumerate(evaluate(cost, positions)):
            if value < own_costs[index]:
                own_best[index], own_costs[index] = positions[index], value
            progress(1)
        leader = own_best[np.argmin(own_costs)]
        pulls = draw.random((2, *shape))
        velocities *= INERTIA
        velocities += ACCELERATION * pulls[0] * (own_best - positions)
        velocities += ACCELERATION * pulls[1] * (leader - positions)
        positions = np.clip(positions + velocities, low, high)
    best = int(np.argmin(own_costs))
    return own_best[best], float(own_costs[best])

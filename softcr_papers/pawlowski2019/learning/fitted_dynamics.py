"""Linear dynamics of motions fitted to samples, as a real robot would have to: the thesis's way.

Algorithm 6 of Pawlowski (2019) after Levine and Abbeel (2014): several disturbed motions towards
each goal, of whose states, actions and next states at each step a Gaussian is fitted; with a
handful of samples that is possible by a prior, a mixture of Gaussians over all steps of all
motions. Tips and observations are geometry, which is known: their derivatives stay exact.
"""

import numpy as np

from softcr_papers.pawlowski2019.learning.linearisation import Directions
from softcr_papers.pawlowski2019.learning.mixture import Mixture
from softcr_papers.pawlowski2019.learning.motions import Motions

_PRIOR = 1.0
"""Strength of the prior, in samples for each of its degrees of freedom."""


def steps_of(motions: Motions, directions: Directions) -> np.ndarray:
    """(B, T, 2 r + m) coordinates, actions, and coordinates after each step; 0 where was none."""
    places = motions.states @ directions.coordinates
    found = np.concatenate((places[:, :-1], motions.actions, places[:, 1:]), axis=2)
    return np.where(motions.done[:, :, None], found, 0.0)


def fitted_steps(
    steps: np.ndarray, done: np.ndarray, mixture: Mixture, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Dynamics (C, T, r, r) and (C, T, r, m) by coordinates and actions.

    Args:
        steps: (C, N, T, d) of N motions towards each of C goals, as `steps_of`.
        done: (C, N, T) whether there was such a step.
        mixture: prior of steps.
        size: r.
    """
    goals, _, count, width = steps.shape
    dynamics = np.zeros((goals, count, size, width - size))
    for t in range(count):
        told = done[:, :, t]
        for goal in np.flatnonzero(told.any(axis=1)):
            points = steps[goal, told[goal], t]
            dynamics[goal, t] = _slopes(points, mixture, size)
    return dynamics[..., :size], dynamics[..., size:]


def _slopes(points: np.ndarray, mixture: Mixture, size: int) -> np.ndarray:
    """(r, r + m) of the last r entries by the others, from points (N, d) and the prior."""
    count, width = points.shape
    prior_mean, prior = (each[0] for each in mixture.around(points[None]))
    mean = points.mean(axis=0)
    off, shift = points - mean, mean - prior_mean
    strength = _PRIOR * width
    between = count * strength / (count + strength) * np.outer(shift, shift)
    whole = (strength * prior + off.T @ off + between) / (strength + count)
    given = width - size
    found: np.ndarray = np.linalg.solve(whole[:given, :given], whole[:given, given:]).T
    return found

"""Guided policy search with dynamics that are fitted to samples: the thesis's way.

Linear dynamics of motions fitted to samples, as a real robot would have to: the thesis's way.

Algorithm 6 of Pawlowski (2019) after Levine and Abbeel (2014): several disturbed motions towards
each goal, of whose states, actions and next states at each step a Gaussian is fitted; with a
handful of samples that is possible by a prior, a mixture of Gaussians over all steps of all
motions. Tips and observations are geometry, which is known: their derivatives stay exact.

A Gaussian mixture, fitted by expectation maximisation, as a prior of linear-Gaussian models.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from softcr_papers.pawlowski2019.learning.guided import GuidedSearch
from softcr_papers.pawlowski2019.learning.linearisation import (
    Directions,
    Linearisation,
    with_geometry,
)
from softcr_papers.pawlowski2019.learning.motions import Motions
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.tasks import Episodes, Task
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings

_ROUNDS = 30
_NOISE = 1e-4  # added to variances: clusters never become flat


@dataclass(frozen=True, eq=False)
class Mixture:
    """Clusters of points of size d.

    Attributes:
        shares: (K,) of the points.
        means: (K, d).
        covariances: (K, d, d).
    """

    shares: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    @classmethod
    def fitted(cls, points: np.ndarray, clusters: int, random: np.random.Generator) -> "Mixture":
        """That of points (J, d), from clusters around some of them."""
        count, size = points.shape
        nearest = _squares(points, points[random.choice(count, clusters, replace=False)])
        belongs = np.eye(clusters)[nearest.argmin(axis=1)]
        for _ in range(_ROUNDS):
            weights = belongs.sum(axis=0) + 1e-6
            means = belongs.T @ points / weights[:, None]
            off = points[None] - means[:, None]
            covariances = (off * belongs.T[:, :, None]).swapaxes(1, 2) @ off
            covariances = covariances / weights[:, None, None] + _NOISE * np.eye(size)
            mixture = cls(weights / weights.sum(), means, covariances)
            belongs = mixture.belongs(points)
        return mixture

    def belongs(self, points: np.ndarray) -> np.ndarray:
        """(J, K) probability of each cluster for points (J, d)."""
        roots = np.linalg.cholesky(self.covariances)
        off = np.linalg.solve(roots, (points[None] - self.means[:, None]).swapaxes(1, 2))
        spread = np.log(np.einsum("kii->ki", roots)).sum(axis=1)
        logarithms = np.log(self.shares) - spread - 0.5 * (off**2).sum(axis=1).T
        found: np.ndarray = np.exp(logarithms - logsumexp(logarithms, axis=1, keepdims=True))
        return found

    def around(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(B, d) mean and (B, d, d) covariance of the clusters to which points (B, N, d) belong, on
        average over the N."""
        runs, count, size = points.shape
        belongs = self.belongs(points.reshape(-1, size)).reshape(runs, count, -1).mean(axis=1)
        means = belongs @ self.means
        off = self.means[None] - means[:, None]
        covariances = np.einsum("bk,kij->bij", belongs, self.covariances)
        return means, covariances + np.einsum("bk,bki,bkj->bij", belongs, off, off)


def _squares(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """(J, K) squared distances."""
    found: np.ndarray = ((points[:, None] - centres[None]) ** 2).sum(axis=2)
    return found


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


_POINTS = 2000  # of which the prior is fitted


class FittedSearch(GuidedSearch):
    """As `GuidedSearch`, without any derivative of the rods' dynamics."""

    def __init__(self, plant: Plant, task: Task, settings: TrainingSettings) -> None:
        super().__init__(plant, task, settings)
        self._seen: deque[np.ndarray] = deque(maxlen=settings.memory)

    @property
    def state(self) -> dict[str, Any]:
        return super().state | {"seen": list(self._seen)}

    def go_on(self, state: dict[str, Any]) -> None:
        super().go_on(state)
        width = 2 * self.directions.count + self.plant.model.inputs.size
        for each in state["seen"]:
            if each.shape != (len(each), width):
                raise ValueError(f"steps have the shape {each.shape}, must have {width} columns")
            self._seen.append(each)

    def episodes(self) -> Episodes:
        """Those of a round, siblings one after the other."""
        own = self.settings
        few = self.task.episodes(own.environments // own.siblings, self.random)
        return Episodes(*(np.repeat(each, own.siblings, axis=0) for each in vars(few).values()))

    def linearised(self, motions: Motions) -> Linearisation:
        """Of dynamics that siblings share."""
        own, size = self.settings, self.directions.count
        steps, done = steps_of(motions, self.directions), motions.done
        self._seen.append(steps[done])
        points = np.concatenate(self._seen)
        chosen = self.random.choice(len(points), min(_POINTS, len(points)), replace=False)
        mixture = Mixture.fitted(points[chosen], own.clusters, self.random)
        families = (-1, own.siblings)
        transition, control = fitted_steps(
            steps.reshape(*families, *steps.shape[1:]),
            done.reshape(*families, *done.shape[1:]),
            mixture,
            size,
        )
        return with_geometry(
            np.repeat(transition, own.siblings, axis=0),
            np.repeat(control, own.siblings, axis=0),
            0,
            self.plant,
            self.observation,
            motions,
            self.directions,
        )

"""A Gaussian mixture, fitted by expectation maximisation, as a prior of linear-Gaussian models."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

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

"""The unscented Kalman filter in square-root form (van der Merwe and Wan, 2001)."""

import math
from typing import Any

import numpy as np

from softcr_estimation.filters.gaussian import Moments, SquareRootFilter


class UnscentedFilter(SquareRootFilter):
    """Sigma points mean +- sqrt(n + lambda) R_j over any batched model; rows R_j of the factor.

    lambda = alpha^2 (n + kappa) - n. Weights 1 / (2 (n + lambda)) for each point, for the centre
    lambda / (n + lambda), and for its covariance 1 - alpha^2 + beta more. The default alpha = 1,
    beta = 0, kappa = 0 gives the centre no weight at all and every other point the same positive
    one: this is exactly the square-root cubature Kalman filter (Arasaratnam and Haykin, 2009),
    whose 2n points lie sqrt(n) deviations from the mean, nine of them at 81 numbers. Covariances
    then need no downdate and stay positive by construction. A negative weight (small alpha) takes a
    downdate, which can fail and is then repaired. Points are drawn anew before each measurement
    update, so that they hold the process noise.
    """

    def __init__(
        self,
        *arguments: Any,
        alpha: float = 1.0,
        beta: float = 0.0,
        kappa: float = 0.0,
        **options: Any,
    ) -> None:
        """
        Args:
            arguments, options: see SquareRootFilter.
            alpha: spread of the points [-], > 0.
            beta: prior knowledge of the distribution, 2 for a Gaussian at small alpha [-].
            kappa: secondary spread [-], > -n.
        """
        super().__init__(*arguments, **options)
        size = self._process_noise.size
        if not (np.isfinite([alpha, beta, kappa]).all() and alpha > 0 and size + kappa > 0):
            raise ValueError(
                f"alpha {alpha}, beta {beta}, kappa {kappa}: must be finite, alpha > 0, "
                f"kappa > -{size}"
            )
        spread = alpha**2 * (size + kappa)
        self._reach = math.sqrt(spread)
        self._weight = 0.5 / spread
        self._mean_weights = np.full(2 * size + 1, self._weight)
        self._mean_weights[0] = (spread - size) / spread
        self._central_weight = (spread - size) / spread + 1.0 - alpha**2 + beta

    def _points(self) -> np.ndarray:
        deviations = self._reach * self.factor
        points = np.empty((2 * self.mean.size + 1, self.mean.size))
        points[0] = self.mean
        np.add(self.mean, deviations, out=points[1 : self.mean.size + 1])
        np.subtract(self.mean, deviations, out=points[self.mean.size + 1 :])
        return points

    def _moments(self, points: np.ndarray, images: np.ndarray) -> Moments:
        mean = self._mean_weights @ images
        rows = images[1:] - mean
        rows *= math.sqrt(self._weight)
        central = math.sqrt(abs(self._central_weight)) * (images[:1] - mean)
        if self._central_weight > 0.0:
            return Moments(mean, np.concatenate([rows, central]), central[:0])
        return Moments(mean, rows, central if self._central_weight < 0.0 else central[:0])

    def _mirror(self, images: np.ndarray, lost: np.ndarray) -> None:
        sides = lost[1:].reshape(2, -1)
        of_sides = images[1:].reshape(*sides.shape, -1)
        for here, there in ((0, 1), (1, 0)):
            places = np.flatnonzero(sides[here] & ~sides[there])
            of_sides[here, places] = 2.0 * images[0] - of_sides[there, places]

    def _cross_rows(self, moments: Moments) -> np.ndarray:
        # From the points as drawn, not as clipped: so it fits the factor it will downdate.
        size = self.mean.size
        opposite = moments.rows[:size] - moments.rows[size : 2 * size]
        return math.sqrt(0.5) * opposite.T @ self.factor

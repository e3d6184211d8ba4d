"""The extended Kalman filter in square-root form, on the same interface as the unscented one."""

from typing import Any

import numpy as np

from softcr_estimation.filters.gaussian import Moments, SquareRootFilter
from softcr_estimation.filters.square_root import multiplied


class ExtendedFilter(SquareRootFilter):
    """Linearises predict and measure at the mean by differences, all in one batched call.

    Differencing the step itself gives the sensitivities of the discrete map the filter really uses,
    its inexact Jacobian included, for one batch of n + 1 points: cheaper than propagating analytic
    sensitivities through a Rosenbrock step. One side is enough: over 1e-4 of a scale a slope is
    wrong by about as little, which is nothing beside what linearising leaves out, and models that
    compute in single precision still tell their slopes to a part in a thousand.
    """

    def __init__(
        self,
        *arguments: Any,
        scale: np.ndarray | float = 1.0,
        relative_step: float = 1e-4,
        **options: Any,
    ) -> None:
        """
        Args:
            arguments, options: see SquareRootFilter.
            scale: (n,) typical magnitudes of the states.
            relative_step: distance of a point from the mean, in scales [-], > 0.
        """
        super().__init__(*arguments, **options)
        self._steps = np.full(self._process_noise.shape, relative_step * scale)
        if not (np.isfinite(self._steps).all() and (self._steps > 0).all()):
            raise ValueError(
                f"scale, relative_step: must be positive, found {scale}, {relative_step}"
            )

    def _points(self) -> np.ndarray:
        points = np.repeat(self.mean[None], 1 + self.mean.size, axis=0)
        # towards the inside of the bounds, where a point is not clipped
        steps = self._steps.copy()
        inside = steps[self._bounded]
        inside[self.mean[self._bounded] + inside > self._high] *= -1.0
        points[1:].ravel()[:: self.mean.size + 1] += steps
        return points

    def _moments(self, points: np.ndarray, images: np.ndarray) -> Moments:
        distances = points[1:].diagonal() - points[0]
        slopes = np.empty((len(distances), images.shape[1]), order="F")
        np.subtract(images[1:], images[0], out=slopes)
        slopes /= distances[:, None]
        rows = multiplied(self.factor, slopes)
        return Moments(images[0], rows, rows[:0])

    def _cross_rows(self, moments: Moments) -> np.ndarray:
        return moments.rows.T @ self.factor

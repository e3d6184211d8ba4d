"""The extended Kalman filter in square-root form, on the same interface as the unscented one."""

from typing import Any

import numpy as np

from softcr_estimation.gaussian import Moments, SquareRootFilter


class ExtendedFilter(SquareRootFilter):
    """Linearises predict and measure at the mean by central differences, all in one batched call.

    Differencing the step itself gives the sensitivities of the discrete map the filter really uses,
    its inexact Jacobian included, for one batch of 2n + 1 points: cheaper than propagating analytic
    sensitivities through a Rosenbrock step, and exact to about 1e-7 of the state's scale.
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
            relative_step: half the distance of the two points, in scales [-], > 0.
        """
        super().__init__(*arguments, **options)
        self._steps = np.diag(np.broadcast_to(relative_step * scale, self._process_noise.shape))
        if not (np.isfinite(self._steps).all() and (self._steps.diagonal() > 0).all()):
            raise ValueError(
                f"scale, relative_step: must be positive, found {scale}, {relative_step}"
            )

    def _points(self) -> np.ndarray:
        return np.concatenate([self.mean[None], self.mean + self._steps, self.mean - self._steps])

    def _moments(self, points: np.ndarray, images: np.ndarray) -> Moments:
        forward, backward = np.split(points[1:], 2)
        # Not twice the step: at a bound the points are clipped.
        distances = (forward - backward).diagonal()
        differences = images[1 : len(distances) + 1] - images[len(distances) + 1 :]
        rows = self.factor @ (differences / distances[:, None])
        return Moments(images[0], rows, rows[:0])

    def _cross_rows(self, moments: Moments) -> np.ndarray:
        return moments.rows.T @ self.factor

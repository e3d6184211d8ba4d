"""Savitzky-Golay filters: what a motion's smooth course and its derivatives are."""

from dataclasses import dataclass

import numpy as np
from scipy.signal import savgol_coeffs, savgol_filter

from softcr_models.errors import UserError


@dataclass(frozen=True)
class Smoothing:
    """A polynomial is fitted to the samples around each one.

    Attributes:
        window: odd number of samples; those of a window must be shorter than the fastest motion.
        order: of the polynomial.
    """

    window: int = 11
    order: int = 3

    def __post_init__(self) -> None:
        """Raises UserError for numbers that are not allowed."""
        if self.window % 2 != 1 or not 2 <= self.order < self.window:
            raise UserError(
                f"smoothing: window {self.window} and order {self.order} are not allowed: the "
                "window must be odd and longer than the order, which must be 2 or more"
            )

    @property
    def centre_weight(self) -> float:
        """Share of a sample in its own smoothed value [-]."""
        return float(savgol_coeffs(self.window, self.order)[self.window // 2])

    def __call__(
        self, values: np.ndarray, period: float, derivative: int = 0, axis: int = 1
    ) -> np.ndarray:
        """The smoothed values, or a derivative of them [1/s], [1/s^2].

        Raises:
            UserError: there are fewer samples than the window has.
        """
        if values.shape[axis] < self.window:
            raise UserError(
                f"motion of {values.shape[axis]} frames: the smoothing needs {self.window} or more"
            )
        smooth: np.ndarray = savgol_filter(
            values, self.window, self.order, deriv=derivative, delta=period, axis=axis
        )
        return smooth

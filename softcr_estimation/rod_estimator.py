"""State and parameters of a rod from pressures and tip position, by any prediction model."""

from dataclasses import dataclass

import numpy as np

from softcr_estimation.errors import EstimatorError
from softcr_estimation.estimator_settings import (
    ALL_GAINS,
    ALL_OFFSETS,
    EstimatorSettings,
)
from softcr_estimation.model_estimator import ModelEstimate, ModelEstimator
from softcr_estimation.sensors.measurements import checked, checked_rotation
from softcr_models.model import TIP, Model

__all__ = [
    "ALL_GAINS",
    "ALL_OFFSETS",
    "Estimate",
    "EstimatorError",
    "EstimatorSettings",
    "RodEstimator",
]


@dataclass(frozen=True)
class Estimate(ModelEstimate):
    """What is known of a rod at one stamp."""

    @property
    def bending_compliance(self) -> float:
        """[rad/(N m m)]"""
        return self.parameters["bending_compliance"]

    @property
    def bending_compliance_std(self) -> float:
        """Standard deviation [rad/(N m m)]."""
        return self.parameters_std["bending_compliance"]


class RodEstimator:
    """The joint filter over a rod whose pressures and tip are measured.

    estimator = RodEstimator(RodPrediction(CosseratRod(robot)))
    estimator.start(pressures, stamp)
    estimate = estimator.update(pressures, tip_position, stamp)
    """

    def __init__(self, prediction: Model, settings: EstimatorSettings | None = None) -> None:
        """Raises EstimatorError where settings.parameters names something that does not exist."""
        chosen = settings or EstimatorSettings()
        if prediction.inputs.quantity != "pressure" and "parameters" not in chosen.model_fields_set:
            chosen = chosen.model_copy(update={"parameters": None})  # the model's: no sensors
        self._estimator = ModelEstimator(prediction, chosen)

    def start(self, pressures: np.ndarray, stamp: float) -> Estimate:
        """Begin, or begin again, at the static shape under the measured pressures.

        Args:
            pressures: (m,) measured gauge pressures [Pa].
            stamp: time of the pressures [s].
        """
        return Estimate(**vars(self._estimator.start(pressures, stamp)))

    def update(
        self,
        pressures: np.ndarray,
        tip_position: np.ndarray | None,
        stamp: float,
        tip_rotation: np.ndarray | None = None,
    ) -> Estimate:
        """Advance to `stamp` and take in what was measured there, see ModelEstimator.

        Args:
            pressures: (m,) measured gauge pressures at `stamp` [Pa].
            tip_position: (3,) measured tip in the base frame [m], or None: predict only.
            stamp: later than the last one [s].
            tip_rotation: (3, 3) measured rotation matrix of the tip in the base frame, or None.

        Raises:
            EstimatorError: not started; a stamp that is not later than the last one, or too much
                later; an array of wrong shape or with non-finite numbers. The estimator is left as
                it was.
        """
        measurements = {}
        if tip_rotation is not None:
            tip_rotation = checked_rotation("tip_rotation", tip_rotation)
        if tip_position is not None:
            measurements[TIP] = checked("tip_position", tip_position, (3,))
            if tip_rotation is not None:
                measurements[TIP] = np.column_stack((tip_rotation, measurements[TIP]))
        return Estimate(**vars(self._estimator.update(pressures, measurements, stamp)))

"""The house's estimator: an unscented or extended Kalman filter on a model."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_estimation.context import EstimationContext
from softcr_estimation.rod_estimator import Estimate, EstimatorSettings, RodEstimator
from softcr_models.model import TIP


class ModelFilterSettings(BaseModel):
    """Which filter, and what it finds beside the state."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    filter: Literal["ukf", "ekf"] = Field("ukf", description="unscented or extended Kalman filter")
    parameters: tuple[str, ...] = Field(
        EstimatorSettings().parameters,
        description="estimated beside the state: bending_compliance, tip_mass, damping_factor, "
        "pressure_offset_1 ...",
    )
    use_orientation: bool = Field(False, description="whether the tip's orientation is used too")


class ModelFilter:
    """Finds state and parameters of the context's model from its tip."""

    Settings = ModelFilterSettings

    def __init__(self, context: EstimationContext, settings: ModelFilterSettings) -> None:
        """Raises UserError where `parameters` names something that does not exist."""
        self._settings = settings
        self._filter = RodEstimator(
            context.model,  # type: ignore[arg-type]
            EstimatorSettings(
                filter=settings.filter, parameters=settings.parameters, period=context.period
            ),
        )
        self.reset()

    def reset(self) -> None:
        """Begin anew with the next sample."""
        self._started = False
        self.repairs = self.gated = 0

    def update(
        self, inputs: np.ndarray, measurements: Mapping[str, np.ndarray], stamp: float
    ) -> Estimate:
        """See Estimator; the first sample after `reset` starts at rest under its inputs."""
        if not self._started:
            self._started = True
            return self._filter.start(inputs, stamp)
        pose = measurements.get(TIP)
        position = rotation = None
        if pose is not None:
            position = pose[:3, 3]
            rotation = pose[:3, :3] if self._settings.use_orientation else None
        estimate = self._filter.update(inputs, position, stamp, rotation)
        self.repairs = estimate.repairs
        self.gated += estimate.gated
        return estimate

    def describe(self) -> dict[str, Any]:
        """Counts since `reset`."""
        return {"filter": self._settings.filter, "repairs": self.repairs, "gated": self.gated}

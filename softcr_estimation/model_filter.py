"""The house's estimator: an unscented or extended Kalman filter on a model."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_estimation.context import EstimationContext
from softcr_estimation.estimator_settings import ModelEstimatorSettings
from softcr_estimation.model_estimator import ModelEstimate, ModelEstimator

EVERYTHING = "everything"
"""In `parameters`: all of the model's, and of its inputs' sensors what pressures have."""


class ModelFilterSettings(BaseModel):
    """Which filter, and what it finds beside the state."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    filter: Literal["ukf", "ekf"] = Field("ukf", description="unscented or extended Kalman filter")
    parameters: tuple[str, ...] = Field(
        (EVERYTHING,),
        description="estimated beside the state: names of the model's parameters, "
        "pressure_offset_1 ..., pressure_offsets, pressure_gains; everything: all there are",
    )
    use_orientation: bool = Field(False, description="whether the tip's orientation is used too")


class ModelFilter:
    """Finds state and parameters of the context's model from what is measured of its outputs."""

    Settings = ModelFilterSettings

    def __init__(self, context: EstimationContext, settings: ModelFilterSettings) -> None:
        """Raises UserError where `parameters` names something that does not exist."""
        numbers = ModelEstimatorSettings(
            filter=settings.filter,
            parameters=None if settings.parameters == (EVERYTHING,) else settings.parameters,
            period=context.period,
        )
        self._use(context, numbers, settings.use_orientation)

    @classmethod
    def of(cls, context: EstimationContext, numbers: ModelEstimatorSettings) -> "ModelFilter":
        """With other numbers than the shipped ones; raises as `__init__`."""
        made = cls.__new__(cls)
        made._use(context, numbers.model_copy(update={"period": context.period}), False)
        return made

    def _use(
        self, context: EstimationContext, numbers: ModelEstimatorSettings, use_orientation: bool
    ) -> None:
        self._kind, self._use_orientation = numbers.filter, use_orientation
        self._filter = ModelEstimator(context.model, numbers)
        outputs = context.model.outputs
        self._poses = {name for name, info in outputs.items() if info.kind == "pose"}
        self.reset()

    @property
    def positions_suffice(self) -> bool:
        """Whether (3,) positions do in the place of (4, 4) poses: how they are turned is not
        used."""
        return not self._use_orientation

    def reset(self) -> None:
        """Begin anew with the next sample."""
        self._last: ModelEstimate | None = None
        self.repairs = self.gated = 0

    def update(
        self, inputs: np.ndarray, measurements: Mapping[str, np.ndarray], stamp: float
    ) -> ModelEstimate:
        """See Estimator; the first sample after `reset` starts at rest under its inputs."""
        if self._last is None:
            self._last = self._filter.start(inputs, stamp)
            return self._last
        if not self._use_orientation:
            measurements = {
                name: sample[:3, 3] if name in self._poses and sample.ndim == 2 else sample
                for name, sample in measurements.items()
            }
        self._last = self._filter.update(inputs, measurements, stamp)
        self.repairs = self._last.repairs
        self.gated += self._last.gated
        return self._last

    def describe(self) -> dict[str, Any]:
        """Counts since `reset`."""
        return {"filter": self._kind, "repairs": self.repairs, "gated": self.gated}

    def warnings(self) -> list[str]:
        """Signs that the model does not fit the robot."""
        return [] if self._last is None else self._last.warnings()

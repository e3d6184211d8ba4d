"""The house's estimator: an unscented or extended Kalman filter on a model."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from softcr_estimation.context import EstimationContext
from softcr_estimation.estimator_settings import EVERYTHING, ModelEstimatorSettings
from softcr_estimation.model_estimator import ModelEstimate, ModelEstimator
from softcr_estimation.sensors.measurements import noises_of_outputs
from softcr_estimation.tip_force import TipForceSearch, estimates_tip_force
from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_models.rod_model.tip_force import TIP_FORCE


class ModelFilter:
    """Finds state and parameters of the context's model from what is measured of its outputs.

    Attributes:
        kind: which filter it is.
    """

    Settings = ModelEstimatorSettings

    def __init__(self, context: EstimationContext, settings: ModelEstimatorSettings) -> None:
        """Raises UserError where the settings name something that does not exist, or the model has
        no force at its tip."""
        names = [each.name for each in context.model.parameters]
        if settings.tip_force and not estimates_tip_force(names):
            raise UserError(
                f"tip_force: {type(context.model).__name__} has no force at its tip; allowed with "
                "the model rod on the processor"
            )
        self._context, self._use_orientation = context, settings.use_orientation
        self._filter = ModelEstimator(
            context.model, _settings_for(context, settings), context.period
        )
        self.kind = self._filter.kind
        outputs = context.model.outputs
        self._search: TipForceSearch | None = None
        if estimates_tip_force(self._filter.estimated):
            self._search = TipForceSearch(self._filter, settings.tip_force_threshold)
        self._poses = {name for name, info in outputs.items() if info.kind == "pose"}
        self.reset()
        markers = [each for each in self._filter.estimated if each.startswith("marker_offset")]
        if markers and not settings.use_tip_pose:
            raise UserError(
                f"use_tip_pose = False with {', '.join(markers)}: no other sensor tells where the "
                "marker is; leave marker_offset out of the robot's pressure_chain"
            )

    def prepared(self, settings: ModelEstimatorSettings) -> Callable[[], None]:
        """What makes it go on with other noises; the estimate stays."""
        retune = self._filter.prepared(_settings_for(self._context, settings))

        def use() -> None:
            retune()
            if self._search is not None:
                self._search.threshold = settings.tip_force_threshold
            self._use_orientation = settings.use_orientation

        return use

    @property
    def positions_suffice(self) -> bool:
        """Whether (3,) positions do in the place of (4, 4) poses: how they are turned is not
        used."""
        return not self._use_orientation

    def reset(self) -> None:
        """Begin anew with the next sample."""
        self._last: ModelEstimate | None = None
        self.repairs = self.gated = self._updates = self._opened = 0
        self._bounds_met: set[str] = set()

    def update(
        self, inputs: np.ndarray, measurements: Mapping[str, np.ndarray], stamp: float
    ) -> ModelEstimate:
        """See Estimator; the first sample after `reset` starts at rest under its inputs."""
        if self._last is None:
            self._last = self._filter.start(inputs, stamp)
            if self._search is not None:
                self._search.begin(stamp)
            return self._last
        if not self._use_orientation:
            measurements = {
                name: sample[:3, 3] if name in self._poses and sample.ndim == 2 else sample
                for name, sample in measurements.items()
            }
        self._last = self._filter.update(inputs, measurements, stamp)
        self.repairs = self._last.repairs
        self.gated += self._last.gated
        self._updates += not self._last.predicted_only
        self._opened += self._last.is_opened
        self._bounds_met.update(self._last.at_bounds)
        if self._search is not None:
            self._search.take(self._last)
        return self._last

    def describe(self) -> dict[str, Any]:
        """Counts since `reset`, and what the last estimate says of its own innovations."""
        told: dict[str, Any] = {
            "initial_parameters": self._filter.initial,
            "filter": self.kind,
            "repairs": self.repairs,
            "gated": self.gated,
            "updates": self._updates,
            "opened": self._opened,
            "fallbacks": 0 if self._last is None else self._last.fallbacks,
            "bounds_met": sorted(self._bounds_met),
        }
        if self._last is not None:
            told |= {
                "opened_fast": self._last.opened_fast,
                "opened_slow": self._last.opened_slow,
                "innovation_correlation": self._last.innovation_correlation,
                "lasting_correlation": self._last.lasting_correlation,
            }
        return told if self._search is None else told | {"tip_forces": self._search.found}

    def warnings(self) -> list[str]:
        """Signs that the model does not fit the robot."""
        return [] if self._last is None else self._last.warnings()


def _usual_deviation(robot: Any) -> float:
    """Of the state at the start, in its scale [-].

    The nodes of rods with several segments or with tendons are light and their intervals short:
    with 0.5 some sigma points have neighbours that move against each other at metres per second,
    and a step of 7 ms diverges. The filter repairs such points, but begins worse.
    """
    is_usual = not isinstance(robot, Robot) or (len(robot.segments) == 1 and not robot.tendons)
    return 0.5 if is_usual else 0.1


def _settings_for(
    context: EstimationContext, settings: ModelEstimatorSettings
) -> ModelEstimatorSettings:
    """The settings with what follows from robot and model."""
    parameters = settings.parameters
    estimates_force = estimates_tip_force([each.name for each in context.model.parameters])
    if parameters != (EVERYTHING,) and estimates_force:
        parameters = (*(name for name in parameters if name not in TIP_FORCE), *TIP_FORCE)
    of_file = getattr(context.robot, "output_noises", {})
    noises = noises_of_outputs(settings, context.model.outputs, of_file)
    return settings.model_copy(
        update={
            "measurement_noises": noises | dict(settings.measurement_noises),
            "parameters": parameters,
            "initial_state_deviation": settings.initial_state_deviation
            or _usual_deviation(context.robot),
            "reopening": settings.reopening and not settings.tip_force,
        }
    )

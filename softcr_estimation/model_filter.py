"""The house's estimator: an unscented or extended Kalman filter on a model."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from softcr_estimation.context import EstimationContext
from softcr_estimation.estimator_settings import ModelEstimatorSettings
from softcr_estimation.filters.filters import Kind
from softcr_estimation.model_estimator import ModelEstimate, ModelEstimator
from softcr_estimation.tip_force import TipForceSearch, estimates_tip_force
from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import TENDON_LENGTHS
from softcr_models.rod_model.tip_force import TIP_FORCE

EVERYTHING = "everything"
"""In `parameters`: all of the model's, and of its inputs' sensors what pressures have."""


_LIVE: JsonDict = {"live": True}


class ModelFilterSettings(BaseModel):
    """Which filter, and what it finds beside the state."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    filter: Literal["auto", Kind] = Field(
        "auto",
        description="unscented or extended Kalman filter; auto: ekf for a robot with a "
        "pressure_chain, otherwise ukf",
    )
    parameters: tuple[str, ...] = Field(
        (EVERYTHING,),
        description="what is estimated besides the state: names of the model's parameters, "
        "pressure_offset_1 ..., pressure_offsets, pressure_gains; everything: all there "
        "are",
    )
    begins_with: str = Field(
        "",
        description="initial values of estimated parameters, in their units and separated by "
        "commas, such as bending_compliance=49.9,tip_mass=0.07; not named: those of the robot file",
    )
    use_orientation: bool = Field(
        False, description="whether the tip's orientation is also used", json_schema_extra=_LIVE
    )
    use_tip_pose: bool = Field(
        True,
        description="whether the tip's pose is a measurement; without it another sensor must say "
        "where the robot is",
    )
    use_body_poses: bool = Field(
        True,
        description="whether the poses of the robot file's sensors along the body are measurements",
    )
    use_tendon_lengths: bool = Field(
        True,
        description="whether the lengths of tendons are measurements, if the robot file has the "
        "sensor",
    )
    use_base_wrench: bool = Field(
        False, description="whether the force-torque sensor below the base is a measurement"
    )
    tip_force: bool = Field(
        False, description="whether a force at the tip is estimated; with the model rod"
    )
    state_noise: float = Field(
        ModelEstimatorSettings().state_noise,
        gt=0.0,
        le=10.0,
        description="random walk of every state, relative to its scale; for rods of five "
        "intervals: coarser ones leave larger errors",
        json_schema_extra={"unit": "1/sqrt(s)", **_LIVE},
    )
    initial_state_deviation: float = Field(
        0.0,
        ge=0.0,
        le=10.0,
        description="initial standard deviation around the shape at rest, relative to the state's "
        "scale; 0: 0.5, or 0.1 for rods of several segments or with tendons",
    )
    parameter_noise_factor: float = Field(
        1.0,
        ge=0.0,
        le=100.0,
        description="factor on the random walks of all estimated parameters; 0: they are constant",
        json_schema_extra=_LIVE,
    )
    position_noise: float = Field(
        2e-4,
        gt=0.0,
        le=0.1,
        description="standard deviation of measured positions",
        json_schema_extra={"unit": "m", **_LIVE},
    )
    rotation_noise: float = Field(
        5e-3,
        gt=0.0,
        le=1.0,
        description="standard deviation of measured rotations",
        json_schema_extra={"unit": "rad", **_LIVE},
    )
    tendon_length_noise: float = Field(
        2e-4,
        gt=0.0,
        le=0.1,
        description="standard deviation of measured lengths of tendons",
        json_schema_extra={"unit": "m", **_LIVE},
    )
    wrench_force_noise: float = Field(
        0.02,
        gt=0.0,
        le=10.0,
        description="standard deviation of forces measured below the base",
        json_schema_extra={"unit": "N", **_LIVE},
    )
    wrench_moment_noise: float = Field(
        1e-3,
        gt=0.0,
        le=1.0,
        description="standard deviation of moments measured below the base",
        json_schema_extra={"unit": "N m", **_LIVE},
    )
    gate_probability: float = Field(
        0.9999,
        gt=0.5,
        lt=1.0,
        description="chi-square quantile beyond which innovations have less weight",
        json_schema_extra=_LIVE,
    )
    reopening: bool = Field(
        True,
        description="whether parameters walk faster while the innovations are coloured, that is, "
        "while the filter is wrong; not if a force at the tip is estimated",
        json_schema_extra=_LIVE,
    )
    tip_force_threshold: float = Field(
        12.0,
        ge=3.0,
        le=1000.0,
        description="sum of the innovations at which a force at the tip is assumed; a larger one "
        "is slower and less often wrong",
        json_schema_extra=_LIVE,
    )


class ModelFilter:
    """Finds state and parameters of the context's model from what is measured of its outputs.

    Attributes:
        kind: which filter it is.
    """

    Settings = ModelFilterSettings

    def __init__(self, context: EstimationContext, settings: ModelFilterSettings) -> None:
        """Raises UserError where `parameters` names something that does not exist, or the model
        has no force at its tip."""
        names = [each.name for each in context.model.parameters]
        if settings.tip_force and not estimates_tip_force(names):
            raise UserError(
                f"tip_force: {type(context.model).__name__} has no force at its tip; allowed with "
                "the model rod on the processor"
            )
        numbers = _numbers_of(context, settings)
        self._use(
            context, numbers, settings.use_orientation, settings.parameter_noise_factor,
            settings.tip_force_threshold,
        )  # fmt: skip
        markers = [each for each in self._filter.estimated if each.startswith("marker_offset")]
        if markers and not settings.use_tip_pose:
            raise UserError(
                f"use_tip_pose = False with {', '.join(markers)}: no other sensor tells where the "
                "marker is; leave marker_offset out of the robot's pressure_chain"
            )

    @classmethod
    def of(cls, context: EstimationContext, numbers: ModelEstimatorSettings) -> "ModelFilter":
        """With other numbers than the shipped ones; raises as `__init__`."""
        made = cls.__new__(cls)
        made._use(context, numbers.model_copy(update={"period": context.period}), False)
        return made

    def _use(
        self,
        context: EstimationContext,
        numbers: ModelEstimatorSettings,
        use_orientation: bool,
        parameter_noise_factor: float = 1.0,
        tip_force_threshold: float = 0.0,
    ) -> None:
        self._context = context
        self._use_orientation = use_orientation
        self._filter = ModelEstimator(context.model, numbers, parameter_noise_factor)
        self.kind = self._filter.kind
        outputs = context.model.outputs
        self._search: TipForceSearch | None = None
        if tip_force_threshold and estimates_tip_force(self._filter.estimated):
            self._search = TipForceSearch(self._filter, tip_force_threshold)
        self._poses = {name for name, info in outputs.items() if info.kind == "pose"}
        self.reset()

    def prepared(self, settings: ModelFilterSettings) -> Callable[[], None]:
        """What makes it go on with other noises; the estimate stays."""
        numbers = _numbers_of(self._context, settings)
        retune = self._filter.prepared(numbers, settings.parameter_noise_factor)

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


def _values_of(told: str) -> dict[str, float]:
    """Name -> number of name=number,...; raises UserError where it is not that."""
    found: dict[str, float] = {}
    for text in told.split(",") if told else ():
        name, _, number = text.strip().partition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or name in found:
            raise UserError(
                f"begins_with: {text!r} is not allowed: must be name=number,name=number,..., each "
                "name once"
            )
        found[name] = value
    return found


def _usual_deviation(robot: Any) -> float:
    """Of the state at the start, in its scale [-].

    The nodes of rods with several segments or with tendons are light and their intervals short:
    with 0.5 some sigma points have neighbours that move against each other at metres per second,
    and a step of 7 ms diverges. The filter repairs such points, but begins worse.
    """
    is_usual = not isinstance(robot, Robot) or (len(robot.segments) == 1 and not robot.tendons)
    return 0.5 if is_usual else 0.1


def _numbers_of(
    context: EstimationContext, settings: ModelFilterSettings
) -> ModelEstimatorSettings:
    model = context.model
    deviation = settings.initial_state_deviation or _usual_deviation(context.robot)
    poses = settings.position_noise, settings.rotation_noise
    wrenches = settings.wrench_force_noise, settings.wrench_moment_noise
    noises = {"pose": poses, "wrench": wrenches}
    parameters = None if settings.parameters == (EVERYTHING,) else settings.parameters
    if parameters is not None and estimates_tip_force([each.name for each in model.parameters]):
        parameters = (*(name for name in parameters if name not in TIP_FORCE), *TIP_FORCE)
    measured: dict[str, tuple[float, ...]] = {
        name: noises[info.kind] for name, info in model.outputs.items() if info.kind in noises
    }
    if TENDON_LENGTHS in model.outputs:
        measured[TENDON_LENGTHS] = (settings.tendon_length_noise,)
    return ModelEstimatorSettings(
        filter=settings.filter,
        parameters=parameters,
        begins_with=_values_of(settings.begins_with),
        period=context.period,
        state_noise=settings.state_noise,
        initial_state_deviation=deviation,
        measurement_noises=measured,
        gate_probability=settings.gate_probability,
        reopening=settings.reopening and not settings.tip_force,
    )

"""The settings of every filter, and of the house's estimator over any model."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from softcr_models.errors import UserError
from softcr_models.files.number_types import number_in

Kind = Literal["ukf", "ekf"]

_Positive = Annotated[float, Field(gt=0.0)]
_NonNegative = Annotated[float, Field(ge=0.0)]

ALL_OFFSETS, ALL_GAINS = "pressure_offsets", "pressure_gains"
"""In `parameters`: an offset, a gain for each chamber's sensor."""

EVERYTHING = "everything"
"""In `parameters`: all of the model's, and of its inputs' sensors what pressures have."""

_LIVE: dict[str, Any] = {"live": True}
_HIDDEN: dict[str, Any] = {"hidden": True}


class FilterSettings(BaseModel):
    """Numbers of every estimator."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    filter: Literal["auto", Kind] = Field(
        default="auto",
        description="unscented or extended Kalman filter; auto: the one that suits the model, ekf "
        "for a robot with a pressure_chain and otherwise ukf",
    )
    longest_gap: float = Field(
        default=2.0,
        gt=0.0,
        le=60.0,
        description="longest time bridged without a restart",
        json_schema_extra={"unit": "s"},
    )
    gate_probability: float = Field(
        default=0.9999,
        gt=0.5,
        lt=1.0,
        description="chi-square quantile beyond which innovations have less weight",
        json_schema_extra={"live": True},
    )
    alpha: float = Field(
        default=1.0, gt=0.0, le=10.0, description="spread of the sigma points of a ukf"
    )
    beta: float = Field(
        default=0.0, ge=0.0, le=10.0, description="weight of the central point of a ukf"
    )
    kappa: float = Field(default=0.0, ge=0.0, le=100.0, description="second spread of a ukf")


class ModelEstimatorSettings(FilterSettings):
    """Numbers of a ModelEstimator, and options of the node that runs it.

    Noises are standard deviations of random walks: over dt seconds a walk adds noise^2 dt to the
    variance. States are measured in `model.state.scale`. Numbers of a parameter count relative to
    its value where its transform is "log", and in its own unit where it is "linear".

    The mappings hold what differs from the defaults; what they leave out keeps its default.

    The defaults were tuned for the rod of five intervals at 70 Hz on plants of ten and twenty, with
    5 % less compliance, 10 % more tip mass and 0.2 mm noise. The compliance alone would take up the
    error in the tip mass (2 to 4 % at 0.5 to 1.5 Hz), so mass, damping and the pressure sensors'
    offsets and gains are estimated with it; offsets and gains have a narrow start, because a rod
    that rests does not tell them from the compliance. A moving one does: a gain 5 % off, sixteen
    times that, costs 1.2 mm in the first second and nothing from the third on.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    parameters: tuple[str, ...] = Field(
        default=(EVERYTHING,),
        description="what is estimated besides the state: names of the model's parameters, "
        "pressure_offset_1 ..., pressure_offsets, pressure_gains; everything: all there "
        "are",
    )
    begins_with: str = Field(
        default="",
        description="initial values of estimated parameters, in their units and separated by "
        "commas, such as bending_compliance=49.9,tip_mass=0.07; not named: those of the robot file",
    )
    use_orientation: bool = Field(
        default=False,
        description="whether the tip's orientation is also used",
        json_schema_extra=_LIVE,
    )
    use_tip_pose: bool = Field(
        default=True,
        description="whether the tip's pose is a measurement; without it another sensor must say "
        "where the robot is",
    )
    use_body_poses: bool = Field(
        default=True,
        description="whether the poses of the robot file's sensors along the body are measurements",
    )
    use_tendon_lengths: bool = Field(
        default=True,
        description="whether the lengths of tendons are measurements, if the robot file has the "
        "sensor",
    )
    use_base_wrench: bool = Field(
        default=False, description="whether the force-torque sensor below the base is a measurement"
    )
    tip_force: bool = Field(
        default=False, description="whether a force at the tip is estimated; with the model rod"
    )
    state_noise: float = Field(
        default=0.007,
        gt=0.0,
        le=10.0,
        description="random walk of every state, relative to its scale; for rods of five "
        "intervals: coarser ones leave larger errors",
        json_schema_extra={"unit": "1/sqrt(s)", **_LIVE},
    )
    state_noises: Mapping[str, _NonNegative] = Field(
        default={}, description="random walk by group of the model's state, relative to its scale"
    )
    initial_state_deviation: float = Field(
        default=0.0,
        ge=0.0,
        le=10.0,
        description="initial standard deviation around the shape at rest, relative to the state's "
        "scale; 0: 0.5, or 0.1 for rods of several segments or with tendons",
    )
    state_deviations: Mapping[str, _Positive] = Field(
        default={},
        description="initial standard deviation by group of the model's state, relative to its "
        "scale",
    )
    parameter_noise_factor: float = Field(
        default=1.0,
        ge=0.0,
        le=100.0,
        description="factor on the random walks of all estimated parameters; 0: they are constant",
        json_schema_extra=_LIVE,
    )
    noises: Mapping[str, _NonNegative] = Field(
        default={},
        description="random walks by parameter [1/sqrt(s)] or, linear, [unit/sqrt(s)]; not named: "
        "what the model says",
    )
    deviations: Mapping[str, _Positive] = Field(
        default={},
        description="initial standard deviation by parameter [-] or, linear, [unit]; not named: "
        "what the model says",
    )
    parameter_range: Annotated[float, Field(gt=1.0, le=10.0)] | None = Field(
        default=None,
        description="logarithmic parameters stay within nominal / range and nominal * range [-]; "
        "none: the model's bounds, and 2 for gains",
        json_schema_extra=_HIDDEN,
    )
    offset_limit: _Positive | None = Field(
        default=None,
        description="largest estimated offset of an input [its unit]; none: 20 kPa of a pressure, "
        "a fifth of the range of others",
        json_schema_extra=_HIDDEN,
    )
    position_noise: float = Field(
        default=0.0,
        ge=0.0,
        le=0.1,
        description="standard deviation of measured positions; 0: that of each sensor in the robot "
        "file, and 2e-4 where it says 0",
        json_schema_extra={"unit": "m", **_LIVE},
    )
    rotation_noise: float = Field(
        default=5e-3,
        gt=0.0,
        le=1.0,
        description="standard deviation of measured rotations",
        json_schema_extra={"unit": "rad", **_LIVE},
    )
    tendon_length_noise: float = Field(
        default=0.0,
        ge=0.0,
        le=0.1,
        description="standard deviation of measured lengths of tendons; 0: that of the robot file, "
        "and 2e-4 where it says 0",
        json_schema_extra={"unit": "m", **_LIVE},
    )
    wrench_force_noise: float = Field(
        default=0.0,
        ge=0.0,
        le=10.0,
        description="standard deviation of forces measured below the base; 0: that of the robot "
        "file, and 0.02 where it says 0",
        json_schema_extra={"unit": "N", **_LIVE},
    )
    wrench_moment_noise: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="standard deviation of moments measured below the base; 0: that of the robot "
        "file, and 1e-3 where it says 0",
        json_schema_extra={"unit": "N m", **_LIVE},
    )
    measurement_noises: Mapping[str, _Positive | tuple[_Positive, ...]] = Field(
        default={},
        description="standard deviation by output [its unit], for a pose of position [m] and "
        "rotation [rad], for a wrench of force [N] and moment [N m]; not named: that of its kind",
    )
    reopening: bool = Field(
        default=True,
        description="whether parameters walk faster while the innovations are coloured, that is, "
        "while the filter is wrong; not if a force at the tip is estimated",
        json_schema_extra=_LIVE,
    )
    opening_factor: float = Field(
        default=1.0, ge=0.0, le=100.0, description="factor on how fast parameters then walk"
    )
    openings: Mapping[str, _NonNegative] = Field(
        default={},
        description="random walks while the innovations are coloured, by parameter [1/sqrt(s)] or, "
        "linear, [scale/sqrt(s)]; not named: what the model says",
    )
    tip_offset_time: float = Field(
        default=0.3,
        gt=0.0,
        description="time constant with which the lasting difference between the measured tip and "
        "the model's is followed; controllers lead the tip beside it to the goal",
        json_schema_extra={"unit": "s", **_LIVE},
    )
    tip_force_threshold: float = Field(
        default=12.0,
        ge=3.0,
        le=1000.0,
        description="sum of the innovations at which a force at the tip is assumed; a larger one "
        "is slower and less often wrong",
        json_schema_extra=_LIVE,
    )

    @property
    def initial_values(self) -> dict[str, float]:
        """Name -> value [its unit] of what `begins_with` says; raises UserError where it is not
        name=number,name=number,..., each name once."""
        found: dict[str, float] = {}
        for text in self.begins_with.split(",") if self.begins_with else ():
            name, _, number = text.strip().partition("=")
            try:
                value = number_in(number)
            except ValueError:
                value = math.nan
            if not math.isfinite(value) or name in found:
                raise UserError(
                    f"begins_with: {text!r} is not allowed: must be name=number,name=number,..., "
                    "each name once"
                )
            found[name] = value
        return found


def in_words(values: Mapping[str, float]) -> str:
    """Values by name as `begins_with` has them."""
    return ",".join(f"{name}={value!r}" for name, value in values.items())

"""Numbers of a filter over any model, and of the filter over a rod."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from softcr_estimation.filters.filters import FilterSettings
from softcr_models.model import TIP

_Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
_NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
_Range = Annotated[float, Field(gt=1.0, le=10.0)]

ALL_OFFSETS, ALL_GAINS = "pressure_offsets", "pressure_gains"
"""In `EstimatorSettings.parameters`: an offset, a gain for each chamber's sensor."""


class ModelEstimatorSettings(FilterSettings):
    """Numbers of a ModelEstimator.

    Noises are standard deviations of random walks: over dt seconds a walk adds noise^2 dt to the
    variance. States are measured in `model.state.scale`. Numbers of a parameter count relative to
    its value where its transform is "log", and in its own unit where it is "linear".

    The mappings hold what differs from the defaults; what they leave out keeps its default.
    """

    parameters: tuple[str, ...] | None = Field(
        default=None,
        description="estimated parameters: names of the model's, QUANTITY_offset_1 to _m, "
        "QUANTITY_gain_1 to _m of the inputs' sensors; QUANTITY_offsets or QUANTITY_gains for all "
        "of these; none: all of the model's, and offsets and gains where inputs are pressures",
    )
    period: _Positive = Field(
        default=1 / 70, description="length of a tick; longer gaps take several steps [s]"
    )

    reopening: bool = Field(
        default=True,
        description="whether parameters walk faster while the innovations are coloured, that is, "
        "while the filter is wrong",
    )
    opening_factor: _NonNegative = Field(
        default=1.0, description="factor on how fast they then walk [-]"
    )

    openings: Mapping[str, _NonNegative] = Field(
        default={},
        description="random walks while the innovations are coloured, by parameter [1/sqrt(s)] or, "
        "linear, [scale/sqrt(s)]; not named: what the model says",
    )

    state_noise: _Positive = Field(
        default=0.007,
        description="process noise of states that have none of their own [state scale/sqrt(s)]",
    )
    state_noises: Mapping[str, _NonNegative] = Field(
        default={}, description="process noise by group of the model's state [state scale/sqrt(s)]"
    )
    noises: Mapping[str, _NonNegative] = Field(
        default={},
        description="random walks by parameter [1/sqrt(s)] or, linear, [unit/sqrt(s)]; not named: "
        "what the model says",
    )
    measurement_noises: Mapping[str, _Positive | tuple[_Positive, ...]] = Field(
        default={},
        description="standard deviation by output [its unit]; for a pose: position [m], rotation "
        "[rad]; for a wrench: force [N], moment [N m]",
    )

    initial_state_deviation: _Positive = Field(
        default=0.5, description="initial standard deviation around the static shape [state scale]"
    )
    state_deviations: Mapping[str, _Positive] = Field(
        default={},
        description="initial standard deviation by group of the model's state [state scale]",
    )
    deviations: Mapping[str, _Positive] = Field(
        default={},
        description="initial standard deviation by parameter [-] or, linear, [unit]; not named: "
        "what the model says",
    )

    begins_with: Mapping[str, float] = Field(
        default={},
        description="initial values of estimated parameters by name [unit]; not named: those of "
        "the model",
    )

    parameter_range: _Range | None = Field(
        default=None,
        description="logarithmic parameters stay within nominal / range and nominal * range [-]; "
        "none: the model's bounds, and 2 for gains",
    )
    offset_limit: _Positive | None = Field(
        default=None,
        description="largest estimated offset of an input [its unit]; none: 20 kPa of a pressure, "
        "a fifth of the range of others",
    )

    def general(self) -> "ModelEstimatorSettings":
        """The same settings with every number under the name that any model has for it."""
        return self


class EstimatorSettings(ModelEstimatorSettings):
    """Numbers of a RodEstimator; the noises and deviations of a rod have names of their own here.

    The defaults were tuned for the rod of five intervals at 70 Hz on plants of ten and twenty, with
    5 % less compliance, 10 % more tip mass and 0.2 mm noise. The compliance alone would take up the
    error in the tip mass (2 to 4 % at 0.5 to 1.5 Hz), so mass, damping and the pressure sensors'
    offsets and gains are estimated with it; offsets and gains have a narrow start, because a rod
    that rests does not tell them from the compliance. A moving one does: a gain 5 % off, sixteen
    times that, costs 1.2 mm in the first second and nothing from the third on.

    Behind a pressure chain the gains' start is wide, because a wrong lever arm is such a gain.

    A name of its own and the mapping's entry mean the same number; given both, the entry counts.
    """

    parameters: tuple[str, ...] = Field(
        default=("bending_compliance", "tip_mass", "damping_factor", ALL_OFFSETS, ALL_GAINS),
        description="estimated parameters: names of the prediction's, pressure_offset_1 to _m, "
        "pressure_gain_1 to _m; pressure_offsets or pressure_gains for all of these",
    )
    velocity_noise: _Positive | None = Field(
        default=None,
        description="process noise of linear velocities; none: state_noise [state scale/sqrt(s)]",
    )
    angular_velocity_noise: _Positive | None = Field(
        default=None, description="process noise of angular velocities, likewise"
    )
    force_noise: _Positive | None = Field(
        default=None, description="process noise of shear forces, likewise"
    )
    force_z_noise: _Positive | None = Field(
        default=None, description="process noise of axial forces, likewise"
    )
    torque_noise: _Positive | None = Field(
        default=None, description="process noise of moments, likewise"
    )
    bending_compliance_noise: _NonNegative = Field(
        default=5e-4, description="random walk [1/sqrt(s)]"
    )
    tip_mass_noise: _NonNegative = Field(default=5e-4, description="random walk [1/sqrt(s)]")
    damping_factor_noise: _NonNegative = Field(default=5e-4, description="random walk [1/sqrt(s)]")
    pressure_offset_noise: _NonNegative = Field(default=1.0, description="random walk [Pa/sqrt(s)]")
    pressure_gain_noise: _NonNegative = Field(default=2e-4, description="random walk [1/sqrt(s)]")
    tip_position_noise: _Positive = Field(
        default=2e-4, description="standard deviation of each measured coordinate [m]"
    )
    tip_rotation_noise: _Positive = Field(
        default=5e-3, description="standard deviation of each measured rotation angle [rad]"
    )
    bending_compliance_deviation: _Positive = Field(
        default=0.08, description="initial standard deviation [-]"
    )
    tip_mass_deviation: _Positive = Field(default=0.1, description="initial standard deviation [-]")
    damping_factor_deviation: _Positive = Field(
        default=0.05, description="initial standard deviation [-]"
    )
    pressure_offset_deviation: _Positive = Field(
        default=100.0, description="initial standard deviation [Pa]"
    )
    pressure_gain_deviation: _Positive = Field(
        default=0.003,
        description="initial standard deviation [-]; not given: what the model's inputs say",
    )
    pressure_offset_limit: _Positive = Field(
        default=2e4, description="largest estimated offset [Pa]"
    )

    def general(self) -> ModelEstimatorSettings:
        """The settings of any model; unset parameters are left out.

        Not every model has them, and where a rod has one, its own default is the same.
        """
        shared = self.model_dump(include=set(ModelEstimatorSettings.model_fields))
        shared["state_noises"] = self._given(_STATE_GROUPS, "noise") | dict(self.state_noises)
        shared["noises"] = self._given(_PARAMETERS, "noise") | dict(self.noises)
        shared["deviations"] = self._given(_PARAMETERS, "deviation") | dict(self.deviations)
        tip = {TIP: (self.tip_position_noise, self.tip_rotation_noise)}
        shared["measurement_noises"] = tip | dict(self.measurement_noises)
        if shared["offset_limit"] is None:
            shared["offset_limit"] = self.pressure_offset_limit
        return ModelEstimatorSettings(**shared)

    def _given(self, names: Iterable[tuple[str, str]], kind: str) -> dict[str, Any]:
        """Name of the mapping -> number, of what was given by the rod's name and is not None."""
        fields = ((name, f"{prefix}_{kind}") for name, prefix in names)
        chosen = ((name, getattr(self, f)) for name, f in fields if f in self.model_fields_set)
        return {name: number for name, number in chosen if number is not None}


_STATE_GROUPS = tuple(
    (name, name) for name in ("velocity", "angular_velocity", "force", "force_z", "torque")
)
_PARAMETERS = (
    *((name, name) for name in ("bending_compliance", "tip_mass", "damping_factor")),
    (ALL_OFFSETS, "pressure_offset"),
    (ALL_GAINS, "pressure_gain"),
)

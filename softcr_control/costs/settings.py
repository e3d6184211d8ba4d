"""Which cost terms a controller uses, and how much each counts."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from softcr_control.costs.input_rate import InputRate
from softcr_control.costs.rollout import CostTerm
from softcr_control.costs.state_error import StateError
from softcr_control.costs.tip_orientation import TipOrientation
from softcr_control.costs.tip_position import TipPosition
from softcr_models.prediction import PredictionModel
from softcr_models.state_groups import by_group

Weight = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class CostSettings(BaseModel):
    """Weights; a term of weight 0 is left out. Defaults are those of config/controllers/nempc.yaml.

    The state weights are Q of Table VII: on normalised states, shared by all nodes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    velocity: Weight = Field(default=0.0, description="weight of linear velocities, q_velo")
    angular_velocity: Weight = Field(
        default=0.0, description="weight of angular velocities, q_angvel"
    )
    force: Weight = Field(default=0.0, description="weight of shear forces, q_force")
    force_z: Weight = Field(default=0.0, description="weight of axial forces, q_forceZ")
    torque: Weight = Field(default=0.0, description="weight of moments, q_torque")
    tip_position: Weight = Field(
        default=1e4, description="weight of the tip's distance squared [1/m^2]"
    )
    tip_orientation: Weight = Field(
        default=0.0, description="weight of the tip's angle squared [1/rad^2]"
    )
    input_rate: Weight = Field(
        default=0.5, description="weight of changes of command / pressure range, R"
    )

    def terms(self, prediction: PredictionModel, input_range: float) -> tuple[CostTerm, ...]:
        """The terms that count, for a rod's prediction and an input range [Pa]."""
        weights = by_group(
            prediction.state_size,
            self.velocity,
            self.angular_velocity,
            self.force,
            self.force_z,
            self.torque,
        )
        terms: list[CostTerm] = []
        if weights.any():
            terms.append(StateError(weights, prediction.state_scale))
        if self.tip_position:
            terms.append(TipPosition(self.tip_position))
        if self.tip_orientation:
            terms.append(TipOrientation(self.tip_orientation))
        if self.input_rate:
            terms.append(InputRate(self.input_rate, input_range))
        return tuple(terms)

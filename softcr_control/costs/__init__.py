"""Terms of the cost (39a), one class per file."""

from softcr_control.costs.input_rate import InputRate
from softcr_control.costs.rollout import CostTerm, Rollout
from softcr_control.costs.settings import CostSettings
from softcr_control.costs.state_error import StateError
from softcr_control.costs.tip_orientation import TipOrientation
from softcr_control.costs.tip_position import TipPosition

__all__ = [
    "CostSettings",
    "CostTerm",
    "InputRate",
    "Rollout",
    "StateError",
    "TipOrientation",
    "TipPosition",
]

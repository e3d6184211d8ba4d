"""Terms of the cost (39a), one class per file."""

from softcr_control.costs.input_rate import InputRate
from softcr_control.costs.output_error import OutputError
from softcr_control.costs.rollout import Rollout
from softcr_control.costs.settings import CostSettings
from softcr_control.costs.state_error import StateError
from softcr_control.costs.term import CostTerm
from softcr_control.costs.tip_orientation import TipOrientation
from softcr_control.costs.tip_position import TipPosition

__all__ = [
    "CostSettings",
    "CostTerm",
    "InputRate",
    "OutputError",
    "Rollout",
    "StateError",
    "TipOrientation",
    "TipPosition",
]

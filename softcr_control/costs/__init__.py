"""Terms of the cost (39a), one class per file."""

from softcr_control.costs.input_level import InputLevel
from softcr_control.costs.input_rate import InputRate
from softcr_control.costs.keep_away import KeepAway
from softcr_control.costs.output_error import OutputError
from softcr_control.costs.rollout import Rollout
from softcr_control.costs.settings import CostSettings
from softcr_control.costs.state_error import StateError
from softcr_control.costs.term import CostTerm
from softcr_control.costs.tip_direction import TipDirection
from softcr_control.costs.tip_orientation import TipOrientation
from softcr_control.costs.tip_position import TipPosition

__all__ = [
    "CostSettings",
    "CostTerm",
    "InputLevel",
    "InputRate",
    "KeepAway",
    "OutputError",
    "Rollout",
    "StateError",
    "TipDirection",
    "TipOrientation",
    "TipPosition",
]

"""A-PCC: inverse kinematics of a constant-curvature arm that adapts its section lengths.

The controller of L. R. Dalenberg, MSc thesis, TU Delft.
"""

from softcr_control.apcc.calibration import ZeroState, zero_state
from softcr_control.apcc.controller import Apcc, ApccCommand
from softcr_control.apcc.inference import Inference, InferenceSettings, infer
from softcr_control.apcc.settings import ApccSettings

__all__ = [
    "Apcc",
    "ApccCommand",
    "ApccSettings",
    "Inference",
    "InferenceSettings",
    "ZeroState",
    "infer",
    "zero_state",
]

"""A-PCC: inverse kinematics of a constant-curvature arm that adapts its section lengths.

The controller of L. R. Dalenberg, MSc thesis, TU Delft.
"""

from softcr_papers.dalenberg2024.apcc.calibration import ZeroState, zero_state
from softcr_papers.dalenberg2024.apcc.controller import Apcc, ApccCommand
from softcr_papers.dalenberg2024.apcc.inference import Inference, InferenceSettings, infer
from softcr_papers.dalenberg2024.apcc.settings import ApccSettings

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

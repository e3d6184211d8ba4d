"""Where the tip is beside where the model has it, as estimators tell it among parameters.

What a model lacks keeps its tip off the measured one however well the rest is estimated. This
difference is an output disturbance: a controller that leads the model's tip to the goal minus it
leads the robot's to the goal (Pannocchia and Rawlings, AIChE Journal 49, 2003, pp. 426-437).
"""

from collections.abc import Mapping

import numpy as np

TIP_OFFSET = ("tip_offset_x", "tip_offset_y", "tip_offset_z")
"""Names of its components in the base frame [m]."""


def tip_offset(parameters: Mapping[str, float]) -> np.ndarray:
    """(3,) of estimated numbers by name [m]; zeros where they do not tell it."""
    return np.array([parameters.get(name, 0.0) for name in TIP_OFFSET])

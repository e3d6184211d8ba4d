"""What a step is worth, Pawlowski (2019), (4.40)."""

import numpy as np

BETA = 0.3
"""Distance beyond which all is equally bad, as a part of the robot's length [-]."""


def tip_reward(distances: np.ndarray, length: float, beta: float = BETA) -> np.ndarray:
    """(B,) of distances (B,) between tip and goal [m]: -distance / (beta L), at least -1.

    Args:
        distances: [m].
        length: L of the robot [m].
        beta: from above 0 to 1 [-].
    """
    reward: np.ndarray = np.maximum(-distances / (beta * length), -1.0)
    return reward

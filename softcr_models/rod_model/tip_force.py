"""The force at a rod's tip as it is estimated: its names, and when it counts as known."""

from collections.abc import Mapping

import numpy as np

TIP_FORCE = ("tip_force_x", "tip_force_y", "tip_force_z")
"""Names of its components among a model's parameters [N], in the base frame."""

CERTAIN = 3.0
"""A force is told where its magnitude exceeds so many standard deviations along it [-]."""


def known_tip_force(
    parameters: Mapping[str, float], deviations: Mapping[str, float]
) -> np.ndarray | None:
    """(3,) estimated force on the tip [N], base frame; None where none is estimated or known.

    Args:
        parameters: estimates by name.
        deviations: their standard deviations by name; the components count as independent.
    """
    if not all(name in parameters and name in deviations for name in TIP_FORCE):
        return None
    force = np.array([parameters[name] for name in TIP_FORCE])
    magnitude = float(np.linalg.norm(force))
    if magnitude == 0.0:
        return None
    along = np.array([deviations[name] for name in TIP_FORCE]) * force / magnitude
    return force if magnitude > CERTAIN * float(np.linalg.norm(along)) else None

"""Angle between the predicted tip and the reference tip."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from softcr_control.costs.rollout import Rollout


@dataclass(frozen=True)
class TipOrientation:
    """weight * sum_k 2 (1 - cos angle(k)), which is weight * angle^2 for small angles.

    The angle is that of the rotation between predicted and wanted tip. Rows whose reference state
    is unknown (NaN) contribute nothing.

    Attributes:
        weight: [cost/rad^2].
    """

    weight: float
    name: ClassVar[str] = "tip_orientation"

    def __call__(self, rollout: Rollout) -> np.ndarray:
        known = rollout.reference_known
        error = rollout.tip_poses[:, known, :, :3] - rollout.wanted_tip_rotations[known]
        # |R - R_goal|_F^2 = 4 (1 - cos angle)
        return 0.5 * self.weight * np.einsum("bkij,bkij->b", error, error)

    def residuals(self, rollout: Any) -> Any:
        """(B, 9 N), zeros in rows that are unknown."""
        error = rollout.tip_poses[:, :, :, :3] - rollout.wanted_tip_rotations
        error = error * rollout.reference_known[:, None, None]
        return math.sqrt(0.5 * self.weight) * error.reshape(len(error), -1)

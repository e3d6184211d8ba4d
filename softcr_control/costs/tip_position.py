"""Distance of the predicted tip from the reference tip."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from softcr_control.costs.rollout import Rollout


@dataclass(frozen=True)
class TipPosition:
    """weight * sum_k |r_goal(k) - r(k)|^2.

    Unlike the state error it stays right when the bending compliance differs from the one the
    reference was computed with: elastic wrenches then no longer say where the tip is.

    Attributes:
        weight: [cost/m^2]; 1e4 makes 10 mm at one row cost 1.
    """

    weight: float
    name: ClassVar[str] = "tip_position"

    def __call__(self, rollout: Rollout) -> np.ndarray:
        error = rollout.tip_poses[:, :, :, 3] - rollout.reference_tip_positions
        return self.weight * np.einsum("bki,bki->b", error, error)

    def residuals(self, rollout: Any) -> Any:
        """(B, 3 N)."""
        error = rollout.tip_poses[:, :, :, 3] - rollout.reference_tip_positions
        return math.sqrt(self.weight) * error.reshape(len(error), -1)

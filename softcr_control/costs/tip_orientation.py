"""Angle between the predicted tip and the reference tip."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from softcr_control.costs.term import CostTerm
from softcr_models.model import TIP


@dataclass(frozen=True, eq=False)
class TipOrientation(CostTerm):
    """weight * sum_k 2 (1 - cos angle(k)), which is weight * angle^2 for small angles [cost/rad^2].

    The angle is that of the rotation between predicted and wanted tip. Rows whose wanted
    orientation is unknown contribute nothing.
    """

    name: ClassVar[str] = "tip_orientation"

    def errors(self, rollout: Any) -> Any:
        """(B, N, 3, 3) [-]; half of |R - R_goal|_F^2 is 2 (1 - cos angle)."""
        error = rollout.output(TIP)[:, :, :, :3] - rollout.wanted_tip_rotations
        return math.sqrt(0.5) * error * rollout.orientation_known[:, None, None]

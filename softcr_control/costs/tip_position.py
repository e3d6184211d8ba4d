"""Distance of the predicted tip from the reference tip."""

from dataclasses import dataclass
from typing import Any, ClassVar

from softcr_control.costs.term import CostTerm
from softcr_models.model import TIP


@dataclass(frozen=True, eq=False)
class TipPosition(CostTerm):
    """weight * sum_k |r_goal(k) - r(k)|^2, weight in [1/m^2]: 1e4 makes 10 mm at one row cost 1.

    Unlike the state error it stays right when the bending compliance differs from the one the
    reference was computed with: elastic wrenches then no longer say where the tip is.
    """

    name: ClassVar[str] = "tip_position"

    def errors(self, rollout: Any) -> Any:
        """(B, N, 3) [m]."""
        return rollout.output(TIP)[:, :, :, 3] - rollout.reference_tip_positions

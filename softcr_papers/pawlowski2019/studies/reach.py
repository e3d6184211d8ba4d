"""The cost of reaching a point once: far away it hardly matters how far."""

from dataclasses import dataclass
from typing import Any, ClassVar

from softcr_control.costs.term import CostTerm


@dataclass(frozen=True, eq=False)
class NearOnce(CostTerm):
    """weight * sum_k d(k)^2 / (d(k)^2 + scale^2) with d the distance of the tip from its reference.

    A sum of squared distances, the thesis's cost, never swings back to gather momentum: what that
    costs is more than what is gained at the end. Levine and Abbeel (2014) have a cost of this kind.

    Attributes:
        scale: of the distance that matters [m].
    """

    scale: float = 0.01
    name: ClassVar[str] = "near_once"

    def errors(self, rollout: Any) -> Any:
        """(B, N, 3) [-]."""
        error = rollout.output("tip")[:, :, :, 3] - rollout.reference_tip_positions
        square = (error * error).sum(axis=2)[:, :, None]
        return error / (square + self.scale**2) ** 0.5

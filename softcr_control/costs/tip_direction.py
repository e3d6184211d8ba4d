"""Angle between the axis of the predicted tip and the direction that the reference asks for."""

from dataclasses import dataclass
from typing import Any, ClassVar

from softcr_control.costs.rollout import tip_directions
from softcr_control.costs.term import CostTerm
from softcr_control.reference.references import Reference
from softcr_models.model import TIP


@dataclass(frozen=True, eq=False)
class TipDirection(CostTerm):
    """weight * sum_k 2 (1 - cos angle(k)), which is weight * angle^2 for small angles [cost/rad^2].

    The angle is that between the third axes of predicted and wanted tip. The turn about that axis
    is free: chambers and tendons can hardly choose it. Rows whose reference asks for no orientation
    contribute nothing; the orientation of a reference's state is not asked for.
    """

    name: ClassVar[str] = "tip_direction"

    def applies(self, reference: Reference) -> bool:
        return bool(tip_directions(reference).any())

    def errors(self, rollout: Any) -> Any:
        """(B, N, 3) [-]; |z - z_goal|^2 is 2 (1 - cos angle)."""
        error = rollout.output(TIP)[:, :, :, 2] - rollout.wanted_tip_directions
        return error * rollout.direction_asked[:, None]

"""A soft constraint: the whole body keeps its distance from obstacles."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from softcr_control.costs.term import CostTerm
from softcr_models.errors import UserError
from softcr_models.model import Model
from softcr_models.robots.obstacle_files import load_obstacles
from softcr_models.rod_model.clearance import Clearance


@dataclass(frozen=True, eq=False)
class KeepAway(CostTerm):
    """weight * sum over ticks, points of the body and obstacles of (what is missing to the
    clearance)^2 [cost/m^2]; nothing where all of the body is far enough.

    Attributes:
        clearance: of the model's rod.
    """

    clearance: Clearance
    name: ClassVar[str] = "keep_away"

    @classmethod
    def of(cls, model: Model, obstacles: str, clearance: float, weight: float) -> "KeepAway":
        """For a model.

        Args:
            model: a rod's.
            obstacles: name or path of their file.
            clearance: between the body's skin and theirs [m].
            weight: see CostTerm.

        Raises:
            UserError: the model has no body, or the file cannot be used.
        """
        rod = getattr(model, "rod", None)
        if rod is None:
            raise UserError(
                f"costs.obstacles: {obstacles!r} is not allowed: only the body of a rod can keep "
                "away from them"
            )
        return cls(weight, Clearance(rod, load_obstacles(obstacles).things, clearance))

    def errors(self, rollout: Any) -> Any:
        """(B, N, J, O) [m]; of a `Rollout` only."""
        states = rollout.states
        rows = states.reshape(math.prod(states.shape[:2]), -1)
        depths = self.clearance.depths(rows, rollout.parameters)
        return depths.reshape(*states.shape[:2], *depths.shape[1:])

"""Change of the command from tick to tick."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from softcr_control.costs.rollout import Rollout


@dataclass(frozen=True)
class InputRate:
    """weight * sum_k |(u(k) - u(k-1)) / input_range|^2 with u(-1) the command active before: (39a).

    Attributes:
        weight: the factor of R [cost]; 1 makes one full-range step of one chamber cost 1.
        input_range: highest minus lowest pressure [Pa].
    """

    weight: float
    input_range: float
    name: ClassVar[str] = "input_rate"

    def __call__(self, rollout: Rollout) -> np.ndarray:
        commands = rollout.commands
        first = commands[:, 0] - rollout.previous_command
        changes = commands[:, 1:] - commands[:, :-1]
        squares = np.einsum("bm,bm->b", first, first) + np.einsum("bkm,bkm->b", changes, changes)
        return self.weight / self.input_range**2 * squares

    def residuals(self, rollout: Any) -> Any:
        """(B, m N)."""
        path = rollout.command_path
        changes = (path[:, 1:] - path[:, :-1]).reshape(len(path), -1)
        return math.sqrt(self.weight) / self.input_range * changes

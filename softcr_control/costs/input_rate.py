"""Change of the command from tick to tick."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from softcr_control.costs.rollout import Rollout
from softcr_control.costs.term import CostTerm


@dataclass(frozen=True, eq=False)
class InputRate(CostTerm):
    """weight * sum_k |(u(k) - u(k-1)) / input_range|^2 with u(-1) the command active before: (39a).

    Each tick of delay beyond the first adds to the weight (ours): the state that the commands begin
    from is predicted over the delay, and commands that answer its errors make the loop swing.

    Attributes:
        weight: the factor of R [cost]; 1 makes one full-range step of one input cost 1.
        input_range: (m,) highest minus lowest value of each input [unit of the inputs].
        per_tick: added to the weight for each tick of delay beyond the first [cost].
    """

    input_range: np.ndarray
    per_tick: float = 0.0
    name: ClassVar[str] = "input_rate"

    def __call__(self, rollout: Rollout) -> np.ndarray:
        """See CostTerm; without the copy that `command_path` is."""
        largest, shares = self._largest, self._shares
        first = rollout.commands[:, 0] - rollout.previous_command
        changes = rollout.commands[:, 1:] - rollout.commands[:, :-1]
        if shares is not None:
            first, changes = shares * first, shares * changes
        squares = np.einsum("bm,bm->b", first, first) + np.einsum("bkm,bkm->b", changes, changes)
        costs: np.ndarray = self._weight(rollout) / largest**2 * squares
        return costs

    def residuals(self, rollout: Any) -> Any:
        """(B, m N)."""
        path = rollout.command_path
        changes = self._weight(rollout) ** 0.5 / self.input_range * (path[:, 1:] - path[:, :-1])
        return changes.reshape(len(path), -1)

    def _weight(self, rollout: Any) -> Any:
        return self.weight + self.per_tick * (rollout.delay - 1)

    @cached_property
    def _largest(self) -> float:
        return float(self.input_range.max())

    @cached_property
    def _shares(self) -> np.ndarray | None:
        """What a step of each input counts against one of the input of largest range; None: 1."""
        shares = self._largest / self.input_range
        return shares if (shares != 1.0).any() else None

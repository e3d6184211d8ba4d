"""Distance of the commands from rest, where more inputs than needed leave a choice."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from softcr_control.costs.term import CostTerm


@dataclass(frozen=True, eq=False)
class InputLevel(CostTerm):
    """weight * sum_k |(u(k) - u_rest) / input_range|^2.

    Inputs that only push against one another move no tip: no other term says how large they are,
    and noise alone would let them drift. With a small weight the smallest ones are chosen.

    Attributes:
        weight: 1 makes one input that stands at its range from rest cost 1 per tick [cost].
        rest: (m,) inputs of the robot that nothing drives [unit of the inputs].
        input_range: (m,) highest minus lowest value of each input [unit of the inputs].
    """

    rest: np.ndarray
    input_range: np.ndarray
    name: ClassVar[str] = "input_level"

    def errors(self, rollout: Any) -> Any:
        """(B, N, m) [-]."""
        return (rollout.commands - self.rest) / self.input_range

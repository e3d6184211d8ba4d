"""Distance of any predicted output from its reference."""

from dataclasses import dataclass
from typing import Any

from softcr_control.costs.term import CostTerm


@dataclass(frozen=True, eq=False)
class OutputError(CostTerm):
    """weight * sum_k |y_goal(k) - y(k)|^2 of an output that the reference has rows of.

    Of a pose its position counts. Rows that hold a NaN in the reference contribute nothing.

    Attributes:
        weight: [cost / unit of the output squared].
        output: name of one of the model's outputs.
    """

    output: str

    @property
    def name(self) -> str:  # type: ignore[override]
        """Unique among the outputs."""
        return f"output {self.output}"

    def errors(self, rollout: Any) -> Any:
        """(B, N, ...) [unit of the output].

        Raises:
            UserError: the reference has no rows of this output.
        """
        wanted, known = rollout.wanted_output(self.output)
        predicted = rollout.output(self.output)
        if predicted.shape[2:] == (3, 4):
            predicted = predicted[:, :, :, 3]
        return (predicted - wanted) * known

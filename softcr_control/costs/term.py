"""What a cost term is: a weight times a sum of squares over a rollout."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from softcr_control.costs.rollout import Rollout
from softcr_control.reference.references import Reference
from softcr_models.errors import UserError


@dataclass(frozen=True, eq=False)
class CostTerm:
    """weight * |errors|^2, one part of the cost (39a); a new term says its `errors` and its `name`.

    `errors` are written with what numpy arrays and tensors of torch have in common, for a `Rollout`
    or a `TensorRollout`.

    Attributes:
        weight: the factor [cost / unit of the errors squared], at least 0.
    """

    weight: float
    name: ClassVar[str]

    def errors(self, rollout: Any) -> Any:
        """(B, ...) differences of B candidates, smooth in the commands; zeros where unknown."""
        raise NotImplementedError

    def applies(self, reference: Reference) -> bool:
        """Whether there is anything to compare with; where not, the term is left out of a tick."""
        return True

    def __call__(self, rollout: Rollout) -> np.ndarray:
        """Costs (B,), at least 0, or NaN where a state is not finite."""
        errors = self.errors(rollout).reshape(len(rollout.commands), -1)
        costs: np.ndarray = self.weight * np.einsum("br,br->b", errors, errors)
        return costs

    def residuals(self, rollout: Any) -> Any:
        """(B, R) numbers whose squares add up to the costs."""
        return math.sqrt(self.weight) * self.errors(rollout).reshape(len(rollout.commands), -1)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The fields that are arrays, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def checked_terms(terms: Sequence[CostTerm]) -> tuple[CostTerm, ...]:
    """Return the terms; raise if there is none, or if two share a name.

    Raises:
        UserError: no cost term, or two terms of one name.
    """
    names = [term.name for term in terms]
    if not names or len(set(names)) != len(names):
        raise UserError(f"controller: cost terms {names}: at least one, no name twice is allowed")
    return tuple(terms)


def evaluate(
    terms: Sequence[CostTerm], rollout: Rollout
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Costs (B,) by name of term that applies, and their sum (B,), inf where it is not finite."""
    counted = [term for term in terms if term.applies(rollout.reference)]
    with np.errstate(over="ignore", invalid="ignore"):
        costs = {term.name: np.asarray(term(rollout), float) for term in counted}
        total = sum(costs.values(), np.zeros(len(rollout.commands)))
    return costs, np.where(np.isfinite(total), total, np.inf)


def stacked_residuals(terms: Sequence[CostTerm], rollout: Rollout) -> np.ndarray:
    """(B, R) residuals of the terms that apply, whose squares add up to the costs; float64."""
    parts = [term.residuals(rollout) for term in terms if term.applies(rollout.reference)]
    return np.concatenate([np.empty((len(rollout.commands), 0)), *parts], axis=1, dtype=float)

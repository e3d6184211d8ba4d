"""The answer of a predictive controller."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Command:
    """What one tick decided.

    Attributes:
        plan: (N, m) commands [Pa], inside the limits: for the tick in which the answer becomes
            active, and for those after it.
        cost: of the chosen plan; inf in a fallback.
        cost_terms: the same cost by name of term.
        best_knots: (K, m) the chosen polyline [Pa], see `Knots`.
        predicted_tips: (N, 3) where it should take the tip at the reference rows compared with [m],
            base frame; NaN in a fallback.
        fallback: True when no plan had a finite cost (state or model broken); `plan` then
            continues the previous one.
        candidates: number of plans that were compared for it; None where nobody counts them.
    """

    plan: np.ndarray
    cost: float
    cost_terms: dict[str, float]
    best_knots: np.ndarray
    predicted_tips: np.ndarray
    fallback: bool = False
    candidates: int | None = None

    @property
    def pressures(self) -> np.ndarray:
        """(m,) the first command of the plan [Pa]."""
        first: np.ndarray = self.plan[0]
        return first


def broken_plan(plan: np.ndarray, knots: np.ndarray, terms: Sequence[str], ticks: int) -> Command:
    """The fallback over a horizon of so many ticks: what to send, and no promise about it."""
    return Command(
        plan=plan.copy(),
        cost=np.inf,
        cost_terms=dict.fromkeys(terms, np.inf),
        best_knots=knots,
        predicted_tips=np.full((ticks, 3), np.nan),
        fallback=True,
    )

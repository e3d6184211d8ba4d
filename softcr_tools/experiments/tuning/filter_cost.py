"""The cost of a filter's parameters: Licher et al. 2025, (38), on several plants."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softcr_estimation import EstimatorSettings
from softcr_tools.experiments.tuning.filter_runs import Judgement
from softcr_tools.experiments.tuning.space import Values

Run = Callable[[EstimatorSettings], Judgement]
START = 3.0  # three errors, each divided by what it is at the start


@dataclass(frozen=True, eq=False)
class FilterCost:
    """w_EE e_EE + w_ori e_ori + w_kink e_kink + w_NaNs n_NaNs + e_div of (38), over several runs.

    Weights of the first three are the inverse of what the filter costs whose parameters the search
    begins with, as in the paper, in each run: it costs 3. Where the paper leaves a choice, or where
    we differ:

    - e_EE and e_ori count from the true tip. The paper's count from the measured one; our plants
      are simulated, and the 0.2 mm noise of each coordinate would hide what filters differ in.
    - In a closed loop e_EE is the tip's distance to where it should be: what the filter is for.
    - n_NaNs and e_div are the filter's repairs, of lost predictions and of lost definiteness, which
      it counts together; each costs 1. A filter that cannot go on costs infinity.
    - The paper judges one run. Of several the cost is the mean, and what the worst of them lies
      above the start's 3 is added: a filter shall not buy one plant with another.

    Attributes:
        runs: each gives what a filter of those settings makes of one motion.
        initial: (runs, 3) errors of the filter that the search begins with.
    """

    runs: Sequence[Run]
    initial: np.ndarray

    def __call__(self, values: Values) -> float:
        """The cost of settings that differ from the shipped ones in `values`."""
        try:
            costs = self.each(EstimatorSettings(**values))
        except (ArithmeticError, ValueError):  # the filter's factor, or its state, was lost
            return float("inf")
        if not np.isfinite(costs).all():
            return float("inf")
        return float(costs.mean() + max(0.0, costs.max() - START))

    def each(self, settings: EstimatorSettings) -> np.ndarray:
        """(38) of every run.

        Raises:
            ArithmeticError, ValueError: the filter lost the numbers.
        """
        judged = [run(settings) for run in self.runs]
        errors = np.array([observed(judgement) for judgement in judged]) / self.initial
        return errors.sum(axis=1) + np.array([judgement.repairs for judgement in judged])


def observed(judgement: Judgement) -> np.ndarray:
    """(3,) e_EE [m], e_ori [rad], e_kink [-]: means over a run."""
    errors = judgement.positions, judgement.rotations, judgement.kinks
    return np.array([error.mean() for error in errors])


def filter_cost(runs: Sequence[Run], start: Values) -> FilterCost:
    """The cost that is 3 for the settings that the search begins with."""
    settings = EstimatorSettings(**start)
    return FilterCost(runs, np.array([observed(run(settings)) for run in runs]))

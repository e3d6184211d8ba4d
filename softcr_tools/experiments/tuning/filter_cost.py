"""The cost of a filter's parameters, Licher et al. (000), (38)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softcr_estimation import EstimatorSettings
from softcr_models import Robot
from softcr_tools.experiments.tuning.filter_runs import Judgement, Recording, filtered
from softcr_tools.experiments.tuning.space import Values

WITHHELD = 4  # every so manyth pose


@dataclass(frozen=True, eq=False)
class FilterCost:
    """w_EE e_EE + w_ori e_ori + w_kink e_kink + w_NaNs n_NaNs + e_div of (38), from measurements.

    Weights of the first three are the inverse of what the filter costs whose parameters the search
    begins with, as in the paper: it costs 3. Where the paper leaves a choice, or where we differ:

    - e_EE counts at poses that were withheld from the filter (every `withheld`th). At the poses it
      was given it could be made as small as one likes by believing them; withheld = 0 does that.
    - e_ori counts at every pose: this filter is given positions only.
    - n_NaNs and e_div are the filter's repairs, of lost predictions and of lost definiteness, which
      it counts together; each costs 1. A filter that cannot go on costs infinity.

    Attributes:
        robot: that the filter believes in.
        recordings: of other robots.
        initial: (3,) errors of the filter that the search begins with; ones: raw errors.
        withheld: see above.
    """

    robot: Robot
    recordings: Sequence[Recording]
    initial: np.ndarray
    withheld: int = WITHHELD

    def __call__(self, values: Values) -> float:
        """The cost of settings that differ from the shipped ones in `values`."""
        settings = EstimatorSettings(**values)
        total = 0.0
        for recording in self.recordings:
            try:
                judgement = filtered(self.robot, settings, recording, self.withheld)
            except (ArithmeticError, ValueError):  # the filter's factor, or its state, was lost
                return float("inf")
            errors = observed(judgement)
            if not np.isfinite(errors).all():
                return float("inf")
            total += float(np.sum(errors / self.initial)) + judgement.repairs
        return total / len(self.recordings)


def observed(judgement: Judgement) -> np.ndarray:
    """(3,) e_EE [m], e_ori [rad], e_kink [-]: means over a run."""
    counted = judgement.unseen if judgement.unseen.any() else np.ones_like(judgement.unseen)
    return np.array(
        [
            judgement.positions[counted].mean(),
            judgement.rotations.mean(),
            judgement.kinks.mean(),
        ]
    )


def filter_cost(robot: Robot, recordings: Sequence[Recording], start: Values) -> FilterCost:
    """The cost that is 3 for the settings that the search begins with."""
    settings = EstimatorSettings(**start)
    runs = [filtered(robot, settings, recording, WITHHELD) for recording in recordings]
    initial = np.mean([observed(run) for run in runs], axis=0)
    return FilterCost(robot, recordings, initial)

"""Distance of predicted states from the reference states, normalised."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from softcr_control.costs.rollout import Rollout

# Candidates whose errors stay in the cache between the passes: a third faster than all at once.
_BLOCK = 128


@dataclass(frozen=True, eq=False)
class StateError:
    """sum_k || (x_goal(k) - x(k)) / scale ||_Q^2 with diagonal Q: the first sum of (39a).

    Rows whose reference state is unknown (NaN) contribute nothing.

    Attributes:
        weights: (nx,) diagonal of Q [cost], >= 0.
        scale: (nx,) magnitude that makes each state of order one, in its own unit.
    """

    weights: np.ndarray
    scale: np.ndarray
    name: ClassVar[str] = "state_error"

    def __call__(self, rollout: Rollout) -> np.ndarray:
        # Flat and in the rollout's own precision: these are the largest arrays of a tick.
        states = rollout.states.reshape(len(rollout.states), -1)
        known = rollout.reference_known[:, None]
        reference = np.where(known, rollout.reference_states, 0.0).ravel().astype(states.dtype)
        weights = np.where(known, self.weights / self.scale**2, 0.0).ravel().astype(states.dtype)
        costs = np.empty(len(states))
        for first in range(0, len(states), _BLOCK):
            block = slice(first, first + _BLOCK)
            error = states[block] - reference
            error *= error
            costs[block] = error @ weights
        return costs

    def residuals(self, rollout: Rollout) -> np.ndarray:
        """(B, nx N) for N known rows."""
        known = rollout.reference_known
        error = rollout.states[:, known] - rollout.reference_states[known]
        return (error * np.sqrt(self.weights) / self.scale).reshape(len(error), -1)

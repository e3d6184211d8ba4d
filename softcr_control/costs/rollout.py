"""What cost terms look at: the predicted futures of all candidates beside the reference."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from softcr_models.prediction import PredictionModel


@dataclass(frozen=True)
class Rollout:
    """Predicted futures of B candidates over N ticks.

    Tip positions and poses are computed once, when a term first asks for them.

    Attributes:
        states: (B, N, nx) predicted states, row k one tick after row k - 1.
        commands: (B, N, m) commands [Pa]; command k is held over the tick that ends at state row k.
        previous_command: (m,) command active before the first of `commands` [Pa].
        reference_states: (N, nx) wanted states at the same times; a row holding NaN is unknown.
        reference_tip_positions: (N, 3) wanted tip positions [m], base frame.
        prediction: the model that made `states`.
        parameters: (P,) the model's parameters used for `states`.
    """

    states: np.ndarray
    commands: np.ndarray
    previous_command: np.ndarray
    reference_states: np.ndarray
    reference_tip_positions: np.ndarray
    prediction: PredictionModel
    parameters: np.ndarray

    @cached_property
    def reference_known(self) -> np.ndarray:
        """(N,) whether the reference state of each row is known."""
        return np.isfinite(self.reference_states).all(axis=1)

    @cached_property
    def tip_positions(self) -> np.ndarray:
        """(B, N, 3) predicted tip positions [m], base frame."""
        return self._tip_positions_of(self.states)

    @cached_property
    def tip_rotations(self) -> np.ndarray:
        """(B, N, 3, 3) predicted tip orientations in the base frame."""
        rows = self.states.reshape(-1, self.states.shape[2])
        poses = self.prediction.tip_poses(rows, self._parameters_for(rows))
        return poses[:, :3, :3].reshape(*self.states.shape[:2], 3, 3)

    @cached_property
    def reference_tip_rotations(self) -> np.ndarray:
        """(N, 3, 3) wanted tip orientations; NaN where the reference state is unknown.

        Reference states are made with the nominal parameters, so that is how they are read.
        """
        rows = len(self.reference_states)
        nominal = np.broadcast_to(self.prediction.nominal_parameters, (rows, len(self.parameters)))
        known = self.reference_known
        rotations = np.full((rows, 3, 3), np.nan)
        if known.any():
            poses = self.prediction.tip_poses(self.reference_states[known], nominal[known])
            rotations[known] = poses[:, :3, :3]
        return rotations

    def tip_path(self, candidate: int) -> np.ndarray:
        """(N, 3) predicted tip positions of one candidate [m], without computing all of them."""
        if "tip_positions" in vars(self):
            return self.tip_positions[candidate]
        return self._tip_positions_of(self.states[candidate : candidate + 1])[0]

    def _tip_positions_of(self, states: np.ndarray) -> np.ndarray:
        rows = states.reshape(-1, states.shape[2])
        positions = self.prediction.tip_positions(rows, self._parameters_for(rows))
        return positions.reshape(*states.shape[:2], 3)

    def _parameters_for(self, rows: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.parameters, (len(rows), len(self.parameters)))


class CostTerm(Protocol):
    """One part of the cost (39a)."""

    name: ClassVar[str]

    def __call__(self, rollout: Rollout) -> np.ndarray:
        """Costs (B,) of the candidates of a rollout, >= 0 or NaN where a state is not finite."""
        ...

"""What cost terms look at: the predicted futures of all candidates beside the reference."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from softcr_models.errors import UserError
from softcr_models.prediction import PredictionModel

_COMPUTED = "states", "tip_poses"  # by a Rollout, per candidate


@dataclass(frozen=True)
class Rollout:
    """Predicted futures of B candidates over N ticks.

    States and tip poses are computed when a term first asks for them. A term that looks at states
    should come before those that look at tips only: tips then follow from the states; without
    states, the model computes tips alone, which is faster.

    Attributes:
        initial_state: (nx,) where all of them begin.
        pressures: (B, N + 1, m) chamber pressures at the grid points [Pa].
        commands: (B, N, m) commands [Pa]; command k is held over the tick that ends at state row k.
        previous_command: (m,) command active before the first of `commands` [Pa].
        reference_states: (N, nx) wanted states at the same times; a row holding NaN is unknown.
        reference_tip_positions: (N, 3) wanted tip positions [m], base frame.
        prediction: the model.
        parameters: (P,) the model's parameters.
        period: of a tick [s].
    """

    initial_state: np.ndarray
    pressures: np.ndarray
    commands: np.ndarray
    previous_command: np.ndarray
    reference_states: np.ndarray
    reference_tip_positions: np.ndarray
    prediction: PredictionModel
    parameters: np.ndarray
    period: float

    @cached_property
    def states(self) -> np.ndarray:
        """(B, N, nx) predicted states, row k one tick after row k - 1."""
        return self.prediction.rollout(*self._inputs)

    @cached_property
    def tip_poses(self) -> np.ndarray:
        """(B, N, 3, 4) predicted tip poses, rotation beside position [m], base frame."""
        if "states" not in vars(self):
            return self.prediction.rollout_tips(*self._inputs)
        rows = self.states.reshape(-1, self.states.shape[2])
        poses = self.prediction.tip_poses(rows, self.parameters[None])
        return poses.reshape(*self.states.shape[:2], 3, 4)

    @cached_property
    def reference_known(self) -> np.ndarray:
        """(N,) whether the reference state of each row is known."""
        return np.isfinite(self.reference_states).all(axis=1)

    @cached_property
    def wanted_states(self) -> np.ndarray:
        """(N, nx) reference states, zeros where they are unknown."""
        return known_states(self.reference_states)

    @cached_property
    def wanted_tip_rotations(self) -> np.ndarray:
        """(N, 3, 3) wanted tip orientations, see `tip_rotations`."""
        return tip_rotations(self.reference_states, self.prediction)

    @cached_property
    def command_path(self) -> np.ndarray:
        """(B, N + 1, m) the command active before, then `commands` [Pa]."""
        batch, ticks, chambers = self.commands.shape
        path = np.empty((batch, 1 + ticks, chambers), self.commands.dtype)
        path[:, 0], path[:, 1:] = self.previous_command, self.commands
        return path

    def part(self, rows: np.ndarray) -> "Rollout":
        """Of some candidates, with what is computed of them already."""
        chosen = replace(self, pressures=self.pressures[rows], commands=self.commands[rows])
        computed = {name: vars(self)[name][rows] for name in _COMPUTED if name in vars(self)}
        vars(chosen).update(computed)
        return chosen

    def tip_path(self, candidate: int) -> np.ndarray:
        """(N, 3) predicted tip positions of one candidate [m], without computing all of them."""
        if "tip_poses" in vars(self):
            return self.tip_poses[candidate, :, :, 3]
        return self.prediction.tip_poses(self.states[candidate], self.parameters[None])[:, :, 3]

    @property
    def _inputs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        return self.initial_state, self.pressures, self.parameters, self.period


def known_states(reference_states: np.ndarray) -> np.ndarray:
    """(N, nx) the same, zeros in rows that hold a NaN."""
    known = np.isfinite(reference_states).all(axis=1)
    return np.where(known[:, None], reference_states, 0.0)


def tip_rotations(reference_states: np.ndarray, prediction: PredictionModel) -> np.ndarray:
    """(N, 3, 3) tip orientations of reference states (N, nx), zeros where those are unknown.

    Reference states are made with the nominal parameters, so that is how they are read.
    """
    known = np.isfinite(reference_states).all(axis=1)
    rotations = np.zeros((len(reference_states), 3, 3))
    if known.any():
        poses = prediction.tip_poses(reference_states[known], prediction.nominal_parameters[None])
        rotations[known] = poses[:, :, :3]
    return rotations


class CostTerm(Protocol):
    """One part of the cost (39a): a sum of squares.

    `residuals` are written with what numpy arrays and tensors of torch have in common, for a
    `Rollout` or a `TensorRollout`; `__call__` is what numpy does fastest.
    """

    name: ClassVar[str]

    def __call__(self, rollout: Rollout) -> np.ndarray:
        """Costs (B,) of the candidates of a rollout, >= 0 or NaN where a state is not finite."""
        ...

    def residuals(self, rollout: Any) -> Any:
        """(B, R) numbers whose squares add up to the costs; smooth in the commands."""
        ...


def checked_terms(terms: Sequence[CostTerm]) -> tuple[CostTerm, ...]:
    """The same, if their names tell them apart.

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
    """Costs (B,) by name of term, and their sum (B,), inf where it is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        costs = {term.name: np.asarray(term(rollout), float) for term in terms}
        total = sum(costs.values())
    return costs, np.where(np.isfinite(total), total, np.inf)


def stacked_residuals(terms: Sequence[CostTerm], rollout: Rollout) -> np.ndarray:
    """(B, R) residuals of all terms, whose squares add up to the costs; float64."""
    return np.concatenate([term.residuals(rollout) for term in terms], axis=1, dtype=float)

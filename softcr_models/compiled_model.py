"""What compiled models have in common: arguments are checked, then a loop runs."""

import numpy as np

from softcr_models.arguments import Arguments
from softcr_models.model import TIP


class CompiledModel:
    """`Model`'s three ways through time, of a class that has one way through a batch."""

    _arguments: Arguments

    def step(
        self,
        states: np.ndarray,
        begin: np.ndarray,
        end: np.ndarray,
        parameters: np.ndarray,
        dt: float,
    ) -> np.ndarray:
        return self._advance(*self._arguments.step(states, begin, end, parameters, dt))[:, 0]

    def rollout(
        self, state: np.ndarray, inputs: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        checked = self._arguments.rollout("rollout", state, inputs, parameters, dt)
        return self._advance(*checked)

    def rollout_tips(
        self, state: np.ndarray, inputs: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        return self._poses(self.rollout(state, inputs, parameters, dt), TIP)

    def _advance(
        self, states: np.ndarray, levels: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """(B, T, nx) after each of T steps of dt [s]; of what is checked.

        Args:
            states: (B, nx), or (1, nx) for all.
            levels: (B, T + 1, m) inputs at the grid points, linear in between.
            parameters: (B, P), or (1, P) for all.
            dt: length of a step [s].
        """
        raise NotImplementedError

    def _poses(self, states: np.ndarray, name: str) -> np.ndarray:
        """(..., 3, 4) the pose of that name, of states (..., nx)."""
        raise NotImplementedError

"""Algorithms 3 and 4 of Pawlowski (2019) as they are printed, for comparison.

They lead a state to zero by x^T Q x and u^T R u, with (4.30) to (4.32). The task is a tip, so the
state is counted here from that of the equilibrium whose tip is the target, the mildest reading of
what the thesis leaves open; inputs are counted from zero, as printed, and nothing but A and B of
the linearised motion is used. Q and R are ours.
"""

from collections.abc import Sequence

import numpy as np

from softcr_control.predictive.horizon import Problem
from softcr_models.model import Model
from softcr_papers.pawlowski2019.lookahead.held_steps import Linear
from softcr_papers.pawlowski2019.quasi_static import static_change, static_jacobian

_EFFORT = 1e-2
"""R: what an input at its range costs, where a state at its scale costs 1."""
_LEVEL = 1e-4  # of the target's inputs, see `static_change` [m]
_UPDATES = 2  # of the target's inputs in a step, each by half of what is missing
_GAIN = 0.5


def riccati_gains(
    steps: Sequence[tuple[np.ndarray, np.ndarray]],
    cost: np.ndarray,
    effort: np.ndarray,
    last: np.ndarray,
) -> list[np.ndarray]:
    """Gains K (m, nx) of u = -K x for each step, (4.30) to (4.32) with the sign of Algorithm 3.

    Args:
        steps: A (nx, nx) and B (nx, m) of each.
        cost, effort: Q (nx, nx) and R (m, m).
        last: Q_end (nx, nx).
    """
    value, gains = last, []
    for a, b in reversed(steps):
        of_input = b.T @ value
        gain = np.linalg.solve(effort + of_input @ b, of_input @ a)
        value = a.T @ value @ a - a.T @ value @ b @ gain + cost
        gains.append(gain)
    return gains[::-1]


class PrintedRegulator:
    """Inputs by the printed algorithms on what a step was linearised to.

    Args:
        model: that is controlled.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._cost = np.diag(1.0 / model.state.scale**2)
        self._effort = np.diag(_EFFORT / model.inputs.range**2)
        self.reset()

    def reset(self) -> None:
        """The target's inputs are looked for from rest on."""
        self._held = self._model.inputs.rest

    def target(self, problem: Problem) -> np.ndarray:
        """(nx,) equilibrium near the last row of the reference: the search for it goes on."""
        wanted, parameters = problem.reference.tip_positions[-1], problem.parameters
        for _ in range(_UPDATES):
            tip, jacobian = static_jacobian(self._model, self._held, parameters)
            wish = _GAIN * (wanted - tip)
            self._held = self._held + static_change(self._model, self._held, jacobian, wish, _LEVEL)
        return self._model.equilibrium(self._held, parameters)

    def inputs(self, problem: Problem, steps: Sequence[Linear]) -> np.ndarray:
        """(N, m) inputs of the horizon, of which the first is used."""
        nx = self._model.state.size
        linear = [(step.a[:nx, :nx], step.b[:nx]) for step in steps]
        gains = riccati_gains(linear, self._cost, self._effort, self._cost)
        away, found = problem.state - self.target(problem), []
        for (a, b), gain in zip(linear, gains, strict=True):
            found.append(-gain @ away)
            away = a @ away + b @ found[-1]
        return np.array(found)

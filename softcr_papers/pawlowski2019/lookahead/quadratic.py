"""Linear-quadratic problems over a horizon with inputs in a box: the backward pass.

Pawlowski (2019), Sec. 4.2.2, has x' = A x + B u, (4.22), a cost x^T Q x + u^T R u, (4.23), and the
Riccati recursion (4.32) for the value x^T S x. A tip that follows a target has an affine problem
instead: z' = next + A dz + B du, and residuals that are affine in dz and du. Its value is
|F dz + f|^2, where F^T F obeys (4.32) without a box; the recursion of F keeps it positive and, over
few steps, costs a fraction of it. As printed, (4.30) lacks the minus sign that Algorithm 3 has.

The box is kept in the backward pass as in Tassa, Mansard and Todorov, Control-limited differential
dynamic programming (ICRA 2014): the change of the inputs minimises the quadratic inside of it, and
inputs that stand at a bound have no gain. What is cut off after the solution is not the optimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softcr_control.predictive.bounded_minimum import bounded_minimum
from softcr_papers.pawlowski2019.lookahead.held_steps import Linear
from softcr_papers.pawlowski2019.lookahead.nlsq import damp


@dataclass(frozen=True, eq=False)
class Policy:
    """du = change + gain dz.

    Attributes:
        change: (m,).
        gain: (m, nz).
    """

    change: np.ndarray
    gain: np.ndarray


def backward(
    steps: Sequence[Linear], gaps: np.ndarray, low: np.ndarray, high: np.ndarray
) -> list[Policy]:
    """The policy of each step.

    Args:
        steps: in their order.
        gaps: (N, nz) `next` of each step less the state about which the following one is linear;
            of the last step nobody looks at it.
        low, high: (N, m) bounds of the changes of inputs, low <= 0 <= high.
    """
    size = steps[0].a.shape[0]
    factor, residuals = np.zeros((0, size)), np.zeros(0)  # the value is |factor dz + residuals|^2
    policies = []
    for index in reversed(range(len(steps))):
        step = steps[index]
        ahead = residuals + factor @ gaps[index]
        of_state = np.concatenate((step.g, factor @ step.a))
        of_input = np.concatenate((step.h, factor @ step.b))
        residuals = np.concatenate((step.residuals, ahead))
        policy = _policy(of_state, of_input, residuals, low[index], high[index])
        policies.append(policy)
        factor = of_state + of_input @ policy.gain
        residuals = residuals + of_input @ policy.change
        factor, residuals = _compressed(factor, residuals)
    return policies[::-1]


def _policy(
    of_state: np.ndarray, of_input: np.ndarray, residuals: np.ndarray, low: np.ndarray,
    high: np.ndarray,
) -> Policy:  # fmt: skip
    """Minimises |of_state dz + of_input du + residuals|^2 over du: in the box at dz = 0, and with
    dz by what then is free."""
    normal = of_input.T @ of_input
    damp(normal)
    change = bounded_minimum(normal, of_input.T @ residuals, low, high)
    free = (change > low) & (change < high)
    gain = np.zeros((len(change), of_state.shape[1]))
    if free.any():
        right = of_input[:, free].T @ of_state
        gain[free] = -np.linalg.solve(normal[np.ix_(free, free)], right)
    return Policy(change, gain)


def _compressed(factor: np.ndarray, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same value by no more rows than it needs."""
    if len(factor) <= 2 * factor.shape[1]:
        return factor, residuals
    both = np.asarray(np.linalg.qr(np.column_stack((factor, residuals)), mode="r"))
    return both[:, :-1], both[:, -1]

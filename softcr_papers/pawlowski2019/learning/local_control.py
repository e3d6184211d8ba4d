"""Local controllers of motions: iterative LQG, held close to the policy, inside the inputs' box.

Levine and Abbeel (2014), as Pawlowski (2019), Sec. 4.3.2, uses it: the Kullback-Leibler divergence
to the linearised policy, whose noise has the same covariance everywhere, is a quadratic anchor. The
cost is one on tips. Limits of actions are met as by Tassa, Mansard and Todorov (2014): inputs at a
limit have no feedback.
"""

from dataclasses import dataclass

import numpy as np

from softcr_control.predictive.bounded_minimum import bounded_minimum
from softcr_papers.pawlowski2019.learning.linearisation import Linearisation

_EFFORT = 1e-3
"""Weight of a change of an action, where neither cost nor anchor says anything."""


@dataclass(frozen=True, eq=False)
class LocalControl:
    """Changes of actions along B motions of T steps.

    Attributes:
        forward: (B, T, m) where the state is the motion's.
        feedback: (B, T, m, r) times how far the state is from it.
        curvature: (B, T, m, m) of the cost by the action, what comes later included; without the
            anchor. What a deviation from these actions costs.
    """

    forward: np.ndarray
    feedback: np.ndarray
    curvature: np.ndarray


def local_control(
    linear: Linearisation,
    errors: np.ndarray,
    weights: np.ndarray,
    actions: np.ndarray,
    means: np.ndarray,
    slopes: np.ndarray,
    anchor: float,
) -> LocalControl:
    """The controllers that minimise 0.5 sum of weights |errors|^2 + 0.5 anchor |action - policy|^2.

    Args:
        linear: of the motions.
        errors: (B, T, 3) of tips at the end of each step [m].
        weights: (B, T) of these [1/m^2].
        actions, means: (B, T, m) taken, and those of the policy.
        slopes: (B, T, m, r) of the policy's actions by coordinates.
        anchor: how much the policy counts; above 0 where it shall.
    """
    actions = actions.astype(float)
    runs, steps, size = actions.shape
    value = np.zeros((runs, linear.tips.shape[3], linear.tips.shape[3]))
    slope = np.zeros(value.shape[:2])
    found = LocalControl(
        np.zeros(actions.shape), np.zeros(slopes.shape), np.zeros((runs, steps, size, size))
    )
    least = (anchor + _EFFORT) * np.eye(size)
    for t in range(steps - 1, -1, -1):
        tip, a, b, policy = (
            each[:, t].astype(float)
            for each in (linear.tips, linear.transition, linear.control, slopes)
        )
        weight = weights[:, t, None, None]
        value = value + weight * _turned(tip) @ tip
        slope = slope + weight[:, 0] * np.einsum("bij,bi->bj", tip, errors[:, t])
        off = anchor * (actions[:, t] - means[:, t])
        back = _turned(b) @ value
        by_action = np.einsum("bij,bi->bj", b, slope) + off
        by_state = np.einsum("bij,bi->bj", a, slope) - np.einsum("bij,bi->bj", policy, off)
        curvature = back @ b
        mixed = back @ a - anchor * policy
        whole = curvature + least
        low, high = -1.0 - actions[:, t], 1.0 - actions[:, t]
        problems = zip(whole, by_action, low, high, strict=True)
        forward = np.stack([bounded_minimum(*problem) for problem in problems])
        free = (forward > low) & (forward < high)
        feedback = -np.linalg.solve(_only(whole, free), np.where(free[:, :, None], mixed, 0.0))
        found.forward[:, t], found.feedback[:, t] = forward, feedback
        found.curvature[:, t] = curvature
        crossed = _turned(feedback) @ mixed
        value = _turned(a) @ value @ a + anchor * _turned(policy) @ policy + crossed
        value = value + _turned(crossed) + _turned(feedback) @ whole @ feedback
        value = 0.5 * (value + _turned(value))
        pushed = np.einsum("bij,bj->bi", whole, forward) + by_action
        slope = by_state + np.einsum("bij,bi->bj", feedback, pushed)
        slope = slope + np.einsum("bij,bi->bj", mixed, forward)
    return found


def _only(matrices: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Matrices (B, m, m) whose rows and columns that are not free (B, m) are the identity's."""
    kept = np.where(free[:, :, None] & free[:, None, :], matrices, 0.0)
    return kept + np.eye(free.shape[1]) * ~free[:, :, None]


def _turned(matrices: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrices, 1, 2)

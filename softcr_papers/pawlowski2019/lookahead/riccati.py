"""What LQR and iLQR share: passes of the Riccati recursion, each about the motion that the last one
led to, in differences to it, with the exact residuals of the cost and a search along the step.

Linear-quadratic problems over a horizon with inputs in a box: the backward pass.

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

from softcr_control.costs.term import evaluate
from softcr_control.predictive.bounded_minimum import bounded_minimum
from softcr_control.predictive.gauss_newton import STEP_FRACTIONS
from softcr_control.predictive.horizon import Problem
from softcr_papers.pawlowski2019.lookahead.held_steps import HeldSteps, Linear
from softcr_papers.pawlowski2019.lookahead.nlsq import damp
from softcr_papers.pawlowski2019.lookahead.plan import LookaheadMpc, Plan, limited_path
from softcr_runtime.blocks.budget import Budget


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


@dataclass(frozen=True, eq=False)
class Motion:
    """Candidates over the horizon.

    Attributes:
        states: (B, N + 1, nz) at the begins of the steps, and the end.
        inputs: (B, N, m).
        tips: (B, T, 3) at the ends of the ticks [m].
        terms: (B,) costs by name.
        costs: (B,) their sums, inf where not finite.
    """

    states: np.ndarray
    inputs: np.ndarray
    tips: np.ndarray
    terms: dict[str, np.ndarray]
    costs: np.ndarray

    def row(self, index: int) -> "Motion":
        """One motion of the batch."""
        one = slice(index, index + 1)
        terms = {name: each[one] for name, each in self.terms.items()}
        return Motion(self.states[one], self.inputs[one], self.tips[one], terms, self.costs[one])


class RiccatiMpc(LookaheadMpc):
    """A controller whose plans are made by such passes; a subclass says on which motion."""

    def _improved(
        self, plan: np.ndarray, problem: Problem, passes: int, tolerance: float, budget: Budget
    ) -> Plan | None:
        """A plan from another on (N, m); None where a derivative is not finite.

        Args:
            plan: inside the box.
            problem: whose model moves.
            passes: at most.
            tolerance: a pass that lowers the cost by less than this share is the last [-].
            budget: see `_solved`.
        """
        settings = self.settings
        steps = HeldSteps(
            problem, self._terms, settings.step_ticks, self._reach, settings.perturbation
        )
        motion = self._planned(plan, problem)
        for index in range(passes):
            if index and not budget.allows(1):
                break
            policies = self._policies(steps, motion)
            if policies is None:
                return None
            before = float(motion.costs[0])
            tried = self._moved(steps, motion, policies)
            best = int(tried.costs.argmin())
            if not tried.costs[best] < before:
                break
            motion = tried.row(best)
            if motion.costs[0] > (1.0 - tolerance) * before:
                break
        costs = {name: float(each[0]) for name, each in motion.terms.items()}
        return Plan(motion.inputs[0], motion.tips[0], costs)

    def _policies(self, steps: HeldSteps, motion: Motion) -> list[Policy] | None:
        """Of a motion of one candidate; None where a derivative is not finite."""
        inputs = motion.inputs[0]
        linear = steps.linear(motion.states[0, :-1], inputs)
        if not all(each.finite for each in linear):
            return None
        low, high = self._bounds(inputs, steps.problem)
        low[1:], high[1:] = self._inputs.low, self._inputs.high
        gaps = np.zeros((len(inputs), motion.states.shape[2]))
        return backward(linear, gaps, low - inputs, high - inputs)

    def _planned(self, plan: np.ndarray, problem: Problem) -> Motion:
        """The motion under inputs (N, m)."""
        ticks = self.settings.step_ticks
        path = limited_path(plan[None], problem.previous_command, self._reach, ticks)
        rollout = problem.rollout(path)
        terms, costs = evaluate(self._terms, rollout)
        begin = np.concatenate((problem.state, rollout.felt[0, 0], problem.previous_command))
        ends = (rollout.states[0], rollout.felt[0, 1:], path[0])
        later = np.concatenate(ends, axis=1)[ticks - 1 :: ticks]
        states = np.concatenate((begin[None], later))
        return Motion(states[None], plan[None], rollout.tip_poses[:, :, :, 3], terms, costs)

    def _moved(self, steps: HeldSteps, about: Motion, policies: list[Policy]) -> Motion:
        """Candidates by fractions of the policies' step from a motion of one."""
        count = len(STEP_FRACTIONS)
        z = np.tile(about.states[0, 0], (count, 1))
        states, chosen, tips = [z], [], []
        terms: dict[str, np.ndarray] = {}
        costs = np.zeros(count)
        for step, policy in enumerate(policies):
            wanted = about.inputs[:, step] + STEP_FRACTIONS[:, None] * policy.change
            wanted = wanted + (z - about.states[0, step]) @ policy.gain.T
            wanted = self._within(wanted, steps.sent(z))
            z, ticks = steps.advance(z, wanted)
            rollout = steps.rollout(ticks, step)
            of_terms, of_step = evaluate(self._terms, rollout)
            terms = {name: terms.get(name, 0.0) + each for name, each in of_terms.items()}
            costs = costs + of_step
            states.append(z)
            chosen.append(wanted)
            tips.append(rollout.tip_poses[:, :, :, 3])
        return Motion(
            np.stack(states, axis=1), np.stack(chosen, axis=1), np.concatenate(tips, axis=1),
            terms, costs,
        )  # fmt: skip

    def _within(self, wanted: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Inputs (B, m) in the box, and as far from the commands before as a step gets."""
        inputs, most = self._inputs, self._most
        moved: np.ndarray = np.clip(
            np.clip(wanted, before - most, before + most), inputs.low, inputs.high
        )
        return moved

"""LQR: one linearisation in every step, and the linear-quadratic problem solved in the box of the
inputs, Pawlowski (2019), Sec. 4.2.2 and Algorithm 3.

The linearised motion has its affine part and the cost is that of the tip; see `quadratic`. Where
bounds are active, one backward pass is not the optimum of the linear problem: further ones begin
where the last one led, on the same linearisation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from softcr_control.costs.term import evaluate
from softcr_control.horizon import Problem
from softcr_control.lookahead.held_steps import HeldSteps, Linear
from softcr_control.lookahead.plan import LookaheadMpc, Plan, limited_path
from softcr_control.lookahead.printed import PrintedRegulator
from softcr_control.lookahead.quadratic import Policy, backward
from softcr_control.lookahead.settings import LookaheadSettings
from softcr_control.observation import ControlContext

Form = Literal["tip", "printed"]
FRACTIONS = (1.0, 0.5, 0.25, 0.125)
ENOUGH = 1e-3
"""A pass that lowers the cost by less than this share is the last."""


class LqrSettings(LookaheadSettings):
    """Numbers of the algorithm."""

    passes: int = Field(
        default=3, ge=1, le=50, description="backward passes on one linearisation, at most"
    )
    form: Form = Field(
        default="tip",
        description="tip: affine, the cost is that of the tip; printed: as in the thesis, states "
        "are led to the static ones of the target, and the affine part is left out",
    )


@dataclass(frozen=True, eq=False)
class LinearMotion:
    """The linear model's motion under inputs.

    Attributes:
        inputs: (N, m).
        states: (N + 1, nz) less the state of the linearisation.
        residuals: of each step.
        cost: their squares' sum.
    """

    inputs: np.ndarray
    states: np.ndarray
    residuals: list[np.ndarray]
    cost: float


class LinearProblem:
    """Steps that are linear about one state and input, and bounds of inputs.

    Args:
        steps: of the horizon.
        state, inputs: (nz,) and (m,) about which they are linear.
        low, high: (N, m) of the inputs.
        begin: (nz,) where the motion begins, less the state; None: there.
    """

    def __init__(
        self,
        steps: Sequence[Linear],
        state: np.ndarray,
        inputs: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        begin: np.ndarray | None = None,
    ) -> None:
        self._begin = np.zeros(len(state)) if begin is None else begin
        self._steps, self._about, self._low, self._high = steps, inputs, low, high
        self._gap = steps[0].next - state

    def solved(self, inputs: np.ndarray, passes: int) -> LinearMotion:
        """The best inputs (N, m) that so many passes find from given ones in the bounds on."""
        motion = self._moved(inputs, None, None, 0.0)
        none = np.zeros((len(inputs), len(self._gap)))
        for _ in range(passes):
            here = [
                replace(step, residuals=each)
                for step, each in zip(self._steps, motion.residuals, strict=True)
            ]
            low, high = self._low - motion.inputs, self._high - motion.inputs
            policies = backward(here, none, np.minimum(low, 0.0), np.maximum(high, 0.0))
            better = self._better(motion, policies)
            if better is None:
                break
            enough = better.cost > (1.0 - ENOUGH) * motion.cost
            motion = better
            if enough:
                break
        return motion

    def _better(self, motion: LinearMotion, policies: list[Policy]) -> LinearMotion | None:
        for fraction in FRACTIONS:
            tried = self._moved(motion.inputs, motion, policies, fraction)
            if tried.cost < motion.cost:
                return tried
        return None

    def _moved(
        self,
        inputs: np.ndarray,
        about: LinearMotion | None,
        policies: list[Policy] | None,
        fraction: float,
    ) -> LinearMotion:
        states, chosen, residuals = [self._begin], [], []
        for index, step in enumerate(self._steps):
            here, wanted = states[-1], inputs[index]
            if about is not None and policies is not None:
                policy = policies[index]
                wanted = wanted + fraction * policy.change
                wanted = wanted + policy.gain @ (here - about.states[index])
            wanted = np.clip(wanted, self._low[index], self._high[index])
            change = wanted - self._about
            states.append(self._gap + step.a @ here + step.b @ change)
            residuals.append(step.residuals + step.g @ here + step.h @ change)
            chosen.append(wanted)
        cost = float(sum(each @ each for each in residuals))
        return LinearMotion(np.array(chosen), np.array(states), residuals, cost)


class Lqr(LookaheadMpc):
    """See the module; a `Controller`."""

    Settings: ClassVar[type[LookaheadSettings]] = LqrSettings
    settings: LqrSettings

    def __init__(self, context: ControlContext, settings: LqrSettings) -> None:
        """See LookaheadMpc."""
        self._printed = PrintedRegulator(context.model) if settings.form == "printed" else None
        super().__init__(context, settings)

    def _solved(self, plan: np.ndarray, problem: Problem) -> Plan | None:
        settings = self.settings
        steps = HeldSteps(
            problem, self._terms, settings.step_ticks, self._reach, settings.perturbation
        )
        about = problem.previous_command
        linear = steps.linear_about(steps.begin, about, settings.steps)
        if not linear[0].finite:
            return None
        if self._printed is not None:
            inputs = self._printed.inputs(problem, linear)
        else:
            low, high = self._bounds(plan, problem)
            low[1:], high[1:] = self._inputs.low, self._inputs.high
            found = LinearProblem(linear, steps.begin, about, low, high)
            inputs = found.solved(plan, settings.passes).inputs
        self._limit(inputs[None], problem)
        path = limited_path(inputs[None], about, self._reach, settings.step_ticks)
        rollout = problem.rollout(path)
        costs = {name: float(each[0]) for name, each in evaluate(self._terms, rollout)[0].items()}
        return Plan(inputs, rollout.tip_path(0).copy(), costs)

    def reset(self) -> None:
        """See LookaheadMpc."""
        super().reset()
        if self._printed is not None:
            self._printed.reset()

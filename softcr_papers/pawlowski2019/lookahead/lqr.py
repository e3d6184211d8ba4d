"""LQR: one linearisation of the motion in every step, and the linear-quadratic problem solved in
the box of the inputs, Pawlowski (2019), Sec. 4.2.2 and Algorithm 3.

The motion is linear about the present state and inputs, with its affine part; see `linearised`. The
cost is that of the tip, which is not quadratic in the states: every pass of the Riccati recursion
expands it anew about the linear motion that the last pass led to. So the equations of the robot are
differentiated at one point in a step, whatever the horizon; iLQR does so along all of it.
"""

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from softcr_control.costs.term import evaluate
from softcr_control.observation import ControlContext
from softcr_control.predictive.horizon import Problem
from softcr_papers.pawlowski2019.lookahead.held_steps import HeldSteps
from softcr_papers.pawlowski2019.lookahead.linearised import LinearisedModel
from softcr_papers.pawlowski2019.lookahead.plan import Plan, limited_path
from softcr_papers.pawlowski2019.lookahead.printed import PrintedRegulator
from softcr_papers.pawlowski2019.lookahead.riccati import RiccatiMpc
from softcr_papers.pawlowski2019.lookahead.settings import LookaheadSettings
from softcr_runtime.blocks.budget import Budget

Form = Literal["tip", "printed"]
ENOUGH = 1e-3
"""A pass that lowers the cost by less than this share is the last."""


class LqrSettings(LookaheadSettings):
    """Numbers of the algorithm."""

    passes: int = Field(
        default=3, ge=1, le=50, description="largest number of backward passes on one linearisation"
    )
    form: Form = Field(
        default="tip",
        description="tip: affine, with the cost of the tip; printed: as in the thesis, states are "
        "driven to the static ones of the target, and the affine part is left out",
    )


class Lqr(RiccatiMpc):
    """See the module; a `Controller`."""

    Settings: ClassVar[type[LookaheadSettings]] = LqrSettings
    settings: LqrSettings

    def __init__(self, context: ControlContext, settings: LqrSettings) -> None:
        self._printed = PrintedRegulator(context.model) if settings.form == "printed" else None
        super().__init__(context, settings)

    def _solved(self, plan: np.ndarray, problem: Problem, budget: Budget) -> Plan | None:
        if self._printed is not None:
            inputs = self._as_printed(self._printed, problem)
            return None if inputs is None else self._told(inputs, problem)
        linear = linearised(problem, self.settings.perturbation)
        if linear is None:
            return None
        found = self._improved(plan, linear, self.settings.passes, ENOUGH, budget)
        return None if found is None else self._told(found.inputs, problem)

    def _as_printed(self, regulator: PrintedRegulator, problem: Problem) -> np.ndarray | None:
        """(N, m) inputs by steps that are all linear about the present state and inputs."""
        settings, about = self.settings, problem.previous_command
        steps = HeldSteps(
            problem, self._terms, settings.step_ticks, self._reach, settings.perturbation
        )
        (one,) = steps.linear(steps.begin[None], about[None])
        return regulator.inputs(problem, [one] * settings.steps) if one.finite else None

    def _told(self, inputs: np.ndarray, problem: Problem) -> Plan:
        """The plan of inputs (N, m), with what the model itself makes of them."""
        self._limit(inputs[None], problem)
        previous, ticks = problem.previous_command, self.settings.step_ticks
        rollout = problem.rollout(limited_path(inputs[None], previous, self._reach, ticks))
        costs = {name: float(each[0]) for name, each in evaluate(self._terms, rollout)[0].items()}
        return Plan(inputs, rollout.tip_path(0).copy(), costs)

    def reset(self) -> None:
        super().reset()
        if self._printed is not None:
            self._printed.reset()


def linearised(problem: Problem, perturbation: float) -> Problem | None:
    """The same with a model that is linear about where the plan begins, and what is felt there;
    None where that is not finite."""
    model = LinearisedModel(
        problem.model, problem.state, problem.approach[-1], problem.parameters, problem.period,
        perturbation,
    )  # fmt: skip
    if not model.finite:
        return None
    made = replace(problem, model=model)
    vars(made)["state"] = problem.state  # found by the model itself
    return made

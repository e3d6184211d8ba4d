"""NLSQ: the inputs of all steps by nonlinear least squares inside their box, Pawlowski (2019),
Sec. 4.2.1.

The thesis calls MATLAB's `lsqnonlin` without bounds on the inputs. Here it is Gauss-Newton: every
iteration one bounded least-squares step, of which the best of several fractions is taken, so that
the cost never rises. Derivatives are those of perturbed candidates in one batch.
"""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, model_validator

from softcr_control.costs.rollout import Rollout
from softcr_control.costs.term import evaluate, stacked_residuals
from softcr_control.observation import ControlContext
from softcr_control.predictive.bounded_minimum import bounded_minimum
from softcr_control.predictive.gauss_newton import STEP_FRACTIONS
from softcr_control.predictive.horizon import Problem
from softcr_papers.pawlowski2019.lookahead.plan import LookaheadMpc, Plan, limited_path
from softcr_papers.pawlowski2019.lookahead.settings import LookaheadSettings
from softcr_runtime.blocks.budget import Budget

LEAST_DAMPING = 1e-9
"""Of a normal matrix, of its mean diagonal: what no input moves still has a minimum [-]."""


class NlsqSettings(LookaheadSettings):
    """Numbers of the algorithm."""

    iterations: int = Field(
        default=3, ge=1, le=50, description="number of Gauss-Newton iterations in a step"
    )
    tolerance: float = Field(
        default=1e-3,
        ge=0.0,
        lt=1.0,
        description="relative decrease of the cost below which an iteration is the last [-]",
    )
    blocks: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(1,),
        min_length=1,
        description="numbers of steps that change together, beginning with the first; the last "
        "number holds until the end of the horizon (move blocking) [-]",
    )

    @model_validator(mode="after")
    def _first_alone(self) -> "NlsqSettings":
        if self.blocks[0] != 1:
            raise ValueError(f"blocks {list(self.blocks)} must begin with 1")
        return self

    @property
    def block_sizes(self) -> np.ndarray:
        """(K,) steps of every block of the horizon."""
        ends = np.cumsum(self.blocks + (self.blocks[-1],) * self.steps)
        ends = np.minimum(ends, self.steps)
        return np.diff(np.unique(ends), prepend=0)


class Nlsq(LookaheadMpc):
    """See the module; a `Controller`."""

    Settings: ClassVar[type[NlsqSettings]] = NlsqSettings
    settings: NlsqSettings

    def __init__(self, context: ControlContext, settings: NlsqSettings) -> None:
        super().__init__(context, settings)
        self._blocks = settings.block_sizes
        self._perturbation = settings.perturbation * self._inputs.range
        # (K m, N, m) where the numbers of the blocks stand, each alone
        alone = np.repeat(np.eye(len(self._blocks)), self._blocks, axis=1)
        each = np.einsum("kn,ij->kinj", alone, np.eye(self._inputs.size))
        self._alone = each.reshape(-1, settings.steps, self._inputs.size)

    def _solved(self, plan: np.ndarray, problem: Problem, budget: Budget) -> Plan | None:
        for index in range(self.settings.iterations):
            if index and not budget.allows(1):
                break
            rollout, cost, step = self._linearised(plan, problem)
            if step is None:
                return None
            trials = plan + STEP_FRACTIONS[:, None, None] * step
            self._limit(trials, problem)
            tried = self._rollout(trials, problem)
            costs = evaluate(self._terms, tried)[1]
            best = int(costs.argmin())
            if not costs[best] < cost:
                return self._told(plan, rollout, 0)
            plan = trials[best]
            if costs[best] > (1.0 - self.settings.tolerance) * cost:
                break
        return self._told(plan, tried, best)

    def _linearised(
        self, plan: np.ndarray, problem: Problem
    ) -> tuple[Rollout, float, np.ndarray | None]:
        """Rollout of a plan (N, m), first, and of those with one number moved; its cost, and the
        step (N, m) that minimises the linearised one in the box: None where it is not finite."""
        low, high = self._changes(plan, problem)
        moves = np.where(low + high < 0.0, -1.0, 1.0) * self._perturbation
        plans = plan + np.concatenate(
            (np.zeros((1, *plan.shape)), moves.reshape(-1, 1, 1) * self._alone)
        )
        rollout = self._rollout(plans, problem)
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = stacked_residuals(self._terms, rollout)
            slopes = (residuals[1:] - residuals[0]) / moves.reshape(-1, 1)
            normal, gradient = slopes @ slopes.T, slopes @ residuals[0]
            cost = float(residuals[0] @ residuals[0])
        if not (np.isfinite(normal).all() and np.isfinite(gradient).all()):
            return rollout, cost, None
        damp(normal)
        step = bounded_minimum(normal, gradient, low.ravel(), high.ravel())
        return rollout, cost, np.repeat(step.reshape(low.shape), self._blocks, axis=0)

    def _changes(self, plan: np.ndarray, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """(K, m) least and largest changes of the inputs of the blocks.

        The first input is kept as near to the command before as a step gets; of later ones this
        limit is kept by projection.
        """
        low, high = self._inputs.low - plan, self._inputs.high - plan
        near_low, near_high = self._bounds(plan, problem)
        low[0], high[0] = near_low[0] - plan[0], near_high[0] - plan[0]
        begins = np.cumsum(self._blocks) - self._blocks
        return np.maximum.reduceat(low, begins), np.minimum.reduceat(high, begins)

    def _rollout(self, plans: np.ndarray, problem: Problem) -> Rollout:
        before, ticks = problem.previous_command, self.settings.step_ticks
        return problem.rollout(limited_path(plans, before, self._reach, ticks))

    def _told(self, plan: np.ndarray, rollout: Rollout, row: int) -> Plan:
        costs = evaluate(self._terms, rollout.part(np.array([row])))[0]
        return Plan(
            plan,
            rollout.tip_path(row).copy(),
            {name: float(each[0]) for name, each in costs.items()},
        )


def damp(normal: np.ndarray) -> None:
    """Makes a normal matrix (P, P) positive definite, in place."""
    diagonal = normal.reshape(-1)[:: len(normal) + 1]
    diagonal += LEAST_DAMPING * diagonal.sum() / len(normal) + np.finfo(float).tiny

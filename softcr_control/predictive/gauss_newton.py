"""Gradient MPC: one Gauss-Newton iteration per tick over a few knots of the input trajectory.

Not in Licher et al. 2025: the method is ours. A second iteration changes the tip error by less than
1 %, so one is enough. A model that is fast enough for its own sensitivities needs no derivatives:
one candidate of a batch carries the plan, each other one the plan with one number of it moved a
little.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from softcr_control.command import Command, broken_plan
from softcr_control.costs.rollout import Rollout
from softcr_control.costs.settings import CostSettings
from softcr_control.costs.term import evaluate, stacked_residuals
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.bounded_minimum import bounded_minimum
from softcr_control.predictive.horizon import Horizon, HorizonSettings, Problem
from softcr_control.predictive.knots import Knots
from softcr_control.predictive.limits import largest_steps, limit_knots
from softcr_runtime.blocks.budget import Budget
from softcr_runtime.blocks.command_packets import CommandPacket

# Of the normal matrix, of its mean diagonal, at least: what no command moves still has a minimum.
_LEAST_DAMPING = 1e-12
_TINY = np.finfo(float).tiny
# Fractions of the Gauss-Newton step that are tried: eight candidates fill one register of lanes.
STEP_FRACTIONS = np.array([1.0, 0.75, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625])

# A model that remembers its inputs may not answer to a small change of them, as inside a play. If
# no step along such slopes lowers the cost, the next differences are so much wider, up to a limit.
_WIDER, _WIDEST = 4.0, 16.0


class GaussNewtonSettings(HorizonSettings):
    """Numbers of the algorithm; those of its file in config/controllers are the defaults."""

    knots: tuple[int, ...] = Field(
        default=(1, 7),
        min_length=1,
        description="which commands are knots, counted from 1; the last is the horizon's last [-]",
    )
    perturbation: float = Field(
        default=2e-4,
        gt=0.0,
        le=0.1,
        description="step of a knot for the finite differences / range of the input",
        json_schema_extra={"live": True},
    )
    damping: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = Field(
        default=1e-6,
        description="regularisation added to the normal matrix, relative to its mean diagonal [-]; "
        "with more inputs than the costs determine it must be larger, such as 1e-3 for "
        "the tip of an arm with nine tendons",
        json_schema_extra={"live": True},
    )
    costs: CostSettings = Field(
        default=CostSettings(input_rate=0.05, input_rate_of_delay=0.15),
        description="terms that are minimised",
    )

    @model_validator(mode="after")
    def _consistent(self) -> "GaussNewtonSettings":
        ascending = list(self.knots) == sorted(set(self.knots))
        if not ascending or self.knots[0] < 1 or self.knots[-1] != self.horizon:
            raise ValueError(
                f"knots {list(self.knots)} must ascend from 1 or more to horizon {self.horizon}"
            )
        return self

    @classmethod
    def beside_horizon(cls, values: Mapping[str, Any], horizon: Any) -> dict[str, Any]:
        """Knots keep their places in proportion."""
        knots = values["knots"]
        whole = isinstance(knots, (list, tuple)) and all(isinstance(k, int) for k in knots)
        if not (whole and knots and min(knots) > 0 and isinstance(horizon, int)):
            return {}  # validation says why
        return {"knots": sorted({max(1, round(knot * horizon / knots[-1])) for knot in knots})}


class GaussNewtonMpc:
    """The controller: one `command` per tick, interchangeable with `Nempc`.

    The plan is a polyline from the command active now through the knots. Each tick it is shifted by
    one tick, linearised (costs are sums of squares: Gauss-Newton), improved by one bounded
    least-squares step, of which the best of several fractions is taken. So the cost of a plan never
    rises within a tick, and where the step does not help the plan stays.

    Where the step would not be done within the tick's budget, the shifted plan is the answer; but
    never twice in a row, because a plan that is only shifted follows no reference.

    The first knot keeps box and slew limits in the least squares, later ones the box there and the
    slew limit afterwards, by projection.

    Args:
        context: model and period; rollouts in double precision give better differences.
        settings: numbers of the algorithm.

    Raises:
        UserError: costs that the model does not have, no cost term, or two terms of one name.
    """

    Settings: ClassVar[type[GaussNewtonSettings]] = GaussNewtonSettings
    double_precision: ClassVar[bool] = True
    """Whether rollouts should be float64 where the model has the choice."""

    def __init__(self, context: ControlContext, settings: GaussNewtonSettings) -> None:
        self.settings = settings
        self._model, self._inputs = context.model, context.model.inputs
        inputs = self._inputs
        self._terms = settings.costs.made(context.model)
        times = np.array([-1.0, *(knot - 1.0 for knot in settings.knots)])
        self._knots = Knots(times, settings.horizon, inputs.size)
        steps = inputs.rate * context.period * self._knots.spans[:, None]
        self._reach = steps[1]  # (m,) of the first free knot
        self._max_steps = largest_steps(steps[1:], inputs.range)
        self._middle = 0.5 * (inputs.low + inputs.high)
        self._perturbation = self._perturbed_by(settings)
        self._horizon = Horizon(context, settings)
        # each candidate but the first moves one number
        free = (self._knots.count - 1) * inputs.size
        self._moved = np.zeros((1 + free, self._knots.count, inputs.size))
        self._moved[1:, 1:] = np.eye(free).reshape(free, -1, inputs.size)
        self.reset()

    @property
    def rows(self) -> int:
        """Reference rows that are enough at any delay."""
        return self._horizon.rows

    def prepared(self, settings: GaussNewtonSettings) -> Callable[[], None]:
        """What makes it go on with other live settings; the plan stays.

        Raises:
            UserError: no cost term is left.
        """
        terms = settings.costs.made(self._model)

        def use() -> None:
            self.settings, self._terms = settings, terms
            self._perturbation = self._perturbed_by(settings)

        return use

    def _perturbed_by(self, settings: GaussNewtonSettings) -> np.ndarray:
        """(m,) of a knot [unit of the inputs]. Where the model remembers its inputs, a smaller
        change may move nothing: the slope inside a play is nearly 0, and steps would fly."""
        memory = self._inputs.memory
        least = 0.0 if memory is None else memory.least_change
        changed: np.ndarray = np.maximum(settings.perturbation * self._inputs.range, least)
        return changed

    def reset(self) -> None:
        """Forgets plan and previous commands: as if newly made."""
        self._horizon.reset()
        self._plan: np.ndarray | None = None
        self._widened = 1.0
        self._improved = False  # whether the last plan was, or only shifted

    def take_over(self, packets: Sequence[CommandPacket]) -> None:
        """After a reset: another controller's last packets, the newest last."""
        self._horizon.take_over(packets)

    def command(self, observation: Observation) -> Command:
        """The inputs to send for the tick that begins `delay` ticks from now.

        Raises:
            UserError: too few reference rows, a delay out of range, or an unknown parameter.
        """
        self._horizon.observe(observation)
        answer = self._answer(self._horizon.problem(observation), observation.budget)
        return replace(answer, plan=self._horizon.remember(answer.plan, observation))

    def _answer(self, problem: Problem, budget: Budget) -> Command:
        """A step from the last plan, which may lower the cost."""
        plan = self._shifted_plan(problem)
        budget.begin(len(self._moved))
        moved, cost, normal, gradient = self._linearised(plan, problem)
        if not (np.isfinite(normal).all() and np.isfinite(gradient).all()):
            return self._fallback(plan, problem)
        looked_at = len(self._moved)
        self._improved = not self._improved or budget.allows(len(STEP_FRACTIONS))
        if not self._improved:
            return self._chosen(plan, moved, 0, evaluate(self._terms, moved)[0], looked_at)
        looked_at += len(STEP_FRACTIONS)
        step = self._step(plan, problem, normal, gradient)
        trials = plan + STEP_FRACTIONS[:, None, None] * step
        self._limit(trials, problem)
        rollout = self._rollout(trials, problem)
        terms, costs = evaluate(self._terms, rollout)
        best = int(costs.argmin())
        helped = bool(costs[best] < cost)
        self._widen(helped)
        if not helped:
            return self._chosen(plan, moved, 0, evaluate(self._terms, moved)[0], looked_at)
        return self._chosen(trials[best], rollout, best, terms, looked_at)

    def _widen(self, helped: bool) -> None:
        """After the trials of a tick: whether one of them lowered the cost."""
        if self._inputs.memory is not None:
            self._widened = 1.0 if helped else min(_WIDER * self._widened, _WIDEST)

    def _shifted_plan(self, problem: Problem) -> np.ndarray:
        """(K, m) the last plan some ticks later, from the command before it, inside the limits."""
        plan = np.empty((self._knots.count, len(problem.previous_command)))
        plan[:] = problem.previous_command
        if self._plan is not None:
            plan[1:] = self._knots.shifted(self._plan[None], problem.shift)[0, 1:]
        self._limit(plan[None], problem)
        return plan

    def _linearised(
        self, plan: np.ndarray, problem: Problem
    ) -> tuple[Rollout, float, np.ndarray, np.ndarray]:
        """Rollout of a plan and of its P moved ones, its cost, and by the free knots (P,) half
        the cost's Gauss-Newton Hessian (P, P) and half its gradient (P,) [unit of the inputs].

        A knot is moved towards the middle of the box, so that it stays inside.
        """
        moves = np.where(plan > self._middle, -1.0, 1.0) * self._widened * self._perturbation
        rollout = self._rollout(plan + moves * self._moved, problem)
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = stacked_residuals(self._terms, rollout)
            residual = residuals[0]
            slopes = (residuals[1:] - residual) / moves[1:].reshape(-1, 1)
            return rollout, float(residual @ residual), slopes @ slopes.T, slopes @ residual

    def _step(
        self, plan: np.ndarray, problem: Problem, normal: np.ndarray, gradient: np.ndarray
    ) -> np.ndarray:
        """(K, m) the change of the plan that minimises the linearised cost inside the limits."""
        settings, inputs, free = self.settings, self._inputs, plan[1:]
        low, high = inputs.low - free, inputs.high - free
        reach, gone = self._reach, free[0] - problem.previous_command
        low[0] = np.maximum(low[0], -reach - gone)
        high[0] = np.minimum(high[0], reach - gone)
        diagonal = normal.reshape(-1)[:: len(normal) + 1]
        diagonal += max(settings.damping, _LEAST_DAMPING) * diagonal.sum() / len(normal) + _TINY
        change = np.zeros(plan.shape)
        found = bounded_minimum(normal, gradient, low.ravel(), high.ravel())
        change[1:] = found.reshape(free.shape)
        return change

    def _limit(self, plans: np.ndarray, problem: Problem) -> None:
        """The free knots of plans (B, K, m) moved, in place, until they keep the limits."""
        inputs, previous = self._inputs, problem.previous_command
        limit_knots(plans[:, 1:], previous, inputs.low, inputs.high, self._max_steps)

    def _rollout(self, plans: np.ndarray, problem: Problem) -> Rollout:
        return problem.rollout(self._knots.commands(plans))

    def _chosen(
        self,
        plan: np.ndarray,
        rollout: Rollout,
        row: int,
        terms: dict[str, np.ndarray],
        candidates: int,
    ) -> Command:
        self._plan = plan.copy()
        costs = {name: float(values[row]) for name, values in terms.items()}
        return Command(
            plan=rollout.commands[row].copy(),
            cost=sum(costs.values()),
            cost_terms=costs,
            best_knots=plan.copy(),
            predicted_tips=rollout.tip_path(row).copy(),
            candidates=candidates,
        )

    def _fallback(self, plan: np.ndarray, problem: Problem) -> Command:
        """The commands of the plan so far, whatever its knots lose where they move on."""
        commands = self._knots.commands((plan if self._plan is None else self._plan)[None])[0]
        if self._plan is not None:
            later = np.arange(len(commands)) + problem.shift
            commands = commands[np.clip(later, 0, len(commands) - 1)]
        self._plan = plan
        return broken_plan(commands, plan, [t.name for t in self._terms], self.settings.horizon)

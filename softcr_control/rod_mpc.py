"""Gradient MPC: one Gauss-Newton iteration per tick over a few knots of the input trajectory.

Not in Licher et al. 2025: the method is ours. A second iteration changes the tip error by less than
1 %, so one is enough. The exact rod is fast enough for its own sensitivities: one lane of the
batched step carries the plan, each other lane the plan with one number of it moved a little.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from softcr_control.bounded_minimum import bounded_minimum
from softcr_control.command import Command, broken_plan
from softcr_control.costs.rollout import (
    CostTerm,
    Rollout,
    checked_terms,
    evaluate,
    stacked_residuals,
)
from softcr_control.horizon import Horizon, HorizonSettings, Positive, Problem
from softcr_control.knots import Knots
from softcr_control.limits import limit_knots
from softcr_control.references import Reference
from softcr_models.prediction import PredictionModel
from softcr_models.pressure import PressureLag

# Of the normal matrix, of its mean diagonal, at least: what no command moves still has a minimum.
_LEAST_DAMPING = 1e-12
_TINY = np.finfo(float).tiny
# Fractions of the Gauss-Newton step that are tried: eight candidates fill one register of lanes.
STEP_FRACTIONS = np.array([1.0, 0.75, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625])


class RodMpcSettings(HorizonSettings):
    """Numbers of the algorithm; the defaults are those of config/controllers/rod_mpc.yaml."""

    knots: tuple[int, ...] = Field(
        default=(2, 8),
        min_length=1,
        description="which commands are knots, counted from 1; the last is the horizon's last [-]",
    )
    perturbation: Positive = Field(
        default=20.0, description="of a knot, for the finite differences [Pa]"
    )
    damping: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = Field(
        default=1e-6, description="added to the normal matrix, of its mean diagonal [-]"
    )

    @model_validator(mode="after")
    def _consistent(self) -> "RodMpcSettings":
        ascending = list(self.knots) == sorted(set(self.knots))
        if not ascending or self.knots[0] < 1 or self.knots[-1] != self.horizon:
            raise ValueError(
                f"knots {list(self.knots)} must ascend from 1 or more to horizon {self.horizon}"
            )
        return self

    def for_horizon(self, horizon: int) -> "RodMpcSettings":
        """The same with another horizon [ticks]; its knots keep their places in proportion."""
        places = {max(1, round(knot * horizon / self.horizon)) for knot in self.knots}
        return self.model_copy(update={"horizon": horizon, "knots": tuple(sorted(places))})


class RodMpc:
    """The controller: one `command` per tick, interchangeable with `Nempc`.

    The plan is a polyline from the command active now through the knots. Each tick it is shifted by
    one tick, linearised (costs are sums of squares: Gauss-Newton), improved by one bounded
    least-squares step, of which the best of several fractions is taken. So the cost of a plan never
    rises within a tick, and where the step does not help the plan stays.

    The first knot keeps box and slew limits in the least squares, later ones the box there and the
    slew limit afterwards, by projection.

    Args:
        prediction: the model; rollouts in double precision give better differences.
        lag: from commands to chamber pressures, (32).
        settings: numbers of the algorithm.
        cost_terms: what is minimised, summed.

    Raises:
        UserError: no cost term, or two terms of one name.
    """

    def __init__(
        self,
        prediction: PredictionModel,
        lag: PressureLag,
        settings: RodMpcSettings,
        cost_terms: Sequence[CostTerm],
    ) -> None:
        self.settings = settings
        self._terms = checked_terms(cost_terms)
        times = np.array([-1.0, *(knot - 1.0 for knot in settings.knots)])
        self._knots = Knots(times, settings.horizon, prediction.input_size)
        self._max_steps = settings.max_rate * settings.period * self._knots.spans
        self._horizon = Horizon(prediction, lag, settings)
        # each lane but the first moves one number
        free = (self._knots.count - 1) * prediction.input_size
        self._moved = np.zeros((1 + free, self._knots.count, prediction.input_size))
        self._moved[1:, 1:] = np.eye(free).reshape(free, -1, prediction.input_size)
        self.reset()

    @property
    def rows(self) -> int:
        """Reference rows that are enough at any delay."""
        return self._horizon.rows

    def reset(self) -> None:
        """Forgets plan and previous commands: as if newly made."""
        self._horizon.reset()
        self._plan: np.ndarray | None = None

    def command(
        self,
        state: np.ndarray,
        bending_compliance: float | None,
        reference: Reference,
        measured_pressures: np.ndarray,
        parameters: Mapping[str, float] | None = None,
        delay: int = 1,
    ) -> Command:
        """The pressures to send for the tick that begins `delay` ticks from now.

        Args:
            state: (nx,) estimated state at t_k.
            bending_compliance: estimated [rad/(N m m)]; None for a model that has none.
            reference, measured_pressures, delay: see `Horizon.problem`.
            parameters: other estimated parameters by name; those not given are nominal.

        Raises:
            UserError: too few reference rows, a delay out of range, or an unknown parameter.
        """
        problem = self._horizon.problem(
            state, bending_compliance, reference, measured_pressures, parameters or {}, delay
        )
        plan = self._shifted_plan(problem)
        moved, cost, normal, gradient = self._linearised(plan, problem)
        if not (np.isfinite(normal).all() and np.isfinite(gradient).all()):
            return self._fallback(plan, problem)
        step = self._step(plan, problem, normal, gradient)
        trials = plan + STEP_FRACTIONS[:, None, None] * step
        self._limit(trials, problem)
        rollout = self._rollout(trials, problem)
        terms, costs = evaluate(self._terms, rollout)
        best = int(costs.argmin())
        if not costs[best] < cost:
            return self._chosen(plan, moved, 0, evaluate(self._terms, moved)[0])
        return self._chosen(trials[best], rollout, best, terms)

    def _shifted_plan(self, problem: Problem) -> np.ndarray:
        """(K, m) the last plan a tick later, from the command active now on, inside the limits."""
        plan = np.empty((self._knots.count, len(problem.previous_command)))
        plan[:] = problem.previous_command
        if self._plan is not None:
            plan[1:] = self._knots.shifted(self._plan[None])[0, 1:]
        self._limit(plan[None], problem)
        return plan

    def _linearised(
        self, plan: np.ndarray, problem: Problem
    ) -> tuple[Rollout, float, np.ndarray, np.ndarray]:
        """Rollout of a plan and of its P moved ones, its cost, and by the free knots (P,) [Pa]
        half the cost's Gauss-Newton Hessian (P, P) [1/Pa^2] and half its gradient (P,) [1/Pa].

        A knot is moved towards the middle of the box, so that it stays inside.
        """
        middle = 0.5 * (self.settings.pressure_low + self.settings.pressure_high)
        moves = np.where(plan > middle, -1.0, 1.0) * self.settings.perturbation
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
        settings, free = self.settings, plan[1:]
        low, high = settings.pressure_low - free, settings.pressure_high - free
        reach, gone = self._max_steps[1], free[0] - problem.previous_command
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
        settings = self.settings
        limit_knots(
            plans[:, 1:],
            problem.previous_command,
            settings.pressure_low,
            settings.pressure_high,
            self._max_steps[1:],
        )

    def _rollout(self, plans: np.ndarray, problem: Problem) -> Rollout:
        return self._horizon.rollout(self._knots.commands(plans), problem)

    def _chosen(
        self, plan: np.ndarray, rollout: Rollout, row: int, terms: dict[str, np.ndarray]
    ) -> Command:
        self._plan = plan.copy()
        pressures = rollout.commands[row, 0].copy()
        self._horizon.remember(pressures)
        costs = {name: float(values[row]) for name, values in terms.items()}
        return Command(
            pressures=pressures.copy(),
            cost=sum(costs.values()),
            cost_terms=costs,
            best_knots=plan.copy(),
            predicted_tips=rollout.tip_path(row).copy(),
        )

    def _fallback(self, plan: np.ndarray, problem: Problem) -> Command:
        """The next command of the plan so far, which then goes on from there."""
        pressures = problem.previous_command
        if self._plan is not None:
            pressures = self._knots.commands(self._plan[None])[0, 1]
        self._plan = plan
        self._horizon.remember(pressures)
        return broken_plan(pressures, plan, [t.name for t in self._terms], self.settings.horizon)

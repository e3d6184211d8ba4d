"""Gradient MPC: one Gauss-Newton iteration per tick over a few knots of the input trajectory.

Ours, not in the paper; findings/fastrod.md section 4 holds the prototype's figures. The exact rod
is fast enough for its own sensitivities: one lane of the batched step carries the plan, each other
lane the plan with one number of it moved a little.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator
from scipy.optimize import lsq_linear

from softcr_control.command import Command, broken_plan
from softcr_control.costs.rollout import CostTerm, Rollout, checked_terms, evaluate
from softcr_control.horizon import Horizon, HorizonSettings, Positive, Problem
from softcr_control.knots import Knots
from softcr_control.limits import limit_knots
from softcr_control.references import Reference
from softcr_models.prediction import PredictionModel
from softcr_models.pressure import PressureLag

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
        residual, jacobian = self._linearised(plan, problem)
        if not (np.isfinite(residual).all() and np.isfinite(jacobian).all()):
            return self._fallback(plan, problem)
        step = self._step(plan, problem, residual, jacobian)
        trials = plan + STEP_FRACTIONS[:, None, None] * step
        self._limit(trials, problem)
        rollout = self._rollout(trials, problem)
        terms, costs = evaluate(self._terms, rollout)
        best = int(np.argmin(costs))
        if not costs[best] < residual @ residual:
            return self._kept(plan, problem)
        return self._chosen(trials[best], rollout, best, terms)

    def _shifted_plan(self, problem: Problem) -> np.ndarray:
        """(K, m) the last plan a tick later, from the command active now on, inside the limits."""
        plan = np.repeat(problem.previous_command[None], self._knots.count, axis=0)
        if self._plan is not None:
            plan[1:] = self._knots.shifted(self._plan[None])[0, 1:]
        self._limit(plan[None], problem)
        return plan

    def _linearised(self, plan: np.ndarray, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """Residuals (R,) of a plan and their derivatives (R, P) by its free knots / input range.

        A knot is moved towards the middle of the box, so that it stays inside.
        """
        middle = 0.5 * (self.settings.pressure_low + self.settings.pressure_high)
        moves = np.where(plan > middle, -1.0, 1.0) * self.settings.perturbation
        rollout = self._rollout(plan + moves * self._moved, problem)
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = np.hstack([term.residuals(rollout) for term in self._terms])
            differences = residuals[1:] - residuals[0]
        slopes = differences.T * (self.settings.input_range / moves[1:].ravel())
        return residuals[0], slopes.astype(float)

    def _step(
        self, plan: np.ndarray, problem: Problem, residual: np.ndarray, jacobian: np.ndarray
    ) -> np.ndarray:
        """(K, m) the change of the plan that minimises the linearised cost inside the limits."""
        settings = self.settings
        low = np.full_like(plan[1:], settings.pressure_low)
        high = np.full_like(plan[1:], settings.pressure_high)
        reach = self._max_steps[1]
        low[0] = np.maximum(low[0], problem.previous_command - reach)
        high[0] = np.minimum(high[0], problem.previous_command + reach)
        # the plan lies inside, but for rounding
        below = ((low - plan[1:]) / settings.input_range).ravel() - 1e-12
        above = ((high - plan[1:]) / settings.input_range).ravel() + 1e-12
        change = np.zeros_like(plan)
        found = _bounded_least_squares(jacobian, residual, below, above, settings.damping)
        change[1:] = settings.input_range * found.reshape(plan[1:].shape)
        return change

    def _limit(self, plans: np.ndarray, problem: Problem) -> None:
        """Plans (B, K, m) moved, in place, to the nearest that keep the limits."""
        settings = self.settings
        limit_knots(
            plans,
            problem.previous_command,
            settings.pressure_low,
            settings.pressure_high,
            self._max_steps,
        )
        plans[:, 0] = problem.previous_command

    def _rollout(self, plans: np.ndarray, problem: Problem) -> Rollout:
        return self._horizon.rollout(self._knots.commands(plans), problem)

    def _kept(self, plan: np.ndarray, problem: Problem) -> Command:
        rollout = self._rollout(plan[None], problem)
        return self._chosen(plan, rollout, 0, evaluate(self._terms, rollout)[0])

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


def _bounded_least_squares(
    jacobian: np.ndarray, residual: np.ndarray, low: np.ndarray, high: np.ndarray, damping: float
) -> np.ndarray:
    """Minimises |J x + r|^2 + damping mean(diag J^T J) |x|^2 over low <= x <= high.

    Mostly no bound is active: then one small linear solve does it, in 0.02 ms instead of 0.3.
    """
    normal = jacobian.T @ jacobian
    weight = damping * normal.trace() / len(normal) + _TINY
    normal.flat[:: len(normal) + 1] += weight  # its diagonal
    free: np.ndarray = np.linalg.solve(normal, -(jacobian.T @ residual))
    if (free >= low).all() and (free <= high).all():
        return free
    stacked = np.vstack([jacobian, np.sqrt(weight) * np.eye(len(normal))])
    target = np.concatenate([-residual, np.zeros(len(normal))])
    bounded: np.ndarray = lsq_linear(stacked, target, (low, high), method="bvls").x
    return bounded

"""Nonlinear evolutionary model-predictive control, Licher et al. 2025, Sec. V-B, (39)-(40)."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, model_validator
from pydantic.config import JsonDict

from softcr_control.command import Command, broken_plan
from softcr_control.costs.rollout import Rollout
from softcr_control.costs.settings import CostSettings
from softcr_control.costs.term import evaluate, stacked_residuals
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.evolution import Evolution
from softcr_control.predictive.horizon import Horizon, HorizonSettings, Positive, Problem
from softcr_control.predictive.knots import Knots, even_knots
from softcr_control.predictive.limits import largest_steps, limit_knots
from softcr_control.predictive.polish import cheapest, gauss_newton_proposals
from softcr_runtime.blocks.budget import Budget
from softcr_runtime.blocks.command_packets import CommandPacket

_LIVE: JsonDict = {"live": True}

_PIECES = 4  # of a population, beside the parents, if time is limited; each costs 1 % more
_WHOLE = 128
"""Pieces are multiples of it, so that lanes of kernels and blocks of sums hold the same candidates
as in one piece, and costs are equal to the bit."""

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]


class NempcSettings(HorizonSettings):
    """Numbers of the algorithm; those of config/controllers/nempc.yaml are the defaults."""

    population: int = Field(default=1000, ge=8, le=100_000, description="candidates per generation")
    prediction_step: int = Field(
        default=1,
        ge=1,
        le=100,
        description="ticks from one predicted state to the next, of which horizon is a multiple; a "
        "fast loop need not predict at each of its ticks",
    )
    segments: int = Field(default=1, ge=1, le=50, description="linear segments of a candidate")
    first_knot_fixed: bool = Field(
        default=False, description="whether candidates start from the command that is active now"
    )
    parents: Fraction = Field(
        default=0.1,
        description="fraction of the best candidates that is carried over",
        json_schema_extra=_LIVE,
    )
    strangers: Fraction = Field(
        default=0.1,
        description="fraction of new random candidates",
        json_schema_extra=_LIVE,
    )
    stranger_spread: Fraction = Field(
        default=0.3,
        description="standard deviation of new random candidates around the previous command / "
        "range of the input",
        json_schema_extra=_LIVE,
    )
    mutation_probability: Fraction = Field(
        default=0.5,
        description="probability that one knot of one channel mutates",
        json_schema_extra=_LIVE,
    )
    mutation_noise: Fraction = Field(
        default=0.04,
        description="standard deviation of a mutation / range of the input, at mutation_error",
        json_schema_extra=_LIVE,
    )
    mutation_error: Positive = Field(
        default=0.01,
        description="tip error at which mutation_noise applies [m]",
        json_schema_extra=_LIVE,
    )
    mutation_scale_low: Positive = Field(
        default=1.0,
        description="lowest factor on mutation_noise",
        json_schema_extra=_LIVE,
    )
    mutation_scale_high: Positive = Field(
        default=4.0,
        description="highest factor on mutation_noise",
        json_schema_extra=_LIVE,
    )
    generations: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="generations per tick",
        json_schema_extra=_LIVE,
    )
    polish: bool = Field(
        default=True,
        description="whether a fitted Gauss-Newton step refines the best candidate (our addition)",
        json_schema_extra=_LIVE,
    )

    costs: CostSettings = Field(
        default=CostSettings(input_rate=0.15, input_rate_of_delay=0.15),
        description="terms that are minimised",
    )

    @model_validator(mode="after")
    def _consistent(self) -> "NempcSettings":
        if self.parents + self.strangers > 1.0:
            raise ValueError(
                f"parents {self.parents} + strangers {self.strangers} must be at most 1"
            )
        if self.segments > self.horizon - 1:
            raise ValueError(f"segments {self.segments} must be below horizon {self.horizon}")
        if self.horizon % self.prediction_step:
            raise ValueError(
                f"horizon {self.horizon} must be a multiple of prediction_step "
                f"{self.prediction_step}"
            )
        if self.mutation_scale_low > self.mutation_scale_high:
            raise ValueError(
                f"mutation_scale_low {self.mutation_scale_low} must be at most mutation_scale_high "
                f"{self.mutation_scale_high}"
            )
        return self

    @property
    def shares(self) -> tuple[int, int, int]:
        """Numbers of parents, strangers and children of a generation."""
        parents = max(1, round(self.parents * self.population))
        strangers = min(round(self.strangers * self.population), self.population - parents)
        return parents, strangers, self.population - parents - strangers


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """Candidates and what they cost, of which the first L were looked at."""

    knots: np.ndarray  # (B, K, m)
    rollout: Rollout  # of L candidates
    terms: dict[str, np.ndarray]  # name -> (L,)
    costs: np.ndarray  # (B,) inf where not finite, or not looked at
    best: int


class Nempc:
    """The controller: one `command` per tick.

    A population of candidate input trajectories lives from tick to tick. Each tick it is shifted by
    one tick, evolved (parents, strangers, children), made feasible, rolled out through lag (40) and
    model in one batch, and the first command of the cheapest candidate is the answer.

    Where its budget is limited a generation is looked at in pieces, the parents first. When the
    budget ends, the best so far is polished and sent; candidates that were not looked at cost
    infinity.

    When an answer becomes active, and what is compared with what: see `Horizon`.

    Args:
        context: model, period, seed.
        settings: numbers of the algorithm.

    Raises:
        UserError: costs that the model does not have, no cost term, or two terms of one name.
    """

    Settings: ClassVar[type[NempcSettings]] = NempcSettings
    double_precision: ClassVar[bool] = False
    """Whether rollouts should be float64 where the model has the choice."""
    threads: ClassVar[int] = 2
    """Of the prediction, that a population of many candidates is worth."""
    _evolution: Evolution

    def __init__(self, context: ControlContext, settings: NempcSettings) -> None:
        self.settings = settings
        self._model, self._inputs, self._seed = context.model, context.model.inputs, context.seed
        self._terms = settings.costs.made(context.model)
        times = even_knots(settings.segments, settings.horizon, settings.first_knot_fixed)
        self._knots = Knots(times, settings.horizon, self._inputs.size)
        step = self._inputs.rate * context.period
        self._max_steps = largest_steps(step * self._knots.spans[:, None], self._inputs.range)
        self._horizon = Horizon(context, settings, settings.prediction_step)
        self.reset()

    @property
    def rows(self) -> int:
        """Reference rows that are enough at any delay."""
        return self._horizon.rows

    def prepared(self, settings: NempcSettings) -> Callable[[], None]:
        """What makes it go on with other live settings; population and random numbers stay.

        Raises:
            UserError: no cost term is left.
        """
        terms = settings.costs.made(self._model)

        def use() -> None:
            self.settings, self._terms = settings, terms
            self._evolution = self._evolution_of(self._evolution.generator)

        return use

    def reset(self) -> None:
        """Forgets population and previous command and seeds again: as if newly made."""
        self._best: np.ndarray | None = None
        self._horizon.reset()
        self._begin_population()

    def _begin_population(self) -> None:
        """No population yet, and the seed's first random numbers."""
        self._evolution = self._evolution_of(np.random.default_rng(self._seed))
        self._generation: tuple[np.ndarray, np.ndarray] | None = None

    def _evolution_of(self, generator: np.random.Generator) -> Evolution:
        return Evolution(
            *self.settings.shares,
            self.settings.stranger_spread * self._inputs.range,
            self.settings.mutation_probability,
            generator,
        )

    def take_over(self, packets: Sequence[CommandPacket]) -> None:
        """After a reset: another controller's last packets, the newest last."""
        self._horizon.take_over(packets)

    def command(self, observation: Observation) -> Command:
        """The inputs to send for the tick that begins `delay` ticks from now.

        Raises:
            UserError: too few reference rows, a delay out of range, or an unknown parameter.
        """
        self._horizon.observe(observation)
        problem = self._horizon.problem(observation)
        plan = self._plan(problem, observation.budget)
        answer = self._fallback(problem) if plan is None else plan
        self._best = answer.best_knots.copy()
        return replace(answer, plan=self._horizon.remember(answer.plan, observation))

    def _plan(self, problem: Problem, budget: Budget) -> Command | None:
        """The best that the population finds; None where no candidate has a finite cost."""
        pieces = self._pieces() if budget.limited else [slice(self.settings.population)]
        budget.begin(pieces[0].stop)
        evaluated = self._evaluate(self._begin_tick(problem), problem, pieces, budget)
        candidates = len(evaluated.rollout.commands)
        for _ in range(self.settings.generations - 1):
            if not budget.allows(pieces[0].stop):
                break
            bred = self._evolved(evaluated.knots, evaluated.costs, problem)
            evaluated = self._evaluate(bred, problem, pieces, budget)
            candidates += len(evaluated.rollout.commands)
        if not np.isfinite(evaluated.costs[evaluated.best]):
            self._generation = None
            return None
        winner = self._polished(evaluated, problem) if self.settings.polish else evaluated
        self._generation = evaluated.knots, evaluated.costs
        best, rollout = winner.best, winner.rollout
        return Command(
            plan=rollout.commands[best].copy(),
            cost=float(winner.costs[best]),
            cost_terms={name: float(values[best]) for name, values in winner.terms.items()},
            best_knots=winner.knots[best].copy(),
            predicted_tips=rollout.tip_path(best).copy(),
            candidates=candidates,
        )

    @property
    def least(self) -> int:
        """Candidates that it looks at however little time there is."""
        return self._pieces()[0].stop

    def _pieces(self) -> list[slice]:
        """In which a generation is looked at, the parents first: with the polish they are enough
        for an answer, as their minimum is fitted."""
        population, parents = self.settings.population, self.settings.shares[0]
        first, size = (
            _WHOLE * math.ceil(some / _WHOLE) for some in (parents, population / _PIECES)
        )
        ends = [*range(first, population, size), population]
        return [slice(begin, end) for begin, end in itertools.pairwise([0, *ends])]

    def _begin_tick(self, problem: Problem) -> np.ndarray:
        """First candidates of a tick (B, K, m): from the last generation, some ticks later."""
        if self._generation is None:
            centre = problem.previous_command
            return self._feasible(
                self._evolution.first_generation(centre, self._knots.count), problem
            )
        knots, costs = self._generation
        return self._evolved(self._knots.shifted(knots, problem.shift), costs, problem)

    def _evolved(self, knots: np.ndarray, costs: np.ndarray, problem: Problem) -> np.ndarray:
        """The next generation (B, K, m) of candidates with these costs."""
        mutation = self._mutation(problem.control_error)
        bred = self._evolution.next_generation(knots, costs, problem.previous_command, mutation)
        return self._feasible(bred, problem)

    def _mutation(self, control_error: float) -> np.ndarray:
        """(m,) standard deviation of a mutation, adapted to the current control error.

        The paper says that the noise is scaled by the control error, not how. Here:
        mutation_noise * input range * clip(|tip - reference tip| / mutation_error, low, high):
        far away it explores, close by it converges.
        """
        settings = self.settings
        scale = control_error / settings.mutation_error
        if not scale < settings.mutation_scale_high:  # also when the state is not finite
            scale = settings.mutation_scale_high
        scale = max(scale, settings.mutation_scale_low)
        deviation: np.ndarray = settings.mutation_noise * self._inputs.range * scale
        return deviation

    def _feasible(self, knots: np.ndarray, problem: Problem) -> np.ndarray:
        """Knots (B, K, m) moved, in place, to the nearest that keep the limits."""
        previous, inputs = problem.previous_command, self._inputs
        if self.settings.first_knot_fixed:
            knots[:, 0] = previous
        limit_knots(knots, previous, inputs.low, inputs.high, self._max_steps)
        return knots

    def _evaluate(
        self, knots: np.ndarray, problem: Problem, pieces: Sequence[slice], budget: Budget
    ) -> _Evaluation:
        """Candidates (B, K, m) looked at in pieces, the first one in any case."""
        rollout = problem.rollout(self._knots.commands(knots))
        parts: list[Rollout] = []
        terms: list[dict[str, np.ndarray]] = []
        costs = np.full(len(knots), np.inf)
        for rows in pieces:
            if parts and not budget.allows(rows.stop - rows.start):
                break
            parts.append(rollout.part(rows))
            of_terms, costs[rows] = evaluate(self._terms, parts[-1])
            terms.append(of_terms)
        named = {name: np.concatenate([each[name] for each in terms]) for name in terms[0]}
        return _Evaluation(knots, rollout.joined(parts), named, costs, best=int(np.argmin(costs)))

    def _polished(self, evaluated: _Evaluation, problem: Problem) -> _Evaluation:
        """Tries the proposals of a Gauss-Newton step; a better one replaces the worst candidate."""
        dimension = evaluated.knots[0].size
        fitted = cheapest(evaluated.costs, evaluated.best, dimension)
        if len(fitted) <= 1 + dimension:
            return evaluated
        proposals = gauss_newton_proposals(
            evaluated.knots[fitted],
            stacked_residuals(self._terms, evaluated.rollout.part(fitted)),
            self._inputs.low,
            self._inputs.high,
        )
        everything = [slice(len(proposals))]
        polished = self._evaluate(self._feasible(proposals, problem), problem, everything, Budget())
        if not polished.costs[polished.best] < evaluated.costs[evaluated.best]:
            return evaluated
        worst = int(np.argmax(evaluated.costs))
        evaluated.knots[worst] = polished.knots[polished.best]
        evaluated.costs[worst] = polished.costs[polished.best]
        return polished

    def _fallback(self, problem: Problem) -> Command:
        """Continues the previous plan; the next tick starts from a fresh population."""
        knots = np.repeat(problem.previous_command[None], self._knots.count, axis=0)
        if self._best is not None:
            later = self._knots.shifted(self._best[None], problem.shift)
            knots = self._feasible(later, problem)[0]
        plan = self._knots.commands(knots[None])[0]
        names = [term.name for term in self._terms]
        return broken_plan(plan, knots, names, self.settings.horizon)

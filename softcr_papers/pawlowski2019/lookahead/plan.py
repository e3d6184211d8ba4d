"""What NLSQ, LQR and iLQR share beside their optimisation: when a plan is made, and what is sent.

Not of any paper: Pawlowski (2019), Sec. 4.2, makes a plan in every step and applies its first
input; that a command moves towards it no faster than the actuators may is ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from softcr_control.command import Command, broken_plan
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.horizon import Horizon, Problem
from softcr_control.predictive.limits import largest_steps, limit_knots
from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.lookahead.settings import LookaheadSettings
from softcr_runtime.blocks.budget import Budget
from softcr_runtime.blocks.command_packets import CommandPacket


@dataclass(frozen=True, eq=False)
class Plan:
    """A sequence of inputs and what it should do.

    Attributes:
        inputs: (N, m) held over the steps [unit of the inputs].
        tips: (T, 3) at the ends of the ticks [m].
        costs: by name of term.
    """

    inputs: np.ndarray
    tips: np.ndarray
    costs: dict[str, float]


class LookaheadMpc:
    """A controller that makes a plan every `step_ticks` ticks; a subclass says how it is found.

    Args:
        context: model and period; rollouts in double precision give better differences.
        settings: numbers of the algorithm.

    Raises:
        UserError: costs that the model does not have, no cost term, or two terms of one name; a
            model whose inputs have a memory.
    """

    Settings: ClassVar[type[LookaheadSettings]] = LookaheadSettings
    double_precision: ClassVar[bool] = True
    """Whether rollouts should be float64 where the model has the choice."""

    def __init__(self, context: ControlContext, settings: LookaheadSettings) -> None:
        self.settings = settings
        self._model, self._inputs = context.model, context.model.inputs
        if self._inputs.memory is not None:
            raise UserError(
                f"controller {type(self).__name__}: the robot's pressure_chain remembers earlier "
                "inputs, which its steps do not; must be nempc or rod_mpc, or a robot without"
            )
        self._terms = settings.costs.made(context.model)
        self._horizon = Horizon(context, settings)
        self._reach = self._inputs.rate * context.period  # (m,) of a command in a tick
        self._most = settings.step_ticks * self._reach  # (m,) in a step
        every = np.tile(self._most, (settings.steps, 1))
        self._max_steps = largest_steps(every, self._inputs.range)
        self.reset()

    @property
    def rows(self) -> int:
        """Reference rows that are enough at any delay."""
        return self._horizon.rows

    def reset(self) -> None:
        """Forgets plan and previous commands: as if newly made."""
        self._horizon.reset()
        self._plan: Plan | None = None
        self._tick = 0  # of the plan, in which the next answer begins to count

    def take_over(self, packets: Sequence[CommandPacket]) -> None:
        """After a reset: another controller's last packets, the newest last."""
        self._horizon.take_over(packets)

    def command(self, observation: Observation) -> Command:
        """The inputs to send for the tick that begins `delay` ticks from now.

        Raises:
            UserError: too few reference rows, a delay out of range, or an unknown parameter.
        """
        self._horizon.observe(observation)
        self._tick += self._horizon.shift
        if self._plan is not None and 0 <= self._tick < self.settings.step_ticks:
            return self._sent(self._plan)
        problem = self._horizon.problem(observation)
        begin = self._shifted(problem)
        observation.budget.begin(1)
        found = self._solved(begin, problem, observation.budget)
        if found is None:
            return self._fallback(problem)
        self._plan, self._tick = found, 0
        return self._sent(found)

    def _solved(self, plan: np.ndarray, problem: Problem, budget: Budget) -> Plan | None:
        """The plan for a problem; None where no number of it is finite.

        Args:
            plan: (N, m) to begin with, inside the box.
            problem: of this tick.
            budget: of the tick, asked for every iteration but the first, each of which counts 1.
        """
        raise NotImplementedError

    def _shifted(self, problem: Problem) -> np.ndarray:
        """(N, m) the last plan a step later; of none, the command active now."""
        if self._plan is None:
            inputs = np.tile(problem.previous_command, (self.settings.steps, 1))
        else:
            inputs = np.concatenate((self._plan.inputs[1:], self._plan.inputs[-1:]))
        self._limit(inputs[None], problem)
        return inputs

    def _limit(self, plans: np.ndarray, problem: Problem) -> None:
        """Plans (B, N, m) moved, in place, into the box and so that commands can follow them."""
        inputs = self._inputs
        limit_knots(plans, problem.previous_command, inputs.low, inputs.high, self._max_steps)

    def _bounds(self, plan: np.ndarray, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """(N, m) least and largest inputs: the box, and how far the commands get in a step from
        those of the step before."""
        before = np.concatenate((problem.previous_command[None], plan[:-1]))
        low = np.maximum(self._inputs.low, before - self._most)
        return low, np.minimum(self._inputs.high, before + self._most)

    def _sent(self, plan: Plan) -> Command:
        """The commands of the plan from its present tick on."""
        commands = self._commands(plan.inputs, self._tick)
        rows = np.minimum(np.arange(len(plan.tips)) + self._tick, len(plan.tips) - 1)
        return Command(
            plan=commands,
            cost=sum(plan.costs.values()),
            cost_terms=plan.costs,
            best_knots=plan.inputs.copy(),
            predicted_tips=plan.tips[rows],
        )

    def _commands(self, inputs: np.ndarray, tick: int) -> np.ndarray:
        """(T, m) commands of a plan (N, m) from a tick of its first step on, as they are sent."""
        path = limited_path(
            inputs[None], self._horizon.previous, self._reach, self.settings.step_ticks, tick
        )[0]
        commands = np.clip(path, self._inputs.low, self._inputs.high)
        self._horizon.remember(commands)
        return commands

    def _fallback(self, problem: Problem) -> Command:
        """What the plan so far holds, or what is active."""
        inputs = self._shifted(problem)
        if self._plan is not None:
            self._plan, self._tick = Plan(inputs, self._plan.tips, self._plan.costs), 0
        names = [term.name for term in self._terms]
        return broken_plan(self._commands(inputs, 0), inputs, names, self.settings.horizon)


def limited_path(
    plans: np.ndarray, previous: np.ndarray, reach: np.ndarray, ticks: int, begin: int = 0
) -> np.ndarray:
    """(B, N ticks - begin, m) the command of every tick from a tick on, of plans (B, N, m): it
    moves towards the plan's input by `reach` (m,) in a tick at most, from `previous` (m,) on."""
    wanted = np.repeat(plans, ticks, axis=1)[:, begin:]
    path = np.empty_like(wanted)
    before = np.broadcast_to(previous, path[:, 0].shape)
    for tick in range(path.shape[1]):
        before = np.clip(wanted[:, tick], before - reach, before + reach)
        path[:, tick] = before
    return path

"""The robot in discrete time, over steps in which a command is held, and its derivatives.

A state z of it holds all that the next step depends on: the model's state, the inputs that the
model feels, which follow commands by the lag, and the command sent last, from which the next one
can only move so far in a tick.
"""

from dataclasses import dataclass

import numpy as np

from softcr_control.costs.rollout import Rollout
from softcr_control.costs.term import CostTerm, stacked_residuals
from softcr_control.predictive.horizon import Problem
from softcr_models.model import Model


@dataclass(frozen=True, eq=False)
class Linear:
    """One step near a state and an input: z' = next + A dz + B du, residuals + G dz + H du.

    The stage's cost is the sum of the squares of the residuals.

    Attributes:
        next: (nz,).
        a: (nz, nz).
        b: (nz, m).
        residuals: (R,).
        g: (R, nz).
        h: (R, m).
    """

    next: np.ndarray
    a: np.ndarray
    b: np.ndarray
    residuals: np.ndarray
    g: np.ndarray
    h: np.ndarray

    @property
    def finite(self) -> bool:
        """Whether every number is."""
        return all(np.isfinite(each).all() for each in (self.a, self.b, self.g, self.h))


class HeldSteps:
    """Steps of `ticks` ticks of one problem.

    Args:
        problem: of this tick.
        terms: of the cost.
        ticks: of a step.
        reach: (m,) of a command in a tick [unit of the inputs].
        perturbation: of derivatives / scale of a state, range of an input.
    """

    def __init__(
        self,
        problem: Problem,
        terms: tuple[CostTerm, ...],
        ticks: int,
        reach: np.ndarray,
        perturbation: float,
    ) -> None:
        self.problem, self._terms, self._ticks, self._reach = problem, terms, ticks, reach
        self._model: Model = problem.model
        inputs = self._model.inputs
        self._nx, self._m = self._model.state.size, inputs.size
        self._moves = perturbation * np.concatenate(
            (self._model.state.scale, inputs.range, inputs.range, inputs.range)
        )

    @property
    def begin(self) -> np.ndarray:
        """(nz,) where the plan begins."""
        problem = self.problem
        return np.concatenate((problem.state, problem.approach[-1], problem.previous_command))

    def sent(self, z: np.ndarray) -> np.ndarray:
        """(B, m) the commands sent last, of states (B, nz)."""
        return z[:, self._nx + self._m :]

    def advance(self, z: np.ndarray, inputs: np.ndarray) -> tuple[np.ndarray, "Ticks"]:
        """States (B, nz) at the end of a step from z (B, nz) with inputs (B, m), and its ticks."""
        problem, nx, m = self.problem, self._nx, self._m
        x, felt, before = z[:, :nx], z[:, nx : nx + m], z[:, nx + m :]
        states, levels, commands, first = [], [felt], [], before
        for _ in range(self._ticks):
            command = np.clip(inputs, before - self._reach, before + self._reach)
            later = problem.input_tick.after(felt, before, command)
            x = self._model.step(x, felt, later, problem.parameters[None], problem.period)
            felt, before = later, command
            states.append(x)
            levels.append(felt)
            commands.append(command)
        ticks = Ticks(
            np.stack(states, axis=1), np.stack(levels, axis=1), np.stack(commands, axis=1), first
        )
        return np.concatenate((x, felt, before), axis=1), ticks

    def rollout(self, ticks: "Ticks", step: int) -> Rollout:
        """What cost terms look at, of the ticks of a step counted from 0."""
        problem = self.problem
        rows = slice(step * self._ticks, (step + 1) * self._ticks)
        made = Rollout(
            initial_state=ticks.states[0, 0],  # no term looks at it
            inputs=ticks.levels,
            commands=ticks.commands,
            previous_command=ticks.before,
            reference=problem.reference.part(rows),
            model=self._model,
            parameters=problem.parameters,
            period=problem.period,
            delay=problem.delay,
        )
        vars(made)["states"] = ticks.states
        return made

    def linear(self, z: np.ndarray, inputs: np.ndarray) -> list[Linear]:
        """Each of K steps in a row near its state z (K, nz) and input (K, m)."""
        lanes, moves = self._lanes(z, inputs)
        later, ticks = self.advance(lanes[..., : z.shape[1]], lanes[..., z.shape[1] :])
        found = []
        for step in range(len(z)):
            rows = slice(step * len(moves[0]) + step, (step + 1) * (len(moves[0]) + 1))
            rollout = self.rollout(ticks.part(rows), step)
            found.append(self._derivatives(later[rows], rollout, moves[step]))
        return found

    def _lanes(self, z: np.ndarray, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points (K (1 + P), P) of K steps, each first and then with one of its P numbers moved,
        and the moves (K, P).

        Inputs and the commands before are moved towards each other: the limit of a command's
        change, which they may stand at, then stops neither.
        """
        points = np.concatenate((z, inputs), axis=1)
        moves = np.tile(self._moves, (len(z), 1))
        ahead = np.where(inputs > self.sent(z), 1.0, -1.0)
        moves[:, -self._m :] *= -ahead
        moves[:, -2 * self._m : -self._m] *= ahead
        lanes = np.tile(points[:, None], (1, 1 + points.shape[1], 1))
        number = np.arange(points.shape[1])
        lanes[:, 1 + number, number] += moves
        return lanes.reshape(-1, points.shape[1]), moves

    def _derivatives(self, later: np.ndarray, rollout: Rollout, moves: np.ndarray) -> Linear:
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = stacked_residuals(self._terms, rollout)
            states = (later[1:] - later[0]).T / moves
            slopes = (residuals[1:] - residuals[0]).T / moves
        nz = later.shape[1]
        return Linear(
            later[0], states[:, :nz], states[:, nz:], residuals[0], slopes[:, :nz], slopes[:, nz:]
        )


@dataclass(frozen=True, eq=False)
class Ticks:
    """What happened in the ticks of a step.

    Attributes:
        states: (B, S, nx) at their ends.
        levels: (B, S + 1, m) felt at their begins and ends [unit of the inputs].
        commands: (B, S, m).
        before: (B, m) the command before them.
    """

    states: np.ndarray
    levels: np.ndarray
    commands: np.ndarray
    before: np.ndarray

    def part(self, rows: slice) -> "Ticks":
        """Of some candidates."""
        return Ticks(*(each[rows] for each in vars(self).values()))

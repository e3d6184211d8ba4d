"""How good a policy is: on goals it has not seen, on any grid."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcr_control.goals.workspace import ModelTipSolver, Workspace
from softcr_papers.pawlowski2019.learning.environment import Environment
from softcr_papers.pawlowski2019.learning.goals import Goals, SeenGoals
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.tasks import SUCCESS, Episodes, Task

Actor = Callable[[np.ndarray], np.ndarray]
"""(B, m) actions from -1 to 1 of observations (B, n); a `PolicyNetwork` is one."""


@dataclass(frozen=True)
class Figures:
    """Of many runs, one after the other or at once.

    Attributes:
        runs: how many.
        reached: share whose tip came within 5 % of the length of its goal at some step [-].
        least: mean of the runs' smallest distances, over the length [-].
        mean: mean of all distances, over the length [-].
        broken: share whose rod broke [-].
    """

    runs: int
    reached: float
    least: float
    mean: float
    broken: float


@dataclass(frozen=True, eq=False)
class Judgement:
    """Distances of many runs.

    Attributes:
        goals: (B, 3) where each run ended to go [m].
        distances: (B, T) between tip and goal at the end of each step, over the length; NaN once a
            run is over or broken.
        broken: (B,) whether the rod broke.
    """

    goals: np.ndarray
    distances: np.ndarray
    broken: np.ndarray

    @property
    def reached(self) -> np.ndarray:
        """(B,) whether the tip came within 5 % of the length of its goal at some step."""
        return np.nanmin(self.distances, axis=1, initial=np.inf) < SUCCESS

    @property
    def figures(self) -> Figures:
        """Of all runs."""
        least = np.nanmin(self.distances, axis=1, initial=np.inf)
        return Figures(
            len(least), float(self.reached.mean()), float(least.mean()),
            float(np.nanmean(self.distances)), float(self.broken.mean()),
        )  # fmt: skip


def judge(actor: Actor, plant: Plant, task: Task, runs: int, seed: int) -> Judgement:
    """A policy on fresh runs of a task, without noise.

    Args:
        actor: the policy.
        plant: on which grid, with which parameters.
        task: of which its goals are, made for any plant of the same robot.
        runs: how many.
        seed: of goals and parameters.
    """
    environment = Environment(plant, task, runs, seed)
    length = plant.robot.length
    distances = np.full((runs, task.steps), np.nan)
    going, broken = np.ones(runs, bool), np.zeros(runs, bool)
    for step in range(task.steps):
        outcome = environment.step(actor(environment.observe()))
        broken |= going & outcome.broken
        going &= ~outcome.broken
        distances[going, step] = outcome.distances[going] / length
        going &= ~outcome.over
        if not going.any():
            break
    return Judgement(environment.goals, distances, broken)


@dataclass(frozen=True)
class Circle:
    """A horizontal circle round the straight robot's axis, run through at an even speed.

    Attributes:
        radius, height: [m], the height in the base frame.
        period: of a lap [s].
        laps: number.
    """

    radius: float
    height: float
    period: float = 4.0
    laps: int = 2

    def at(self, times: np.ndarray) -> np.ndarray:
        """(..., 3) places at times (...) [m]."""
        angle = 2.0 * np.pi * np.asarray(times) / self.period
        return np.stack(
            (self.radius * np.cos(angle), self.radius * np.sin(angle), 0.0 * angle + self.height),
            axis=-1,
        )

    def velocities(self, times: np.ndarray) -> np.ndarray:
        """(..., 3) [m/s]."""
        rate = 2.0 * np.pi / self.period
        angle = rate * np.asarray(times)
        speed = rate * self.radius
        return np.stack((-speed * np.sin(angle), speed * np.cos(angle), 0.0 * angle), axis=-1)


class CircleTask:
    """One run along a circle, from where the robot stands at its first point."""

    moving = True

    def __init__(self, plant: Plant, circle: Circle) -> None:
        """See the class.

        Args:
            plant: of the robot; its period is that of the steps.
            circle: which.

        Raises:
            UserError: the robot cannot stand at the first point.
        """
        self.name, period = "circle", plant.settings.period
        self.steps = round(circle.laps * circle.period / period)
        times = period * np.arange(self.steps + 1)
        self._goals, self._velocities = circle.at(times), circle.velocities(times)
        inputs, self.start_error = Workspace(ModelTipSolver(plant.model), 1e-4).numbers_at(
            self._goals[0]
        )
        self._inputs = inputs
        self.goals: Goals = SeenGoals(self._goals)

    def episodes(
        self, count: int, random: np.random.Generator, goals: np.ndarray | None = None
    ) -> Episodes:
        """See Task; there is one such run."""
        repeat = (count, 1, 1)
        return Episodes(
            np.tile(self._goals, repeat), np.tile(self._velocities, repeat),
            np.full(count, self.steps), np.tile(self._inputs, (count, 1)),
        )  # fmt: skip

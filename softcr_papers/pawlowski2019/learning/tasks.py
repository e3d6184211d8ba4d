"""What a policy learns: to bring the tip to goals, or to follow goals that move.

Tasks RL1 to RL3 of Pawlowski (2019), Sec. 4.4.3: a single point, any point of the dynamic
workspace, random trajectories in the static workspace.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from softcr_models.rod.cosserat_rod import EquilibriumError
from softcr_papers.pawlowski2019.learning.goals import Goals, Polar, SeenGoals, require_goals
from softcr_papers.pawlowski2019.learning.plant import Plant

SUCCESS = 0.05
"""A tip that comes so near to its goal has reached it, over the robot's length [-]."""

_SLOPE = 1e-4  # [s], of the difference that gives a goal's velocity
_DURATION = (2.0, 5.0)  # of a trajectory [s]
_SPEED, _DETOUR = 0.25, 0.25  # at its ends, and beside the way; over the pool's spread [1/s, -]


@dataclass(frozen=True, eq=False)
class Episodes:
    """B runs of a task: what the tips shall do, and where the robots begin, at rest.

    Attributes:
        goals: (B, K, 3) at the beginning of each period, base frame [m]; K = 1: they stand still.
        velocities: (B, K, 3) of the goals [m/s].
        steps: (B,) of each run.
        inputs: (B, m) with which the robots stand when they begin.
    """

    goals: np.ndarray
    velocities: np.ndarray
    steps: np.ndarray
    inputs: np.ndarray

    def at(self, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(B, 3) goals and their velocities at a step (B,) of each run."""
        rows, now = np.arange(len(step)), np.minimum(step, self.goals.shape[1] - 1)
        return self.goals[rows, now], self.velocities[rows, now]

    def put(self, rows: np.ndarray, others: "Episodes") -> None:
        """Replaces some runs by all of the others'."""
        self.goals[rows], self.velocities[rows] = others.goals, others.velocities
        self.steps[rows], self.inputs[rows] = others.steps, others.inputs


class Task(Protocol):
    """A family of runs.

    Attributes:
        name: of the task.
        moving: whether goals move, so that a policy is told their velocities.
        goals: where goals, or the ends of their ways, lie.
        steps: of the longest run.
    """

    name: str
    moving: bool
    goals: Goals
    steps: int

    def episodes(
        self, count: int, random: np.random.Generator, goals: np.ndarray | None = None
    ) -> Episodes:
        """Runs of the task.

        Args:
            count: of them.
            random: of what is not given.
            goals: (count, 3) that are asked for; None: the task's own.

        Raises:
            UserError: a goal is not allowed.
        """
        ...


class Reaching:
    """Bring the tip to a goal that stands still, from rest: RL1 for one goal, RL2 for any."""

    moving = False

    def __init__(self, plant: Plant, goals: Goals, steps: int = 50) -> None:
        """See the class.

        Args:
            plant: whose inputs at rest the runs begin with.
            goals: where goals lie.
            steps: of a run.
        """
        self.name, self.steps = "reach", steps
        self.goals: Goals = goals
        self._rest = plant.model.inputs.rest

    def episodes(
        self, count: int, random: np.random.Generator, goals: np.ndarray | None = None
    ) -> Episodes:
        if goals is None:
            goals = self.goals.sample(count, random)
        else:
            require_goals(goals, self.goals, "goal")
        return Episodes(
            goals[:, None], np.zeros((count, 1, 3)), np.full(count, self.steps),
            np.tile(self._rest, (count, 1)),
        )  # fmt: skip


class Tracking:
    """Follow a goal that moves from one steady tip to another, RL3.

    Its way is a polynomial of the fourth order in bending and stretch, so that it does not leave
    the workspace as a straight line would; it begins and ends with small random velocities. The
    thesis gives neither durations nor velocities: they are ours.
    """

    moving = True

    def __init__(self, plant: Plant, pool: int = 256) -> None:
        """See the class.

        Args:
            plant: whose equilibria under random inputs make the static workspace.
            pool: how many of them, between which trajectories go.
        """
        self.name, self._period = "track", plant.settings.period
        self.steps = round(_DURATION[1] / self._period)
        self._polar = Polar.of_plant(plant)
        self.inputs, self.tips = equilibria(plant, pool, np.random.default_rng(0))
        self.goals: Goals = SeenGoals(self.tips)
        self._bends = self._polar.bends(self.tips)
        self._spread = self._bends.std(axis=0)

    def episodes(
        self, count: int, random: np.random.Generator, goals: np.ndarray | None = None
    ) -> Episodes:
        """See Task; goals that are given stand still."""
        begin, end = random.integers(len(self._bends), size=(2, count))
        duration = random.uniform(*_DURATION, size=(count, 1, 1))
        steps = np.rint(duration[:, 0, 0] / self._period).astype(int)
        inputs = self.inputs[begin]
        if goals is not None:
            require_goals(goals, self.goals, "goal")
            return Episodes(goals[:, None], np.zeros((count, 1, 3)), steps, inputs)
        speeds = random.uniform(-_SPEED, _SPEED, (2, count, 1, 3)) * self._spread
        detour = random.uniform(-_DETOUR, _DETOUR, (count, 1, 3)) * self._spread
        ends = self._bends[begin, None], self._bends[end, None]

        def at(times: np.ndarray) -> np.ndarray:
            return self._polar.tips(quartic(times, duration, *ends, speeds[0], speeds[1], detour))

        times = self._period * np.arange(self.steps + 1)[None, :, None]
        velocities = (at(times + _SLOPE) - at(times - _SLOPE)) / (2.0 * _SLOPE)
        return Episodes(at(times), velocities, steps, inputs)


def quartic(
    times: np.ndarray,
    duration: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    begin_rate: np.ndarray,
    end_rate: np.ndarray,
    detour: np.ndarray,
) -> np.ndarray:
    """The polynomial of the fourth order with given ends, rates there, and detour half-way.

    All arguments broadcast against each other; times from 0 to the duration [s].
    """
    s = times / duration
    back = 1.0 - s
    cubic = begin * back**2 * (1.0 + 2.0 * s) + end * s**2 * (1.0 + 2.0 * back)
    cubic = cubic + duration * (begin_rate * s * back**2 - end_rate * s**2 * back)
    way: np.ndarray = cubic + 16.0 * detour * (s * back) ** 2
    return way


def equilibria(
    plant: Plant, count: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(count, m) random inputs with which the robot stands, and (count, 3) its tips there [m]."""
    model, limits = plant.model, plant.model.inputs
    stood: list[np.ndarray] = []
    tips: list[np.ndarray] = []
    while len(stood) < count:
        inputs = random.uniform(limits.low, limits.high)
        try:
            state = model.equilibrium(inputs, model.nominal_parameters)
        except EquilibriumError:
            continue
        tip = model.tip_poses(state[None], model.nominal_parameters[None])[0, :, 3]
        stood.append(inputs)
        tips.append(tip)
    return np.array(stood), np.array(tips)

"""Motions of many rods under controllers of any kind, kept as arrays to be linearised about."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcr_papers.pawlowski2019.learning.plant import Lanes, Plant
from softcr_papers.pawlowski2019.learning.tasks import SUCCESS, Episodes
from softcr_papers.pawlowski2019.policy.observation import PolicyObservation

Act = Callable[[int, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Of a step, the rows (k,) that still move, their states (k, nx) and observations (k, n): actions
(k, m) to take, and those (k, m) that the policy would take."""

_CLOSE = 0.6  # of the distance of success: nothing is gained by coming nearer
_LATER = 2  # steps that a motion goes on after its success, as it may come nearer


@dataclass(eq=False)
class Motions:
    """B motions of up to T steps; what comes after a motion's end is 0.

    Attributes:
        goals, velocities: (B, T + 1, 3) at the start of every step, and at the end [m, m/s].
        states: (B, T + 1, nx) float32.
        tips: (B, T + 1, 3) [m].
        seen: (B, T, n) observations.
        actions, means: (B, T, m) taken, and those of the policy, from -1 to 1.
        ends: (B,) number of steps.
        parameters: (B, P) of the rods.
    """

    goals: np.ndarray
    velocities: np.ndarray
    states: np.ndarray
    tips: np.ndarray
    seen: np.ndarray
    actions: np.ndarray
    means: np.ndarray
    ends: np.ndarray
    parameters: np.ndarray

    @property
    def done(self) -> np.ndarray:
        """(B, T) whether there was such a step."""
        return np.asarray(np.arange(self.actions.shape[1]) < self.ends[:, None])

    @property
    def errors(self) -> np.ndarray:
        """(B, T, 3) tip less goal at the end of each step [m]."""
        return self.tips[:, 1:] - self.goals[:, 1:]

    @property
    def distances(self) -> np.ndarray:
        """(B, T) of tip and goal at the end of each step [m]; infinite where there was none."""
        return np.where(self.done, np.linalg.norm(self.errors, axis=2), np.inf)

    def put(self, rows: np.ndarray, others: "Motions") -> None:
        """Replaces some motions by those of the same rows of others."""
        for name, values in vars(self).items():
            values[rows] = getattr(others, name)[rows]


def roll(
    plant: Plant, observation: PolicyObservation, episodes: Episodes, act: Act, moving: bool
) -> Motions:
    """Motions of the plant's rods, from rest.

    Args:
        plant: the rods, whose inputs follow their commands at once.
        observation: what a policy is told.
        episodes: goals and where to begin.
        act: the controller.
        moving: whether goals move; one that stands still ends the motion when it is reached.
    """
    count, steps = len(episodes.steps), int(episodes.steps.max())
    size, inputs = plant.model.state_size, plant.model.inputs
    near = SUCCESS * plant.robot.length
    times = np.minimum(np.arange(steps + 1), episodes.goals.shape[1] - 1)
    lanes = plant.at_rest(episodes.inputs)
    found = Motions(
        goals=episodes.goals[:, times],
        velocities=episodes.velocities[:, times],
        states=np.zeros((count, steps + 1, size), np.float32),
        tips=np.zeros((count, steps + 1, 3)),
        seen=np.zeros((count, steps, observation.size), np.float32),
        actions=np.zeros((count, steps, inputs.size), np.float32),
        means=np.zeros((count, steps, inputs.size), np.float32),
        ends=episodes.steps.copy(),
        parameters=lanes.parameters,
    )
    found.states[:, 0], found.tips[:, 0] = lanes.states, plant.tips(lanes)[:, :, 3]
    reached = np.full(count, steps)
    going = np.ones(count, bool)
    for step in range(steps):
        rows = np.flatnonzero(going)
        if not len(rows):
            break
        states = found.states[rows, step]
        seen = observe(observation, states, found.goals[rows, step], found.velocities[rows, step])
        actions, means = act(step, rows, states, seen)
        mine = _rows(lanes, rows)
        commands = inputs.low + 0.5 * (1.0 + actions.astype(float)) * inputs.range
        plausible = plant.advance(mine, commands)
        lanes.put(rows, mine)
        found.seen[rows, step], found.actions[rows, step] = seen, actions
        found.means[rows, step] = means
        found.states[rows, step + 1] = mine.states
        found.tips[rows, step + 1] = plant.tips(mine)[:, :, 3]
        found.ends[rows[~plausible]] = step
        going[rows] = plausible & (episodes.steps[rows] > step + 1)
        if not moving:
            gap = found.tips[rows, step + 1] - found.goals[rows, step + 1]
            distance = np.linalg.norm(gap, axis=1)
            reached[rows] = np.where(
                distance < near, np.minimum(reached[rows], step), reached[rows]
            )
            over = (distance < _CLOSE * near) | (step >= reached[rows] + _LATER)
            found.ends[rows[over & going[rows]]] = step + 1
            going[rows] &= ~over
    return found


def observe(
    observation: PolicyObservation, states: np.ndarray, goals: np.ndarray, velocities: np.ndarray
) -> np.ndarray:
    """(k, n) of states (k, nx) with goals and their velocities (k, 3)."""
    return observation(
        states, goals, goal_velocities=velocities if observation.of_goal_velocity else None
    )


def _rows(lanes: Lanes, rows: np.ndarray) -> Lanes:
    return Lanes(lanes.states[rows], lanes.acting[rows], lanes.sent[rows], lanes.parameters[rows])

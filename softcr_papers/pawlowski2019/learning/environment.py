"""Many runs of a task at a time: actions in, observations and rewards out."""

from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.rewards import BETA, tip_reward
from softcr_papers.pawlowski2019.learning.tasks import Task
from softcr_papers.pawlowski2019.policy.observation import observation_of


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a step did to B runs.

    Attributes:
        rewards: (B,) float32, (4.40); -1 where a rod broke.
        distances: (B,) between tip and goal [m].
        broken: (B,) whether the rod's state is not plausible, so that the run cannot go on.
        over: (B,) whether the run has had all its steps.
    """

    rewards: np.ndarray
    distances: np.ndarray
    broken: np.ndarray
    over: np.ndarray

    @property
    def done(self) -> np.ndarray:
        """(B,) whether the run must be begun again, for either reason: both are truncations."""
        return self.broken | self.over


class Environment:
    """B runs of a task on B rods; arrays only, a step of all in one call.

    Attributes:
        plant, task, batch: as given.
        observation: what is told of a state, and the layout that a policy is bound to.
        clock: (B,) steps done in each run.
    """

    def __init__(
        self, plant: Plant, task: Task, batch: int, seed: int = 0, beta: float = BETA
    ) -> None:
        """All runs begin.

        Args:
            plant: the rods.
            task: what they shall do.
            batch: B.
            seed: of goals and of the rods' parameters.
            beta: of the reward.

        Raises:
            UserError: beta or the batch is out of range.
        """
        if not 0.0 < beta <= 1.0 or batch < 1:
            raise UserError(f"beta {beta}, batch {batch}: beta is above 0 and at most 1, batch > 0")
        self.plant, self.task, self.batch, self._beta = plant, task, batch, beta
        self.observation = observation_of(
            plant.model, of_goal_velocity=task.moving, of_inputs=plant.lags
        )
        self._low, self._half = plant.model.inputs.low, 0.5 * plant.model.inputs.range
        self.reseed(seed)
        self.reset()

    def reseed(self, seed: int) -> None:
        """Random numbers from here on follow from a seed."""
        self.random = np.random.default_rng(seed)

    def reset(self, goals: np.ndarray | None = None) -> None:
        """Begins all runs.

        Args:
            goals: (B, 3) that are asked for; None: random ones.

        Raises:
            UserError: a goal is not allowed.
        """
        self.episodes = self.task.episodes(self.batch, self.random, goals)
        self.lanes = self.plant.at_rest(self.episodes.inputs, self.random)
        self.clock = np.zeros(self.batch, int)
        self._look()

    def restart(self, rows: np.ndarray) -> None:
        """Begins some runs (B,) again."""
        if rows.all():
            self.reset()
        elif rows.any():
            fresh = self.task.episodes(int(rows.sum()), self.random)
            self.episodes.put(rows, fresh)
            self.lanes.put(rows, self.plant.at_rest(fresh.inputs, self.random))
            self.clock[rows] = 0
            self._look()

    def observe(self) -> np.ndarray:
        """(B, n) float32 of the present states and goals."""
        seen = self.observation
        return seen(
            self.lanes.states,
            self.goals,
            goal_velocities=self.velocities if seen.of_goal_velocity else None,
            inputs=self.lanes.acting if seen.of_inputs else None,
            parameters=self.lanes.parameters if self.plant.settings.spread else None,
            tips=self.tips,
        )

    def step(self, actions: np.ndarray) -> Outcome:
        """Carries all runs over a period.

        Args:
            actions: (B, m) from -1, the inputs' lower limits, to 1, their upper ones.

        Raises:
            UserError: actions of another shape, or outside of these bounds.
        """
        if actions.shape != (self.batch, len(self._low)):
            raise UserError(
                f"actions of shape {actions.shape}: must be {(self.batch, len(self._low))}"
            )
        if not np.abs(actions).max() <= 1.0 + 1e-6:  # NaN is not
            raise UserError("actions: must be finite and from -1 to 1")
        plausible = self.plant.advance(self.lanes, self._low + (1.0 + actions) * self._half)
        self.clock += 1
        self._look()
        distances = np.linalg.norm(self.tips[:, :, 3] - self.goals, axis=1)
        rewards = tip_reward(distances, self.plant.robot.length, self._beta)
        rewards[~plausible] = -1.0
        over = self.clock >= self.episodes.steps
        return Outcome(rewards.astype(np.float32), distances, ~plausible, over)

    def _look(self) -> None:
        """Goals and tips of this moment."""
        self.goals, self.velocities = self.episodes.at(self.clock)
        self.tips = self.plant.tips(self.lanes)

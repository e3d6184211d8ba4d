"""The environment as Gymnasium knows it: single, and vectorised with the batch as its unit."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.learning.environment import Environment
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.tasks import Task


def spaces_of(environment: Environment) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Spaces of one observation and of one action."""
    size, inputs = environment.observation.size, environment.plant.model.inputs.size
    return (
        gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32),
        gymnasium.spaces.Box(-1.0, 1.0, (inputs,), np.float32),
    )


class RodEnv(gymnasium.Env):
    """One run of a task at a time.

    `reset(options={"goal": (3,)})` asks for a goal. A run that has had all its steps is truncated,
    and so is one whose rod broke; none is terminated. An info holds `distance` between tip and goal
    [m] and whether the rod is `broken`.
    """

    metadata = {"render_modes": []}  # noqa: RUF012, the form Gymnasium asks for

    def __init__(self, plant: Plant, task: Task) -> None:
        self._core = Environment(plant, task, 1)
        self.observation_space, self.action_space = spaces_of(self._core)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._core.reseed(seed)
        self._core.reset(_goals(options, 1))
        return self._core.observe()[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        outcome = self._core.step(np.asarray(action)[None])
        info = {"distance": float(outcome.distances[0]), "broken": bool(outcome.broken[0])}
        seen = self._core.observe()[0]
        return seen, float(outcome.rewards[0]), False, bool(outcome.done[0]), info


class RodVectorEnv(gymnasium.vector.VectorEnv):
    """Many runs of a task at a time, on the lanes of one computation; see `RodEnv`.

    A run that is over begins again in the same step; its last observation is in the infos.
    `reset(options={"goal": (B, 3)})` asks for goals.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}  # noqa: RUF012

    def __init__(self, plant: Plant, task: Task, num_envs: int) -> None:
        self._core, self.num_envs = Environment(plant, task, num_envs), num_envs
        self.single_observation_space, self.single_action_space = spaces_of(self._core)
        batched = gymnasium.vector.utils.batch_space
        self.observation_space = batched(self.single_observation_space, num_envs)
        self.action_space = batched(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """As gymnasium says; the runs share one seed."""
        if isinstance(seed, list):
            raise UserError("seed: is one for all runs of a batch, must not be a list")
        if seed is not None:
            self._core.reseed(seed)
        self._core.reset(_goals(options, self.num_envs))
        return self._core.observe(), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        outcome, seen = self._core.step(np.asarray(actions)), self._core.observe()
        infos: dict[str, Any] = {"distance": outcome.distances, "broken": outcome.broken}
        done = outcome.done
        if done.any():
            last = np.empty(self.num_envs, object)
            for i in np.flatnonzero(done):
                last[i] = seen[i]
            infos |= {"final_obs": last, "_final_obs": done}
            self._core.restart(done)
            seen = self._core.observe()
        return seen, outcome.rewards, np.zeros(self.num_envs, bool), done, infos


def _goals(options: dict[str, Any] | None, batch: int) -> np.ndarray | None:
    """(B, 3) goals that a reset was asked for.

    Raises:
        UserError: an unknown option, or goals of another shape.
    """
    if not options:
        return None
    if set(options) != {"goal"}:
        raise UserError(f"options {sorted(options)}: allowed is goal")
    goals = np.asarray(options["goal"], float)
    if goals.shape not in ((3,), (batch, 3)):
        raise UserError(f"goal of shape {goals.shape}: must be (3,) or ({batch}, 3)")
    return np.broadcast_to(goals, (batch, 3)).copy()

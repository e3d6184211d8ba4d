"""The environment as stable-baselines3 knows it."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from softcr_papers.pawlowski2019.learning.environment import Environment
from softcr_papers.pawlowski2019.learning.gym_environments import spaces_of

_SATURATED = 10.0  # whose hyperbolic tangent is one; stable-baselines3 asks for finite bounds
_NOTHING: dict[str, Any] = {}
"""Shared by the runs that go on: a dictionary for each of them in each step would cost more."""


class LanesVecEnv(VecEnv):
    """An `Environment`, whose runs begin again by themselves.

    With `squashed` an action is a number from -10 to 10, of which the hyperbolic tangent is taken,
    as a policy's network ends; an algorithm whose actors do not end so (PPO) needs it.
    """

    render_mode = None

    def __init__(self, core: Environment, squashed: bool = False) -> None:
        self.core, self._squashed = core, squashed
        seen, action = spaces_of(core)
        if squashed:
            action = gymnasium.spaces.Box(-_SATURATED, _SATURATED, action.shape, np.float32)
        super().__init__(core.batch, seen, action)
        self._going = [_NOTHING] * core.batch

    def reset(self) -> np.ndarray:
        """(B, n) first observations."""
        self.core.reset()
        return self.core.observe()

    def step_async(self, actions: np.ndarray) -> None:
        """Keeps (B, m) actions for `step_wait`."""
        self._actions = np.tanh(actions) if self._squashed else actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Observations, rewards, dones and infos; these say that a run was cut off, and where."""
        outcome, infos = self.core.step(self._actions), self._going
        seen, done = self.core.observe(), outcome.done
        if done.any():
            infos = list(infos)
            for i in np.flatnonzero(done):
                infos[i] = {"terminal_observation": seen[i], "TimeLimit.truncated": True}
            self.core.restart(done)
            seen = self.core.observe()
        return seen, outcome.rewards, done, infos

    def close(self) -> None:
        """Nothing is open."""

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """One seed for all runs."""
        if seed is not None:
            self.core.reseed(seed)
        return [seed] * self.num_envs

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """None is."""
        return [False] * len(list(self._get_indices(indices)))

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Of the environment, for each run."""
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Not for runs that share one computation."""
        raise NotImplementedError("runs share one computation")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        """Not for runs that share one computation."""
        raise NotImplementedError("runs share one computation")

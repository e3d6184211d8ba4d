"""Policies by the algorithms of stable-baselines3.

A checkpoint holds the parameters of stable-baselines3's model and optimisers, its counters and its
buffer of samples, as numbers.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import DDPG, PPO, SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import NormalActionNoise

from softcr_papers.pawlowski2019.learning.environment import Environment
from softcr_papers.pawlowski2019.learning.evaluation import Figures, Judgement, judge
from softcr_papers.pawlowski2019.learning.judging import FRESH, Judging, Report, Trained
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.rounds import train_in_rounds
from softcr_papers.pawlowski2019.learning.run_directory import CHECKPOINT, claim
from softcr_papers.pawlowski2019.learning.sb3_environment import LanesVecEnv
from softcr_papers.pawlowski2019.learning.tasks import Task
from softcr_papers.pawlowski2019.learning.training_settings import ROUNDS, TrainingSettings
from softcr_papers.pawlowski2019.policy.network import PolicyNetwork
from softcr_papers.pawlowski2019.policy.policy_file import Policy, save_policy
from softcr_studies.frame import checkpoints

_KINDS: dict[str, Any] = {"td3": TD3, "ddpg": DDPG, "sac": SAC, "ppo": PPO}
_COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_total_timesteps")
_HELD = (5, 10)  # steps for which random inputs are held before learning


def train(
    plant: Plant,
    task: Task,
    settings: TrainingSettings,
    judging: Judging,
    run: Path | None = None,
    show: Callable[[Report], None] = lambda report: None,
) -> Trained:
    """Trains a policy; a run that was stopped goes on where it was last judged.

    Args:
        plant: on which it learns.
        task: what it learns.
        settings: how.
        judging: what is told of it, and which is kept.
        run: directory of checkpoints and of the best policy, `policy.safetensors`; None: none.
        show: called after every step of the environments.

    Raises:
        UserError: the run's directory holds a checkpoint of other settings, or one that cannot be
            read.
    """
    if settings.algorithm in ROUNDS:
        with one_thread():
            return train_in_rounds(plant, task, settings, judging, run, show)
    with one_thread():
        environment = LanesVecEnv(
            Environment(plant, task, settings.environments, settings.seed, settings.beta),
            squashed=settings.algorithm == "ppo",
        )
        model = new_model(environment, settings)
        if run is not None and checkpoints.resume(claim(run, settings), partial(_go_on, model)):
            environment.seed(settings.seed + model.num_timesteps)
        watcher = _Watcher(plant, task, settings, judging, run, show)
        if model.num_timesteps == 0 and hasattr(model, "replay_buffer"):
            watcher.timed(lambda: fill(model, environment, settings))
        left = settings.samples - model.num_timesteps
        if left > 0:
            model.learn(left, callback=watcher, reset_num_timesteps=False)
        watcher.finish(model)
    assert watcher.best is not None
    return Trained(watcher.best, watcher.history)


def new_model(environment: LanesVecEnv, settings: TrainingSettings) -> Any:
    """The algorithm of stable-baselines3, before it has learned anything."""
    first, last = settings.learning_rate, settings.learning_rate * settings.last_rate
    common: dict[str, Any] = {
        "learning_rate": lambda left: last + (first - last) * left,
        "gamma": settings.discount,
        "batch_size": settings.batch,
        "seed": settings.seed,
        "device": "cpu",
        "policy_kwargs": {
            "net_arch": list(settings.hidden),
            "activation_fn": torch.nn.Tanh if settings.algorithm == "ppo" else torch.nn.ReLU,
        },
    }
    if settings.algorithm == "ppo":
        own: dict[str, Any] = {"n_steps": settings.rollout, "n_epochs": settings.epochs}
    else:
        own = {
            "buffer_size": settings.buffer,
            "learning_starts": 0,
            "train_freq": 1,
            "gradient_steps": settings.updates,
        }
        if settings.algorithm == "sac":
            own |= {"ent_coef": settings.entropy}
        else:
            size = environment.core.plant.model.inputs.size
            own |= {
                "action_noise": NormalActionNoise(np.zeros(size), np.full(size, settings.noise))
            }
    return _KINDS[settings.algorithm]("MlpPolicy", environment, **common, **own)


def fill(model: Any, environment: LanesVecEnv, settings: TrainingSettings) -> None:
    """Puts samples of random inputs into the buffer, each held for several steps: inputs that
    change in every step build up no momentum, and far goals give no reward then."""
    random, batch = np.random.default_rng(settings.seed), environment.num_envs
    shape = (batch, environment.core.plant.model.inputs.size)
    seen, left = environment.reset(), np.zeros(batch, int)
    actions = np.zeros(shape, np.float32)
    for _ in range(-(-settings.start // batch)):
        change = left == 0
        actions[change] = random.uniform(-1.0, 1.0, shape)[change]
        left[change] = random.integers(*_HELD, batch, endpoint=True)[change]
        left -= 1
        environment.step_async(actions)
        after, rewards, done, infos = environment.step_wait()
        following = after.copy()
        for i in np.flatnonzero(done):
            following[i] = infos[i]["terminal_observation"]
        model.replay_buffer.add(seen, following, actions, rewards, done, infos)
        seen = after
        model.num_timesteps += batch


def actor_of(model: Any) -> PolicyNetwork:
    """The deterministic policy of a model of stable-baselines3, as numpy."""
    if isinstance(model, PPO):
        parts = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
    elif isinstance(model, SAC):
        parts = [*model.actor.latent_pi, model.actor.mu]
    else:
        parts = list(model.actor.mu)
    linear = [each for each in parts if isinstance(each, torch.nn.Linear)]
    layers = [(each.weight.detach().numpy(), each.bias.detach().numpy()) for each in linear]
    return PolicyNetwork.of_layers(layers, "tanh" if isinstance(model, PPO) else "relu")


def _state_of(model: Any) -> dict[str, Any]:
    """Parameters, counters and buffer of a model of stable-baselines3."""
    buffer = vars(model.replay_buffer) if hasattr(model, "replay_buffer") else {}
    return {
        "parameters": model.get_parameters(),
        "counters": {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)},
        "buffer": {name: value for name, value in buffer.items()
                   if isinstance(value, np.ndarray) or name in ("pos", "full")},
    }  # fmt: skip


def _go_on(model: Any, state: dict[str, Any]) -> None:
    """Puts what `_state_of` told into a model that has learned nothing.

    Raises:
        ValueError: the state is that of another model.
    """
    own = _state_of(model)
    for part in ("parameters", "counters", "buffer"):
        if state[part].keys() != own[part].keys():
            raise ValueError(f"{part}: must be {', '.join(own[part])}")
    for name, values in state["parameters"].items():
        holder = attrgetter(name)(model)
        if isinstance(holder, torch.optim.Optimizer):
            checkpoints.put_optimiser(holder, values)
        else:
            holder.load_state_dict(values)
    for name, value in state["counters"].items():
        setattr(model, name, int(value))
    for name, value in state["buffer"].items():
        found, wanted = (
            (np.shape(each), np.asarray(each).dtype) for each in (value, own["buffer"][name])
        )
        if found != wanted:
            raise ValueError(f"{name} of the buffer has the form {found}, must have {wanted}")
        setattr(model.replay_buffer, name, value)
    if state["buffer"] and not 0 <= state["buffer"]["pos"] < model.replay_buffer.buffer_size:
        raise ValueError(f"pos {state['buffer']['pos']} of the buffer lies outside it")


class _Watcher(BaseCallback):
    """Judges, keeps the best, saves, shows."""

    def __init__(
        self,
        plant: Plant,
        task: Task,
        settings: TrainingSettings,
        judging: Judging,
        run: Path | None,
        show: Callable[[Report], None],
    ) -> None:
        super().__init__()
        self._plant, self._task, self._settings = plant, task, settings
        self._judging, self._run, self._show = judging, run, show
        self.history: list[Report] = []
        self.best: Policy | None = None
        self._best: Judgement | None = None
        self._seconds, self._since = 0.0, time.process_time()
        self._next = judging.every or settings.samples

    def timed(self, work: Callable[[], None]) -> None:
        """Work that belongs to the training."""
        self._since = time.process_time()
        work()
        self._seconds += time.process_time() - self._since

    def _on_training_start(self) -> None:
        self._since = time.process_time()
        self._next = self.num_timesteps + self._judging.every or self._settings.samples

    def _on_step(self) -> bool:
        """After each step of all environments; False ends the training."""
        self._show(Report(self.num_timesteps, self._spent(), self._best))
        if not self._judging.every or self.num_timesteps < self._next:
            return True
        self._next += self._judging.every
        return not self._judging.enough(self._judge(self.model))

    def finish(self, model: Any) -> None:
        """The last judgement, if the last samples were not judged."""
        if not self.history or self.history[-1].samples < model.num_timesteps:
            self._judge(model)

    def _spent(self) -> float:
        return self._seconds + time.process_time() - self._since

    def _judge(self, model: Any) -> Figures:
        self._seconds = self._spent()
        judging, actor = self._judging, actor_of(model)
        found = judge(
            actor, judging.plant, judging.task, judging.runs,
            self._settings.seed + FRESH + len(self.history),
        )  # fmt: skip
        self.history.append(Report(model.num_timesteps, self._seconds, found))
        if self._best is None or judging.better(found.figures, self._best.figures):
            self._best, self.best = found, self._policy(actor, found.figures)
            if self._run is not None:
                save_policy(self.best, self._run / "policy")
        if self._run is not None:
            checkpoints.save(self._run / CHECKPOINT, _state_of(model))
        self._since = time.process_time()
        return found.figures

    def _policy(self, actor: PolicyNetwork, found: Figures) -> Policy:
        seen = Environment(self._plant, self._task, 1).observation
        told = {
            "settings": self._settings.model_dump(mode="json"),
            "plant": self._plant.settings.model_dump(mode="json"),
            "samples": self.history[-1].samples,
            "processor_seconds": round(self.history[-1].seconds, 1),
            "judged_on": self._judging.plant.settings.model_dump(mode="json"),
            "judged": asdict(found),
        }
        return Policy.of(
            actor, seen.layout, self._plant.settings.period, self._task.name, told,
            of_goal_velocity=seen.of_goal_velocity, of_inputs=seen.of_inputs,
        )  # fmt: skip


@contextmanager
def one_thread() -> Iterator[None]:
    """torch with one thread: networks of this size are slower with more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

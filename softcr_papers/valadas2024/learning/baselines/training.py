"""Training of the networks: errors of accelerations, then of motions that grow longer.

The loss is that of Valadas et al. (2024), Section IV-D: mean square of the accelerations' error and
of the error of pose and rate along motions that the network predicts. Windows are drawn at random;
motions grow from a few steps on, since a network that is new diverges in long ones. The weights
kept are those that predict the whole training trajectories best.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.baselines.marker_model import MarkerModel, units_of
from softcr_papers.valadas2024.learning.baselines.marker_motion import MarkerMotion
from softcr_papers.valadas2024.learning.baselines.networks import NeuralODE, make_network


@dataclass(frozen=True)
class Stage:
    """Iterations with motions of one length.

    Attributes:
        steps: of the motions; 0: accelerations alone.
        iterations: of the optimiser.
    """

    steps: int
    iterations: int


@dataclass(frozen=True)
class TrainingSettings:
    """How a network is trained.

    Attributes:
        stages: one after the other.
        windows: in a batch.
        frames: samples of accelerations in a batch.
        rate: of AdamW; in the last stage it falls to a hundredth as a cosine.
        decay: of the weights.
        acceleration: weight of the accelerations' error beside that of the motions.
        clip: largest norm of the gradient.
        every: iterations from check to check of the whole trajectories.
        seed: of first weights and windows.
    """

    stages: tuple[Stage, ...]
    windows: int = 16
    frames: int = 1024
    rate: float = 2e-3
    decay: float = 1e-4
    acceleration: float = 0.1
    clip: float = 1.0
    every: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises UserError for numbers that are not allowed."""
        if not self.stages or any(each.steps < 0 or each.iterations < 1 for each in self.stages):
            raise UserError(
                f"stages {self.stages}: there must be one or more, each of 0 or more steps and "
                "1 or more iterations"
            )
        for name in ("windows", "frames", "rate", "clip", "every"):
            if not 0 < getattr(self, name) < np.inf:
                raise UserError(f"training: {name} {getattr(self, name)} must be above 0")

    @property
    def iterations(self) -> int:
        """Of all stages."""
        return sum(stage.iterations for stage in self.stages)


@dataclass(frozen=True)
class Progress:
    """How far a training is.

    Attributes:
        iteration, iterations: done, and to be done.
        loss: of the last batch.
        error: of the whole trajectories, see `trajectory_error`.
        best: the least one so far.
    """

    iteration: int
    iterations: int
    loss: float
    error: float
    best: float


def trajectory_error(model: MarkerModel, motion: MarkerMotion) -> float:
    """Mean error of the poses over whole trajectories, in units; each error counts 1 at most."""
    found = model.predict(motion.poses[:, 0], motion.rates[:, 0], motion.torques[:, :-1])
    error = np.abs(found - motion.poses) / np.array(model.units.pose)
    return float(np.minimum(np.nan_to_num(error, nan=1.0), 1.0).mean())


class Trainer:
    """A network in training.

    Attributes:
        motion, settings: what it learns from, and how.
        model: as it is now.
        optimiser: of its weights.
        iteration: how many are done.
        best: least `trajectory_error` so far.
        best_weights: of that network.
    """

    def __init__(self, kind: str, motion: MarkerMotion, settings: TrainingSettings) -> None:
        """
        Args:
            kind: of the network, one of NETWORKS.
            motion: what it learns from.
            settings: how.

        Raises:
            UserError: the motion is shorter than a window, or there is no such network.
        """
        frames = motion.poses.shape[1]
        longest = max(each.steps for each in settings.stages)
        if longest >= frames:
            raise UserError(f"motion of {frames} frames: too short for windows of {longest} steps")
        with torch.random.fork_rng():
            torch.manual_seed(settings.seed)
            network = make_network(kind, motion.poses.shape[-1], motion.torques.shape[-1])
        self.model = MarkerModel(network, units_of(motion), motion.period)
        self.iteration, self.best = 0, np.inf
        self.motion, self.settings = motion, settings
        self.prepare()
        if isinstance(network, NeuralODE):
            cut = self._x[:, :-1], self._v[:, :-1], self._u[:, :-1]
            network.normalise(*cut, self._a)
        self.optimiser = torch.optim.AdamW(
            network.parameters(), settings.rate, weight_decay=settings.decay
        )
        self.best_weights = self._weights()

    def prepare(self) -> None:
        """Puts the motion into the network's units and precision."""
        self._x, self._v, self._u = self.model.scaled(self.motion)
        self._a = torch.diff(self._v, dim=1) / self.model.step

    def run(self, report: Callable[[Progress], None] = lambda _: None) -> MarkerModel:
        """Trains to the end, and returns the best model; `report` hears of each check."""
        own = self.settings
        loss = np.nan
        while self.iteration < own.iterations:
            loss = self.iterate()
            if self.iteration % own.every == 0 or self.iteration == own.iterations:
                error = self.check()
                report(Progress(self.iteration, own.iterations, loss, error, self.best))
        return self.best_model()

    def iterate(self) -> float:
        """One iteration; returns the loss. Where it is not finite, the weights stay."""
        own = self.settings
        random = np.random.default_rng([own.seed, self.iteration])
        for group in self.optimiser.param_groups:
            group["lr"] = own.rate * self._share()
        loss = self.loss(self._stage().steps, random)
        self.optimiser.zero_grad()
        self.iteration += 1
        if not torch.isfinite(loss):
            return float("nan")
        loss.backward()
        size = torch.nn.utils.clip_grad_norm_(self.model.network.parameters(), own.clip)
        if torch.isfinite(size):
            self.optimiser.step()
        return float(loss.detach())

    def loss(self, steps: int, random: np.random.Generator) -> Tensor:
        """Of a batch: accelerations, and motions of so many steps."""
        own, (runs, frames) = self.settings, self._x.shape[:2]
        r = torch.from_numpy(random.integers(runs, size=own.frames))
        k = torch.from_numpy(random.integers(frames - 1, size=own.frames))
        found = self.model.network(self._x[r, k], self._v[r, k], self._u[r, k])
        accelerations = (found - self._a[r, k]).square().mean()
        if not steps:
            return accelerations
        r = torch.from_numpy(random.integers(runs, size=own.windows))
        k = torch.from_numpy(random.integers(frames - steps, size=own.windows))
        x, v, total = self._x[r, k], self._v[r, k], torch.zeros(())
        for step in range(steps):
            x, v = self.model.advance(x, v, self._u[r, k + step])
            after = k + step + 1
            total = total + (x - self._x[r, after]).square().mean()
            total = total + (v - self._v[r, after]).square().mean()
        return own.acceleration * accelerations + total / steps

    def check(self) -> float:
        """Error of the whole trajectories; keeps the weights if it is the least so far."""
        error = trajectory_error(self.model, self.motion)
        if error < self.best:
            self.best, self.best_weights = error, self._weights()
        return error

    def best_model(self) -> MarkerModel:
        """The model with the best weights."""
        self.model.network.load_state_dict(self.best_weights)
        return self.model

    def _weights(self) -> dict[str, Tensor]:
        state = self.model.network.state_dict()
        return {name: value.detach().clone() for name, value in state.items()}

    def _share(self) -> float:
        """Of the learning rate, now."""
        last = self.settings.stages[-1].iterations
        done = max(0.0, 1.0 - (self.settings.iterations - self.iteration) / last)
        return float(0.01 + 0.99 * 0.5 * (1.0 + np.cos(np.pi * done)))

    def _stage(self) -> Stage:
        done = self.iteration
        for stage in self.settings.stages:
            if done < stage.iterations:
                return stage
            done -= stage.iterations
        return self.settings.stages[-1]

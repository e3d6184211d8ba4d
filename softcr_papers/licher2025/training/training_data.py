"""What a training learns from, as tensors of which it draws batch by batch."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from scipy.stats import qmc

from softcr_models.errors import UserError
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.description import rod_inputs
from softcr_models.surrogate.ansatz import PIECES
from softcr_models.surrogate.coordinates import scaled_states
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_papers.licher2025.training.sampling import (
    Trajectories,
    draw_inputs,
    factor_bounds,
    simulate,
    step_pieces,
)
from softcr_papers.licher2025.training.signals import Signal
from softcr_papers.licher2025.training.training_settings import TrainingSettings

_TOGETHER = 65_536
# Part of the windows that lie at the beginning of a motion: the jump from rest, which every use
# begins with, would otherwise be one sample in hundreds.
BEGINNINGS = 0.05


class Samples(NamedTuple):
    """Single steps in a network's coordinates.

    Attributes:
        before: (S, nx); marks: (S, I, nx) at the ends of the parts of a step.
        told: (S, k) what the network is told beside.
    """

    before: torch.Tensor
    marks: torch.Tensor
    told: torch.Tensor


class Physics(NamedTuple):
    """Collocation points in physical units: (S, nx), (S, m), (S, m) and (S, P)."""

    states: torch.Tensor
    begin: torch.Tensor
    end: torch.Tensor
    parameters: torch.Tensor


Points = TypeVar("Points", Samples, Physics)


def on_device(points: Points, device: torch.device) -> Points:
    """The same on a device."""
    return type(points)(*[values.to(device) for values in points])


def chosen(points: Points, count: int, generator: torch.Generator) -> Points:
    """`count` random ones, drawn on the device of the generator."""
    device = generator.device
    rows = torch.randint(0, len(points[0]), (count,), generator=generator, device=device)
    return type(points)(*[values[rows] for values in points])


@dataclass(frozen=True, eq=False)
class RodData:
    """What the rod did: the same for every network trained with the same robot, signals and seed.

    Attributes:
        motions: from rest.
        noisy: points with noise and their (S, PIECES, nx) answers; None without.
    """

    motions: Trajectories
    noisy: tuple[Physics, np.ndarray] | None


def rod_data(
    rod: CosseratRod,
    settings: TrainingSettings,
    report: Callable[[str, float], None] = lambda phase, done: None,
) -> RodData:
    """The data of a training, told by phase and the part of it that is done.

    Raises:
        UserError: no motion stayed finite.
    """
    rng = np.random.default_rng([settings.seed, 1])
    signal = Signal.of(rod.robot, settings.ticks, settings.period)
    inputs = draw_inputs(rod, signal, settings.signals, settings.ranges, settings.trajectories, rng)
    motions = simulate(rod, *inputs, settings.period, partial(report, "motions of the rod"))
    if not len(motions.states):
        raise UserError("training: no simulated motion stayed finite; lower the signals' range")
    if not settings.noisy_samples:
        return RodData(motions, None)
    progress = partial(report, "steps from noisy states")
    return RodData(motions, _noisy_steps(rod, motions, settings, progress))


def _noisy_steps(
    rod: CosseratRod,
    motions: Trajectories,
    settings: TrainingSettings,
    progress: Callable[[float], None],
) -> tuple[Physics, np.ndarray]:
    """Steps from states with noise, as sigma points are: points and their (S, PIECES, nx) answers.

    Noise is white over the states, each in its spread, up to `settings.noise`; a filter's points
    lie off the motions in just such directions, and a network that never saw them is wrong there.
    """
    rng = np.random.default_rng([settings.seed, 2])
    count = settings.noisy_samples
    states, begin, end, parameters = motions.random_steps(count, rng)
    spread = motions.states.reshape(-1, rod.state_size).std(axis=0)
    size = rng.uniform(0.0, settings.noise, (count, 1))
    states = states + size * spread * rng.standard_normal(states.shape)
    answers = np.empty((count, PIECES, rod.state_size), np.float32)
    for first in range(0, count, _TOGETHER):
        part = slice(first, first + _TOGETHER)
        answers[part] = step_pieces(
            rod, states[part], begin[part], end[part], parameters[part], settings.period
        )
        progress(min(1.0, (first + _TOGETHER) / count))
    good = np.isfinite(answers).all(axis=(1, 2))
    points = (as_tensor(values[good]) for values in (states, begin, end, parameters))
    return Physics(*points), answers[good]


def ends_of_steps(motions: Trajectories, every: int) -> Physics:
    """Every so many ticks of the motions: states and the inputs they were reached under."""
    states, end = motions.states[:, 1::every], motions.levels[1, :, ::every]
    parameters = np.repeat(motions.parameters[:, None], states.shape[1], axis=1)
    return Physics(*(as_tensor(v).flatten(0, 1) for v in (states, end, end, parameters)))


def box_points(rod: CosseratRod, motions: Trajectories, settings: TrainingSettings) -> Physics:
    """Collocation points of the paper: N(0, 0.5) in scaled states, Latin hypercube for the rest."""
    rng = np.random.default_rng([settings.seed, 3])
    box = scaled_states(motions.states.reshape(-1, rod.state_size))
    count, actuators = settings.box_samples, rod.input_size
    scaled = 0.5 * rng.standard_normal((count, rod.state_size))
    states = box.mean + scaled * np.diag(box.decode)
    low, high = factor_bounds(settings.ranges)
    cube = qmc.LatinHypercube(actuators + len(low), rng=rng).random(count)
    limits = rod_inputs(rod.robot)
    inputs = limits.low + (limits.high - limits.low) * cube[:, :actuators]
    parameters = rod.nominal_parameters * (low + (high - low) * cube[:, actuators:])
    return Physics(*map(as_tensor, (states, inputs, inputs, parameters)))


class Windows:
    """Motions in a network's coordinates, of which windows of any number of steps are drawn."""

    @torch.no_grad()
    def __init__(self, network: DDPINN, motions: Trajectories, device: torch.device) -> None:
        """Encodes all motions once, where the network is, and keeps them on a device."""
        told = told_of(network, motions)
        self.motions, self.ticks = told.shape[:2]
        states, inner = _encoded(network, motions.states), _encoded(network, motions.inner)
        self._states, self._inner, self._told = (
            values.flatten(0, 1).to(device) for values in (states, inner, told)
        )

    def draw(
        self, count: int, steps: int, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """States (count, steps + 1, nx), told (count, steps, k), inner marks of the first step.

        They are drawn on the device of the generator.
        """
        device, size = generator.device, (count, 1)
        integers = partial(torch.randint, 0, size=size, generator=generator, device=device)
        row, tick = integers(high=self.motions), integers(high=self.ticks - steps + 1)
        begins = torch.rand(size, generator=generator, device=device) < BEGINNINGS
        tick = torch.where(begins, 0, tick)
        further = torch.arange(steps + 1, device=device)
        states = row * (self.ticks + 1) + tick + further
        told = row * self.ticks + tick + further[:-1]
        return self._states[states], self._told[told], self._inner[told[:, 0]]


def _encoded(network: DDPINN, states: np.ndarray) -> torch.Tensor:
    """On the network's device, in parts, so that less memory is needed."""
    device, parts = network.mean.device, np.array_split(states, 16)
    return torch.cat([network.encode(as_tensor(part).to(device)) for part in parts])


def told_of(network: DDPINN, motions: Trajectories) -> torch.Tensor:
    """(B, T, k) what a network is told over motions, on its device."""
    device = network.mean.device
    begin, end = as_tensor(motions.levels).to(device)
    parameters = as_tensor(motions.parameters).to(device)[:, None]
    return network.tell(begin, end, parameters.expand(-1, begin.shape[1], -1))


@torch.no_grad()
def encoded_steps(network: DDPINN, points: Physics, answers: np.ndarray) -> Samples:
    """Single steps in a network's coordinates, on its device."""
    points = on_device(points, network.mean.device)
    told = network.tell(points.begin, points.end, points.parameters)
    return Samples(network.encode(points.states), _encoded(network, answers), told)


def as_tensor(values: np.ndarray) -> torch.Tensor:
    """In single precision."""
    return torch.as_tensor(np.ascontiguousarray(values, dtype=np.float32))

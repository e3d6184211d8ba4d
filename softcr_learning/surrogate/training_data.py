"""Samples as tensors in a network's own coordinates, drawn batch by batch."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import qmc

from softcr_learning.surrogate.sampling import (
    Trajectories,
    draw_levels,
    draw_parameters,
    signal_of,
    simulate,
    step_pieces,
)
from softcr_learning.surrogate.training_settings import TrainingSettings
from softcr_models.errors import UserError
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.parameters import PARAMETERS
from softcr_models.surrogate.coordinates import Coordinates, modes_of_motion, scaled_states
from softcr_models.surrogate.ddpinn import DDPINN

_TOGETHER = 65_536
_CPU = torch.device("cpu")
# Part of the windows that lie at the beginning of a motion: the jump from rest, which every use
# begins with, would otherwise be one sample in hundreds.
BEGINNINGS = 0.05


@dataclass(frozen=True, eq=False)
class Samples:
    """Single steps: (S, nx) before, (S, I, nx) at the marks, (S, k) what is told beside."""

    before: torch.Tensor
    marks: torch.Tensor
    told: torch.Tensor

    def on(self, device: torch.device) -> "Samples":
        """The same on a device."""
        return Samples(self.before.to(device), self.marks.to(device), self.told.to(device))


@dataclass(frozen=True, eq=False)
class Physics:
    """Collocation points in physical units: states, pressures at begin and end, parameters."""

    states: torch.Tensor
    begin: torch.Tensor
    end: torch.Tensor
    parameters: torch.Tensor

    def on(self, device: torch.device) -> "Physics":
        """The same on a device."""
        values = (self.states, self.begin, self.end, self.parameters)
        return Physics(*(value.to(device) for value in values))


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
    motions = simulated(rod, settings, lambda done: report("motions of the rod", done))
    if not len(motions.states):
        raise UserError("training: no simulated motion stayed finite; lower the signals' range")
    if not settings.noisy_samples:
        return RodData(motions, None)
    return RodData(
        motions,
        noisy_steps(rod, motions, settings, lambda done: report("steps from noisy states", done)),
    )


def simulated(
    rod: CosseratRod, settings: TrainingSettings, progress: Callable[[float], None]
) -> Trajectories:
    """The motions of a training, from its seed."""
    rng = np.random.default_rng([settings.seed, 1])
    signal = signal_of(rod.robot, settings.ticks, settings.period)
    levels = draw_levels(settings.signals, signal, settings.trajectories, rng)
    count = len(levels.begin)
    parameters = draw_parameters(rod.nominal_parameters, PARAMETERS, settings.ranges, count, rng)
    return simulate(rod, levels, parameters, settings.period, progress)


def coordinates_of(motions: Trajectories, settings: TrainingSettings) -> Coordinates:
    """The coordinates that `settings` ask for, from a sample of the motions."""
    states = motions.states.reshape(-1, motions.states.shape[-1])
    sample = states[:: max(1, len(states) // 200_000)]
    if settings.architecture.coordinates == "states":
        return scaled_states(sample)
    return modes_of_motion(sample, settings.architecture.least_spread)


def noisy_steps(
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
    batch, ticks = motions.levels.begin.shape[:2]
    row, tick = rng.integers(0, batch, count), rng.integers(0, ticks, count)
    spread = motions.states.reshape(-1, rod.state_size).std(axis=0)
    size = rng.uniform(0.0, settings.noise, (count, 1))
    states = motions.states[row, tick] + size * spread * rng.standard_normal((count, len(spread)))
    begin, end = motions.levels.begin[row, tick], motions.levels.end[row, tick]
    parameters = motions.parameters[row]
    answers = np.empty((count, 3, rod.state_size), np.float32)
    for first in range(0, count, _TOGETHER):
        part = slice(first, first + _TOGETHER)
        answers[part] = step_pieces(
            rod, states[part], begin[part], end[part], parameters[part], settings.period
        )
        progress(min(1.0, (first + _TOGETHER) / count))
    good = np.isfinite(answers).all(axis=(1, 2))
    values = (states[good], begin[good], end[good], parameters[good])
    return Physics(*map(_tensor, values)), answers[good]


def ends_of_steps(motions: Trajectories, every: int) -> Physics:
    """Every so many ticks of the motions: states and the pressures they were reached under."""
    states = motions.states[:, 1:][:, ::every]
    end = motions.levels.end[:, ::every]
    parameters = np.broadcast_to(
        motions.parameters[:, None], (*states.shape[:2], motions.parameters.shape[1])
    )
    flat = (values.reshape(-1, values.shape[-1]) for values in (states, end, end, parameters))
    return Physics(*map(_tensor, flat))


def box_points(rod: CosseratRod, motions: Trajectories, settings: TrainingSettings) -> Physics:
    """Collocation points of the paper: N(0, 0.5) in scaled states, Latin hypercube for the rest."""
    rng = np.random.default_rng([settings.seed, 3])
    box = scaled_states(motions.states.reshape(-1, rod.state_size))
    count, chambers = settings.box_samples, rod.input_size
    scaled = 0.5 * rng.standard_normal((count, rod.state_size))
    states = box.mean + scaled * np.diag(box.decode)
    cube = qmc.LatinHypercube(chambers + len(PARAMETERS), rng=rng).random(count)
    limits = rod.robot.pressure_limits
    pressures = limits.minimum + (limits.maximum - limits.minimum) * cube[:, :chambers]
    factors = np.ones((count, len(PARAMETERS)))
    for column, name in enumerate(PARAMETERS):
        if name in settings.ranges:
            part = settings.ranges[name]
            factors[:, column] = part.low + (part.high - part.low) * cube[:, chambers + column]
    parameters = rod.nominal_parameters * factors
    return Physics(*map(_tensor, (states, pressures, pressures, parameters)))


class Windows:
    """Motions in a network's coordinates, of which windows of any number of steps are drawn."""

    def __init__(self, network: DDPINN, motions: Trajectories, device: torch.device = _CPU) -> None:
        """Encodes all motions once, and keeps them on a device."""
        with torch.no_grad():
            states = _encoded(network, motions.states)
            inner = _encoded(network, motions.inner)
            begin, end = _tensor(motions.levels.begin), _tensor(motions.levels.end)
            parameters = _tensor(motions.parameters)[:, None].expand(-1, begin.shape[1], -1)
            told = network.tell(begin, end, parameters)
        self.motions, self.ticks = told.shape[:2]
        self._flat_states = states.flatten(0, 1).to(device)
        self._flat_told = told.flatten(0, 1).to(device)
        self._flat_inner = inner.flatten(0, 1).to(device)

    def draw(
        self, count: int, steps: int, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """States (count, steps + 1, nx), told (count, steps, k), inner marks of the first step."""
        row = torch.randint(0, self.motions, (count, 1), generator=generator)
        tick = torch.randint(0, self.ticks - steps + 1, (count, 1), generator=generator)
        begins = torch.rand((count, 1), generator=generator) < BEGINNINGS
        tick = torch.where(begins, 0, tick)
        states = row * (self.ticks + 1) + tick + torch.arange(steps + 1)
        told = row * self.ticks + tick + torch.arange(steps)
        return (
            self._flat_states[states.flatten()].unflatten(0, states.shape),
            self._flat_told[told.flatten()].unflatten(0, told.shape),
            self._flat_inner[told[:, 0]],
        )


def _encoded(network: DDPINN, states: np.ndarray) -> torch.Tensor:
    return torch.cat(
        [network.encode(torch.from_numpy(part)) for part in np.array_split(states, 16)]
    )


def encoded_steps(network: DDPINN, points: Physics, answers: np.ndarray) -> Samples:
    """Single steps in a network's coordinates."""
    with torch.no_grad():
        told = network.tell(points.begin, points.end, points.parameters)
        marks = _encoded(network, answers)
        return Samples(network.encode(points.states), marks, told)


def _tensor(values: np.ndarray) -> torch.Tensor:
    return torch.as_tensor(np.ascontiguousarray(values, dtype=np.float32))

"""Motions that a network runs freely, never put right, beside those of its rod."""

from collections.abc import Iterator

import numpy as np
import torch

from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_papers.licher2025.training.sampling import Trajectories, judged_inputs, simulate
from softcr_papers.licher2025.training.training_data import as_tensor, told_of
from softcr_papers.licher2025.training.training_settings import TrainingSettings

_COUNT, _TICKS = 8, 280
ABSURD = 1e6  # no state of a rod is that large
# name -> family; other seeds than those of `softcr verify-surrogate`
_SETS = {"smooth": "smooth", "steps": "lagged_steps"}


class Validation:
    """How good a network is while it is trained, on motions that the training never sees."""

    def __init__(self, rod: CosseratRod, settings: TrainingSettings) -> None:
        """Simulates the motions, of 4 s."""
        self._rod = rod
        self._sets: dict[str, Trajectories] = {}
        for number, (name, family) in enumerate(_SETS.items()):
            seed, period = [settings.seed, 9, number], settings.period
            inputs = judged_inputs(rod, family, _COUNT, _TICKS, period, seed)
            self._sets[name] = simulate(rod, *inputs, period)

    def __call__(self, network: DDPINN) -> dict[str, float]:
        """Name of the set -> mean tip distance [mm]; infinite where a motion diverged."""
        return {f"tip {name} mm": self._error(network, set_) for name, set_ in self._sets.items()}

    def _error(self, network: DDPINN, motions: Trajectories) -> float:
        states = free_run(network, motions)
        if diverged(states):
            return float("inf")
        distance = mean_tip_distance(self._rod, states, motions.states[:, 1:], motions.parameters)
        return distance if np.isfinite(distance) else float("inf")


def diverged(states: np.ndarray) -> bool:
    """Whether one of the states is nothing that a rod can have."""
    return not (np.abs(states) < ABSURD).all()


def tips(rod: CosseratRod, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """(S, 3, 4) poses of the tip, of states (S, nx) or (B, T, nx) and parameters (B, P)."""
    flat = np.ascontiguousarray(states.reshape(-1, rod.state_size), dtype=float)
    rows = np.repeat(parameters, len(flat) // len(parameters), axis=0)
    return stepper.tip_poses(flat, rows, rod.body, rod.grid, rod.fittings)


def mean_tip_distance(
    rod: CosseratRod, ours: np.ndarray, true: np.ndarray, parameters: np.ndarray
) -> float:
    """Mean distance [mm] of the tip between states; shapes as of `tips`."""
    a, b = (tips(rod, states, parameters)[:, :, 3] for states in (ours, true))
    return float(1e3 * np.linalg.norm(a - b, axis=1).mean())


@torch.no_grad()
def run_freely(network: DDPINN, motions: Trajectories) -> Iterator[torch.Tensor]:
    """Coordinates (B, nx) after each step, from the first states and the inputs alone."""
    told = told_of(network, motions)
    coordinates = network.encode(as_tensor(motions.states[:, 0]).to(told.device))
    for tick in range(told.shape[1]):
        coordinates = network.advance(coordinates, told[:, tick])
        yield coordinates


def free_run(network: DDPINN, motions: Trajectories) -> np.ndarray:
    """States (B, T, nx) of a network that only sees the first state and the inputs."""
    states = [network.decode(coordinates) for coordinates in run_freely(network, motions)]
    return torch.stack(states, dim=1).cpu().numpy()

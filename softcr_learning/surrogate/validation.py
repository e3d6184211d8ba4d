"""How good a network is while it is trained: free-running motions the training never sees."""

import numpy as np
import torch

from softcr_learning.surrogate.sampling import (
    ParameterRange,
    Trajectories,
    draw_levels,
    draw_parameters,
    signal_of,
    simulate,
)
from softcr_learning.surrogate.training_settings import TrainingSettings
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.parameters import PARAMETERS
from softcr_models.surrogate.ddpinn import DDPINN

_COUNT, _TICKS = 8, 280
ABSURD = 1e6  # no state of a rod is that large
# name -> family; other seeds than those of `softcr verify-surrogate`
_SETS = {"smooth": "smooth", "steps": "lagged_steps"}


class Validation:
    """Mean distance [mm] of the tip from the rod's over 4 s, never put right."""

    def __init__(self, rod: CosseratRod, settings: TrainingSettings) -> None:
        """Simulates the motions."""
        self._rod = rod
        self._sets: dict[str, Trajectories] = {}
        compliance = {"bending_compliance": ParameterRange(0.8, 1.2)}
        for number, (name, family) in enumerate(_SETS.items()):
            rng = np.random.default_rng([settings.seed, 9, number])
            signal = signal_of(rod.robot, _TICKS, settings.period)
            levels = draw_levels({family: 1.0}, signal, _COUNT, rng)
            parameters = draw_parameters(
                rod.nominal_parameters, PARAMETERS, compliance, _COUNT, rng
            )
            self._sets[name] = simulate(rod, levels, parameters, settings.period)

    def __call__(self, network: DDPINN) -> dict[str, float]:
        """Name of the set -> mean tip distance [mm]; infinite where a motion left the numbers."""
        return {f"tip {name} mm": self._error(network, set_) for name, set_ in self._sets.items()}

    def _error(self, network: DDPINN, motions: Trajectories) -> float:
        states = free_run(network, motions)
        if not np.isfinite(states).all() or np.abs(states).max() > ABSURD:
            return float("inf")
        tips = self._tips(states, motions.parameters)
        distance = np.linalg.norm(
            tips - self._tips(motions.states[:, 1:], motions.parameters), axis=2
        )
        return float(1e3 * distance.mean()) if np.isfinite(distance).all() else float("inf")

    def _tips(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(B, T, 3) tip positions [m] of states (B, T, nx)."""
        batch, ticks, size = states.shape
        rows = np.repeat(parameters, ticks, axis=0)
        flat = np.ascontiguousarray(states.reshape(-1, size), dtype=float)
        poses = stepper.tip_poses(flat, rows, self._rod.body, self._rod.grid)
        return poses[:, :, 3].reshape(batch, ticks, 3)


@torch.no_grad()
def free_run(network: DDPINN, motions: Trajectories) -> np.ndarray:
    """States (B, T, nx) of a network that only sees the first state and the pressures."""
    device = network.mean.device
    told = told_of(network, motions)
    coordinates = network.encode(torch.from_numpy(motions.states[:, 0]).to(device))
    states = []
    for tick in range(told.shape[1]):
        coordinates = network.advance(coordinates, told[:, tick])
        states.append(network.decode(coordinates))
    return torch.stack(states, dim=1).cpu().numpy()


@torch.no_grad()
def free_run_with_rates(network: DDPINN, motions: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """As `free_run`, and the ansatz's rates (B, T, nx) at the ends of the steps."""
    told = told_of(network, motions)
    coordinates = network.encode(torch.from_numpy(motions.states[:, 0]))
    end = torch.tensor(network.period)
    states, rates = [], []
    for tick in range(told.shape[1]):
        coordinates, rate = network.at(coordinates, told[:, tick], end)
        states.append(network.decode(coordinates))
        rates.append(rate @ network.decoder.T)
    return torch.stack(states, dim=1).numpy(), torch.stack(rates, dim=1).numpy()


def told_of(network: DDPINN, motions: Trajectories) -> torch.Tensor:
    """(B, T, k) what a network is told over motions."""
    begin, end, parameters = (
        torch.tensor(values, dtype=torch.float32, device=network.mean.device)
        for values in (motions.levels.begin, motions.levels.end, motions.parameters[:, None])
    )
    return network.tell(begin, end, parameters.expand(-1, begin.shape[1], -1))

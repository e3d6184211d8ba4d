"""What a network is trained to make small."""

import torch

from softcr_models.surrogate.ddpinn import DDPINN
from softcr_papers.licher2025.training.rod_residual import RodResidual
from softcr_papers.licher2025.training.training_data import Physics, on_device


def error_size(error: torch.Tensor, distance: float) -> torch.Tensor:
    """Size of errors (..., nx): d (sqrt(|e|^2 + d^2) - d), that is |e|^2 / 2 up to d, d |e| beyond.

    What counts in the end is a mean distance; squares alone would let the few hardest samples
    decide.
    """
    return distance * ((error.square().sum(dim=-1) + distance**2).sqrt() - distance)


def loop_error(
    network: DDPINN, first: torch.Tensor, states: torch.Tensor, told: torch.Tensor, distance: float
) -> torch.Tensor:
    """Mean error size in scaled states over the steps after the first, fed with its own answers.

    A network that is right for one step may be far off after a hundred: only this loss sees what
    its own errors do to it.

    Args:
        first: (S, nx) the network's answer to the first step.
        states: (S, K + 1, nx) what the rod does; told: (S, K, k).
    """
    total, coordinates = first.new_zeros(()), first
    steps = told.shape[1]
    for step in range(1, steps):
        coordinates = network.advance(coordinates, told[:, step])
        error = (coordinates - states[:, step + 1]) * network.weight
        total = total + error_size(error, distance).mean()
    return total / steps


class PhysicsLoss:
    """The residual of (19) along the ansatz, (37), at random times of the step."""

    def __init__(self, residual: RodResidual, motions: Physics) -> None:
        """Rows are measured in what they are worth on the motions, where nothing moves on its own:

        the root mean square of the residual without rates. Rows differ by 1e4 otherwise.
        """
        self._residual = residual
        states, _, pressures, parameters = on_device(motions, residual.device)
        still = residual(states, torch.zeros_like(states), pressures, parameters)
        size = still.square().mean(dim=0).sqrt()
        self.row_scale = size.clamp_min(1e-3 * float(size.max()))

    def __call__(
        self, network: DDPINN, points: Physics, generator: torch.Generator
    ) -> torch.Tensor:
        """Mean over points and rows of the squared residual, rows in their own size."""
        part = torch.rand(len(points.states), generator=generator, device=generator.device)
        told = network.tell(points.begin, points.end, points.parameters)
        coordinates, rates = network.at(network.encode(points.states), told, network.period * part)
        states, state_rates = network.decode(coordinates), rates @ network.decoder.T
        pressures = points.begin + part[:, None] * (points.end - points.begin)
        rows = self._residual(states, state_rates, pressures, points.parameters)
        return (rows / self.row_scale).square().mean()

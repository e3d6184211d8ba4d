"""What a network is before it learns: coordinates, shapes of the ansatz, and the linear part."""

import numpy as np
import torch
from scipy.optimize import minimize

from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.surrogate.ansatz import (
    HIGHEST_DAMPING,
    HIGHEST_FREQUENCY,
    PIECES,
    SHARED_SHAPES,
    amplitudes_per_mark,
    basis,
)
from softcr_models.surrogate.coordinates import Coordinates, modes_of_motion, scaled_states
from softcr_models.surrogate.ddpinn import DDPINN, inputs_of
from softcr_papers.licher2025.training.sampling import Trajectories, factor_bounds, step_pieces
from softcr_papers.licher2025.training.training_data import Samples, Windows, chosen
from softcr_papers.licher2025.training.training_settings import TrainingSettings

_RIDGE = 1e-6
WINDOWS, NOISY = 200_000, 100_000  # samples that the linear part is fitted to
SHAPE_SAMPLES = 2000


def blank_network(rod: CosseratRod, settings: TrainingSettings) -> DDPINN:
    """A network with random hidden layers that say little, and nothing fitted yet."""
    nominal = rod.nominal_parameters
    low, high = factor_bounds(settings.ranges)
    inputs = inputs_of(rod, nominal * low, nominal * high, settings.period)
    torch.manual_seed(settings.seed)
    network = DDPINN(settings.architecture, inputs, rod.state_size, rod.segments)
    with torch.no_grad():
        network.last.weight.mul_(0.1)
        network.last.bias.zero_()
    return network


def fit_coordinates(
    network: DDPINN, rod: CosseratRod, motions: Trajectories, settings: TrainingSettings
) -> None:
    """Coordinates from a sample of the motions, and the shapes that all samples share, if so."""
    states = motions.states.reshape(-1, rod.state_size)
    sample = states[:: max(1, len(states) // 200_000)]
    if network.architecture.coordinates == "states":
        coordinates = scaled_states(sample)
    else:
        coordinates = modes_of_motion(sample, network.architecture.least_spread, rod.segments)
    network.set_coordinates(coordinates, rod)
    if network.architecture.shapes == "shared":
        shapes = _fitted_shapes(rod, motions, coordinates, settings)
        network.shapes.copy_(torch.as_tensor(shapes, dtype=torch.float32))


def _fitted_shapes(
    rod: CosseratRod, motions: Trajectories, coordinates: Coordinates, settings: TrainingSettings
) -> np.ndarray:
    """(PIECES, 3) frequency [rad/s], phase [rad], damping [1/s] of the terms of the ansatz.

    Chosen so that the ansatz through the rod's states at the marks misses it least half way between
    them: what holds at the marks then holds all along the step.
    """
    period = settings.period
    steps = motions.random_steps(SHAPE_SAMPLES, np.random.default_rng([settings.seed, 4]))
    after = step_pieces(rod, *steps, period, pieces=2 * PIECES)
    moved = ((after - steps[0][:, None]) @ coordinates.encode.T) * coordinates.weight
    moved = moved[np.isfinite(moved).all(axis=(1, 2))]
    between = torch.tensor(period * (np.arange(PIECES) + 0.5) / PIECES)[:, None]

    def shapes_of(vector: np.ndarray) -> np.ndarray:
        frequency, phase, damping = vector.reshape(3, PIECES)
        return np.stack((np.exp(frequency), phase, np.exp(damping)), axis=1)

    def missed(vector: np.ndarray) -> float:
        shapes = shapes_of(vector)
        if shapes[:, 0].max() > HIGHEST_FREQUENCY or shapes[:, 2].max() > HIGHEST_DAMPING:
            return 1e3
        try:
            per_mark = amplitudes_per_mark(torch.tensor(shapes), period)
        except torch.linalg.LinAlgError:
            return 1e3
        frequency, phase, damping = torch.tensor(shapes).T
        values = (basis(frequency, phase, damping, between) @ per_mark.T).numpy()
        error = np.einsum("tj,sjx->stx", values, moved[:, 1::2]) - moved[:, ::2]
        return float(np.sqrt((error**2).sum(axis=(1, 2)).mean()))

    frequency, phase, damping = SHARED_SHAPES.T
    start = np.concatenate((np.log(frequency), phase, np.log(damping)))
    return shapes_of(minimize(missed, start, method="Nelder-Mead", options={"maxfev": 500}).x)


@torch.no_grad()
def fit_linear_part(
    network: DDPINN, windows: Windows, noisy: Samples | None, settings: TrainingSettings
) -> None:
    """Least squares over motions and noisy steps: what the hidden layers need not learn.

    The ridge pulls the next state to zero, not the increment: a direction that the data do not
    excite decays. Outputs of the network are measured in what the linear part leaves over.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    states, told, inner = windows.draw(WINDOWS, 1, generator)
    parts = [Samples(states[:, 0], torch.cat((inner, states[:, 1:]), dim=1), told[:, 0])]
    if noisy is not None:
        parts.append(chosen(noisy, NOISY, generator))
    before, after, beside = map(torch.cat, zip(*parts, strict=True))
    weights = before.new_ones(len(before), 1)
    seen = torch.cat((before, beside, weights), dim=-1).double()
    weights[WINDOWS:] = settings.noisy
    size, terms = network.state_size, network.architecture.terms
    wanted = after[:, -terms:].flatten(1).double()
    weighted = seen * weights.double()
    normal = weighted.T @ seen + _RIDGE * len(seen) * torch.eye(seen.shape[1], device=seen.device)
    solution = torch.linalg.solve(normal, weighted.T @ wanted).T
    left_over = wanted - seen @ solution.T
    network.output_scale.copy_(left_over[:WINDOWS].std(dim=0).clamp_min(1e-6))
    solution[:, :size] -= torch.eye(size, device=seen.device).repeat(terms, 1)
    network.linear.copy_(solution)

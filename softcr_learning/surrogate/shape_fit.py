"""Fitting the shapes that all samples share to what the rod does inside its steps."""

import numpy as np
import torch
from scipy.optimize import minimize

from softcr_learning.surrogate.sampling import SUBSTEPS, Trajectories
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.stepper import Run
from softcr_models.surrogate.ansatz import (
    HIGHEST_DAMPING,
    HIGHEST_FREQUENCY,
    PIECES,
    SHARED_SHAPES,
    amplitudes_per_mark,
    basis,
)
from softcr_models.surrogate.coordinates import Coordinates

_SAMPLES = 2000


def fit_shapes(
    rod: CosseratRod, motions: Trajectories, coordinates: Coordinates, period: float, seed: int
) -> np.ndarray:
    """(PIECES, 3) frequency [rad/s], phase [rad], damping [1/s] of the terms of the ansatz.

    Chosen so that the ansatz through the rod's states at the marks misses it least half way between
    them: what holds at the marks then holds all along the step.
    """
    moved = _moved(rod, motions, coordinates, period, np.random.default_rng([seed, 4]))
    between = torch.tensor(period * (np.arange(PIECES) + 0.5) / PIECES)[:, None]

    def missed(vector: np.ndarray) -> float:
        shapes = _shapes_of(vector)
        if shapes[:, 0].max() > HIGHEST_FREQUENCY or shapes[:, 2].max() > HIGHEST_DAMPING:
            return 1e3
        frequency, phase, damping = torch.tensor(shapes).T
        try:
            per_mark = amplitudes_per_mark(torch.tensor(shapes), period)
        except torch.linalg.LinAlgError:
            return 1e3
        values = (basis(frequency, phase, damping, between) @ per_mark.T).numpy()
        error = np.einsum("tj,sjx->stx", values, moved[:, 1::2]) - moved[:, ::2]
        return float(np.sqrt((error**2).sum(axis=(1, 2)).mean()))

    start = np.concatenate(
        (np.log(SHARED_SHAPES[:, 0]), SHARED_SHAPES[:, 1], np.log(SHARED_SHAPES[:, 2]))
    )
    found = minimize(missed, start, method="Nelder-Mead", options={"maxfev": 500})
    return _shapes_of(found.x)


def _shapes_of(vector: np.ndarray) -> np.ndarray:
    frequency, phase, damping = vector.reshape(3, PIECES)
    return np.stack((np.exp(frequency), phase, np.exp(damping)), axis=1)


def _moved(
    rod: CosseratRod,
    motions: Trajectories,
    coordinates: Coordinates,
    period: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """(S, 2 PIECES, nx) movements in weighted coordinates at twice as many points as marks."""
    batch, ticks = motions.levels.begin.shape[:2]
    row, tick = rng.integers(0, batch, _SAMPLES), rng.integers(0, ticks, _SAMPLES)
    states = motions.states[row, tick].astype(float)
    begin, end = motions.levels.begin[row, tick], motions.levels.end[row, tick]
    marks = np.linspace(0.0, 1.0, 2 * PIECES + 1)[:, None]
    pressures = begin[:, None] + marks * (end - begin)[:, None]
    run = Run(rod.body, rod.grid, period / (2 * PIECES), SUBSTEPS)
    after = stepper.rollout(states, pressures, motions.parameters[row], run)
    moved = ((after - states[:, None]) @ coordinates.encode.T) * coordinates.weight
    return moved[np.isfinite(moved).all(axis=(1, 2))]

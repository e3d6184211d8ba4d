"""The reference motion of the rod, and how its true course is known.

Two seconds of three-phase pressures, 30 +- 25 kPa at 1 Hz, each value held for one control period:
the tip sweeps +-110 mm, near the rod's first resonance.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

from softcr_models.prediction import RodPrediction
from softcr_models.rod.compilation import cache_directory
from softcr_models.rod.cosserat_rod import CosseratRod

PERIOD = 1 / 70
FINE_SUBSTEPS = 32


def three_phase_pressures(periods: int, period: float = PERIOD) -> np.ndarray:
    """(T, 3) pressures [Pa], each held for a period [s]."""
    turns = np.arange(periods)[:, None] * period + np.arange(3) / 3
    return 3e4 + 2.5e4 * np.sin(2 * np.pi * turns)


def tip_positions(rod: CosseratRod, states: np.ndarray) -> np.ndarray:
    """(T, 3) tips [m] of states (T, 12 (n + 1)) in the base frame."""
    return RodPrediction(rod).tip_poses(states, rod.nominal_parameters[None])[:, :, 3]


def mean_distance(tips: np.ndarray, others: np.ndarray) -> float:
    """Mean Euclidean distance [m] of points (..., 3); NaN if one is NaN."""
    return float(np.linalg.norm(tips - others, axis=-1).mean())


def fine_states(rod: CosseratRod, pressures: np.ndarray) -> np.ndarray:
    """(T, 12 (n + 1)) by our own stepper, FINE_SUBSTEPS sub-steps per period, from rest.

    What it is worth is measured against Radau at n = 5 (speed/rod).
    """
    fine = CosseratRod(rod.robot, rod.intervals, max_substep=PERIOD / FINE_SUBSTEPS)
    return fine.simulate(fine.rest_state(), pressures, PERIOD)


def radau_states(rod: CosseratRod, pressures: np.ndarray) -> np.ndarray:
    """(T, 12 (n + 1)) by SciPy's Radau at rtol 1e-8, from rest.

    That takes a while, so the result is kept in the cache of this version of the rod.
    """
    path = _cache_file(rod, pressures)
    with suppress(OSError, ValueError, EOFError):
        return np.load(path)
    states = _integrate_with_radau(rod, pressures)
    with suppress(OSError):  # a cache that cannot be written is no reason to fail
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}.npy")
        np.save(draft, states)
        os.replace(draft, path)
    return states


def _cache_file(rod: CosseratRod, pressures: np.ndarray) -> Path:
    digest = hashlib.sha256(f"{rod.robot.model_dump_json()} {rod.intervals}".encode())
    digest.update(pressures.tobytes())
    # the folder's name is a digest of the rod's sources
    return cache_directory() / f"radau_{digest.hexdigest()[:16]}.npy"


def _integrate_with_radau(rod: CosseratRod, pressures: np.ndarray) -> np.ndarray:
    state, states = rod.rest_state(), []
    for held in pressures:
        solution = solve_ivp(
            lambda _, y, held=held: rod.derivative(y, held),
            (0.0, PERIOD),
            state,
            method="Radau",
            jac=lambda _, y, held=held: rod.linearize(y, held)[0],
            rtol=1e-8,
            atol=1e-10,
        )
        state = solution.y[:, -1]
        states.append(state)
    return np.array(states)

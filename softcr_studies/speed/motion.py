"""The reference motion of the rod, and how its true course is known.

Two seconds of three-phase pressures, 30 +- 25 kPa at 1 Hz, each value held for one control period:
the tip sweeps +-110 mm, near the rod's first resonance.
"""

import hashlib
import os
from contextlib import suppress

import numpy as np
from scipy.integrate import solve_ivp

from softcr_models.kernel_cache import cache_directory
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import load_robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_studies.speed.timing import Effort, measure

PERIOD = 1 / 70
FINE_SUBSTEPS = 32
CHAMBERS = 3


def make_rod(intervals: int = 5) -> CosseratRod:
    """Of the robot whose figures these are."""
    return CosseratRod(load_robot("licher2025"), intervals)


def with_substeps(rod: CosseratRod, substeps: int) -> CosseratRod:
    """The rod, stepped so often in a period."""
    return CosseratRod(rod.robot, rod.intervals, max_substep=PERIOD / substeps)


def three_phase_pressures(periods: int, period: float = PERIOD) -> np.ndarray:
    """(T, 3) pressures [Pa], each held for a period [s]."""
    turns = np.arange(periods)[:, None] * period + np.arange(CHAMBERS) / CHAMBERS
    return 3e4 + 2.5e4 * np.sin(2 * np.pi * turns)


def tip_positions(rod: CosseratRod, states: np.ndarray) -> np.ndarray:
    """(T, 3) tips [m] of states (T, 12 (n + 1)) in the base frame."""
    return RodPrediction(rod).tip_poses(states, rod.nominal_parameters[None])[:, :, 3]


def mean_distance(tips: np.ndarray, others: np.ndarray) -> float:
    """Mean Euclidean distance [m] of points (..., 3); NaN if one is NaN."""
    return float(np.linalg.norm(tips - others, axis=-1).mean())


def from_rest(rod: CosseratRod, pressures: np.ndarray) -> np.ndarray:
    """(T, 12 (n + 1)) states under pressures (T, 3) [Pa]."""
    return rod.simulate(rod.rest_state(), pressures, PERIOD)


def step_durations(rod: CosseratRod, effort: Effort) -> np.ndarray:
    """(R,) durations of a step [s] of the reference motion, simulated in one call."""
    pressures = three_phase_pressures(effort.periods)
    return measure(lambda: from_rest(rod, pressures), effort) / len(pressures)


def fine_states(rod: CosseratRod, pressures: np.ndarray) -> np.ndarray:
    """(T, 12 (n + 1)) by our own stepper, FINE_SUBSTEPS sub-steps per period, from rest.

    What it is worth is measured against Radau at n = 5 (speed/rod).
    """
    return from_rest(with_substeps(rod, FINE_SUBSTEPS), pressures)


def radau_states(rod: CosseratRod, pressures: np.ndarray) -> np.ndarray:
    """(T, 12 (n + 1)) by SciPy's Radau at rtol 1e-8, from rest.

    That takes half a minute, so the result is kept in the cache of this version of the rod.
    """
    digest = hashlib.sha256(f"{rod.robot.model_dump_json()} {rod.intervals}".encode())
    digest.update(pressures.tobytes())
    # the folder's name is a digest of the rod's sources
    path = cache_directory() / f"radau_{digest.hexdigest()[:16]}.npy"
    with suppress(OSError, ValueError, EOFError):
        return np.load(path)
    states = _integrate_with_radau(rod, pressures)
    with suppress(OSError):  # a cache that cannot be written is no reason to fail
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}.npy")
        np.save(draft, states)
        os.replace(draft, path)
    return states


def _integrate_with_radau(rod: CosseratRod, pressures: np.ndarray) -> np.ndarray:
    state, states = rod.rest_state(), []
    for held in pressures:
        solution = solve_ivp(
            lambda _, y, held=held: rod.derivative(y, held), (0.0, PERIOD), state, method="Radau",
            jac=lambda _, y, held=held: rod.linearize(y, held)[0], rtol=1e-8, atol=1e-10,
        )  # fmt: skip
        state = solution.y[:, -1]
        states.append(state)
    return np.array(states)

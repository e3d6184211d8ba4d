"""Motions of a known strain robot, as data to learn from and to judge what was learned."""

from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.motion import ShapeMotion
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics
from softcr_papers.valadas2024.strain.integration import Integration, simulate
from softcr_papers.valadas2024.strain.kinematics import StrainKinematics
from softcr_papers.valadas2024.strain.numbers import StrainNumbers

MARKERS = 21


@dataclass(frozen=True, eq=False)
class SimulatedMotion:
    """A motion and the truth behind it.

    Attributes:
        motion: as cameras without noise see it.
        strains, rates, accelerations: (R, T, n) of the robot, n = 3 S; accelerations are those
            just after a frame.
    """

    motion: ShapeMotion
    strains: np.ndarray
    rates: np.ndarray
    accelerations: np.ndarray


def simulated_motion(
    numbers: StrainNumbers,
    starts: np.ndarray,
    torques: np.ndarray,
    hold: float = 0.01,
    rate: float = 1000.0,
    markers: int = MARKERS,
    tolerance: float = 1e-8,
) -> SimulatedMotion:
    """Trajectories from rest under torques that are held.

    Args:
        numbers: of the robot, all strains kept.
        starts: (R, n) strains at the start.
        torques: (R, K, n) torques, one after the other.
        hold: for how long each acts [s].
        rate: of the frames [1/s]; the hold must be a whole number of frames.
        markers: evenly spaced from base to tip.
        tolerance: of the integration.

    Raises:
        UserError: the hold is no whole number of frames.
    """
    frames = round(hold * rate)
    if abs(frames - hold * rate) > 1e-6 or frames < 1:
        raise UserError(f"hold {hold} s: must be a whole number of frames of {1.0 / rate:g} s")
    held = np.repeat(np.asarray(torques, float), frames, axis=1)
    starts = np.asarray(starts, float)
    dynamics = StrainDynamics(numbers)
    begin = np.concatenate([starts, np.zeros_like(starts)], axis=1)
    how = Integration(tolerance=tolerance)
    states = simulate(dynamics, begin, held, 1.0 / rate, how)[:, :-1]
    strains, rates = np.split(states, 2, axis=-1)
    places = np.linspace(0.0, numbers.lengths.sum(), markers)
    poses = StrainKinematics(numbers.lengths).poses(strains, places)
    motion = ShapeMotion(poses, places, held, 1.0 / rate)
    return SimulatedMotion(motion, strains, rates, dynamics.acceleration(strains, rates, held))


def predicted_strains(
    model: StrainNumbers,
    start: np.ndarray,
    torques: np.ndarray,
    hold: float,
    tolerance: float = 1e-5,
) -> np.ndarray:
    """(K + 1, 3 S) strains of a learned model at the start and after each torque.

    Args:
        model: what was learned.
        start: (3 S,) strains at the start, at rest.
        torques: (K, 3 S) of all strains; those of dropped strains do nothing.
        hold: for how long each acts [s].
        tolerance: of the integration.
    """
    kept = model.active
    begin = np.concatenate([start[kept], np.zeros(len(kept))])
    how = Integration(tolerance=tolerance)
    states = simulate(StrainDynamics(model), begin, torques[:, kept], hold, how)[0]
    return model.full(states[:, : len(kept)])


def tip_errors(
    model: StrainNumbers,
    start: np.ndarray,
    torques: np.ndarray,
    hold: float,
    true: np.ndarray,
    true_lengths: np.ndarray,
    tolerance: float = 1e-5,
) -> np.ndarray:
    """(2,) mean error of the tip, Eq. (10): distance [m] and angle [rad].

    Args:
        model, start, torques, hold, tolerance: see `predicted_strains`.
        true: (K + 1, n) strains of the robot at the start and after each torque.
        true_lengths: (S',) of the robot's segments [m].
    """
    strains = predicted_strains(model, start, torques, hold, tolerance)
    found = StrainKinematics(model.lengths).tip(strains)
    return mean_errors(found, StrainKinematics(true_lengths).tip(true))


def mean_errors(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """(2,) mean distance [m] and mean difference of angles [rad] of poses (..., 3)."""
    error = found - true
    distance = np.linalg.norm(error[..., :2], axis=-1)
    return np.array([distance.mean(), np.abs(error[..., 2]).mean()])

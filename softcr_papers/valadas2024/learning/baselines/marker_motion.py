"""The motion of a few markers, with rates: what the networks learn from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.simulated import SimulatedMotion
from softcr_papers.valadas2024.strain.kinematics import StrainKinematics


@dataclass(frozen=True, eq=False)
class MarkerMotion:
    """R trajectories of T frames of N markers.

    Attributes:
        poses: (R, T, 3 N) x, y, theta of each marker, one after the other [m, m, rad].
        rates: (R, T, 3 N) their derivatives [m/s, m/s, rad/s].
        torques: (R, T, n); row k acts from frame k to frame k + 1 [N m, N, N, ...].
        period: between frames [s].
    """

    poses: np.ndarray
    rates: np.ndarray
    torques: np.ndarray
    period: float


def marker_motion(
    data: SimulatedMotion, lengths: np.ndarray, markers: Sequence[int]
) -> MarkerMotion:
    """Some markers of a simulated motion; rates are exact.

    Args:
        data: the motion.
        lengths: (S,) of the simulated robot's segments [m].
        markers: which, from 0 at the base.

    Raises:
        UserError: there is no such marker.
    """
    places = data.motion.places
    chosen = np.array(markers, int)
    if not len(chosen) or chosen.min() < 0 or chosen.max() >= len(places):
        raise UserError(f"markers {chosen.tolist()}: allowed are 0 to {len(places) - 1}")
    jacobians = StrainKinematics(lengths).jacobian(data.strains, places[chosen])
    rates = (jacobians @ data.rates[..., None, :, None])[..., 0]
    poses, flat = data.motion.poses[:, :, chosen], (*rates.shape[:2], -1)
    return MarkerMotion(
        poses.reshape(flat), rates.reshape(flat), data.motion.torques, data.motion.period
    )

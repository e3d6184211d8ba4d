"""Strains that fit all markers of a shape, and ends of segments between the markers.

Strains of the ends of segments alone (Eqs. (3) and (4) of Valadas et al. 2024 use these) carry the
noise of few markers, and ends of segments that must be at markers lie off the true ones. Least
squares over all markers of a frame, then over the lengths of the segments, cure both.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.motion import ShapeMotion
from softcr_papers.valadas2024.strain.fitting import (
    ROUNDS,
    fitted_strains,
    markers_at_ends,
    strains_at_ends,
)
from softcr_papers.valadas2024.strain.kinematics import StrainKinematics

_FRAMES = 40  # of the refinement: lengths are a few numbers
_RESTARTS = 6  # of it, each with new bounds around the ends found


@dataclass(frozen=True)
class PoseNoise:
    """What a marker's pose is taken to be off by.

    Attributes:
        position: [m].
        angle: [rad].
    """

    position: float = 1e-4
    angle: float = np.deg2rad(0.5)

    @property
    def weights(self) -> np.ndarray:
        """(3,) of x, y and theta."""
        return 1.0 / np.array([self.position, self.position, self.angle])


@dataclass(frozen=True, eq=False)
class ShapeFit:
    """Strains of each frame.

    Attributes:
        lengths: (S,) of the segments [m].
        strains: (R, T, 3 S); those that are not kept are 0.
        residuals: (R, T) root mean square of a frame's errors over the noise.
    """

    lengths: np.ndarray
    strains: np.ndarray
    residuals: np.ndarray


def fit_strains(
    motion: ShapeMotion,
    lengths: np.ndarray,
    active: np.ndarray | None = None,
    noise: PoseNoise | None = None,
    rounds: int = ROUNDS,
) -> ShapeFit:
    """Strains of every frame by Gauss and Newton, from those of the markers next to segments' ends.

    Args:
        motion: the shapes.
        lengths: (S,) of the segments [m]; they must add up to the length.
        active: (m,) indices of the strains that are kept; None: all.
        noise: of the markers.
        rounds: of Gauss and Newton.

    Raises:
        UserError: the lengths do not fit.
    """
    lengths = np.asarray(lengths, float)
    if not (lengths > 0.0).all() or abs(lengths.sum() - motion.length) > 1e-9:
        raise UserError(
            f"lengths {lengths.tolist()} m: must be above 0 and add up to {motion.length:g} m"
        )
    kept = np.arange(3 * len(lengths)) if active is None else np.asarray(active, np.int64)
    start = strains_at_ends(motion.poses, motion.places, lengths)
    others = np.setdiff1d(np.arange(3 * len(lengths)), kept)
    start[..., others] = 0.0
    return _fitted(motion.poses, motion.places, lengths, kept, noise, start, rounds)


def refine_lengths(
    motion: ShapeMotion, lengths: np.ndarray, noise: PoseNoise | None = None
) -> np.ndarray:
    """(S,) lengths of segments whose ends lie where the shapes want them, between markers, too.

    Args:
        motion: the shapes.
        lengths: (S,) where the search begins [m], as the fusion finds them.
        noise: of the markers.
    """
    lengths = np.asarray(lengths, float)
    if len(lengths) == 1:
        return lengths.copy()
    chosen = np.linspace(0, len(motion.frames) - 1, _FRAMES).round().astype(int)
    poses = np.ascontiguousarray(motion.frames[chosen])[None]
    guess = strains_at_ends(motion.poses, motion.places, lengths)
    guess = guess.reshape(-1, 3 * len(lengths))[chosen][None]
    kept, weights = np.arange(3 * len(lengths)), (noise or PoseNoise()).weights
    ends = np.cumsum(lengths)[:-1]

    def errors(ends: np.ndarray) -> np.ndarray:
        tried = np.diff(np.r_[0.0, ends, motion.length])
        fit = _fitted(poses, motion.places, tried, kept, noise, guess.copy(), 2 * ROUNDS)
        found = StrainKinematics(tried).poses(fit.strains, motion.places)
        return ((poses - found) * weights).ravel()

    for _ in range(_RESTARTS):
        now = np.diff(np.r_[0.0, ends, motion.length])
        room = 0.45 * np.minimum(now[:-1], now[1:])
        bounds = ends - room, ends + room
        found = least_squares(
            errors, ends, bounds=bounds, x_scale=room, diff_step=1e-5, ftol=1e-12, xtol=1e-10
        )
        ends = found.x
        if not found.active_mask.any():  # else an end wants to go farther
            break
    return np.diff(np.r_[0.0, ends, motion.length])


def nearest_markers(motion: ShapeMotion, lengths: np.ndarray) -> np.ndarray:
    """(S,) lengths of segments whose ends are the markers nearest to these ones' ends.

    Raises:
        UserError: two ends have the same marker.
    """
    return np.diff(motion.places[markers_at_ends(motion.places, lengths)])


def shape_errors(motion: ShapeMotion, lengths: np.ndarray, strains: np.ndarray) -> np.ndarray:
    """(2,) mean error of the markers, Eq. (9): distance [m] and angle [rad]; without the base."""
    found = StrainKinematics(lengths).poses(strains, motion.places)[:, :, 1:]
    error = found - motion.poses[:, :, 1:]
    distances = np.linalg.norm(error[..., :2], axis=-1)
    return np.array([distances.mean(), np.abs(error[..., 2]).mean()])


def _fitted(
    poses: np.ndarray,
    places: np.ndarray,
    lengths: np.ndarray,
    kept: np.ndarray,
    noise: PoseNoise | None,
    start: np.ndarray,
    rounds: int,
) -> ShapeFit:
    weights = (noise or PoseNoise()).weights
    return ShapeFit(lengths, *fitted_strains(poses, places, lengths, kept, weights, start, rounds))

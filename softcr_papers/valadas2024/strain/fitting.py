"""Strains that fit the poses of a robot's markers, frame by frame: least squares, compiled."""

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.strain.kernel import kernels
from softcr_papers.valadas2024.strain.kinematics import strains_between

ROUNDS = 5
"""Of Gauss and Newton, which are enough from `strains_at_ends`."""


def markers_at_ends(places: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(S + 1,) markers at the base and closest to the ends of S segments.

    Args:
        places: (N,) of the unloaded backbone, rising from 0 [m].
        lengths: (S,) of the segments [m].

    Raises:
        UserError: two ends have one marker.
    """
    ends = np.r_[0.0, np.cumsum(lengths)]
    nearest: np.ndarray = np.abs(np.asarray(places)[:, None] - ends).argmin(axis=0)
    if (np.diff(nearest) <= 0).any():
        raise UserError(
            f"lengths {np.asarray(lengths).tolist()} m: each segment must have a marker of its own "
            "near its end"
        )
    return nearest


def strains_at_ends(poses: np.ndarray, places: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(..., 3 S) strains of the markers that are closest to the ends of S segments, closed form.

    Args:
        poses: (..., N, 3) [m, m, rad], the base's first, angles continuous along the backbone.
        places: (N,) of the unloaded backbone, rising from 0 [m].
        lengths: (S,) of the segments [m].

    Raises:
        UserError: two ends have one marker.
    """
    nearest = markers_at_ends(places, lengths)
    return strains_between(np.asarray(poses)[..., nearest, :], np.asarray(places)[nearest])


def fitted_strains(
    poses: np.ndarray,
    places: np.ndarray,
    lengths: np.ndarray,
    kept: np.ndarray,
    weights: np.ndarray,
    start: np.ndarray,
    rounds: int = ROUNDS,
) -> tuple[np.ndarray, np.ndarray]:
    """Strains of least squares over all markers, and what is left.

    Args:
        poses: (..., N, 3) as `strains_at_ends`.
        places: (N,) [m].
        lengths: (S,) [m].
        kept: (m,) indices of the strains that are fitted; the others stay.
        weights: (3,) of x, y [1/m] and theta [1/rad]: one over the markers' noise.
        start: (..., 3 S) where the search begins.
        rounds: of Gauss and Newton.

    Returns:
        (..., 3 S) strains, and (...) the root mean square of each frame's errors over the noise.
    """
    strains = np.array(start, float, order="C").reshape(-1, 3 * len(lengths))
    seen = np.array(poses, float, order="C").reshape(-1, *np.shape(poses)[-2:])
    residuals = np.empty(len(seen))
    kernels().fit_shapes(
        seen, np.array(places, float), np.array(lengths, float), np.array(kept, np.int64),
        np.array(weights, float), strains, rounds, residuals,
    )  # fmt: skip
    lead = np.shape(poses)[:-2]
    return strains.reshape(*lead, -1), residuals.reshape(lead)

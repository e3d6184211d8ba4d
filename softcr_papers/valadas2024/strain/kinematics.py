"""Where the backbone of a planar robot of constant-strain segments is, and what strains it has.

Poses are (x, y, theta) [m, m, rad] in the frame of the base. The straight robot lies along the
base's y axis; theta is the angle by which a cross-section has turned, counted on beyond a full
turn. Strains are (kappa [rad/m], sigma_sh [-], sigma_ax [-]) of each segment, relative to the
straight, unloaded one (Valadas et al. 2024, Section II-A; the closed forms are the exponential and
logarithm of SE(2), which the paper does not print).
"""

from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.strain.kernel import kernels, rows

STRAINS = ("bending", "shear", "axial")
"""Of each segment, in this order."""

_NEAR = 1e-2  # below this turn [rad] series replace closed forms, which would lose digits


@dataclass(frozen=True, eq=False)
class StrainKinematics:
    """A chain of segments, each with constant strain.

    Attributes:
        lengths: (S,) rest lengths [m], base to tip.
    """

    lengths: np.ndarray

    def __post_init__(self) -> None:
        """Raises UserError for lengths that are not allowed."""
        lengths = np.array(self.lengths, dtype=float)
        if lengths.ndim != 1 or not len(lengths) or not (lengths > 0.0).all():
            raise UserError(f"lengths {lengths.tolist()} m: each segment's must be above 0")
        object.__setattr__(self, "lengths", lengths)

    @property
    def size(self) -> int:
        """n = 3 S, the number of strains."""
        return 3 * len(self.lengths)

    @property
    def length(self) -> float:
        """Of the whole robot, unloaded [m]."""
        return float(self.lengths.sum())

    def poses(self, strains: np.ndarray, places: np.ndarray) -> np.ndarray:
        """(..., N, 3) poses [m, m, rad] of cross-sections.

        Args:
            strains: (..., n).
            places: (N,) of the unloaded backbone, not falling, from 0 to the length [m].

        Raises:
            UserError: a shape or a place is not allowed.
        """
        return self._poses(strains, places, False)[0]

    def jacobian(self, strains: np.ndarray, places: np.ndarray) -> np.ndarray:
        """(..., N, 3, n) derivatives of `poses` by the strains."""
        return self._poses(strains, places, True)[1]

    def tip(self, strains: np.ndarray) -> np.ndarray:
        """(..., 3) pose of the tip [m, m, rad]."""
        return self.poses(strains, np.array([self.length]))[..., 0, :]

    def strains(self, ends: np.ndarray) -> np.ndarray:
        """(..., n) strains of a robot whose segments end at poses (..., S, 3); the base is at 0."""
        begin = np.zeros((*np.shape(ends)[:-2], 1, 3))
        chain = np.concatenate([begin, ends], axis=-2)
        return strains_between(chain, np.r_[0.0, np.cumsum(self.lengths)])

    def _poses(
        self, strains: np.ndarray, places: np.ndarray, wanted: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        q, at = np.asarray(strains, float), np.asarray(places, float)
        if q.ndim == 0 or q.shape[-1] != self.size:
            raise UserError(f"strains of shape {q.shape}: allowed is (..., {self.size})")
        inside = at.ndim == 1 and len(at) and at[0] >= 0.0 and at[-1] <= self.length + 1e-9
        if not (inside and (np.diff(at) >= 0.0).all()):
            raise UserError(
                f"places {at.tolist()} m: must not fall, from 0 to the length {self.length:g} m"
            )
        flat = rows(q)
        out = np.empty((len(flat), len(at), 3))
        slopes = np.empty((len(flat) if wanted else 0, len(at), 3, self.size))
        kernels().poses(flat, self.lengths, np.ascontiguousarray(at), out, slopes)
        lead = q.shape[:-1]
        return out.reshape(*lead, *out.shape[1:]), slopes.reshape(
            *(lead if wanted else (0,)), *slopes.shape[1:]
        )


def strains_between(poses: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The inverse kinematics: constant strains that connect neighbouring cross-sections.

    Args:
        poses: (..., N, 3) [m, m, rad], angles continuous along the backbone.
        places: (N,) of the unloaded backbone, rising [m].

    Returns:
        (..., 3 (N - 1)) kappa [rad/m], sigma_sh [-], sigma_ax [-] of each interval.

    Raises:
        UserError: shapes do not fit, or places do not rise.
    """
    chain, at = np.asarray(poses, float), np.asarray(places, float)
    if chain.ndim < 2 or chain.shape[-2:] != (len(at), 3) or len(at) < 2:
        raise UserError(f"poses of shape {chain.shape}: allowed is (..., {len(at)}, 3)")
    lengths = np.diff(at)
    if not (lengths > 0.0).all():
        raise UserError(f"places {at.tolist()} m: must rise")
    move, turn = np.diff(chain[..., :2], axis=-2), np.diff(chain[..., 2], axis=-1)
    c, s = np.cos(chain[..., :-1, 2]), np.sin(chain[..., :-1, 2])
    x, y = c * move[..., 0] + s * move[..., 1], c * move[..., 1] - s * move[..., 0]
    f, g = _arc(turn)
    along = (f * f + g * g) * lengths
    shear, axial = (f * x + g * y) / along, (f * y - g * x) / along - 1.0
    found = np.stack([turn / lengths, shear, axial], axis=-1)
    return found.reshape(*found.shape[:-2], -1)


def _arc(turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sin(x) / x and (1 - cos(x)) / x."""
    near = np.abs(turn) < _NEAR
    safe, z = np.where(near, 1.0, turn), turn * turn
    f = np.where(near, 1.0 - z / 6.0 * (1.0 - z / 20.0 * (1.0 - z / 42.0)), np.sin(safe) / safe)
    half = np.sin(0.5 * safe)
    series = 0.5 * turn * (1.0 - z / 12.0 * (1.0 - z / 30.0 * (1.0 - z / 56.0)))
    return f, np.where(near, series, 2.0 * half * half / safe)


def transforms(poses: np.ndarray) -> np.ndarray:
    """(..., 3, 4) rotation beside position, z along the straight robot, of poses (..., 3).

    The plane is that of x and z: the base's y axis of this module is z of every other model.
    """
    poses = np.asarray(poses, float)
    c, s = np.cos(poses[..., 2]), np.sin(poses[..., 2])
    out = np.zeros((*poses.shape[:-1], 3, 4))
    out[..., 0, 0], out[..., 0, 2], out[..., 0, 3] = c, -s, poses[..., 0]
    out[..., 1, 1] = 1.0
    out[..., 2, 0], out[..., 2, 2], out[..., 2, 3] = s, c, poses[..., 1]
    return out


def kinds_first(active: np.ndarray) -> np.ndarray:
    """(m,) order of strains as the groups of a model's state have them: bending, then the others.

    Args:
        active: (m,) indices of the strains kept, rising.
    """
    return np.argsort(np.asarray(active) % 3 > 0, kind="stable")


def planar_poses(transforms: np.ndarray) -> np.ndarray:
    """(..., N, 3) poses of rotations beside positions (..., N, 3, 4), the inverse of `transforms`.

    Angles are made continuous along the backbone, from the first cross-section on.
    """
    given = np.asarray(transforms, float)
    turns = np.unwrap(np.arctan2(-given[..., 0, 2], given[..., 2, 2]), axis=-1)
    return np.stack([given[..., 0, 3], given[..., 2, 3], turns], axis=-1)

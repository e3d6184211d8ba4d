"""A planar robot whose curvature is affine along its backbone, without shear or stretch.

kappa(s) = a_0 + a_1 s / L. The cross-section at s has turned by theta = a_0 s + a_1 s^2 / (2 L),
and its centre is the integral of the tangent (-sin theta, cos theta), by Gauss's quadrature between
neighbouring places: piecewise affine curvature, case 6 of Valadas et al. (2024). Frames are those
of `kinematics`.
"""

import numpy as np

from softcr_models.errors import UserError

_POINTS = 16  # of the quadrature in each interval


def affine_poses(curvatures: np.ndarray, length: float, places: np.ndarray) -> np.ndarray:
    """(..., N, 3) poses [m, m, rad] of cross-sections.

    Args:
        curvatures: (..., 2) a_0 and a_1 [rad/m].
        length: L, of the robot [m].
        places: (N,) of the backbone, not falling, from 0 to L [m].

    Raises:
        UserError: a shape or a place is not allowed.
    """
    a, at = np.asarray(curvatures, float), np.asarray(places, float)
    if a.ndim == 0 or a.shape[-1] != 2:
        raise UserError(f"curvatures of shape {a.shape}: allowed is (..., 2)")
    if not len(at) or at[0] < 0.0 or at[-1] > length + 1e-9 or (np.diff(at) < 0.0).any():
        raise UserError(f"places {at.tolist()} m: must not fall, from 0 to {length:g} m")
    nodes, shares = np.polynomial.legendre.leggauss(_POINTS)
    begins = np.r_[0.0, at[:-1]]
    gaps = at - begins
    inside = begins[:, None] + 0.5 * gaps[:, None] * (1.0 + nodes)  # (N, points)
    theta = _turn(a, inside, length)
    steps = 0.5 * gaps * np.stack([-np.sin(theta) @ shares, np.cos(theta) @ shares])
    x, y = np.cumsum(steps, axis=-1)
    return np.stack([x, y, _turn(a, at, length)], axis=-1)


def _turn(curvatures: np.ndarray, places: np.ndarray, length: float) -> np.ndarray:
    shape = (*curvatures.shape[:-1], *(1,) * places.ndim)
    first, second = curvatures[..., 0].reshape(shape), curvatures[..., 1].reshape(shape)
    return first * places + second * places**2 / (2.0 * length)

"""Rotations: vectors (..., 3), matrices (..., 3, 3); any leading axes."""

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_papers.pawlowski2019.lie.stumpff import inverse_tangent, stumpff


def hat(v: np.ndarray) -> np.ndarray:
    """(..., 3, 3) skew matrix: hat(v) x = v cross x."""
    v = np.asarray(v, float)
    out = np.zeros((*v.shape, 3))
    out[..., 2, 1], out[..., 0, 2], out[..., 1, 0] = v[..., 0], v[..., 1], v[..., 2]
    return out - np.swapaxes(out, -1, -2)


def vee(matrix: np.ndarray) -> np.ndarray:
    """(..., 3) of which `hat` makes a skew matrix (..., 3, 3)."""
    return np.stack((matrix[..., 2, 1], matrix[..., 0, 2], matrix[..., 1, 0]), axis=-1)


def exp(turn: np.ndarray) -> np.ndarray:
    """(..., 3, 3) rotation by a vector (..., 3) [rad]."""
    w, c = hat(turn), _functions(turn)
    return np.eye(3) + c[1] * w + c[2] * (w @ w)


def log(rotation: np.ndarray) -> np.ndarray:
    """(..., 3) the shortest vector [rad] that `exp` makes a rotation (..., 3, 3) of."""
    rotation = np.asarray(rotation, float)
    flat = Rotation.from_matrix(rotation.reshape(-1, 3, 3)).as_rotvec()
    return flat.reshape(rotation.shape[:-1])


def dexp(turn: np.ndarray) -> np.ndarray:
    """(..., 3, 3) tangent map of `exp`: (exp(w))' = hat(dexp(w) w') exp(w)."""
    w, c = hat(turn), _functions(turn)
    return np.eye(3) + c[2] * w + c[3] * (w @ w)


def dexp_inverse(turn: np.ndarray) -> np.ndarray:
    """(..., 3, 3) inverse of `dexp`; turns below 2 pi [rad]."""
    w = hat(turn)
    e, _ = inverse_tangent(_functions(turn))
    return np.eye(3) - 0.5 * w + e * (w @ w)


def _functions(turn: np.ndarray) -> np.ndarray:
    """(COUNT, ..., 1, 1) Stumpff's functions of vectors (..., 3)."""
    return stumpff(np.sum(np.square(turn), axis=-1))[..., None, None]

"""Rigid motions: twists (..., 6), linear first, poses (..., 4, 4); any leading axes.

Names are those of B. Pawlowski, Modeling, Simulation, and Control of Soft Robots, MSc thesis,
Colorado State University, 2019, Ch. 1.1, whose twists are angular first.
"""

import numpy as np

from softcr_papers.pawlowski2019.lie import so3
from softcr_papers.pawlowski2019.lie.stumpff import inverse_tangent, stumpff


def hat(twist: np.ndarray) -> np.ndarray:
    """(..., 4, 4) matrix of a twist, (1.5)."""
    twist = np.asarray(twist, float)
    out = np.zeros((*twist.shape[:-1], 4, 4))
    out[..., :3, :3], out[..., :3, 3] = so3.hat(twist[..., 3:]), twist[..., :3]
    return out


def vee(matrix: np.ndarray) -> np.ndarray:
    """(..., 6) of which `hat` makes a matrix (..., 4, 4)."""
    return np.concatenate((matrix[..., :3, 3], so3.vee(matrix[..., :3, :3])), axis=-1)


def ad(twist: np.ndarray) -> np.ndarray:
    """(..., 6, 6) with ad(x) y = [x, y], (1.10)."""
    twist = np.asarray(twist, float)
    return _blocks(so3.hat(twist[..., 3:]), so3.hat(twist[..., :3]))


def adjoint(pose: np.ndarray) -> np.ndarray:
    """(..., 6, 6) Ad: a twist in the body's frame becomes that in the frame of the pose, (1.13).

    Wrenches go the other way, transposed: a wrench W in that frame is Ad^T W in the body's, as
    (2.35) has it. The thesis's (1.19) says the opposite and contradicts (1.17) and (1.18).
    """
    rotation = pose[..., :3, :3]
    return _blocks(rotation, so3.hat(pose[..., :3, 3]) @ rotation)


def inverse(pose: np.ndarray) -> np.ndarray:
    """(..., 4, 4) inverse of a pose."""
    back = np.swapaxes(pose[..., :3, :3], -1, -2)
    return _pose(back, -(back @ pose[..., :3, 3:])[..., 0])


def exp(twist: np.ndarray) -> np.ndarray:
    """(..., 4, 4) pose that a twist leads to in unit time, (1.14)."""
    twist = np.asarray(twist, float)
    move = so3.dexp(twist[..., 3:]) @ twist[..., :3, None]
    return _pose(so3.exp(twist[..., 3:]), move[..., 0])


def log(pose: np.ndarray) -> np.ndarray:
    """(..., 6) the twist with the smallest turn that `exp` makes a pose (..., 4, 4) of."""
    turn = so3.log(pose[..., :3, :3])
    move = so3.dexp_inverse(turn) @ pose[..., :3, 3:]
    return np.concatenate((move[..., 0], turn), axis=-1)


def dexp(twist: np.ndarray) -> np.ndarray:
    """(..., 6, 6) tangent map of `exp`, trivialised on the left side: sum_k ad^k / (k + 1)!.

    (exp(x))' = hat(dexp(x) x') exp(x) = exp(x) hat(dexp(-x) x'). It is (2.72) with b(theta) as the
    coefficient of ad; the thesis prints a(theta) there, which no series gives.
    """
    w, q, along, c = _parts(twist)
    turned = np.eye(3) + c[2] * w + c[3] * (w @ w)
    mixed = c[2] * q + c[3] * (w @ q + q @ w)
    mixed += along * ((2.0 * c[4] - c[3]) * w + (3.0 * c[5] - c[4]) * (w @ w))
    return _blocks(turned, mixed)


def dexp_inverse(twist: np.ndarray) -> np.ndarray:
    """(..., 6, 6) inverse of `dexp`; turns below 2 pi [rad]."""
    w, q, along, c = _parts(twist)
    e, e_rate = inverse_tangent(c)
    turned = np.eye(3) - 0.5 * w + e * (w @ w)
    mixed = -0.5 * q + e * (w @ q + q @ w) + 2.0 * along * e_rate * (w @ w)
    return _blocks(turned, mixed)


def _parts(twist: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """hat(w), hat(q), w . q and Stumpff's functions, each with two axes at the end."""
    twist = np.asarray(twist, float)
    linear, turn = twist[..., :3], twist[..., 3:]
    along = np.sum(linear * turn, axis=-1)[..., None, None]
    c = stumpff(np.sum(turn * turn, axis=-1))[..., None, None]
    return so3.hat(turn), so3.hat(linear), along, c


def _blocks(diagonal: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """(..., 6, 6) [[diagonal, corner], [0, diagonal]]."""
    out = np.zeros((*diagonal.shape[:-2], 6, 6))
    out[..., :3, :3], out[..., 3:, 3:], out[..., :3, 3:] = diagonal, diagonal, corner
    return out


def _pose(rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    out = np.zeros((*position.shape[:-1], 4, 4))
    out[..., :3, :3], out[..., :3, 3], out[..., 3, 3] = rotation, position, 1.0
    return out

"""Lazy loader of the compiled kernels of constant-curvature models, see `room_kernels`.

Importing this module compiles nothing and opens nothing.
"""

from types import ModuleType

import numpy as np

from softcr_models.room_kernels import kernels_of

COUNT = 8
"""Number of Stumpff's functions that are needed: c_0 to c_7."""

TIP, CENTRE_OF_GRAVITY = 1, 2
"""Which point of an arc: the `order` of `point_motion`."""


def kernels() -> ModuleType:
    """The compiled kernels, compiled or loaded."""
    return kernels_of("softcr_papers.constant_curvature.compiled")


def stumpff(z: np.ndarray) -> np.ndarray:
    """(..., COUNT) Stumpff's functions c_0 to c_7 of z (...), real or complex."""
    return kernels().stumpff(z)


def point_motion(
    q: np.ndarray, rate: np.ndarray, rest_length: float, radius: float, order: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position (..., 3) [m], Jacobian (..., 3, 3) by q and its time derivative.

    Of the tip (order TIP) or the centre of gravity (order CENTRE_OF_GRAVITY) of an arc with
    coordinates q = [Delta_x, Delta_y, dL] (..., 3) [m] that change at `rate` (..., 3) [m/s].
    """
    return kernels().point_motion(q, rate, rest_length, radius, order)


def chain_motion(
    q: np.ndarray,
    rate: np.ndarray,
    rest_lengths: np.ndarray,
    coverage: np.ndarray,
    radius: float,
    base: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pose (..., 4, 4) of a point of a chain, its Jacobian (..., 6, 3 n) and drift (..., 6).

    Jacobian and drift are of the point's velocity and angular velocity in the axes of the base's
    surroundings; the drift is their rate while q'' = 0, that is J' q'.

    Args:
        q, rate: (..., 3 n) coordinates [m] and their rates [m/s].
        rest_lengths: (..., n) L_0 [m].
        coverage: (..., n) how much of each section lies between base and point, 0 to 1.
        radius: scaling radius d [m].
        base: (4, 4) pose of the chain's base.
    """
    return kernels().chain_motion(q, rate, rest_lengths, coverage, radius, base)


def length_columns(
    q: np.ndarray, rate: np.ndarray, radius: float, base: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """C (..., 3, n) and its time derivative: tip = C (L_0 + dL) + base, see `regressor`.

    Args:
        q, rate: (..., 3 n) coordinates [m] and their rates [m/s].
        radius: scaling radius d [m].
        base: (4, 4) pose of the chain's base.
    """
    return kernels().length_columns(q, rate, radius, base)

"""The compiled text of the constant-curvature models: one arc and the point masses on it.

Everything is written in Stumpff's functions c_k(z) = sum_j (-z)^j / (2 j + k)! with z = theta^2,
the square of the bending angle. They are entire, so nothing happens at the straight pose:

    c_0 = cos(theta)    c_1 = sin(theta) / theta    c_2 = (1 - cos(theta)) / theta^2    ...
    c_k = 1/k! - z c_(k+2)        dc_k/dz = (k c_(k+2) - c_(k+1)) / 2

An arc of length L that bends by (u, v) = (Delta_x, Delta_y) / d has its tip at
L (u c_2, v c_2, c_1) and, integrated along itself, its centre of gravity at L (u c_3, v c_3, c_2):
one formula whose `order` is 1 for the tip and 2 for the centre of gravity.

The functions at the end broadcast over leading axes, and take complex numbers for complex-step
checks. All compiled text stands in this file, because numba's cache sees changes of one file only.
"""

import math
from typing import Any

import numba
import numpy as np

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True}
COUNT = 8
"""Number of Stumpff functions needed: c_0 to c_7."""

_INVERSE_FACTORIALS = np.array([1.0 / math.factorial(k) for k in range(COUNT)])
# Below, the series of c_6 and c_7 has converged after so many terms; above, the closed forms lose
# no more than two digits. Both agree to 1e-14 at the border.
_BORDER, _TERMS = 4.0, 12

TIP, CENTRE_OF_GRAVITY = 1, 2


@numba.njit(**_OPTIONS)
def _stumpff(z, c):
    """c (COUNT,) at z."""
    if abs(z) < _BORDER:
        for k in (COUNT - 2, COUNT - 1):
            total = 1.0 + 0.0 * z
            for j in range(_TERMS, 0, -1):
                total = 1.0 - z * total / ((k + 2 * j - 1) * (k + 2 * j))
            c[k] = _INVERSE_FACTORIALS[k] * total
        for k in range(COUNT - 3, -1, -1):
            c[k] = _INVERSE_FACTORIALS[k] - z * c[k + 2]
    else:
        theta = np.sqrt(z)
        c[0], c[1] = np.cos(theta), np.sin(theta) / theta
        for k in range(COUNT - 2):
            c[k + 2] = (_INVERSE_FACTORIALS[k] - c[k]) / z


@numba.njit(**_OPTIONS)
def _derivatives(c, k):
    """c_k and its first and second derivative by z."""
    first = 0.5 * (k * c[k + 2] - c[k + 1])
    next_first = 0.5 * ((k + 1) * c[k + 3] - c[k + 2])
    after_next_first = 0.5 * ((k + 2) * c[k + 4] - c[k + 3])
    return c[k], first, 0.5 * (k * after_next_first - next_first)


@numba.njit(**_OPTIONS)
def _point(q, rate, rest_length, radius, order, c, position, jacobian, jacobian_rate):
    """Position (3,), its Jacobian (3, 3) by q, and the Jacobian's time derivative; c: workspace."""
    u, v, length = q[0] / radius, q[1] / radius, rest_length + q[2]
    u_rate, v_rate, length_rate = rate[0] / radius, rate[1] / radius, rate[2]
    _stumpff(u * u + v * v, c)
    a, a_z, a_zz = _derivatives(c, order + 1)
    b, b_z, b_zz = _derivatives(c, order)
    z_rate = 2.0 * (u * u_rate + v * v_rate)

    position[0], position[1], position[2] = length * u * a, length * v * a, length * b

    # by u and v: d(position) / length and its rate; then by Delta, with the length
    across, across_rate = 2.0 * u * v * a_z, 2.0 * (u_rate * v + u * v_rate) * a_z
    across_rate += 2.0 * u * v * a_zz * z_rate
    jacobian[0, 1], jacobian_rate[0, 1] = across, across_rate
    jacobian[1, 0], jacobian_rate[1, 0] = across, across_rate
    for i in range(2):
        w, w_rate = (u, u_rate) if i == 0 else (v, v_rate)
        jacobian[i, i] = a + 2.0 * w * w * a_z
        jacobian_rate[i, i] = 4.0 * a_z * w * w_rate + (a_z + 2.0 * w * w * a_zz) * z_rate
        jacobian[2, i] = 2.0 * w * b_z
        jacobian_rate[2, i] = 2.0 * (w_rate * b_z + w * b_zz * z_rate)
        jacobian[i, 2], jacobian_rate[i, 2] = w * a, w_rate * a + w * a_z * z_rate
    jacobian[2, 2], jacobian_rate[2, 2] = b, b_z * z_rate
    for i in range(3):
        for j in range(2):
            shape = jacobian[i, j]
            jacobian[i, j] = length * shape / radius
            jacobian_rate[i, j] = (length_rate * shape + length * jacobian_rate[i, j]) / radius


@numba.njit(**_OPTIONS)
def _solve(m, x):
    """x (3,) <- m^-1 x for a symmetric positive definite m (3, 3), which is used up."""
    for k in range(3):
        for i in range(k + 1, 3):
            factor = m[i, k] / m[k, k]
            for j in range(k + 1, 3):
                m[i, j] -= factor * m[k, j]
            x[i] -= factor * x[k]
    for k in range(2, -1, -1):
        for j in range(k + 1, 3):
            x[k] -= m[k, j] * x[j]
        x[k] /= m[k, k]


@numba.guvectorize(
    ["float64[:], float64[:], float64[:]", "complex128[:], float64[:], complex128[:]"],
    "(),(k)->(k)",
    cache=True,
)
def _stumpff_of(z, template, c):
    _stumpff(z[0], c)


def stumpff(z: np.ndarray) -> np.ndarray:
    """(..., COUNT) functions c_0 to c_7 of z (...), real or complex."""
    values: np.ndarray = _stumpff_of(z, _INVERSE_FACTORIALS)
    return values


_FLOAT_POINT = (
    "float64[:], float64[:], float64, float64, int64, float64[:], float64[:,:], float64[:,:]"
)
_COMPLEX_POINT = (
    "complex128[:], complex128[:], float64, float64, int64, "
    "complex128[:], complex128[:,:], complex128[:,:]"
)


@numba.guvectorize([_FLOAT_POINT, _COMPLEX_POINT], "(n),(n),(),(),()->(n),(n,n),(n,n)", cache=True)
def point_motion(q, rate, rest_length, radius, order, position, jacobian, jacobian_rate):
    """Position (..., 3) [m], Jacobian (..., 3, 3) by q and its time derivative.

    Of the tip (order TIP) or the centre of gravity (order CENTRE_OF_GRAVITY) of an arc with
    coordinates q = [Delta_x, Delta_y, dL] (..., 3) [m] that change at `rate` (..., 3) [m/s].
    """
    c = np.empty(COUNT, q.dtype)
    _point(q, rate, rest_length, radius, order, c, position, jacobian, jacobian_rate)


@numba.guvectorize(
    [
        "float64[:], float64[:], float64[:], float64, float64, float64, float64, float64[:], "
        "float64[:], float64[:], float64[:]"
    ],
    "(n),(n),(n),(),(),(),(),(n),(w)->(n),(w)",
    cache=True,
)
def fixed_base_motion(
    q, rate, force, rest_length, radius, mass, tip_mass, gravity, template, acceleration, reaction
):
    """Acceleration (..., 3) [m/s^2] and base reaction (..., 6), Mehl et al. (4) to (6).

    Args:
        q, rate: (..., 3) coordinates [m] and their rates [m/s].
        force: (..., 3) all generalised forces but gravity [N].
        rest_length, radius: L_0, r [m].
        mass, tip_mass: at the centre of gravity and at the tip [kg].
        gravity: (3,) acceleration of gravity in the base frame [m/s^2].
        template: (6,) anything; it tells the length of the reaction.

    Returns:
        q'' and the force [N], then moment [N m], that holds the arc's base in place.
    """
    c = np.empty(COUNT, q.dtype)
    positions, jacobians = np.empty((2, 3), q.dtype), np.empty((2, 3, 3), q.dtype)
    jacobian_rate, inertia = np.empty((3, 3), q.dtype), np.zeros((3, 3), q.dtype)
    # what each point accelerates with while q'' = 0, against free fall
    drift = np.empty((2, 3), q.dtype)
    acceleration[:] = force
    for point in range(2):
        m = mass if point == 0 else tip_mass
        order = CENTRE_OF_GRAVITY if point == 0 else TIP
        jacobian = jacobians[point]
        _point(q, rate, rest_length, radius, order, c, positions[point], jacobian, jacobian_rate)
        for i in range(3):
            drift[point, i] = -gravity[i]
            for j in range(3):
                drift[point, i] += jacobian_rate[i, j] * rate[j]
        for i in range(3):
            for k in range(3):
                acceleration[i] -= m * jacobian[k, i] * drift[point, k]
                for j in range(3):
                    inertia[i, j] += m * jacobian[k, i] * jacobian[k, j]
    _solve(inertia, acceleration)
    reaction[:] = 0.0
    for point in range(2):
        m = mass if point == 0 else tip_mass
        f = drift[point]
        for i in range(3):
            for j in range(3):
                f[i] += jacobians[point, i, j] * acceleration[j]
            f[i] *= m
            reaction[i] += f[i]
        p = positions[point]
        reaction[3] += p[1] * f[2] - p[2] * f[1]
        reaction[4] += p[2] * f[0] - p[0] * f[2]
        reaction[5] += p[0] * f[1] - p[1] * f[0]

"""The compiled text of the constant-curvature models: arcs, chains of them, and masses on them.

Everything is written in Stumpff's functions c_k(z) = sum_j (-z)^j / (2 j + k)! with z = theta^2,
the square of the bending angle. They are entire, so nothing happens at the straight pose:

    c_0 = cos(theta)    c_1 = sin(theta) / theta    c_2 = (1 - cos(theta)) / theta^2    ...
    c_k = 1/k! - z c_(k+2)        dc_k/dz = (k c_(k+2) - c_(k+1)) / 2

An arc of length L that bends by (u, v) = (Delta_x, Delta_y) / d has its tip at
L (u c_2, v c_2, c_1) and, integrated along itself, its centre of gravity at L (u c_3, v c_3, c_2):
one formula whose `order` is 1 for the tip and 2 for the centre of gravity.

Generalised functions broadcast over leading axes; some take complex numbers for complex-step
checks. Everything has a signature and is compiled while this module is imported, which
`kernel.kernels` alone does, in one process at a time.
"""

import math
from typing import Any

import numba
import numpy as np

from softcr_papers.constant_curvature.kernel import CENTRE_OF_GRAVITY, COUNT, TIP

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True}
_INVERSE_FACTORIALS = np.array([1.0 / math.factorial(k) for k in range(COUNT)])
# Below, the series of c_6 and c_7 has converged after so many terms; above, the closed forms lose
# no more than two digits. Both agree to 1e-14 at the border.
_BORDER, _TERMS = 4.0, 12


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
    """x (3,) <- m^-1 x, without pivoting: m (3, 3), which is used up, is nearly an inertia."""
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


_SECTION_WORK = (4, COUNT)


@numba.njit(**_OPTIONS)
def _section_terms(
    q, rate, rest_length, radius, mass, tip_mass, gravity, inertia, coriolis, force, positions,
    jacobians, drift, work,
):  # fmt: skip
    """Inertia (3, 3) of a section, and Coriolis and gravity forces taken off `force` (3,).

    The matrix coriolis (3, 3) has the Coriolis forces coriolis @ rate, and half their slope by the
    rates. Left behind are positions (2, 3) of the centre of gravity and the tip, their Jacobians
    (2, 3, 3) and drifts (2, 3): what they accelerate with while q'' = 0, against free fall. Other
    arguments as fixed_base_motion; work: _SECTION_WORK.
    """
    c, jacobian_rate = work[0], work[1:, :3]
    inertia[:] = 0.0
    coriolis[:] = 0.0
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
                force[i] -= m * jacobian[k, i] * drift[point, k]
                for j in range(3):
                    inertia[i, j] += m * jacobian[k, i] * jacobian[k, j]
                    coriolis[i, j] += m * jacobian[k, i] * jacobian_rate[k, j]


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
    positions, jacobians = np.empty((2, 3)), np.empty((2, 3, 3))
    drift, inertia, work = np.empty((2, 3)), np.empty((3, 3)), np.empty(_SECTION_WORK)
    coriolis = np.empty((3, 3))
    acceleration[:] = force
    _section_terms(
        q, rate, rest_length, radius, mass, tip_mass, gravity, inertia, coriolis, acceleration,
        positions, jacobians, drift, work,
    )  # fmt: skip
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


@numba.njit(**_OPTIONS)
def _mark_not_finite(row):
    """All of a row (k,) becomes NaN if one of its numbers is not finite."""
    for value in row:
        if not np.isfinite(value):
            row[:] = np.nan
            return


_MATRIX, _VECTOR, _BOX = "float64[:,::1]", "float64[::1]", "float64[:,:,::1]"
_SECTION_ROLLOUT = (
    f"void({_MATRIX}, {_BOX}, {_MATRIX}, {_MATRIX}, {_VECTOR}, float64, float64, float64, "
    f"{_VECTOR}, {_VECTOR}, float64, int64, {_BOX})"
)


@numba.njit(_SECTION_ROLLOUT, **_OPTIONS)
def section_rollout(
    states, levels, parameters, actuation, gravity, rest_length, radius, mass, stiffness, damping,
    dt, substeps, out,
):  # fmt: skip
    """States (B, T, 6) after each step, written to `out`; what is not finite becomes NaN.

    Position Verlet: half a sub-step of the coordinates, all of the rates with what holds there,
    the other half of the coordinates. Dampers and Coriolis forces are those of the sub-step's mean
    rates, by a system of linear equations. The method is of second order, and stable while the
    fastest vibration turns by less than 2 rad in a sub-step.

    Args:
        states: (B, 6), or (1, 6) for all: coordinates [m], rates [m/s].
        levels: (B, T + 1, m) pressures at the grid points, linear in between [Pa].
        parameters: (B, 3), or (1, 3): bending stiffness [N/m], tip mass [kg], damping factor [-].
        actuation: (3, m) [N/Pa].
        gravity: (3,) in the base frame [m/s^2].
        rest_length, radius: L_0, r [m].
        mass: at the centre of gravity [kg].
        stiffness, damping: (3,) of the springs [N/m] and the dampers [N s/m].
        dt: length of a step [s].
        substeps: of each step.
    """
    positions, jacobians = np.empty((2, 3)), np.empty((2, 3, 3))
    drift, inertia, work = np.empty((2, 3)), np.empty((3, 3)), np.empty(_SECTION_WORK)
    coriolis = np.empty((3, 3))
    q, rate, force, springs = np.empty(3), np.empty(3), np.empty(3), stiffness.copy()
    h = dt / substeps
    for b in range(len(levels)):
        first = states[b if len(states) > 1 else 0]
        numbers = parameters[b if len(parameters) > 1 else 0]
        springs[0] = springs[1] = numbers[0]
        q[:], rate[:] = first[:3], first[3:]
        for step in range(levels.shape[1] - 1):
            for substep in range(substeps):
                part = (substep + 0.5) / substeps
                for i in range(3):
                    q[i] += 0.5 * h * rate[i]
                    force[i] = -springs[i] * q[i] - numbers[2] * damping[i] * rate[i]
                    for j in range(levels.shape[2]):
                        begin, end = levels[b, step, j], levels[b, step + 1, j]
                        force[i] += actuation[i, j] * (begin + part * (end - begin))
                _section_terms(
                    q, rate, rest_length, radius, mass, numbers[1], gravity, inertia, coriolis,
                    force, positions, jacobians, drift, work,
                )  # fmt: skip
                for i in range(3):
                    inertia[i, i] += 0.5 * h * numbers[2] * damping[i]
                    for j in range(3):
                        inertia[i, j] += h * coriolis[i, j]
                _solve(inertia, force)
                for i in range(3):
                    rate[i] += h * force[i]
                    q[i] += 0.5 * h * rate[i]
            out[b, step, :3], out[b, step, 3:] = q, rate
            _mark_not_finite(out[b, step])


# -- chains ---------------------------------------------------------------------------------------
# A frame of a chain, and how it moves while q'' = 0, is one table (3, 7 + 2 m): columns of the
# rotation, then position, angular velocity, angular acceleration, acceleration, then the m columns
# of the linear Jacobian and the m of the angular one; all in the axes of the chain's surroundings.
_POSITION, _SPIN, _SPIN_DRIFT, _DRIFT, _LINEAR = 3, 4, 5, 6, 7
_WORK = (11, COUNT)


@numba.njit(**_OPTIONS)
def _start(base, frame):
    """The frame (3, 7 + 2 m) of a base (4, 4) that stands still."""
    frame[:] = 0.0
    for i in range(3):
        for j in range(4):
            frame[i, j] = base[i, j]


@numba.njit(**_OPTIONS)
def _add_cross(a, b, factor, out):
    """out (3,) += factor * a x b."""
    out[0] += factor * (a[1] * b[2] - a[2] * b[1])
    out[1] += factor * (a[2] * b[0] - a[0] * b[2])
    out[2] += factor * (a[0] * b[1] - a[1] * b[0])


@numba.njit(**_OPTIONS)
def _extend(frame, section, q, rate, rest_length, fraction, radius, out, work):
    """The frame `out` at a fraction of a section that begins at `frame`, both (3, 7 + 2 m).

    Args:
        section: its number; its columns of the Jacobians are 3 section to 3 section + 2.
        q, rate: (m,) of the whole chain [m], [m/s].
        rest_length: of this section [m].
        fraction: 0 to 1.
        radius: d [m].
        work: _WORK.
    """
    out[:] = frame
    if fraction == 0.0:
        return
    linear = _LINEAR + 3 * section
    angular = linear + (frame.shape[1] - _LINEAR) // 2
    c, part, part_rate, local = work[0], work[1, :3], work[2, :3], work[3, :3]
    across, velocity, turning, around = work[4, :3], work[5, :3], work[6, :3], work[7, :3]
    shape, shape_rate = work[8:11, :3], work[8:11, 3:6]
    for k in range(3):
        part[k] = fraction * q[3 * section + k]
        part_rate[k] = fraction * rate[3 * section + k]
    part[2] += fraction * rest_length
    _point(part, part_rate, 0.0, radius, TIP, c, local, shape, shape_rate)
    u, v, u_rate, v_rate = (
        part[0] / radius, part[1] / radius, part_rate[0] / radius, part_rate[1] / radius,
    )  # fmt: skip
    z_rate, swirl = 2.0 * (u * u_rate + v * v_rate), u * v_rate - v * u_rate
    c2_rate, c3_rate = 0.5 * (2.0 * c[4] - c[3]) * z_rate, 0.5 * (3.0 * c[5] - c[4]) * z_rate
    u_swirl, v_swirl = c3_rate * u + c[3] * u_rate, c3_rate * v + c[3] * v_rate

    for i in range(3):
        x, y, z = frame[i, 0], frame[i, 1], frame[i, 2]
        along = x * u + y * v
        out[i, 0] = x - c[2] * u * along - c[1] * u * z
        out[i, 1] = y - c[2] * v * along - c[1] * v * z
        out[i, 2] = c[1] * along + c[0] * z
        across[i] = x * local[0] + y * local[1] + z * local[2]
        velocity[i], around[i] = 0.0, 0.0
        for k in range(3):
            column = x * shape[0, k] + y * shape[1, k] + z * shape[2, k]
            column_rate = x * shape_rate[0, k] + y * shape_rate[1, k] + z * shape_rate[2, k]
            out[i, linear + k] = fraction * column
            velocity[i] += column * part_rate[k]
            out[i, _DRIFT] += column_rate * part_rate[k]
        out[i, _POSITION] += across[i]
        # The left Jacobian of SO(3), 1 + c_2 [w] + c_3 [w]^2 with w = (-v, u, 0), times dw.
        by_u = -c[3] * u * v * x + (1.0 - c[3] * v * v) * y - c[2] * v * z
        by_v = (c[3] * u * u - 1.0) * x + c[3] * u * v * y + c[2] * u * z
        out[i, angular] = fraction * by_u / radius
        out[i, angular + 1] = fraction * by_v / radius
        turning[i] = by_u * u_rate + by_v * v_rate
        out[i, _SPIN] += turning[i]
        out[i, _SPIN_DRIFT] += swirl * (u_swirl * x + v_swirl * y + c2_rate * z)
    spin, spin_drift, drift = frame[:, _SPIN], frame[:, _SPIN_DRIFT], out[:, _DRIFT]
    _add_cross(spin, turning, 1.0, out[:, _SPIN_DRIFT])
    _add_cross(spin_drift, across, 1.0, drift)
    _add_cross(spin, across, 1.0, around)
    _add_cross(spin, around, 1.0, drift)
    _add_cross(spin, velocity, 2.0, drift)
    for column in range(3 * section):
        turned = frame[:, angular - 3 * section + column]
        _add_cross(turned, across, 1.0, out[:, _LINEAR + column])


@numba.njit(**_OPTIONS)
def _walk(q, rate, rest_lengths, coverage, radius, base, frames, work):
    """Index of the frame among `frames` (2, 3, 7 + 2 m) that a walk along the chain ends with."""
    _start(base, frames[0])
    now = 0
    for section in range(len(coverage)):
        if coverage[section] != 0.0:
            _extend(
                frames[now], section, q, rate, rest_lengths[section], coverage[section], radius,
                frames[1 - now], work,
            )  # fmt: skip
            now = 1 - now
    return now


_FLOAT_CHAIN = (
    "float64[:], float64[:], float64[:], float64[:], float64, float64[:,:], float64[:], "
    "float64[:,:], float64[:,:], float64[:]"
)
_COMPLEX_CHAIN = (
    "complex128[:], complex128[:], float64[:], float64[:], float64, float64[:,:], float64[:], "
    "complex128[:,:], complex128[:,:], complex128[:]"
)
_TWIST = np.zeros(6)


@numba.guvectorize(
    [_FLOAT_CHAIN, _COMPLEX_CHAIN],
    "(m),(m),(n),(n),(),(h,h),(w)->(h,h),(w,m),(w)",
    cache=True,
)
def _chain_motion(q, rate, rest_lengths, coverage, radius, base, template, pose, jacobian, drift):
    frames = np.empty((2, 3, _LINEAR + 2 * len(q)), q.dtype)
    work = np.empty(_WORK, q.dtype)
    frame = frames[_walk(q, rate, rest_lengths, coverage, radius, base, frames, work)]
    pose[:] = 0.0
    pose[3, 3] = 1.0
    for i in range(3):
        for j in range(4):
            pose[i, j] = frame[i, j]
        drift[i], drift[3 + i] = frame[i, _DRIFT], frame[i, _SPIN_DRIFT]
        for k in range(len(q)):
            jacobian[i, k] = frame[i, _LINEAR + k]
            jacobian[3 + i, k] = frame[i, _LINEAR + len(q) + k]


def chain_motion(q, rate, rest_lengths, coverage, radius, base):
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
    return _chain_motion(q, rate, rest_lengths, coverage, radius, base, _TWIST)


_FLOAT_REGRESSOR = (
    "float64[:], float64[:], float64[:], float64, float64[:,:], float64[:], "
    "float64[:,:], float64[:,:]"
)


@numba.guvectorize([_FLOAT_REGRESSOR], "(m),(m),(n),(),(h,h),(k)->(k,n),(k,n)", cache=True)
def _length_columns(q, rate, rest_lengths, radius, base, template, columns, columns_rate):
    frames, work = np.empty((2, 3, _LINEAR + 2 * len(q))), np.empty(_WORK)
    shape, shape_rate = np.empty((3, 3)), np.empty((3, 3))
    _start(base, frames[0])
    now = 0
    for section in range(len(rest_lengths)):
        frame, own = frames[now], slice(3 * section, 3 * section + 3)
        _point(q[own], rate[own], 0.0, radius, TIP, work[0], work[1, :3], shape, shape_rate)
        for i in range(3):
            columns[i, section] = columns_rate[i, section] = 0.0
            for k in range(3):
                columns[i, section] += frame[i, k] * shape[k, 2]
                columns_rate[i, section] += frame[i, k] * shape_rate[k, 2]
        _add_cross(frame[:, _SPIN], columns[:, section], 1.0, columns_rate[:, section])
        rest_length = rest_lengths[section]
        _extend(frame, section, q, rate, rest_length, 1.0, radius, frames[1 - now], work)
        now = 1 - now


def length_columns(q, rate, radius, base):
    """C (..., 3, n) and its time derivative: tip = C (L_0 + dL) + base, see `regressor`.

    Args:
        q, rate: (..., 3 n) coordinates [m] and their rates [m/s].
        radius: scaling radius d [m].
        base: (4, 4) pose of the chain's base.
    """
    rest_lengths = np.zeros(np.shape(q)[-1] // 3)  # C does not depend on any length
    return _length_columns(q, rate, rest_lengths, radius, base, np.zeros(3))


# -- the arm: line masses and a payload on a chain -------------------------------------------------


@numba.njit(**_OPTIONS)
def _add_mass(frame, mass, gravity, columns, inertia, force):
    """A point mass at a frame: its inertia (m, m), and what it asks of the first columns."""
    for i in range(3):
        pull = mass * (frame[i, _DRIFT] - gravity[i])
        for k in range(columns):
            weighted = mass * frame[i, _LINEAR + k]
            force[k] += pull * frame[i, _LINEAR + k]
            for j in range(k + 1):
                inertia[k, j] += weighted * frame[i, _LINEAR + j]


@numba.njit(**_OPTIONS)
def _arm_terms(
    q, rate, rest_lengths, masses, payload, radius, base, gravity, nodes, weights, inertia, bias,
    frames, work,
):  # fmt: skip
    """Inertia (m, m) and bias (m,): Coriolis, centrifugal and gravity forces, of an arm.

    Args:
        masses: (n,) of the sections [kg].
        payload: point mass at the tip [kg].
        gravity: (3,) in the axes of the base's surroundings [m/s^2].
        nodes, weights: (k,) quadrature over a section, 0 to 1; the weights' sum is 1.
        frames: (3, 3, 7 + 2 m) workspace.
        work: _WORK.
    """
    inertia[:], bias[:] = 0.0, 0.0
    _start(base, frames[0])
    now = 0
    for section in range(len(rest_lengths)):
        begin, columns = frames[now], 3 * (section + 1)
        length = rest_lengths[section]
        for k in range(len(nodes)):
            _extend(begin, section, q, rate, length, nodes[k], radius, frames[2], work)
            mass = masses[section] * weights[k]
            _add_mass(frames[2], mass, gravity, columns, inertia, bias)
        now = 1 - now
        _extend(begin, section, q, rate, length, 1.0, radius, frames[now], work)
    _add_mass(frames[now], payload, gravity, len(q), inertia, bias)
    for i in range(len(q)):
        for j in range(i):
            inertia[j, i] = inertia[i, j]


@numba.guvectorize(
    [
        "float64[:], float64[:], float64[:], float64[:], float64, float64, float64[:,:], "
        "float64[:], float64[:], float64[:], float64[:,:], float64[:]"
    ],
    "(m),(m),(n),(n),(),(),(h,h),(g),(k),(k)->(m,m),(m)",
    cache=True,
)
def arm_terms(
    q, rate, rest_lengths, masses, payload, radius, base, gravity, nodes, weights, inertia, bias
):
    """Inertia (..., m, m) and bias (..., m) of an arm; arguments as _arm_terms, batched."""
    frames, work = np.empty((3, 3, _LINEAR + 2 * len(q))), np.empty(_WORK)
    _arm_terms(
        q, rate, rest_lengths, masses, payload, radius, base, gravity, nodes, weights, inertia,
        bias, frames, work,
    )  # fmt: skip


_ARM_FIXED = f"{_MATRIX}, {_VECTOR}, {_VECTOR}, float64, {_MATRIX}, {_VECTOR}, {_VECTOR}, {_VECTOR}"
_ARM_STEPS = (
    f"{_VECTOR}({_VECTOR}, {_VECTOR}, {_VECTOR}, {_VECTOR}, {_VECTOR}, {_MATRIX}, boolean, "
    f"{_VECTOR}, {_VECTOR}, float64, {_ARM_FIXED}, float64, int64)"
)


@numba.njit(**_OPTIONS)
def _implicit(shaping, actuation, gains, stiffness, damping, dt):
    """The springs (m, m), and what a step `dt` of implicit Euler adds to the inertia (m, m)."""
    loop = actuation @ shaping @ actuation.T
    springs = gains[0] * loop + np.diag(stiffness)
    return springs, dt * (gains[2] * loop + np.diag(damping)) + dt * dt * springs


@numba.njit(**_OPTIONS)
def _arm_step(
    q, rate, integral, reference, gains, shaping, springs, implicit, unilateral, stiffness,
    damping, payload, actuation, rest_lengths, masses, radius, base, gravity, nodes, weights, dt,
    theta, forces, wanted, place, force, inertia, bias, frames, work,
):  # fmt: skip
    """One step of an arm; the last eight are workspace, `forces` tells the tendons' forces.

    Springs, dampers and the tendons' loops are taken at the share `theta` of the step, all else at
    the share 1 - theta of it: 1 is linearly implicit Euler, 1 / 2 a linearly implicit midpoint
    rule, of second order but for Coriolis forces. For `implicit` see _implicit, with theta * dt.
    """
    size, tendons = actuation.shape
    for j in range(tendons):
        length, speed = 0.0, 0.0
        for i in range(size):
            length += actuation[i, j] * q[i]
            speed += actuation[i, j] * rate[i]
        error = reference[j] - length
        integral[j] += dt * error
        wanted[j] = gains[0] * error + gains[1] * integral[j] - gains[2] * speed
    for j in range(tendons):
        forces[j] = 0.0
        for k in range(tendons):
            forces[j] += shaping[j, k] * wanted[k]
        if unilateral and forces[j] > 0.0:
            forces[j] = 0.0
    for i in range(size):
        place[i] = q[i] + (1.0 - theta) * dt * rate[i]
    _arm_terms(
        place, rate, rest_lengths, masses, payload, radius, base, gravity, nodes, weights, inertia,
        bias, frames, work,
    )  # fmt: skip
    for i in range(size):
        force[i] = -bias[i] - damping[i] * rate[i] - stiffness[i] * q[i]
        for j in range(tendons):
            force[i] += actuation[i, j] * forces[j]
        for k in range(size):
            force[i] -= theta * dt * springs[i, k] * rate[k]
            inertia[i, k] += implicit[i, k]
    _solve_positive(inertia, force)
    for i in range(size):
        q[i] += dt * (rate[i] + theta * dt * force[i])
        rate[i] += dt * force[i]


@numba.njit(**_OPTIONS)
def _solve_positive(m, x):
    """x (n,) <- m^-1 x for a symmetric positive definite m (n, n), which is used up; NaN else."""
    for k in range(len(x)):
        for j in range(k):
            m[k, k] -= m[k, j] * m[k, j]
        m[k, k] = np.sqrt(m[k, k])
        for i in range(k + 1, len(x)):
            for j in range(k):
                m[i, k] -= m[i, j] * m[k, j]
            m[i, k] /= m[k, k]
        for j in range(k):
            x[k] -= m[k, j] * x[j]
        x[k] /= m[k, k]
    for k in range(len(x) - 1, -1, -1):
        for j in range(k + 1, len(x)):
            x[k] -= m[j, k] * x[j]
        x[k] /= m[k, k]


@numba.njit(_ARM_STEPS, **_OPTIONS)
def arm_steps(
    q, rate, integral, reference, gains, shaping, unilateral, stiffness, damping, payload,
    actuation, rest_lengths, masses, radius, base, gravity, nodes, weights, dt, steps,
):  # fmt: skip
    """Advance an arm whose tendons follow a reference; q, rate, integral change in place.

    By linearly implicit Euler: axial vibrations, thousands per second, do not limit the step.

    Args:
        q, rate: (m,) [m], [m/s].
        integral: (a,) of the tendons' errors [m s].
        reference: (a,) wanted tendon differentials [m].
        gains: (3,) proportional [N/m], integral [N/(m s)], derivative [N s/m].
        shaping: (a, a) from the loops' outputs to tendon forces, symmetric [-].
        unilateral: whether tendons only pull.
        stiffness, damping: (m,) of the material [N/m], [N s/m].
        payload, rest_lengths, masses, radius, base, gravity, nodes, weights: as _arm_terms.
        actuation: (m, a) B [-].
        dt: step [s].
        steps: how many.

    Returns:
        (a,) tendon forces at the begin of the last step [N], negative where they pull.

    Raises:
        LinAlgError: the motion is no longer finite.
    """
    size, tendons = actuation.shape
    frames, work = np.empty((3, 3, _LINEAR + 2 * size)), np.empty(_WORK)
    inertia, bias, force = np.empty((size, size)), np.empty(size), np.empty(size)
    forces, wanted, place = np.zeros(tendons), np.empty(tendons), np.empty(size)
    springs, implicit = _implicit(shaping, actuation, gains, stiffness, damping, dt)
    for _ in range(steps):
        _arm_step(
            q, rate, integral, reference, gains, shaping, springs, implicit, unilateral,
            stiffness, damping, payload, actuation, rest_lengths, masses, radius, base, gravity,
            nodes, weights, dt, 1.0, forces, wanted, place, force, inertia, bias, frames, work,
        )  # fmt: skip
    if not np.isfinite(rate).all():
        raise np.linalg.LinAlgError("the arm's motion is no longer finite")
    return forces


_ARM_ROLLOUT = (
    f"void({_MATRIX}, {_BOX}, {_MATRIX}, {_VECTOR}, {_MATRIX}, boolean, {_VECTOR}, {_VECTOR}, "
    f"{_ARM_FIXED}, float64, int64, {_BOX})"
)


@numba.njit(_ARM_ROLLOUT, **_OPTIONS)
def arm_rollout(
    states, levels, parameters, gains, shaping, unilateral, stiffness, damping, actuation,
    rest_lengths, masses, radius, base, gravity, nodes, weights, dt, substeps, out,
):  # fmt: skip
    """States (B, T, 2 m + a) after each step, written to `out`; what is not finite becomes NaN.

    By the linearly implicit midpoint rule.

    Args:
        states: (B, 2 m + a), or (1, 2 m + a) for all: q, rate, integral.
        levels: (B, T + 1, a) wanted tendon differentials at the grid points, linear between [m].
        parameters: (B, 2), or (1, 2): factor of stiffness and damping [-], payload [kg].
        dt: length of a step [s].
        substeps: of each step.
        others: as arm_steps.
    """
    size, tendons = actuation.shape
    frames, work = np.empty((3, 3, _LINEAR + 2 * size)), np.empty(_WORK)
    inertia, bias, force = np.empty((size, size)), np.empty(size), np.empty(size)
    forces, wanted, reference = np.empty(tendons), np.empty(tendons), np.empty(tendons)
    q, rate, integral, place = np.empty(size), np.empty(size), np.empty(tendons), np.empty(size)
    elastic, damped, h = np.zeros(size), np.zeros(size), dt / substeps
    share = 0.5 * h
    springs, implicit = _implicit(shaping, actuation, gains, elastic, damped, share)
    of_loops = np.diag(springs).copy(), np.diag(implicit).copy()
    for b in range(len(levels)):
        first = states[b if len(states) > 1 else 0]
        numbers = parameters[b if len(parameters) > 1 else 0]
        q[:], rate[:], integral[:] = first[:size], first[size : 2 * size], first[2 * size :]
        for i in range(size):
            elastic[i], damped[i] = numbers[0] * stiffness[i], numbers[0] * damping[i]
            springs[i, i] = of_loops[0][i] + elastic[i]
            implicit[i, i] = of_loops[1][i] + share * damped[i] + share * share * elastic[i]
        for step in range(levels.shape[1] - 1):
            for substep in range(substeps):
                part = (substep + 0.5) / substeps
                for j in range(tendons):
                    begin, end = levels[b, step, j], levels[b, step + 1, j]
                    reference[j] = begin + part * (end - begin)
                _arm_step(
                    q, rate, integral, reference, gains, shaping, springs, implicit,
                    unilateral, elastic, damped, numbers[1], actuation, rest_lengths, masses,
                    radius, base, gravity, nodes, weights, h, 0.5, forces, wanted, place, force,
                    inertia, bias, frames, work,
                )  # fmt: skip
            row = out[b, step]
            row[:size], row[size : 2 * size], row[2 * size :] = q, rate, integral
            _mark_not_finite(row)

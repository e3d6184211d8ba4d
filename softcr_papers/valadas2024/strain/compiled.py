"""The compiled text of the strain models: points of a backbone, forces, time, fits to a shape.

A segment of rest length l has the strains kappa (bending) [rad/m], sigma_sh (shear) and sigma_ax
(axial) [-] relative to the straight segment, which lies along the y axis of the frame it begins in
and has the tangent (0, 1). With x = kappa u, f = sin(x) / x, g = (1 - cos(x)) / x and
a = 1 + sigma_ax, the point at u of it is at

    r(u) = u (sigma_sh f - a g, sigma_sh g + a f),    turned by kappa u,

which is the exponential of SE(2), smooth through the straight segment: near x = 0 the functions and
their derivatives are series.

Everything has a signature and is compiled while this module is imported, which `kernel.kernels`
alone does.

S is the number of segments, n = 3 S that of strains; `active` (m,) are the indices of the strains
that a model keeps, the others stay 0.
"""

import math
from typing import Any

import numba
import numpy as np

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True}
_BORDER = 0.5  # below, series; above, the closed forms lose less than three digits
_TERMS = 8
_F = np.array([(-1.0) ** k / math.factorial(2 * k + 1) for k in range(_TERMS + 1)])
_G = np.array([(-1.0) ** k / math.factorial(2 * k + 2) for k in range(_TERMS + 1)])

# RODAS: Hairer and Wanner, Solving ODEs II, Section VI.4; order 4(3), stiffly accurate, L-stable.
_GAMMA = 0.25
_A = np.array(
    [
        [0.0, 0.0, 0.0, 0.0],
        [0.1544000000000000e1, 0.0, 0.0, 0.0],
        [0.9466785280815826, 0.2557011698983284, 0.0, 0.0],
        [0.3314825187068521e1, 0.2896124015972201e1, 0.9986419139977817, 0.0],
        [0.1221224509226641e1, 0.6019134481288629e1, 0.1253708332932087e2, -0.6878860361058950],
    ]
)
_C = np.array(
    [
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [-0.5668800000000000e1, 0.0, 0.0, 0.0, 0.0],
        [-0.2430093356833875e1, -0.2063599157091915, 0.0, 0.0, 0.0],
        [-0.1073529058151375, -0.9594562251023355e1, -0.2047028614809616e2, 0.0, 0.0],
        [
            0.7496443313967647e1,
            -0.1024680431464352e2,
            -0.3399990352819905e2,
            0.1170890893206160e2,
            0.0,
        ],
        [
            0.8083246795921522e1,
            -0.7981132988064893e1,
            -0.3152159432874371e2,
            0.1631930543123136e2,
            -0.6058818238834054e1,
        ],
    ]
)
_TIMES = np.array([0.0, 0.386, 0.21, 0.63, 1.0, 1.0])
_DRIFTS = np.array([0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0])
_MOST_STEPS = 100_000  # between two outputs; a candidate that needs more becomes NaN


@numba.njit(**_OPTIONS)
def _arc(x):
    """f, f', f'', g, g', g'' at x."""
    if abs(x) < _BORDER:
        z = x * x
        f = f1 = f2 = g = g1 = g2 = 0.0
        for k in range(_TERMS, 0, -1):
            f = f * z + _F[k]
            f1 = f1 * z + 2 * k * _F[k]
            f2 = f2 * z + 2 * k * (2 * k - 1) * _F[k]
            g = g * z + _G[k]
            g1 = g1 * z + (2 * k + 1) * _G[k]
            g2 = g2 * z + (2 * k + 1) * 2 * k * _G[k]
        f, g, g1 = f * z + 1.0, g * z + 0.5, g1 * z + 0.5
        return f, f1 * x, f2, g * x, g1, g2 * x
    s, c = math.sin(x), math.cos(x)
    f, g = s / x, (1.0 - c) / x
    f1, g1 = (c - f) / x, (s - g) / x
    return f, f1, (-s - 2.0 * f1) / x, g, g1, (c - 2.0 * g1) / x


@numba.njit(**_OPTIONS)
def _point(i, u, lengths, q, v, base, jb, jb_rate, pose, j, j_rate):
    """Pose (3,) of the point at u of segment i, Jacobian (3, n) and its rate, from the segment's
    begin: base = (x, y, theta, theta', cos theta, sin theta), rows x and y of its Jacobian and
    their rate."""
    kappa, shear, axial = q[3 * i], q[3 * i + 1], 1.0 + q[3 * i + 2]
    kappa_v, shear_v, axial_v = v[3 * i], v[3 * i + 1], v[3 * i + 2]
    f, f1, f2, g, g1, g2 = _arc(kappa * u)
    a, a1, a2 = u * f, u * u * f1, u * u * u * f2
    b, b1, b2 = u * g, u * u * g1, u * u * u * g2
    rx, ry = shear * a - axial * b, shear * b + axial * a
    kx, ky = shear * a1 - axial * b1, shear * b1 + axial * a1  # by kappa
    rx_v = kx * kappa_v + a * shear_v - b * axial_v
    ry_v = ky * kappa_v + b * shear_v + a * axial_v
    kx_v = (shear * a2 - axial * b2) * kappa_v + a1 * shear_v - b1 * axial_v
    ky_v = (shear * b2 + axial * a2) * kappa_v + b1 * shear_v + a1 * axial_v
    w, c, s = base[3], base[4], base[5]
    px, py = c * rx - s * ry, s * rx + c * ry
    px_v, py_v = c * rx_v - s * ry_v - w * py, s * rx_v + c * ry_v + w * px
    pose[0], pose[1], pose[2] = base[0] + px, base[1] + py, base[2] + kappa * u
    for k in range(3 * i):
        j[0, k], j[1, k], j[2, k] = jb[0, k], jb[1, k], 0.0
        j_rate[0, k], j_rate[1, k] = jb_rate[0, k], jb_rate[1, k]
    for k in range(i):
        length = lengths[k]
        j[0, 3 * k] -= length * py
        j[1, 3 * k] += length * px
        j[2, 3 * k] = length
        j_rate[0, 3 * k] -= length * py_v
        j_rate[1, 3 * k] += length * px_v
    o = 3 * i
    j[0, o], j[1, o], j[2, o] = c * kx - s * ky, s * kx + c * ky, u
    j[0, o + 1], j[1, o + 1], j[2, o + 1] = c * a - s * b, s * a + c * b, 0.0
    j[0, o + 2], j[1, o + 2], j[2, o + 2] = -c * b - s * a, -s * b + c * a, 0.0
    j_rate[0, o] = c * kx_v - s * ky_v - w * j[1, o]
    j_rate[1, o] = s * kx_v + c * ky_v + w * j[0, o]
    at, bt = a1 * kappa_v, b1 * kappa_v
    j_rate[0, o + 1] = c * at - s * bt - w * j[1, o + 1]
    j_rate[1, o + 1] = s * at + c * bt + w * j[0, o + 1]
    j_rate[0, o + 2] = -c * bt - s * at - w * j[1, o + 2]
    j_rate[1, o + 2] = -s * bt + c * at + w * j[0, o + 2]
    for k in range(o + 3, len(q)):
        for r in range(3):
            j[r, k] = 0.0
            j_rate[r, k] = 0.0


@numba.njit(**_OPTIONS)
def _first_base(base, jb, jb_rate):
    """The begin of the first segment: the origin, upright, at rest."""
    base[:] = 0.0
    base[4] = 1.0
    jb[:] = 0.0
    jb_rate[:] = 0.0


@numba.njit(**_OPTIONS)
def _next_base(i, lengths, q, v, base, jb, jb_rate, pose, j, j_rate):
    """Goes from the begin of segment i to its end."""
    _point(i, lengths[i], lengths, q, v, base, jb, jb_rate, pose, j, j_rate)
    base[0], base[1], base[2] = pose[0], pose[1], pose[2]
    base[3] += lengths[i] * v[3 * i]
    base[4], base[5] = math.cos(pose[2]), math.sin(pose[2])
    for k in range(3 * i + 3):
        for r in range(2):
            jb[r, k] = j[r, k]
            jb_rate[r, k] = j_rate[r, k]


@numba.njit("void(f8[:,::1], f8[::1], f8[::1], f8[:,:,::1], f8[:,:,:,::1])", **_OPTIONS)
def poses(q, lengths, places, out, jacobians):
    """Poses (T, N, 3) of places (N,) that do not fall, for strains (T, n); jacobians (T, N, 3, n),
    or an empty array where they are not wanted."""
    n = q.shape[1]
    base, pose, still = np.empty(6), np.empty(3), np.zeros(n)
    jb, jb_rate, j, j_rate = np.zeros((2, n)), np.zeros((2, n)), np.zeros((3, n)), np.zeros((3, n))
    for t in range(len(q)):
        _first_base(base, jb, jb_rate)
        i, begin = 0, 0.0
        for m in range(len(places)):
            while i < len(lengths) - 1 and places[m] > begin + lengths[i] + 1e-12:
                _next_base(i, lengths, q[t], still, base, jb, jb_rate, pose, j, j_rate)
                begin += lengths[i]
                i += 1
            _point(i, places[m] - begin, lengths, q[t], still, base, jb, jb_rate, pose, j, j_rate)
            out[t, m] = pose
            if len(jacobians) > 0:
                jacobians[t, m] = j


@numba.njit(**_OPTIONS)
def _mass_and_bias(
    q, v, lengths, mass, inertia, weight, down, nodes, shares, matrix, bias, c, work
):
    """M (n, n), bias C v + g (n,), and C (n, n) unless it is empty. `work`: (12, max(n, 6))."""
    n = len(q)
    j, j_rate, jb, jb_rate = work[0:3], work[3:6], work[6:8], work[8:10]
    base, pose = work[10, :6], work[11, :3]
    matrix[:] = 0.0
    bias[:] = 0.0
    c[:] = 0.0
    _first_base(base, jb, jb_rate)
    for i in range(len(lengths)):
        last = 3 * i + 3
        for p in range(len(nodes)):
            u, share = nodes[p] * lengths[i], shares[p] * lengths[i]
            _point(i, u, lengths, q, v, base, jb, jb_rate, pose, j, j_rate)
            m, turn, load = share * mass[i], share * inertia[i], share * weight[i]
            ax = ay = 0.0
            for k in range(last):
                ax += j_rate[0, k] * v[k]
                ay += j_rate[1, k] * v[k]
            ax, ay = m * ax - load * down[0], m * ay - load * down[1]
            for k in range(last):
                bias[k] += j[0, k] * ax + j[1, k] * ay
                for o in range(k, last):
                    matrix[k, o] += (
                        m * (j[0, k] * j[0, o] + j[1, k] * j[1, o]) + turn * j[2, k] * j[2, o]
                    )
            if len(c) > 0:
                for k in range(last):
                    for o in range(last):
                        c[k, o] += m * (j[0, k] * j_rate[0, o] + j[1, k] * j_rate[1, o])
        if i < len(lengths) - 1:
            _next_base(i, lengths, q, v, base, jb, jb_rate, pose, j, j_rate)
    for k in range(n):
        for o in range(k):
            matrix[k, o] = matrix[o, k]


@numba.njit(**_OPTIONS)
def _inertial_force(q, v, a, lengths, mass, inertia, weight, down, nodes, shares, force, work):
    """M a + C v + g (n,) without M, which is cheaper."""
    j, j_rate, jb, jb_rate = work[0:3], work[3:6], work[6:8], work[8:10]
    base, pose = work[10, :6], work[11, :3]
    force[:] = 0.0
    _first_base(base, jb, jb_rate)
    for i in range(len(lengths)):
        last = 3 * i + 3
        for p in range(len(nodes)):
            u, share = nodes[p] * lengths[i], shares[p] * lengths[i]
            _point(i, u, lengths, q, v, base, jb, jb_rate, pose, j, j_rate)
            m, load = share * mass[i], share * weight[i]
            ax = ay = at = 0.0
            for k in range(last):
                ax += j[0, k] * a[k] + j_rate[0, k] * v[k]
                ay += j[1, k] * a[k] + j_rate[1, k] * v[k]
                at += j[2, k] * a[k]
            ax, ay = m * ax - load * down[0], m * ay - load * down[1]
            at *= share * inertia[i]
            for k in range(last):
                force[k] += j[0, k] * ax + j[1, k] * ay + j[2, k] * at
        if i < len(lengths) - 1:
            _next_base(i, lengths, q, v, base, jb, jb_rate, pose, j, j_rate)


@numba.njit(
    "void(f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1],"
    "f8[:,:,::1], f8[:,::1], f8[:,:,::1])",
    **_OPTIONS,
)
def matrices(q, v, lengths, mass, inertia, weight, down, nodes, shares, inertias, biases, coriolis):
    """M (T, n, n), C v + g (T, n) and C (T, n, n) at strains (T, n) and their rates."""
    work = np.zeros((12, max(q.shape[1], 6)))
    for t in range(len(q)):
        _mass_and_bias(
            q[t], v[t], lengths, mass, inertia, weight, down, nodes, shares, inertias[t],
            biases[t], coriolis[t], work,
        )  # fmt: skip


@numba.njit(
    "void(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,:,:,::1],"
    "f8[:,:,:,::1], f8[:,:,:,::1], f8[:,:,::1])",
    **_OPTIONS,
)
def features(q, v, a, lengths, down, nodes, shares, forces, momenta, changes, weights):
    """What each segment's unit mass, unit moment of inertia and unit weight per length contribute.

    Args:
        q, v, a: (T, n) strains, rates, accelerations.
        forces: (T, S, 2, n) M a + C v of a unit mass, and of a unit moment of inertia.
        momenta: (T, S, 2, n) M v; changes: (T, S, 2, n) C v - M' v, with its sign.
        weights: (T, S, n) the gravity force of a unit weight per length.
    """
    n = q.shape[1]
    base, pose = np.empty(6), np.empty(3)
    jb, jb_rate, j, j_rate = np.zeros((2, n)), np.zeros((2, n)), np.zeros((3, n)), np.zeros((3, n))
    forces[:] = 0.0
    momenta[:] = 0.0
    changes[:] = 0.0
    weights[:] = 0.0
    velocity, acceleration = np.empty(3), np.empty(3)
    for t in range(len(q)):
        _first_base(base, jb, jb_rate)
        for i in range(len(lengths)):
            for p in range(len(nodes)):
                u, share = nodes[p] * lengths[i], shares[p] * lengths[i]
                _point(i, u, lengths, q[t], v[t], base, jb, jb_rate, pose, j, j_rate)
                for r in range(3):
                    velocity[r] = acceleration[r] = 0.0
                    for k in range(3 * i + 3):
                        velocity[r] += j[r, k] * v[t, k]
                        acceleration[r] += j[r, k] * a[t, k] + j_rate[r, k] * v[t, k]
                for k in range(3 * i + 3):
                    for r in range(3):
                        kind = r // 2
                        forces[t, i, kind, k] += share * j[r, k] * acceleration[r]
                        momenta[t, i, kind, k] += share * j[r, k] * velocity[r]
                        changes[t, i, kind, k] -= share * j_rate[r, k] * velocity[r]
                    weights[t, i, k] -= share * (j[0, k] * down[0] + j[1, k] * down[1])
            if i < len(lengths) - 1:
                _next_base(i, lengths, q[t], v[t], base, jb, jb_rate, pose, j, j_rate)


@numba.njit(**_OPTIONS)
def _solve_again(factors, right):
    """With the factors that `_solve_positive` left."""
    n = len(right)
    for k in range(n):
        for p in range(k):
            right[k] -= factors[k, p] * right[p]
        right[k] /= factors[k, k]
    for k in range(n - 1, -1, -1):
        for p in range(k + 1, n):
            right[k] -= factors[p, k] * right[p]
        right[k] /= factors[k, k]


@numba.njit(**_OPTIONS)
def _solve_positive(matrix, right):
    """Solves in place by Cholesky's factors; NaN where the matrix is not positive definite."""
    n = len(right)
    for k in range(n):
        for o in range(k):
            total = matrix[k, o]
            for p in range(o):
                total -= matrix[k, p] * matrix[o, p]
            matrix[k, o] = total / matrix[o, o]
        total = matrix[k, k]
        for p in range(k):
            total -= matrix[k, p] * matrix[k, p]
        matrix[k, k] = math.sqrt(total) if total > 0.0 else math.nan
    _solve_again(matrix, right)


@numba.njit(**_OPTIONS)
def _factorise(matrix, order):
    """LU factors in place with partial pivoting."""
    n = len(order)
    for k in range(n):
        best = k
        for r in range(k + 1, n):
            if abs(matrix[r, k]) > abs(matrix[best, k]):
                best = r
        order[k] = best
        for c in range(n):
            matrix[k, c], matrix[best, c] = matrix[best, c], matrix[k, c]
        for r in range(k + 1, n):
            matrix[r, k] /= matrix[k, k]
            for c in range(k + 1, n):
                matrix[r, c] -= matrix[r, k] * matrix[k, c]


@numba.njit(**_OPTIONS)
def _solve_factorised(matrix, order, right):
    n = len(order)
    for k in range(n):
        best = order[k]
        right[k], right[best] = right[best], right[k]
    for k in range(n):
        for c in range(k):
            right[k] -= matrix[k, c] * right[c]
    for k in range(n - 1, -1, -1):
        for c in range(k + 1, n):
            right[k] -= matrix[k, c] * right[c]
        right[k] /= matrix[k, k]


@numba.njit(**_OPTIONS)
def _acceleration(state, torque, active, lengths, mass, inertia, weight, down, nodes, shares,
                  stiffness, damping, full, matrix, bias, c, work, reduced, out):  # fmt: skip
    """out (m,): acceleration of the kept strains at state (2 m,); c: C (n, n), or empty."""
    m = len(active)
    full[:] = 0.0
    for k in range(m):
        full[0, active[k]] = state[k]
        full[1, active[k]] = state[m + k]
    _mass_and_bias(
        full[0], full[1], lengths, mass, inertia, weight, down, nodes, shares, matrix, bias, c,
        work,
    )  # fmt: skip
    for k in range(m):
        out[k] = torque[k] - bias[active[k]] - stiffness[k] * state[k] - damping[k] * state[m + k]
        for o in range(k + 1):
            reduced[k, o] = matrix[active[k], active[o]]
    _solve_positive(reduced, out)


@numba.njit(**_OPTIONS)
def _slopes(acceleration, active, lengths, mass, inertia, weight, down, nodes, shares, stiffness,
            damping, scale, full, c, work, factors, forces, jq, jv):  # fmt: skip
    """jq, jv (m, m): derivatives of the acceleration (m,) that `_acceleration` found, by strains
    and by rates, with what it left in full, c and factors.

    The force C v is quadratic in v, and the Jacobian's derivatives by the strains are symmetric, so
    that its derivative by v is 2 C. Derivatives by the strains are those of M a + C v + g with the
    acceleration kept, by differences."""
    m = len(active)
    full[2] = 0.0
    for k in range(m):
        full[2, active[k]] = acceleration[k]
    _inertial_force(full[0], full[1], full[2], lengths, mass, inertia, weight, down, nodes, shares,
                    forces[0], work)  # fmt: skip
    for k in range(m):
        now = full[0, active[k]]
        full[0, active[k]] = now + 1e-7 * scale[k]
        small = full[0, active[k]] - now
        _inertial_force(full[0], full[1], full[2], lengths, mass, inertia, weight, down, nodes,
                        shares, forces[1], work)  # fmt: skip
        full[0, active[k]] = now
        by_strain, by_rate = forces[2, :m], forces[3, :m]
        for r in range(m):
            by_strain[r] = (forces[0, active[r]] - forces[1, active[r]]) / small
            by_rate[r] = -2.0 * c[active[r], active[k]]
        by_strain[k] -= stiffness[k]
        by_rate[k] -= damping[k]
        _solve_again(factors, by_strain)
        _solve_again(factors, by_rate)
        for r in range(m):
            jq[r, k] = by_strain[r]
            jv[r, k] = by_rate[r]


@numba.njit(
    "void(f8[:,::1], f8[:,:,::1], f8[:,::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1],"
    "f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, f8, f8, b1, f8[:,:,::1])",
    **_OPTIONS,
)
def rollout(states, levels, parameters, active, lengths, mass, inertia, weight, down, nodes, shares,
            stiffness, damping, scale, dt, tolerance, fixed, held, out):  # fmt: skip
    """RODAS through T steps of dt for each candidate.

    Args:
        states: (B, 2 m) or (1, 2 m); levels: (B, T + 1, m) torques.
        parameters: (B, 3) or (1, 3) factors of stiffness, of damping, and of mass and weight.
        scale: (2 m,) size of each state; the error of a step is at most `tolerance` of it.
        fixed: length of all steps [s], which are then not adapted; 0: they are.
        held: whether inputs keep a step's first value; otherwise they are linear within a step.
        out: (B, T, 2 m).
    """
    n, m = 3 * len(lengths), len(active)
    full, matrix, bias, none = np.zeros((3, n)), np.empty((n, n)), np.empty(n), np.empty((0, n))
    c, forces = np.empty((n, n)), np.empty((4, n))
    work, reduced = np.zeros((12, max(n, 6))), np.empty((m, m))
    y, stage, trial = np.empty(2 * m), np.empty(2 * m), np.empty(2 * m)
    torque, slope = np.empty(m), np.empty(m)
    a0, a1, ft = np.empty(m), np.empty(m), np.empty(m)
    jq, jv, system = np.empty((m, m)), np.empty((m, m)), np.empty((m, m))
    order, right_q, right_v = np.empty(m, np.int64), np.empty(m), np.empty(m)
    increments = np.empty((6, 2 * m))
    for candidate in range(len(levels)):
        numbers = parameters[candidate if len(parameters) > 1 else 0]
        k_now, d_now = stiffness * numbers[0], damping * numbers[1]
        mass_now, inertia_now, weight_now = (
            mass * numbers[2], inertia * numbers[2], weight * numbers[2],
        )  # fmt: skip
        y[:] = states[candidate if len(states) > 1 else 0]
        h_next, h_first = dt, dt
        for step in range(levels.shape[1] - 1):
            begin = levels[candidate, step]
            for k in range(m):
                slope[k] = 0.0 if held else (levels[candidate, step + 1, k] - begin[k]) / dt
            t, tries, rejected = 0.0, 0, False
            if held:
                h_next = h_first  # a torque that jumps begins as the last one that jumped
            pieces = max(1, math.ceil(dt / fixed - 1e-9)) if fixed > 0.0 else 0
            while t < dt * (1.0 - 1e-12):
                good = True
                for k in range(2 * m):
                    good = good and math.isfinite(y[k])
                tries += 1
                if not good or tries > _MOST_STEPS:
                    y[:] = math.nan
                    break
                h = dt / pieces if pieces > 0 else min(h_next, dt - t)
                # a last step that would leave a sliver takes it, too
                if pieces == 0 and dt - t - h < 1e-3 * h:
                    h = dt - t
                if not rejected:
                    for k in range(m):
                        torque[k] = begin[k] + slope[k] * t
                    _acceleration(y, torque, active, lengths, mass_now, inertia_now, weight_now,
                                  down, nodes, shares, k_now, d_now, full, matrix, bias, c,
                                  work, reduced, a0)  # fmt: skip
                    # Cholesky's factors stand in `reduced`: M^-1 of the change of the torque
                    for k in range(m):
                        ft[k] = slope[k]
                    _solve_again(reduced, ft)
                    _slopes(a0, active, lengths, mass_now, inertia_now, weight_now, down, nodes,
                            shares, k_now, d_now, scale, full, c, work, reduced, forces, jq,
                            jv)  # fmt: skip
                gh = _GAMMA * h
                for r in range(m):
                    for k in range(m):
                        system[r, k] = -jv[r, k] - gh * jq[r, k]
                    system[r, r] += 1.0 / gh
                _factorise(system, order)
                for s in range(6):
                    stage[:] = y
                    if s < 5:
                        for p in range(s):
                            for k in range(2 * m):
                                stage[k] += _A[s, p] * increments[p, k]
                    else:
                        stage[:] = trial
                    for k in range(m):
                        torque[k] = begin[k] + slope[k] * (t + _TIMES[s] * h)
                    if s == 0:
                        a1[:] = a0
                    else:
                        _acceleration(stage, torque, active, lengths, mass_now, inertia_now,
                                      weight_now, down, nodes, shares, k_now, d_now, full, matrix,
                                      bias, none, work, reduced, a1)  # fmt: skip
                    for k in range(m):
                        right_q[k] = stage[m + k]
                        right_v[k] = a1[k] + _DRIFTS[s] * h * ft[k]
                        for p in range(s):
                            right_q[k] += _C[s, p] / h * increments[p, k]
                            right_v[k] += _C[s, p] / h * increments[p, m + k]
                    for r in range(m):
                        total = right_v[r]
                        for k in range(m):
                            total += gh * jq[r, k] * right_q[k]
                        a1[r] = total
                    _solve_factorised(system, order, a1)
                    for k in range(m):
                        increments[s, k] = gh * (right_q[k] + a1[k])
                        increments[s, m + k] = a1[k]
                    if s >= 4:
                        if s == 4:
                            trial[:] = stage
                        for k in range(2 * m):
                            trial[k] += increments[s, k]
                if pieces > 0:
                    y[:] = trial
                    t += h
                    continue
                error = 0.0
                for k in range(2 * m):
                    error = max(error, abs(increments[5, k]) / (tolerance * scale[k]))
                    if not math.isfinite(trial[k]):
                        error = math.inf
                if error <= 1.0:
                    y[:] = trial
                    if t == 0.0:
                        h_first = h * min(4.0, max(0.2, 0.9 * max(error, 1e-10) ** -0.25))
                    t += h
                    rejected = False
                    if t < dt * (1.0 - 1e-12) or h >= h_next:
                        h_next = h * min(4.0, max(0.2, 0.9 * max(error, 1e-10) ** -0.25))
                else:
                    rejected = True
                    h_next = h * (0.1 if math.isinf(error) else max(0.2, 0.9 * error**-0.25))
                    if h_next < 1e-14:
                        tries = _MOST_STEPS
            out[candidate, step] = y


@numba.njit(
    "void(f8[:,:,::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[:,::1], i8, f8[::1])", **_OPTIONS
)
def fit_shapes(seen, places, lengths, active, weights, strains, rounds, residuals):
    """Least squares of the kept strains over all poses of each frame, by Gauss and Newton.

    Args:
        seen: (T, N, 3) poses, NaN where a marker was not seen; places: (N,) that do not fall.
        weights: (3,) one over the standard deviation of x, y and theta.
        strains: (T, n) where each frame begins, and the result.
        residuals: (T,) root of the mean square of the weighted residuals.
    """
    n, m, count = 3 * len(lengths), len(active), len(places)
    found, jacobian = np.empty((1, count, 3)), np.empty((1, count, 3, n))
    normal, right = np.empty((m, m)), np.empty(m)
    for t in range(len(seen)):
        for turn in range(rounds + 1):
            poses(strains[t : t + 1], lengths, places, found, jacobian)
            normal[:] = 0.0
            right[:] = 0.0
            total, used = 0.0, 0
            for p in range(count):
                for r in range(3):
                    error = weights[r] * (seen[t, p, r] - found[0, p, r])
                    if math.isnan(seen[t, p, r]):
                        continue
                    total += error * error
                    used += 1
                    for k in range(m):
                        slope = weights[r] * jacobian[0, p, r, active[k]]
                        right[k] += slope * error
                        for o in range(k + 1):
                            normal[k, o] += slope * weights[r] * jacobian[0, p, r, active[o]]
            residuals[t] = math.sqrt(total / used)
            if turn < rounds:
                _solve_positive(normal, right)
                for k in range(m):
                    strains[t, active[k]] += right[k]

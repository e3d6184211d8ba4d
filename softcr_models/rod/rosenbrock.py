"""One time step of the rod: a linearly implicit Runge-Kutta method on the structure of the
equations.

ROS34PW2 (J. Rang, L. Angermann, BIT 45 (2005) 761-787): four stages, third order, stiffly
accurate, and a W-method: it keeps its order with ANY matrix in place of the Jacobian. That allows
two economies: one linearisation per step for all its sub-steps,
and a linearisation without gravity, which is the only term that couples all nodes.

Written in the increments U = h Gamma k, so that no product with the Jacobian is needed
(Hairer & Wanner, Solving ODEs II, IV.7): with alpha = 1/(gamma h),

    (alpha A - G) U_i = A (f(x + sum a_ij U_j) + sum c_ij / h U_j),    x_new = x + sum m_i U_i,

where A x' = b(x) is the implicit form and G = d/dx (b - A v) at frozen v = f(x), gravity left out.
The matrix is block tridiagonal; elimination runs from the tip to the base on 6x6 blocks without
pivoting. Same three ways of running as `kernel`.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from softcr_models.rod.kernel import (
    MAX_INTERVALS,
    MAX_NODES,
    derivative,
    midpoint,
    multiply_inertia,
    strain_from_wrench,
    subtract_ad_transposed,
)
from softcr_models.rod.simd import local

STAGES = 4
GAMMA = 0.43586652150845900
_ALPHA = np.array(
    [
        [0.0, 0.0, 0.0, 0.0],
        [0.87173304301691801, 0.0, 0.0, 0.0],
        [0.84457060015369423, -0.11299064236484185, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
    ]
)
_GAMMA = np.array(
    [
        [GAMMA, 0.0, 0.0, 0.0],
        [-0.87173304301691801, GAMMA, 0.0, 0.0],
        [-0.90338057013044082, 0.054180672388095326, GAMMA, 0.0],
        [0.24212380706095346, -1.2232505839045147, 0.54526025533510214, GAMMA],
    ]
)
_WEIGHTS = np.array([0.24212380706095346, -1.2232505839045147, 1.5452602553351020, GAMMA])
STAGE_POINT = _ALPHA @ np.linalg.inv(_GAMMA)  # a_ij
STAGE_COUPLING = np.eye(STAGES) / GAMMA - np.linalg.inv(_GAMMA)  # c_ij
INCREMENT = np.linalg.solve(_GAMMA.T, _WEIGHTS)  # m_i


class Factors(NamedTuple):
    """The eliminated matrix (alpha A - G), one entry per interval i (node i for `slope`).

    Attributes:
        strain: (n, 6) xi at the midpoint, needed for products with A.
        inverse: (n, 6, 3) P = (alpha I + ad(e_m))^-1: its diagonal block, then its upper right
        block.
        stress_to_balance: (n, 6, 6) Q.
        triangular: (n, 6, 6) S = L U in place, reciprocals of the pivots on the diagonal.
        carry: (n, 6, 6) H in d_e+ = g - H d_e-.
        wrench_carry: (n, 6, 6) Y in k- = Y g + ...
        slope: (n+1, 6, 6) K in d_s = K d_e + k.
    """

    strain: np.ndarray
    inverse: np.ndarray
    stress_to_balance: np.ndarray
    triangular: np.ndarray
    carry: np.ndarray
    wrench_carry: np.ndarray
    slope: np.ndarray


@register_jitable(forceinline=True)
def _inverse_of_shifted_ad(inverse, alpha, velocity):
    """P = (alpha I + ad(eta))^-1 = [[W, X], [0, W]], W = (alpha I + w^)^-1, X = -W q^ W."""
    wx, wy, wz = velocity[3], velocity[4], velocity[5]
    scale = 1.0 / (alpha * (alpha * alpha + wx * wx + wy * wy + wz * wz))
    aa = alpha * alpha * scale
    ax, ay, az = alpha * wx * scale, alpha * wy * scale, alpha * wz * scale
    inverse[0, 0] = aa + wx * wx * scale
    inverse[1, 1] = aa + wy * wy * scale
    inverse[2, 2] = aa + wz * wz * scale
    inverse[0, 1] = wx * wy * scale + az
    inverse[1, 0] = wx * wy * scale - az
    inverse[0, 2] = wx * wz * scale - ay
    inverse[2, 0] = wx * wz * scale + ay
    inverse[1, 2] = wy * wz * scale + ax
    inverse[2, 1] = wy * wz * scale - ax
    qw = local(alpha + velocity[0], (3, 3))
    for c in range(3):
        qw[0, c] = velocity[1] * inverse[2, c] - velocity[2] * inverse[1, c]
        qw[1, c] = velocity[2] * inverse[0, c] - velocity[0] * inverse[2, c]
        qw[2, c] = velocity[0] * inverse[1, c] - velocity[1] * inverse[0, c]
    for r in range(3):
        for c in range(3):
            inverse[r + 3, c] = -(
                inverse[r, 0] * qw[0, c] + inverse[r, 1] * qw[1, c] + inverse[r, 2] * qw[2, c]
            )


@register_jitable(forceinline=True)
def _apply_inverse(out, inverse, y):
    """out (6,) = P y."""
    for r in range(3):
        out[r] = inverse[r, 0] * y[0] + inverse[r, 1] * y[1] + inverse[r, 2] * y[2]
        out[r] += inverse[r + 3, 0] * y[3] + inverse[r + 3, 1] * y[4] + inverse[r + 3, 2] * y[5]
        out[r + 3] = inverse[r, 0] * y[3] + inverse[r, 1] * y[4] + inverse[r, 2] * y[5]


@register_jitable(forceinline=True)
def _inverse_times_shifted_ad(product, inverse, strain, shift):
    """product (6, 3) = P (ad(xi)/2 + shift I), stored like P: diagonal block, upper right block."""
    half_u = local(strain[0], (3, 3))
    half_nu = local(strain[0], (3, 3))
    for k in range(3):
        half_u[k, k] = shift + 0.0 * strain[0]
        half_nu[k, k] = 0.0 * strain[0]
    _off_diagonal_of_hat(half_u, 0.5 * strain[3], 0.5 * strain[4], 0.5 * strain[5])
    _off_diagonal_of_hat(half_nu, 0.5 * strain[0], 0.5 * strain[1], 0.5 * strain[2])
    for r in range(3):
        for c in range(3):
            product[r, c] = (
                inverse[r, 0] * half_u[0, c]
                + inverse[r, 1] * half_u[1, c]
                + inverse[r, 2] * half_u[2, c]
            )
            product[r + 3, c] = (
                inverse[r, 0] * half_nu[0, c]
                + inverse[r, 1] * half_nu[1, c]
                + inverse[r, 2] * half_nu[2, c]
                + inverse[r + 3, 0] * half_u[0, c]
                + inverse[r + 3, 1] * half_u[1, c]
                + inverse[r + 3, 2] * half_u[2, c]
            )


@register_jitable(forceinline=True)
def _off_diagonal_of_hat(out, x, y, z):
    out[0, 1] = -z
    out[0, 2] = y
    out[1, 0] = z
    out[1, 2] = -x
    out[2, 0] = -y
    out[2, 1] = x


@register_jitable(forceinline=True)
def _fill_stress_to_balance(q, strain, lam, gain, shift):
    """Q = (shift I + ad(xi)^T) diag(gain) + adT(lam), adT(n, m) = [[0, n^], [n^, m^]]."""
    for r in range(6):
        for c in range(6):
            q[r, c] = 0.0 * gain[0]
    for k in range(6):
        q[k, k] = shift * gain[k]
    # ad(xi)^T = [[-u^, 0], [-nu^, -u^]]
    _add_hat(q, 0, 0, -strain[3], -strain[4], -strain[5], gain)
    _add_hat(q, 3, 0, -strain[0], -strain[1], -strain[2], gain)
    _add_hat(q, 3, 3, -strain[3], -strain[4], -strain[5], gain)
    ones = local(gain[0], (6,))
    for k in range(6):
        ones[k] = 1.0 + 0.0 * gain[0]
    _add_hat(q, 0, 3, lam[0], lam[1], lam[2], ones)
    _add_hat(q, 3, 0, lam[0], lam[1], lam[2], ones)
    _add_hat(q, 3, 3, lam[3], lam[4], lam[5], ones)


@register_jitable(forceinline=True)
def _add_hat(out, row, column, x, y, z, scale):
    """Adds (x, y, z)^ diag(scale of those columns) to the 3x3 block at (row, column)."""
    out[row, column + 1] -= z * scale[column + 1]
    out[row, column + 2] += y * scale[column + 2]
    out[row + 1, column] += z * scale[column]
    out[row + 1, column + 2] -= x * scale[column + 2]
    out[row + 2, column] -= y * scale[column]
    out[row + 2, column + 1] += x * scale[column + 1]


@register_jitable(forceinline=True)
def _add_times_block_triangular(out, q, product):
    """out (6, 6) += Q [[a, b], [0, a]] with (a, b) stored as (6, 3)."""
    for r in range(6):
        for c in range(3):
            out[r, c] += q[r, 0] * product[0, c] + q[r, 1] * product[1, c] + q[r, 2] * product[2, c]
            out[r, c + 3] += (
                q[r, 0] * product[3, c]
                + q[r, 1] * product[4, c]
                + q[r, 2] * product[5, c]
                + q[r, 3] * product[0, c]
                + q[r, 4] * product[1, c]
                + q[r, 5] * product[2, c]
            )


@register_jitable(forceinline=True)
def _add_half_inertia(out, alpha, velocity, momentum, i, section, grid):
    """out += (alpha M - ad(e)^T M - adT(M e)) / 2."""
    mass = local(momentum[0], (6,))
    for k in range(3):
        mass[k] = 0.5 * section.line_density[i]
    mass[3] = 0.5 * section.line_density[i] * grid.bending_inertia
    mass[4] = 0.5 * section.line_density[i] * grid.bending_inertia
    mass[5] = 0.5 * section.line_density[i] * grid.torsion_inertia
    for k in range(6):
        out[k, k] += alpha * mass[k]
    _add_hat(out, 0, 0, velocity[3], velocity[4], velocity[5], mass)
    _add_hat(out, 3, 3, velocity[3], velocity[4], velocity[5], mass)
    half = local(momentum[0], (6,))
    for k in range(6):
        half[k] = -0.5 + 0.0 * momentum[0]
    # q^ M - (M q)^ vanishes in the lower left block
    _add_hat(out, 0, 3, momentum[0], momentum[1], momentum[2], half)
    _add_hat(out, 3, 3, momentum[3], momentum[4], momentum[5], half)


@register_jitable(forceinline=True)
def _factorise(a):
    """a = L U in place without pivoting; reciprocals of the pivots on the diagonal."""
    for k in range(6):
        a[k, k] = 1.0 / a[k, k]
        for r in range(k + 1, 6):
            a[r, k] *= a[k, k]
            for c in range(k + 1, 6):
                a[r, c] -= a[r, k] * a[k, c]


@register_jitable(forceinline=True)
def _substitute(a, y):
    """y (6,) = (L U)^-1 y in place."""
    for r in range(1, 6):
        for k in range(r):
            y[r] -= a[r, k] * y[k]
    for j in range(6):
        r = 5 - j
        for k in range(r + 1, 6):
            y[r] -= a[r, k] * y[k]
        y[r] *= a[r, r]


@register_jitable(forceinline=True)
def _substitute_matrix(a, y):
    """y (6, 6) = (L U)^-1 y in place."""
    for r in range(1, 6):
        for k in range(r):
            for c in range(6):
                y[r, c] -= a[r, k] * y[k, c]
    for j in range(6):
        r = 5 - j
        for k in range(r + 1, 6):
            for c in range(6):
                y[r, c] -= a[r, k] * y[k, c]
        for c in range(6):
            y[r, c] *= a[r, r]


@register_jitable(forceinline=True)
def linearise(e, s, ds, w, alpha, section, grid, factors):
    """Eliminates (alpha A - G) at the state (e, s) with frozen rates ds; writes `factors`."""
    n = grid.intervals
    shift = 1.0 / grid.interval_length
    velocity = local(w[0], (6,))
    lam = local(w[0], (6,))
    momentum = local(w[0], (6,))
    gain = local(w[0], (6,))
    damped = local(w[0], (6,))
    plus = local(w[0], (6, 3))
    minus = local(w[0], (6, 3))
    for k in range(6):
        damped[k] = 2.0 * shift * (alpha * section.relaxation[k] + 1.0)
        gain[k] = (alpha * section.relaxation[k] + 1.0) * section.stiffness[k]
        for c in range(6):
            factors.slope[n, k, c] = 0.0 * w[0]
    for j in range(n):
        i = n - 1 - j
        midpoint(lam, s, i)
        midpoint(velocity, e, i)
        strain_from_wrench(factors.strain[i], lam, section)
        strain = factors.strain[i]
        for k in range(6):
            lam[k] += 0.5 * section.relaxation[k] * (ds[i, k] + ds[i + 1, k]) - w[k]
        multiply_inertia(momentum, velocity, i, section, grid)
        inverse = factors.inverse[i]
        q = factors.stress_to_balance[i]
        system = factors.triangular[i]
        carry = factors.carry[i]
        wrench_carry = factors.wrench_carry[i]
        slope = factors.slope[i + 1]
        slope_below = factors.slope[i]
        _inverse_of_shifted_ad(inverse, alpha, velocity)
        _inverse_times_shifted_ad(plus, inverse, strain, shift)
        _inverse_times_shifted_ad(minus, inverse, strain, -shift)
        _fill_stress_to_balance(q, strain, lam, gain, 2.0 * shift)
        for r in range(6):
            for c in range(6):
                carry[r, c] = 0.0 * w[0]
        _add_half_inertia(carry, alpha, velocity, momentum, i, section, grid)
        for r in range(6):
            for c in range(6):
                system[r, c] = carry[r, c] - damped[r] * slope[r, c]
        _add_times_block_triangular(system, q, plus)
        _add_times_block_triangular(carry, q, minus)
        _factorise(system)
        _substitute_matrix(system, carry)
        for r in range(3):
            for c in range(3):
                lower, upper = 2.0 * section.stiffness[r], 2.0 * section.stiffness[r + 3]
                wrench_carry[r, c] = lower * plus[r, c] - slope[r, c]
                wrench_carry[r, c + 3] = lower * plus[r + 3, c] - slope[r, c + 3]
                wrench_carry[r + 3, c] = -slope[r + 3, c]
                wrench_carry[r + 3, c + 3] = upper * plus[r, c] - slope[r + 3, c + 3]
                slope_below[r, c] = lower * minus[r, c]
                slope_below[r, c + 3] = lower * minus[r + 3, c]
                slope_below[r + 3, c] = 0.0 * w[0]
                slope_below[r + 3, c + 3] = upper * minus[r, c]
        for r in range(6):
            for k in range(6):
                for c in range(6):
                    slope_below[r, c] -= wrench_carry[r, k] * carry[k, c]


@register_jitable(forceinline=True)
def solve(e_rate, s_rate, alpha, section, grid, factors, d_e, d_s):
    """Solves (alpha A - G) d = A r for the right-hand side rates r = (e_rate, s_rate)."""
    n = grid.intervals
    shift = 1.0 / grid.interval_length
    mean = local(e_rate[0, 0], (6,))
    row = local(e_rate[0, 0], (6,))
    relaxed = local(e_rate[0, 0], (6,))
    for k in range(6):
        relaxation = section.relaxation[k]
        d_s[n, k] = relaxation * s_rate[n, k] / (alpha * relaxation + 1.0)
        d_e[0, k] = 0.0 * e_rate[0, k]
    # towards the base: d_e[i + 1] holds g, d_s holds k
    for j in range(n):
        i = n - 1 - j
        midpoint(mean, e_rate, i)
        multiply_inertia(row, mean, i, section, grid)
        midpoint(mean, s_rate, i)
        for k in range(6):
            relaxation = section.relaxation[k]
            relaxed[k] = -relaxation * mean[k]
            row[k] -= relaxation * (s_rate[i + 1, k] - s_rate[i, k]) * shift
            row[k] += 2.0 * shift * (alpha * relaxation + 1.0) * d_s[i + 1, k]
            mean[k] *= section.compliance[k]
        subtract_ad_transposed(row, factors.strain[i], relaxed)
        _apply_inverse(relaxed, factors.inverse[i], mean)
        q = factors.stress_to_balance[i]
        for r in range(6):
            for k in range(6):
                row[r] -= q[r, k] * relaxed[k]
        _substitute(factors.triangular[i], row)
        wrench_carry = factors.wrench_carry[i]
        for r in range(6):
            total = 2.0 * section.stiffness[r] * relaxed[r] - d_s[i + 1, r]
            for k in range(6):
                total += wrench_carry[r, k] * row[k]
            d_s[i, r] = total
            d_e[i + 1, r] = row[r]
    # towards the tip: d_e+ = g - H d_e-, d_s = K d_e + k
    for i in range(n):
        carry = factors.carry[i]
        slope = factors.slope[i + 1]
        for r in range(6):
            for k in range(6):
                d_e[i + 1, r] -= carry[r, k] * d_e[i, k]
        for r in range(6):
            for k in range(6):
                d_s[i + 1, r] += slope[r, k] * d_e[i + 1, k]


@register_jitable(forceinline=True)
def step(e, s, z, w_begin, w_end, dt, substeps, fresh, decay, section, grid):
    """Advances (e, s, z) in place over dt in equal sub-steps.

    The pressure wrench goes linearly from w_begin to w_end; each sub-step holds its value in the
    middle.

    Args:
        e, s: (n+1, 6) state; z: (6,) base state x2(0-) - x2(0+).
        substeps: number of sub-steps; fresh: 1 to linearise in each of them, 0 only in the first.
        decay: (6,) exp(-dt / substeps / D) of the base state.
    """
    n = grid.intervals
    h = dt / substeps
    alpha = 1.0 / (GAMMA * h)
    like = e[0, 0]
    factors = Factors(
        local(like, (MAX_INTERVALS, 6)),
        local(like, (MAX_INTERVALS, 6, 3)),
        local(like, (MAX_INTERVALS, 6, 6)),
        local(like, (MAX_INTERVALS, 6, 6)),
        local(like, (MAX_INTERVALS, 6, 6)),
        local(like, (MAX_INTERVALS, 6, 6)),
        local(like, (MAX_NODES, 6, 6)),
    )
    stage_e = local(like, (MAX_NODES, 6))
    stage_s = local(like, (MAX_NODES, 6))
    rate_e = local(like, (MAX_NODES, 6))
    rate_s = local(like, (MAX_NODES, 6))
    increments_e = local(like, (4, MAX_NODES, 6))
    increments_s = local(like, (4, MAX_NODES, 6))
    w = local(like, (6,))
    for substep in range(substeps):
        fraction = (substep + 0.5) / substeps
        for k in range(6):
            w[k] = w_begin[k] + fraction * (w_end[k] - w_begin[k])
            z[k] = (z[k] + w[k]) * decay[k] - w[k]
        for stage in range(4):
            for i in range(n + 1):
                for k in range(6):
                    stage_e[i, k] = e[i, k]
                    stage_s[i, k] = s[i, k]
            for j in range(stage):
                weight = STAGE_POINT[stage, j]
                for i in range(n + 1):
                    for k in range(6):
                        stage_e[i, k] += weight * increments_e[j, i, k]
                        stage_s[i, k] += weight * increments_s[j, i, k]
            derivative(stage_e, stage_s, w, section, grid, rate_e, rate_s)
            if stage == 0 and (substep == 0 or fresh == 1):
                linearise(stage_e, stage_s, rate_s, w, alpha, section, grid, factors)
            for j in range(stage):
                weight = STAGE_COUPLING[stage, j] / h
                for i in range(n + 1):
                    for k in range(6):
                        rate_e[i, k] += weight * increments_e[j, i, k]
                        rate_s[i, k] += weight * increments_s[j, i, k]
            solve(
                rate_e,
                rate_s,
                alpha,
                section,
                grid,
                factors,
                increments_e[stage],
                increments_s[stage],
            )
        for j in range(4):
            for i in range(n + 1):
                for k in range(6):
                    e[i, k] += INCREMENT[j] * increments_e[j, i, k]
                    s[i, k] += INCREMENT[j] * increments_s[j, i, k]

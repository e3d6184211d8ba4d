"""The linear systems of the rod's time steps: (alpha A - G) d = A r on 6x6 blocks.

A x' = b(x) is the implicit form of `kernel`, G = d/dx (b - A v) at frozen rates v. The matrix is
block tridiagonal; elimination runs from the tip to the base, then back, without pivoting. Per
interval d_e+ = g - H d_e- and at every row d_s = K d_e + k.
"""

from typing import NamedTuple

import numpy as np

from softcr_models.rod.backbone import midpoint, part_of, strain_from_wrench
from softcr_models.rod.contact import add_rate, add_stiffness
from softcr_models.rod.elimination import factorise, substitute, substitute_matrix
from softcr_models.rod.inner import inlined
from softcr_models.rod.kernel import multiply_inertia, multiply_own_inertia
from softcr_models.rod.payload import fill_half_inertia
from softcr_models.rod.section import MAX_NODES
from softcr_models.rod.simd import local, square_root
from softcr_models.rod.tendons import actuation_at_rows
from softcr_models.rod.twists import (
    add_congruence,
    add_product,
    add_transposed_product,
    subtract_ad_transposed,
)


class Factors(NamedTuple):
    """The eliminated matrix (alpha A - G), one entry per interval i (row i for `slope`).

    Attributes:
        strain: (R, 6) xi at the midpoint, needed for products with A.
        inverse: (R, 6, 3) P = (alpha I + ad(e_m))^-1: its diagonal block, then its upper right
        block.
        stress_to_balance: (R, 6, 6) Q.
        triangular: (R, 6, 6) S = L U in place, reciprocals of the pivots on the diagonal.
        carry: (R, 6, 6) H in d_e+ = g - H d_e-.
        wrench_carry: (R, 6, 6) Y in k- = Y g + ...
        slope: (R, 6, 6) K in d_s = K d_e + k.
    """

    strain: np.ndarray
    inverse: np.ndarray
    stress_to_balance: np.ndarray
    triangular: np.ndarray
    carry: np.ndarray
    wrench_carry: np.ndarray
    slope: np.ndarray


@inlined
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


@inlined
def _apply_inverse(out, inverse, y):
    """out (6,) = P y."""
    for r in range(3):
        out[r] = inverse[r, 0] * y[0] + inverse[r, 1] * y[1] + inverse[r, 2] * y[2]
        out[r] += inverse[r + 3, 0] * y[3] + inverse[r + 3, 1] * y[4] + inverse[r + 3, 2] * y[5]
        out[r + 3] = inverse[r, 0] * y[3] + inverse[r, 1] * y[4] + inverse[r, 2] * y[5]


@inlined
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


@inlined
def _off_diagonal_of_hat(out, x, y, z):
    out[0, 1] = -z
    out[0, 2] = y
    out[1, 0] = z
    out[1, 2] = -x
    out[2, 0] = -y
    out[2, 1] = x


@inlined
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


@inlined
def _add_hat(out, row, column, x, y, z, scale):
    """Adds (x, y, z)^ diag(scale of those columns) to the 3x3 block at (row, column)."""
    out[row, column + 1] -= z * scale[column + 1]
    out[row, column + 2] += y * scale[column + 2]
    out[row + 1, column] += z * scale[column]
    out[row + 1, column + 2] -= x * scale[column + 2]
    out[row + 2, column] -= y * scale[column]
    out[row + 2, column + 1] += x * scale[column + 1]


@inlined
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


@inlined
def _add_half_inertia(out, alpha, velocity, momentum, i, part, section):
    """out += (alpha M - ad(e)^T M - adT(M e)) / 2; `momentum` is M e without a payload."""
    mass = local(momentum[0], (6,))
    for k in range(3):
        mass[k] = 0.5 * section.line_density[i]
    mass[3] = 0.5 * section.line_density[i] * part.bending_inertia
    mass[4] = 0.5 * section.line_density[i] * part.bending_inertia
    mass[5] = 0.5 * section.line_density[i] * part.torsion_inertia
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
    if i == part.payload_row:
        carried = local(momentum[0], (6, 6))
        fill_half_inertia(carried, part, section)
        _add_body_inertia(out, alpha, velocity, carried)


@inlined
def _add_half_drag(out, velocity, a, fittings):
    """out += half of the drag's change with velocity, in still fluid."""
    for k in range(6):
        out[k, k] += 0.5 * fittings.drag[a, k]
    if fittings.moving_fluid == 1:
        x, y, z = velocity[0], velocity[1], velocity[2]
        least = fittings.flow_smoothing * fittings.flow_smoothing
        across = 0.5 * fittings.cross_flow[a] * square_root(x * x + y * y + least)
        out[0, 0] += across
        out[1, 1] += across
        out[2, 2] += fittings.along_flow[a] * square_root(z * z + least)


@inlined
def _add_body_inertia(out, alpha, velocity, mass):
    """out (6, 6) += alpha M - ad(e)^T M - adT(M e) of a rigid body, M (6, 6) of any form."""
    momentum = local(velocity[0], (6,))
    column = local(velocity[0], (6,))
    ones = local(velocity[0], (6,))
    for k in range(6):
        momentum[k] = 0.0 * velocity[0]
        ones[k] = -1.0 + 0.0 * velocity[0]
    add_product(momentum, mass, velocity)
    for c in range(6):
        for r in range(6):
            column[r] = mass[r, c] + 0.0 * velocity[0]
            out[r, c] += alpha * mass[r, c]
            ones[r] = 0.0 * velocity[0]
        subtract_ad_transposed(ones, velocity, column)
        for r in range(6):
            out[r, c] += ones[r]
    for k in range(6):
        ones[k] = -1.0 + 0.0 * velocity[0]
    _add_hat(out, 0, 3, momentum[0], momentum[1], momentum[2], ones)
    _add_hat(out, 3, 0, momentum[0], momentum[1], momentum[2], ones)
    _add_hat(out, 3, 3, momentum[3], momentum[4], momentum[5], ones)


@inlined
def _slope_of_end(slopes, e, alpha, a, section, grid, extras):
    """K in d_s = K d_e + k at the last row of segment a, from the row beyond it."""
    end = grid.first_row[a + 1] - 1
    slope = slopes[end]
    for r in range(6):
        for c in range(6):
            slope[r, c] = 0.0 * alpha + 0.0 * e[0, 0]
    if a < grid.segments - 1:
        beyond = local(e[0, 0], (6, 6))
        for r in range(6):
            damped = alpha * section.relaxation[a + 1, r] + 1.0
            for c in range(6):
                beyond[r, c] = damped * slopes[end + 1, r, c]
        if extras is None:
            for r in range(6):
                for c in range(6):
                    slope[r, c] = beyond[r, c]
        else:
            add_congruence(slope, extras.fittings.adjoint[a], beyond)
    if extras is not None:
        inertia = local(e[0, 0], (6, 6))
        for r in range(6):
            for c in range(6):
                inertia[r, c] = 0.0 * e[0, 0]
        _add_body_inertia(inertia, alpha, e[end], extras.fittings.mass[a])
        if a == grid.segments - 1:
            add_stiffness(inertia, 1.0, alpha, end, extras.obstacles, extras.contacts)
        for r in range(6):
            for c in range(6):
                slope[r, c] -= inertia[r, c]
    for r in range(6):
        share = 1.0 / (alpha * section.relaxation[a, r] + 1.0)
        for c in range(6):
            slope[r, c] *= share


@inlined
def linearise(e, s, ds, w, alpha, section, grid, extras, factors):
    """Eliminates (alpha A - G) at the state (e, s) with frozen rates ds; writes `factors`.

    The directions of tendons of the exact model and loads that depend on directions are left out of
    G, as gravity is; for the tensions of elastic tendons see `tendon_coupling`.
    """
    velocity = local(w[0, 0], (6,))
    lam = local(w[0, 0], (6,))
    momentum = local(w[0, 0], (6,))
    actuation = local(w[0, 0], (6,))
    gain = local(w[0, 0], (6,))
    damped = local(w[0, 0], (6,))
    plus = local(w[0, 0], (6, 3))
    minus = local(w[0, 0], (6, 3))
    room = (local(w[0, 0], (6,)), local(w[0, 0], (6,)), local(w[0, 0], (6,)), local(w[0, 0], (6,)))
    if extras is not None:
        acting = local(w[0, 0], (MAX_NODES, 6))
        actuation_at_rows(acting, s, w, section, grid, extras)
    for j in range(grid.segments):
        a = grid.segments - 1 - j
        first, end = grid.first_row[a], grid.first_row[a + 1] - 1
        part = part_of(room, a, section, grid)
        shift = 1.0 / part.interval_length
        for k in range(6):
            damped[k] = 2.0 * shift * (alpha * part.relaxation[k] + 1.0)
            gain[k] = (alpha * part.relaxation[k] + 1.0) * part.stiffness[k]
            actuation[k] = w[a, k]
        _slope_of_end(factors.slope, e, alpha, a, section, grid, extras)
        for below in range(end - first):
            i = end - 1 - below
            if extras is not None:
                midpoint(actuation, acting, i)
            midpoint(lam, s, i)
            midpoint(velocity, e, i)
            strain_from_wrench(factors.strain[i], lam, part)
            strain = factors.strain[i]
            for k in range(6):
                lam[k] += 0.5 * part.relaxation[k] * (ds[i, k] + ds[i + 1, k]) - actuation[k]
            multiply_own_inertia(momentum, velocity, i, part, section)
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
                    carry[r, c] = 0.0 * w[0, 0]
            _add_half_inertia(carry, alpha, velocity, momentum, i, part, section)
            if extras is not None:
                _add_half_drag(carry, velocity, a, extras.fittings)
                add_stiffness(carry, 0.5, alpha, i, extras.obstacles, extras.contacts)
            for r in range(6):
                for c in range(6):
                    system[r, c] = carry[r, c] - damped[r] * slope[r, c]
            _add_times_block_triangular(system, q, plus)
            _add_times_block_triangular(carry, q, minus)
            factorise(system)
            substitute_matrix(system, carry)
            for r in range(3):
                lower = 2.0 * part.stiffness[r]
                upper = 2.0 * part.stiffness[r + 3]
                for c in range(3):
                    wrench_carry[r, c] = lower * plus[r, c] - slope[r, c]
                    wrench_carry[r, c + 3] = lower * plus[r + 3, c] - slope[r, c + 3]
                    wrench_carry[r + 3, c] = -slope[r + 3, c]
                    wrench_carry[r + 3, c + 3] = upper * plus[r, c] - slope[r + 3, c + 3]
                    slope_below[r, c] = lower * minus[r, c]
                    slope_below[r, c + 3] = lower * minus[r + 3, c]
                    slope_below[r + 3, c] = 0.0 * w[0, 0]
                    slope_below[r + 3, c + 3] = upper * minus[r, c]
            for r in range(6):
                for k in range(6):
                    for c in range(6):
                        slope_below[r, c] -= wrench_carry[r, k] * carry[k, c]


@inlined
def _constant_of_end(d_s, e_rate, s_rate, acting, alpha, a, section, grid, extras):
    """k in d_s = K d_e + k at the last row of segment a, from the row beyond it."""
    end = grid.first_row[a + 1] - 1
    row = local(e_rate[0, 0], (6,))
    for k in range(6):
        row[k] = section.relaxation[a, k] * s_rate[end, k]
    if acting is not None:
        for k in range(6):
            row[k] += acting[end, k]
    if a < grid.segments - 1:
        beyond = local(e_rate[0, 0], (6,))
        for k in range(6):
            relaxation = section.relaxation[a + 1, k]
            beyond[k] = (alpha * relaxation + 1.0) * d_s[end + 1, k]
            beyond[k] -= relaxation * s_rate[end + 1, k]
        if acting is not None:
            for k in range(6):
                beyond[k] -= acting[end + 1, k]
        if extras is None:
            for k in range(6):
                row[k] += beyond[k]
        else:
            add_transposed_product(row, extras.fittings.adjoint[a], beyond)
    if extras is not None:
        add_product(row, extras.fittings.mass[a], e_rate[end])
        if a == grid.segments - 1:
            add_rate(row, alpha, end, extras.obstacles, extras.contacts)
    for k in range(6):
        d_s[end, k] = row[k] / (alpha * section.relaxation[a, k] + 1.0)


@inlined
def solve(e_rate, s_rate, acting, alpha, section, grid, extras, factors, d_e, d_s):
    """Solves (alpha A - G) d = A r + b for the right-hand side rates r = (e_rate, s_rate) and what
    an actuation wrench `acting` (R, 6) puts into the equations, b; None: nothing."""
    mean = local(e_rate[0, 0], (6,))
    row = local(e_rate[0, 0], (6,))
    relaxed = local(e_rate[0, 0], (6,))
    like = e_rate[0, 0]
    room = (local(like, (6,)), local(like, (6,)), local(like, (6,)), local(like, (6,)))
    # towards the base: d_e[i + 1] holds g, d_s holds k
    for j in range(grid.segments):
        a = grid.segments - 1 - j
        first, end = grid.first_row[a], grid.first_row[a + 1] - 1
        part = part_of(room, a, section, grid)
        shift = 1.0 / part.interval_length
        _constant_of_end(d_s, e_rate, s_rate, acting, alpha, a, section, grid, extras)
        for below in range(end - first):
            i = end - 1 - below
            midpoint(mean, e_rate, i)
            multiply_inertia(row, mean, i, part, section)
            midpoint(mean, s_rate, i)
            for k in range(6):
                relaxation = part.relaxation[k]
                relaxed[k] = -relaxation * mean[k]
                row[k] -= relaxation * (s_rate[i + 1, k] - s_rate[i, k]) * shift
                row[k] += 2.0 * shift * (alpha * relaxation + 1.0) * d_s[i + 1, k]
                mean[k] *= part.compliance[k]
            if acting is not None:
                for k in range(6):
                    relaxed[k] -= 0.5 * (acting[i, k] + acting[i + 1, k])
                    row[k] -= (acting[i + 1, k] - acting[i, k]) * shift
            if extras is not None:
                add_rate(row, alpha, i, extras.obstacles, extras.contacts)
            subtract_ad_transposed(row, factors.strain[i], relaxed)
            _apply_inverse(relaxed, factors.inverse[i], mean)
            q = factors.stress_to_balance[i]
            for r in range(6):
                for k in range(6):
                    row[r] -= q[r, k] * relaxed[k]
            substitute(factors.triangular[i], row)
            wrench_carry = factors.wrench_carry[i]
            for r in range(6):
                total = 2.0 * part.stiffness[r] * relaxed[r] - d_s[i + 1, r]
                for k in range(6):
                    total += wrench_carry[r, k] * row[k]
                d_s[i, r] = total
                d_e[i + 1, r] = row[r]
    # towards the tip: d_e+ = g - H d_e-, d_s = K d_e + k
    for k in range(6):
        d_e[0, k] = 0.0 * e_rate[0, k]
    for a in range(grid.segments):
        first = grid.first_row[a]
        if a > 0:
            _cross_boundary(d_e, d_s, a, factors.slope[first], first, extras)
        for i in range(first, grid.first_row[a + 1] - 1):
            carry = factors.carry[i]
            slope = factors.slope[i + 1]
            for r in range(6):
                for k in range(6):
                    d_e[i + 1, r] -= carry[r, k] * d_e[i, k]
            for r in range(6):
                for k in range(6):
                    d_s[i + 1, r] += slope[r, k] * d_e[i + 1, k]


@inlined
def _cross_boundary(d_e, d_s, a, slope, first, extras):
    """d_e and d_s at the first row of segment a, from the row before it."""
    if extras is None:
        for k in range(6):
            d_e[first, k] = d_e[first - 1, k]
    else:
        for k in range(6):
            d_e[first, k] = 0.0 * d_e[0, 0]
        add_product(d_e[first], extras.fittings.adjoint[a - 1], d_e[first - 1])
    add_product(d_s[first], slope, d_e[first])

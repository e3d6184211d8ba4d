"""The equations of the dynamic Cosserat rod, once, for every way of running them.

Licher et al. 2025 (arXiv 2508.12681), Sec. III, with unknowns ordered by node: then
accelerations follow from two passes along the rod, and only gravity couples all nodes. The text
below runs as plain numpy (the oracle: any dtype, complex included, any trailing axes of lanes), as
compiled scalar code and as compiled SIMD lanes (`simd.Vec`); hence no branches on values, no square
roots, no trigonometry, and plain loops.

Twists and wrenches are LINEAR FIRST: eta = [q; w], Lambda = [n; m]; ad(eta) = [[w^, q^], [0, w^]].
Nodes are 0..n, interval i lies between nodes i and i + 1, h = l / n. Arrays of one rod:

    e (n+1, 6)  velocities eta, e[0] = 0          s (n+1, 6)  elastic wrenches x2 (0+ ... n-)
    w (6,)      pressure wrench w_p, eq. (7)      section     what the cross-section is made of

Per interval, with m = mean of both ends (implicit midpoint of (4) and (5)) and xi = xi_0 + C s_m:

    compatibility  C s'_m = (e+ - e-)/h + ad(xi) e_m
    balance        M e'_m = (s+ - s-)/h + D (s'+ - s'-)/h - ad(xi)^T (s_m + D s'_m - w_p)
                            + ad(e_m)^T M e_m + zeta_g
    tip            s_n + D s'_n = w_p             (the chambers end at the tip, (16)-(17))

The wrench below the base jump, x2(0-), moves alone: z = x2(0-) - x2(0+) obeys D z' = -w_p - z.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from softcr_models.rod.simd import local

# sizes of the scratch arrays; a run uses only what its number of intervals needs
MAX_INTERVALS = 64
MAX_NODES = 65


class Section(NamedTuple):
    """What a rod is made of, per lane; reciprocals beside the values because lanes divide slowly.

    Attributes:
        compliance, stiffness: (6,) diagonal of C and its inverse.
        relaxation, relaxation_rate: (6,) diagonal of D_tau [s] and its inverse.
        line_density, length_per_mass: (n,) mass per length of each interval [kg/m], its inverse.
    """

    compliance: np.ndarray
    stiffness: np.ndarray
    relaxation: np.ndarray
    relaxation_rate: np.ndarray
    line_density: np.ndarray
    length_per_mass: np.ndarray


class Grid(NamedTuple):
    """What all lanes of a run share.

    Attributes:
        intervals: n.
        interval_length: h [m].
        gravity: (3,) gravity's direction in the base frame, reversed, times g: R_base^T e_z g
        [m/s^2].
        gravity_subintervals: n_sub of Algorithm 1.
        strain_point: where in a sub-interval the strain is taken (0.5 middle, 1 end).
        bending_inertia, torsion_inertia: rotary inertia per mass, I/A and 2 I/A [m^2].
    """

    intervals: int
    interval_length: float
    gravity: np.ndarray
    gravity_subintervals: int
    strain_point: float
    bending_inertia: float
    torsion_inertia: float


@register_jitable(forceinline=True)
def add_ad(out, x, y):
    """out += ad(x) y."""
    out[0] += x[4] * y[2] - x[5] * y[1] + x[1] * y[5] - x[2] * y[4]
    out[1] += x[5] * y[0] - x[3] * y[2] + x[2] * y[3] - x[0] * y[5]
    out[2] += x[3] * y[1] - x[4] * y[0] + x[0] * y[4] - x[1] * y[3]
    out[3] += x[4] * y[5] - x[5] * y[4]
    out[4] += x[5] * y[3] - x[3] * y[5]
    out[5] += x[3] * y[4] - x[4] * y[3]


@register_jitable(forceinline=True)
def subtract_ad_transposed(out, x, y):
    """out -= ad(x)^T y, that is out += [w x n; q x n + w x m]."""
    out[0] += x[4] * y[2] - x[5] * y[1]
    out[1] += x[5] * y[0] - x[3] * y[2]
    out[2] += x[3] * y[1] - x[4] * y[0]
    out[3] += x[1] * y[2] - x[2] * y[1] + x[4] * y[5] - x[5] * y[4]
    out[4] += x[2] * y[0] - x[0] * y[2] + x[5] * y[3] - x[3] * y[5]
    out[5] += x[0] * y[1] - x[1] * y[0] + x[3] * y[4] - x[4] * y[3]


@register_jitable(forceinline=True)
def midpoint(out, y, i):
    """out = mean of rows i and i + 1."""
    for k in range(6):
        out[k] = 0.5 * (y[i, k] + y[i + 1, k])


@register_jitable(forceinline=True)
def strain_from_wrench(out, s, section):
    """xi = xi_0 + C s, eq. (2), with xi_0 = e_z."""
    for k in range(6):
        out[k] = section.compliance[k] * s[k]
    out[2] += 1.0


@register_jitable(forceinline=True)
def multiply_inertia(out, y, i, section, grid):
    """out = M_i y, M = line density * diag(1, 1, 1, I/A, I/A, 2 I/A)."""
    for k in range(3):
        out[k] = section.line_density[i] * y[k]
    out[3] = section.line_density[i] * grid.bending_inertia * y[3]
    out[4] = section.line_density[i] * grid.bending_inertia * y[4]
    out[5] = section.line_density[i] * grid.torsion_inertia * y[5]


@register_jitable(forceinline=True)
def curvature_at(out, s, i, fraction, section):
    """out (3,) = bending and torsion strain at a fraction of interval i, linear in it."""
    for k in range(3):
        out[k] = section.compliance[k + 3] * (
            s[i, k + 3] + fraction * (s[i + 1, k + 3] - s[i, k + 3])
        )


@register_jitable(forceinline=True)
def rotate_back(v, u):
    """v (3,) becomes Exp(u)^T v. Series in |u|^2: exact to 1e-10 up to |u| = 1, no trigonometry."""
    t = u[0] * u[0] + u[1] * u[1] + u[2] * u[2]
    sine = 1.0 - t * (1 / 6) * (1.0 - t * (1 / 20) * (1.0 - t * (1 / 42) * (1.0 - t * (1 / 72))))
    cosine = 0.5 * (1.0 - t * (1 / 12) * (1.0 - t * (1 / 30) * (1.0 - t * (1 / 56))))
    a0 = u[1] * v[2] - u[2] * v[1]
    a1 = u[2] * v[0] - u[0] * v[2]
    a2 = u[0] * v[1] - u[1] * v[0]
    v[0] += cosine * (u[1] * a2 - u[2] * a1) - sine * a0
    v[1] += cosine * (u[2] * a0 - u[0] * a2) - sine * a1
    v[2] += cosine * (u[0] * a1 - u[1] * a0) - sine * a2


@register_jitable(forceinline=True)
def gravity_over_interval(mean, up, s, i, section, grid):
    """Algorithm 1: mean (3,) of g R^T e_z over interval i; `up` is carried from its start to its
    end.

    Trapezoidal over the sub-intervals; the paper leaves the quadrature open. The strain of a
    sub-interval is taken at `grid.strain_point` of it (Algorithm 1 takes its end).
    """
    u = local(s[0, 0], (3,))
    step = grid.interval_length / grid.gravity_subintervals
    weight = 0.5 / grid.gravity_subintervals
    for k in range(3):
        mean[k] = 0.0 * s[0, 0]
    for j in range(grid.gravity_subintervals):
        for k in range(3):
            mean[k] += weight * up[k]
        curvature_at(u, s, i, (j + grid.strain_point) / grid.gravity_subintervals, section)
        for k in range(3):
            u[k] *= step
        rotate_back(up, u)
        for k in range(3):
            mean[k] += weight * up[k]


@register_jitable(forceinline=True)
def derivative(e, s, w, section, grid, de, ds):
    """Explicit state equation (20): writes time derivatives de, ds (n+1, 6); de[0] = 0.

    Two passes instead of a factorisation: the tip gives s'_n, compatibility carries s' down to the
    base, balance carries e' up to the tip; every division is by a diagonal entry.
    """
    n = grid.intervals
    per_length = 1.0 / grid.interval_length
    strain = local(w[0], (6,))
    velocity = local(w[0], (6,))
    stress = local(w[0], (6,))
    momentum = local(w[0], (6,))
    row = local(w[0], (6,))
    up = local(w[0], (3,))
    mean_up = local(w[0], (3,))
    for k in range(6):
        ds[n, k] = (w[k] - s[n, k]) * section.relaxation_rate[k]
        de[0, k] = 0.0 * w[k]
    for j in range(n):
        i = n - 1 - j
        midpoint(stress, s, i)
        midpoint(velocity, e, i)
        strain_from_wrench(strain, stress, section)
        for k in range(6):
            row[k] = (e[i + 1, k] - e[i, k]) * per_length
        add_ad(row, strain, velocity)
        for k in range(6):
            ds[i, k] = 2.0 * section.stiffness[k] * row[k] - ds[i + 1, k]
    for k in range(3):
        up[k] = grid.gravity[k] + 0.0 * w[k]
    for i in range(n):
        midpoint(stress, s, i)
        midpoint(velocity, e, i)
        strain_from_wrench(strain, stress, section)
        multiply_inertia(momentum, velocity, i, section, grid)
        gravity_over_interval(mean_up, up, s, i, section, grid)
        for k in range(6):
            damping = section.relaxation[k]
            stress[k] += 0.5 * damping * (ds[i, k] + ds[i + 1, k]) - w[k]
            row[k] = (s[i + 1, k] - s[i, k] + damping * (ds[i + 1, k] - ds[i, k])) * per_length
        subtract_ad_transposed(row, strain, stress)
        for k in range(6):
            momentum[k] = -momentum[k]
        subtract_ad_transposed(row, velocity, momentum)
        for k in range(3):
            row[k] -= section.line_density[i] * mean_up[k]
        for k in range(6):
            row[k] *= 2.0 * section.length_per_mass[i]
        for k in range(3):
            de[i + 1, k] = row[k] - de[i, k]
        de[i + 1, 3] = row[3] / grid.bending_inertia - de[i, 3]
        de[i + 1, 4] = row[4] / grid.bending_inertia - de[i, 4]
        de[i + 1, 5] = row[5] / grid.torsion_inertia - de[i, 5]


@register_jitable
def implicit_residual(e, s, de, ds, w, section, grid, compatibility, balance, tip):
    """Implicit state equation (19) as in this module's heading, right minus left sides.

    Writes compatibility (n, 6), balance (n, 6) and tip (6,).
    """
    n = grid.intervals
    per_length = 1.0 / grid.interval_length
    strain = local(w[0], (6,))
    velocity = local(w[0], (6,))
    acceleration = local(w[0], (6,))
    stress = local(w[0], (6,))
    momentum = local(w[0], (6,))
    row = local(w[0], (6,))
    up = local(w[0], (3,))
    mean_up = local(w[0], (3,))
    for k in range(3):
        up[k] = grid.gravity[k] + 0.0 * w[k]
    for i in range(n):
        midpoint(stress, s, i)
        midpoint(velocity, e, i)
        midpoint(acceleration, de, i)
        strain_from_wrench(strain, stress, section)
        for k in range(6):
            row[k] = (e[i + 1, k] - e[i, k]) * per_length
            row[k] -= 0.5 * section.compliance[k] * (ds[i, k] + ds[i + 1, k])
        add_ad(row, strain, velocity)
        for k in range(6):
            compatibility[i, k] = row[k]
        multiply_inertia(momentum, acceleration, i, section, grid)
        gravity_over_interval(mean_up, up, s, i, section, grid)
        for k in range(6):
            damping = section.relaxation[k]
            stress[k] += 0.5 * damping * (ds[i, k] + ds[i + 1, k]) - w[k]
            row[k] = (s[i + 1, k] - s[i, k] + damping * (ds[i + 1, k] - ds[i, k])) * per_length
            row[k] -= momentum[k]
        subtract_ad_transposed(row, strain, stress)
        multiply_inertia(momentum, velocity, i, section, grid)
        for k in range(6):
            momentum[k] = -momentum[k]
        subtract_ad_transposed(row, velocity, momentum)
        for k in range(3):
            row[k] -= section.line_density[i] * mean_up[k]
        for k in range(6):
            balance[i, k] = row[k]
    for k in range(6):
        tip[k] = w[k] - s[n, k] - section.relaxation[k] * ds[n, k]


@register_jitable(forceinline=True)
def advance_pose(rotation, position, strain, length):
    """T becomes T Exp_SE3(strain * length), eq. (1): rotation (3, 3), position (3,)."""
    u = local(strain[0], (3,))
    move = local(strain[0], (3,))
    for k in range(3):
        u[k] = strain[k + 3] * length
        move[k] = strain[k] * length
    t = u[0] * u[0] + u[1] * u[1] + u[2] * u[2]
    # Exp of the translation: v + cosine u x v + cubic u x (u x v)
    cosine = 0.5 * (1.0 - t * (1 / 12) * (1.0 - t * (1 / 30) * (1.0 - t * (1 / 56))))
    cubic = (1 / 6) * (1.0 - t * (1 / 20) * (1.0 - t * (1 / 42) * (1.0 - t * (1 / 72))))
    a0 = u[1] * move[2] - u[2] * move[1]
    a1 = u[2] * move[0] - u[0] * move[2]
    a2 = u[0] * move[1] - u[1] * move[0]
    b0 = u[1] * a2 - u[2] * a1
    b1 = u[2] * a0 - u[0] * a2
    b2 = u[0] * a1 - u[1] * a0
    move[0] += cosine * a0 + cubic * b0
    move[1] += cosine * a1 + cubic * b1
    move[2] += cosine * a2 + cubic * b2
    for k in range(3):
        position[k] += (
            rotation[k, 0] * move[0] + rotation[k, 1] * move[1] + rotation[k, 2] * move[2]
        )
    for k in range(3):
        # a row of R Exp(u), transposed, is Exp(u)^T times that row
        rotate_back(rotation[k], u)


@register_jitable(forceinline=True)
def walk_interval(rotation, position, s, i, section, grid):
    """Carries a pose from node i to i + 1, strain constant in each sub-interval (Algorithm 1)."""
    strain = local(s[0, 0], (6,))
    step = grid.interval_length / grid.gravity_subintervals
    for j in range(grid.gravity_subintervals):
        fraction = (j + grid.strain_point) / grid.gravity_subintervals
        for k in range(6):
            strain[k] = section.compliance[k] * (s[i, k] + fraction * (s[i + 1, k] - s[i, k]))
        strain[2] += 1.0
        advance_pose(rotation, position, strain, step)


@register_jitable(forceinline=True)
def _rotate_back_tangent(v, v_tangent, u, u_tangent):
    """Tangent of `rotate_back`; v is already rotated. The right Jacobian of SO(3), eq. (26)."""
    t = u[0] * u[0] + u[1] * u[1] + u[2] * u[2]
    cosine = 0.5 * (1.0 - t * (1 / 12) * (1.0 - t * (1 / 30) * (1.0 - t * (1 / 56))))
    cubic = (1 / 6) * (1.0 - t * (1 / 20) * (1.0 - t * (1 / 42) * (1.0 - t * (1 / 72))))
    rotate_back(v_tangent, u)
    a0 = u[1] * u_tangent[2] - u[2] * u_tangent[1]
    a1 = u[2] * u_tangent[0] - u[0] * u_tangent[2]
    a2 = u[0] * u_tangent[1] - u[1] * u_tangent[0]
    r0 = u_tangent[0] - cosine * a0 + cubic * (u[1] * a2 - u[2] * a1)
    r1 = u_tangent[1] - cosine * a1 + cubic * (u[2] * a0 - u[0] * a2)
    r2 = u_tangent[2] - cosine * a2 + cubic * (u[0] * a1 - u[1] * a0)
    v_tangent[0] += v[1] * r2 - v[2] * r1
    v_tangent[1] += v[2] * r0 - v[0] * r2
    v_tangent[2] += v[0] * r1 - v[1] * r0


@register_jitable(forceinline=True)
def _gravity_tangent(mean, mean_tangent, up, up_tangent, s, s_tangent, i, section, change, grid):
    """`gravity_over_interval` and its tangent, (24)-(28) in forward mode."""
    u = local(s[0, 0], (3,))
    u_tangent = local(s[0, 0], (3,))
    step = grid.interval_length / grid.gravity_subintervals
    weight = 0.5 / grid.gravity_subintervals
    for k in range(3):
        mean[k] = weight * up[k]
        mean_tangent[k] = weight * up_tangent[k]
    for j in range(grid.gravity_subintervals):
        fraction = (j + grid.strain_point) / grid.gravity_subintervals
        for k in range(3):
            wrench = s[i, k + 3] + fraction * (s[i + 1, k + 3] - s[i, k + 3])
            wrench_tangent = s_tangent[i, k + 3] + fraction * (
                s_tangent[i + 1, k + 3] - s_tangent[i, k + 3]
            )
            u[k] = step * section.compliance[k + 3] * wrench
            u_tangent[k] = step * (
                section.compliance[k + 3] * wrench_tangent + change.compliance[k + 3] * wrench
            )
        rotate_back(up, u)
        _rotate_back_tangent(up, up_tangent, u, u_tangent)
        share = 2.0 * weight
        if j == grid.gravity_subintervals - 1:
            share = weight
        for k in range(3):
            mean[k] += share * up[k]
            mean_tangent[k] += share * up_tangent[k]


class SectionChange(NamedTuple):
    """A direction in which a `Section` changes.

    Attributes:
        compliance, relaxation: (6,); line_density: (n,).
    """

    compliance: np.ndarray
    relaxation: np.ndarray
    line_density: np.ndarray


@register_jitable(forceinline=True)
def derivative_tangent(
    e, s, w, section, grid, de, ds, e_t, s_t, w_t, change, de_t, ds_t
):  # fmt: skip
    """Exact directional derivative of `derivative`, by hand in forward mode (the paper's
    (23)-(28)).

    Args:
        de, ds: what `derivative` gave at this state.
        e_t, s_t, w_t, change: the direction in state, pressure wrench and section.
        de_t, ds_t: written: the change of de, ds.
    """
    n = grid.intervals
    per_length = 1.0 / grid.interval_length
    strain = local(w[0], (6,))
    strain_t = local(w[0], (6,))
    velocity = local(w[0], (6,))
    velocity_t = local(w[0], (6,))
    stress = local(w[0], (6,))
    stress_t = local(w[0], (6,))
    momentum = local(w[0], (6,))
    momentum_t = local(w[0], (6,))
    row = local(w[0], (6,))
    up = local(w[0], (3,))
    up_t = local(w[0], (3,))
    mean_up = local(w[0], (3,))
    mean_up_t = local(w[0], (3,))
    for k in range(6):
        rest = w_t[k] - s_t[n, k] - change.relaxation[k] * ds[n, k]
        ds_t[n, k] = rest * section.relaxation_rate[k]
        de_t[0, k] = 0.0 * w[k]
    for j in range(n):
        i = n - 1 - j
        midpoint(stress, s, i)
        midpoint(stress_t, s_t, i)
        midpoint(velocity, e, i)
        midpoint(velocity_t, e_t, i)
        strain_from_wrench(strain, stress, section)
        for k in range(6):
            strain_t[k] = section.compliance[k] * stress_t[k] + change.compliance[k] * stress[k]
            row[k] = (e_t[i + 1, k] - e_t[i, k]) * per_length
            row[k] -= 0.5 * change.compliance[k] * (ds[i, k] + ds[i + 1, k])
        add_ad(row, strain_t, velocity)
        add_ad(row, strain, velocity_t)
        for k in range(6):
            ds_t[i, k] = 2.0 * section.stiffness[k] * row[k] - ds_t[i + 1, k]
    for k in range(3):
        up[k] = grid.gravity[k] + 0.0 * w[k]
        up_t[k] = 0.0 * w[k]
    for i in range(n):
        midpoint(stress, s, i)
        midpoint(stress_t, s_t, i)
        midpoint(velocity, e, i)
        midpoint(velocity_t, e_t, i)
        strain_from_wrench(strain, stress, section)
        _gravity_tangent(mean_up, mean_up_t, up, up_t, s, s_t, i, section, change, grid)
        for k in range(6):
            damping = section.relaxation[k]
            damping_t = change.relaxation[k]
            strain_t[k] = section.compliance[k] * stress_t[k] + change.compliance[k] * stress[k]
            row[k] = s_t[i + 1, k] - s_t[i, k] + damping * (ds_t[i + 1, k] - ds_t[i, k])
            row[k] = (row[k] + damping_t * (ds[i + 1, k] - ds[i, k])) * per_length
            stress[k] += 0.5 * damping * (ds[i, k] + ds[i + 1, k]) - w[k]
            stress_t[k] += 0.5 * damping * (ds_t[i, k] + ds_t[i + 1, k]) - w_t[k]
            stress_t[k] += 0.5 * damping_t * (ds[i, k] + ds[i + 1, k])
        subtract_ad_transposed(row, strain_t, stress)
        subtract_ad_transposed(row, strain, stress_t)
        multiply_inertia(momentum, velocity, i, section, grid)
        multiply_inertia(momentum_t, velocity_t, i, section, grid)
        relative = change.line_density[i] * section.length_per_mass[i]
        for k in range(6):
            momentum_t[k] = -momentum_t[k] - relative * momentum[k]
            momentum[k] = -momentum[k]
        subtract_ad_transposed(row, velocity_t, momentum)
        subtract_ad_transposed(row, velocity, momentum_t)
        for k in range(3):
            row[k] -= section.line_density[i] * mean_up_t[k]
            row[k] -= change.line_density[i] * mean_up[k]
        for k in range(6):
            row[k] *= 2.0 * section.length_per_mass[i]
        row[3] /= grid.bending_inertia
        row[4] /= grid.bending_inertia
        row[5] /= grid.torsion_inertia
        for k in range(6):
            row[k] -= relative * (de[i, k] + de[i + 1, k])
            de_t[i + 1, k] = row[k] - de_t[i, k]

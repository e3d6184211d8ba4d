"""The equations of the dynamic Cosserat rod, once, for every way of running them.

Licher et al. 2025 (arXiv 2508.12681), Sec. III, with unknowns ordered by node: then
accelerations follow from two passes along the rod, and only gravity couples all nodes. The text
below runs as plain numpy (the oracle: any dtype, complex included, any trailing axes of lanes), as
compiled scalar code, as compiled SIMD lanes (`simd.Vec`) and on lanes that carry derivatives
(`dual.Dual`); hence no branches on values, no trigonometry, and plain loops.

Twists and wrenches are LINEAR FIRST, see `twists`; rows, segments and intervals are those of
`section`. Arrays of one rod:

    e (R, 6)  velocities eta, e[0] = 0            s (R, 6)  elastic wrenches x2
    w (A, 6)  actuation wrench, eq. (7): of each segment (A = K), with extras of each row (A = R)

Per interval, with m = mean of both ends (implicit midpoint of (4) and (5)), xi = xi_0 + C s_m, and
the total internal wrench Lambda = s + D s' - w of a node:

    compatibility  C s'_m = (e+ - e-)/h + ad(xi) e_m
    balance        M e'_m = (Lambda+ - Lambda-)/h - ad(xi)^T Lambda_m + ad(e_m)^T M e_m + zeta_m
    end            M_c e'- = X^T Lambda+ - Lambda- + ad(e-)^T M_c e- + F + g_c,    e+ = X e-

An end is the last node of a segment. There stand a rigid body M_c (a connector, or the payload)
with its weight g_c and what loads the node, F; X is the connector's adjoint, and beyond the tip
Lambda+ = 0 (actuation ends there, (16)-(17)).

A rigid body makes s' of its node depend on e' there. The dependence has constant coefficients:
D s' = D k - N e', where N is the mass beyond a node as the discretisation feels it, N_tip = M_t,

    interval  N-^-1 = N+^-1 + (4/h) M^-1        boundary  N- = X^T N+ X + M_c

so accelerations still follow from two passes: one to the base for k and y, the e'+ + e'- that an
interval would have without bodies, one to the tip for D s' and, with v = y - e'-,

    N+ e'+ = N- v,      e'+ = v - (4/h) M^-1 N- v.

The wrench below the base jump, x2(0-), moves alone: z = x2(0-) - x2(0+) obeys D z' = -w_0 - z.
"""

from softcr_models.rod.backbone import gravity_over_interval, midpoint, part_of, strain_from_wrench
from softcr_models.rod.contact import add_force
from softcr_models.rod.contact import forces as contact_forces
from softcr_models.rod.elimination import factorise, substitute_matrix
from softcr_models.rod.inner import inlined, inner
from softcr_models.rod.loads import add_body_force, add_fluid, add_shares, survey
from softcr_models.rod.payload import accelerate_carrying, add_momentum, add_weight
from softcr_models.rod.section import MAX_NODES, MAX_SEGMENTS
from softcr_models.rod.simd import local
from softcr_models.rod.stiffening import add_unresisted, unresisted, yield_in_interval
from softcr_models.rod.twists import (
    add_ad,
    add_congruence,
    add_product,
    add_symmetric_product,
    add_transposed_product,
    subtract_ad_transposed,
)


@inlined
def multiply_inertia(out, y, i, part, section):
    """out = M_i y, with the payload's share where the interval carries one."""
    multiply_own_inertia(out, y, i, part, section)
    if i == part.payload_row:
        add_momentum(out, y, part, section)


@inlined
def multiply_own_inertia(out, y, i, part, section):
    """out = M_i y without a payload, M = line density * diag(1, 1, 1, I/A, I/A, 2 I/A)."""
    for k in range(3):
        out[k] = section.line_density[i] * y[k]
    out[3] = section.line_density[i] * part.bending_inertia * y[3]
    out[4] = section.line_density[i] * part.bending_inertia * y[4]
    out[5] = section.line_density[i] * part.torsion_inertia * y[5]


@inlined
def compatibility(row, strain, stress, velocity, e, s, i, part):
    """row = C s'_m of interval i; on the way the strain, wrench and velocity at its middle."""
    per_length = 1.0 / part.interval_length
    midpoint(stress, s, i)
    midpoint(velocity, e, i)
    strain_from_wrench(strain, stress, part)
    for k in range(6):
        row[k] = (e[i + 1, k] - e[i, k]) * per_length
    add_ad(row, strain, velocity)


@inlined
def rate_below(ds, row, i, part):
    """ds of row i from `compatibility` and ds of row i + 1."""
    for k in range(6):
        ds[i, k] = 2.0 * part.stiffness[k] * row[k] - ds[i + 1, k]


@inlined
def balance(row, strain, stress, velocity, s, ds, w, mean_up, i, part, section):
    """row = M e'_m of interval i, of an actuation w (6,) that is constant in it.

    `stress` comes as the mean of s and leaves as the mean of Lambda.
    """
    per_length = 1.0 / part.interval_length
    momentum = local(s[0, 0], (6,))
    multiply_inertia(momentum, velocity, i, part, section)
    for k in range(6):
        damping = part.relaxation[k]
        stress[k] += 0.5 * damping * (ds[i, k] + ds[i + 1, k]) - w[k]
        row[k] = (s[i + 1, k] - s[i, k] + damping * (ds[i + 1, k] - ds[i, k])) * per_length
    if part.stiffens > 0:
        yield_in_interval(row, stress, s, i, part, section)
    subtract_ad_transposed(row, strain, stress)
    for k in range(6):
        momentum[k] = -momentum[k]
    subtract_ad_transposed(row, velocity, momentum)
    for k in range(3):
        row[k] -= section.line_density[i] * mean_up[k]
    if i == part.payload_row:
        add_weight(row, mean_up, part, section)


@inlined
def loaded_balance(
    row, strain, stress, velocity, s, ds, acting, mean_up, forces, stream, i, a, part, section,
    grid, extras,
):  # fmt: skip
    """`balance` with an actuation (R, 6) that may differ from row to row, and with loads."""
    per_length = 1.0 / part.interval_length
    mean = local(s[0, 0], (6,))
    midpoint(mean, acting, i)
    balance(row, strain, stress, velocity, s, ds, mean, mean_up[i], i, part, section)
    if extras.fittings.varying == 1:
        for k in range(6):
            row[k] -= (acting[i + 1, k] - acting[i, k]) * per_length
    if extras.loads.acting == 1:
        add_shares(row, forces, i, a, part, grid)
    if extras.fittings.in_fluid == 1:
        add_fluid(row, velocity, mean_up, stream, i, a, extras.fittings)


@inlined
def accelerate(row, i, part, section):
    """row becomes M^-1 row times two: e'+ + e'- of an interval, from `balance`."""
    if i == part.payload_row:
        accelerate_carrying(row, i, part, section)
    else:
        for k in range(6):
            row[k] *= 2.0 * section.length_per_mass[i]
        row[3] /= part.bending_inertia
        row[4] /= part.bending_inertia
        row[5] /= part.torsion_inertia


@inlined
def derivative(e, s, w, section, grid, extras, de, ds):
    """Explicit state equation (20): writes time derivatives de, ds (R, 6); de[0] = 0.

    Two passes instead of a factorisation: the tip gives s'_n, compatibility carries s' down to the
    base, balance carries e' up to the tip; every division is by a diagonal entry.

    Args:
        extras: what is fitted to the rod, or None.
    """
    if extras is None:
        _bare_derivative(e, s, w, section, grid, de, ds)
    else:
        _fitted_derivative(e, s, w, section, grid, extras, de, ds)


@inlined
def _bare_derivative(e, s, w, section, grid, de, ds):
    tip = grid.segments - 1
    strain = local(w[0, 0], (6,))
    velocity = local(w[0, 0], (6,))
    stress = local(w[0, 0], (6,))
    row = local(w[0, 0], (6,))
    up = local(w[0, 0], (3,))
    mean_up = local(w[0, 0], (3,))
    rest = local(w[0, 0], (2,))
    room = (local(w[0, 0], (6,)), local(w[0, 0], (6,)), local(w[0, 0], (6,)), local(w[0, 0], (6,)))
    end = grid.first_row[tip + 1] - 1
    for k in range(6):
        row[k] = w[tip, k] - s[end, k]
        de[0, k] = 0.0 * w[0, k]
    if grid.stiffens > 0:
        add_unresisted(row, s, end, section.compliance[tip], section)
    for k in range(6):
        ds[end, k] = row[k] * section.relaxation_rate[tip, k]
    for j in range(tip + 1):
        a = tip - j
        first, end = grid.first_row[a], grid.first_row[a + 1] - 1
        part = part_of(room, a, section, grid)
        if j > 0:
            for k in range(6):
                beyond = s[end + 1, k] - w[a + 1, k]
                beyond += section.relaxation[a + 1, k] * ds[end + 1, k]
                row[k] = w[a, k] - s[end, k] + beyond
            if grid.stiffens > 0:
                unresisted(rest, s, end + 1, section.compliance[a + 1], section)
                row[3] -= rest[0]
                row[4] -= rest[1]
                add_unresisted(row, s, end, part.compliance, section)
            for k in range(6):
                ds[end, k] = row[k] * part.relaxation_rate[k]
        for below in range(end - first):
            i = end - 1 - below
            compatibility(row, strain, stress, velocity, e, s, i, part)
            rate_below(ds, row, i, part)
    for k in range(3):
        up[k] = grid.gravity[k] + 0.0 * w[0, k]
    for a in range(grid.segments):
        first = grid.first_row[a]
        part = part_of(room, a, section, grid)
        if a > 0:
            for k in range(6):
                de[first, k] = de[first - 1, k]
        for i in range(first, grid.first_row[a + 1] - 1):
            midpoint(stress, s, i)
            midpoint(velocity, e, i)
            strain_from_wrench(strain, stress, part)
            gravity_over_interval(mean_up, up, s, i, part, grid)
            balance(row, strain, stress, velocity, s, ds, w[a], mean_up, i, part, section)
            accelerate(row, i, part, section)
            for k in range(6):
                de[i + 1, k] = row[k] - de[i, k]


@inlined
def _fitted_derivative(e, s, w, section, grid, extras, de, ds):
    like = s[0, 0]
    fittings = extras.fittings
    tip = grid.segments - 1
    acting = local(like, (MAX_NODES, 6))
    mean_up = local(like, (MAX_NODES, 3))
    end_up = local(like, (MAX_SEGMENTS, 3))
    forces = local(like, (MAX_NODES, 6))
    stream = local(like, (MAX_NODES, 3))
    push = local(like, (MAX_NODES, 6))
    strain = local(like, (6,))
    velocity = local(like, (6,))
    stress = local(like, (6,))
    row = local(like, (6,))
    beyond = local(like, (6,))
    rest = local(like, (2,))
    room = (local(like, (6,)), local(like, (6,)), local(like, (6,)), local(like, (6,)))
    survey(acting, mean_up, end_up, forces, stream, s, w, section, grid, extras)
    obstacles, contacts = extras.obstacles, extras.contacts
    contact_forces(obstacles, contacts, e, s, section, grid, fittings)
    # to the base: ds holds k, de[i + 1] holds y of interval i
    for j in range(tip + 1):
        a = tip - j
        first, end = grid.first_row[a], grid.first_row[a + 1] - 1
        part = part_of(room, a, section, grid)
        for k in range(6):
            row[k] = acting[end, k] - s[end, k]
        if grid.stiffens > 0:
            add_unresisted(row, s, end, part.compliance, section)
        if extras.loads.acting == 1:
            for k in range(6):
                row[k] += forces[end, k]
        add_body_force(row, e[end], end_up[a], fittings.mass[a])
        if j == 0:
            add_force(row, end, obstacles, contacts)
        if j > 0:
            for k in range(6):
                beyond[k] = s[end + 1, k] - acting[end + 1, k]
                beyond[k] += section.relaxation[a + 1, k] * ds[end + 1, k]
            if grid.stiffens > 0:
                unresisted(rest, s, end + 1, section.compliance[a + 1], section)
                beyond[3] -= rest[0]
                beyond[4] -= rest[1]
            add_transposed_product(row, fittings.adjoint[a], beyond)
        for k in range(6):
            ds[end, k] = row[k] * part.relaxation_rate[k]
        for below in range(end - first):
            i = end - 1 - below
            compatibility(row, strain, stress, velocity, e, s, i, part)
            rate_below(ds, row, i, part)
            loaded_balance(
                row, strain, stress, velocity, s, ds, acting, mean_up, forces, stream, i, a,
                part, section, grid, extras,
            )  # fmt: skip
            add_force(row, i, obstacles, contacts)
            accelerate(row, i, part, section)
            for r in range(6):
                push[i, r] = 0.0 * like
                de[i + 1, r] = row[r]
            add_symmetric_product(push[i], extras.effective_mass[i], row)
            for k in range(6):
                ds[i, k] += part.relaxation_rate[k] * push[i, k]
    # to the tip: `row` holds v, `beyond` holds N e'
    for k in range(6):
        de[0, k] = 0.0 * like
    for a in range(grid.segments):
        first = grid.first_row[a]
        part = part_of(room, a, section, grid)
        share = 2.0 / part.interval_length
        for k in range(6):
            beyond[k] = 0.0 * like
        if a > 0:
            for k in range(6):
                de[first, k] = 0.0 * like
            add_product(de[first], fittings.adjoint[a - 1], de[first - 1])
            add_symmetric_product(beyond, extras.effective_mass[first], de[first])
            for k in range(6):
                ds[first, k] -= part.relaxation_rate[k] * beyond[k]
        for i in range(first, grid.first_row[a + 1] - 1):
            for k in range(6):
                row[k] = de[i + 1, k] - de[i, k]
                beyond[k] = 0.0 * like
            add_symmetric_product(beyond, extras.effective_mass[i], row)
            for k in range(6):
                ds[i + 1, k] -= part.relaxation_rate[k] * beyond[k]
                beyond[k] *= -share
                de[i + 1, k] = row[k]
            accelerate(beyond, i, part, section)
            for k in range(6):
                de[i + 1, k] += beyond[k]


@inner
def effective_masses(effective_mass, section, grid, fittings):
    """N (R, 6, 6) of this module's heading, from the tip to the base."""
    like = section.line_density[0]
    system = local(like, (6, 6))
    carry = local(like, (6, 6))
    half = local(like, (6,))
    ones = local(like, (6,))
    room = (local(like, (6,)), local(like, (6,)), local(like, (6,)), local(like, (6,)))
    for k in range(6):
        ones[k] = 0.5 + 0.0 * like
    for j in range(grid.segments):
        a = grid.segments - 1 - j
        first, end = grid.first_row[a], grid.first_row[a + 1] - 1
        part = part_of(room, a, section, grid)
        for r in range(6):
            for c in range(6):
                effective_mass[end, r, c] = fittings.mass[a, r, c] + 0.0 * like
        if j > 0:
            add_congruence(effective_mass[end], fittings.adjoint[a], effective_mass[end + 1])
        for below in range(end - first):
            i = end - 1 - below
            # N- = N+ S^-1 M/2 with S = M/2 + (2/h) N+
            multiply_inertia(half, ones, i, part, section)
            for r in range(6):
                for c in range(6):
                    system[r, c] = 2.0 / part.interval_length * effective_mass[i + 1, r, c]
                    carry[r, c] = 0.0 * like
                system[r, r] += half[r]
                carry[r, r] = half[r] + 0.0 * like
            factorise(system)
            substitute_matrix(system, carry)
            for r in range(6):
                for c in range(6):
                    effective_mass[i, r, c] = 0.0 * like
                    for k in range(6):
                        effective_mass[i, r, c] += effective_mass[i + 1, r, k] * carry[k, c]

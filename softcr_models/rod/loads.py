"""What loads a rod beside its weight and its constant actuation: tendons that follow the strain,
forces at nodes, drag and buoyancy, and rigid bodies. Its names are those of `kernel`."""

from softcr_models.rod.backbone import (
    gravity_over_interval,
    part_of,
    start_pose,
    strain_from_wrench,
    walk_interval,
)
from softcr_models.rod.inner import inlined
from softcr_models.rod.simd import local, square_root
from softcr_models.rod.stiffening import add_unresisted
from softcr_models.rod.twists import (
    add_product,
    cross_connector,
    subtract_ad_transposed,
    turn_into_body,
)


@inlined
def add_tendons(acting, strain, i, a, extras):
    """acting (6,) += wrench of the tendons at row i of segment a, by its strain (6,).

    w = -T [t; r x t] with t the direction of q = nu + u x r + r', the tendon's tangent (Rucker and
    Webster, IEEE T-RO 27 (2011) 1033): conjugate to the tendon's length, the integral of |q|.
    """
    fittings = extras.fittings
    for tendon in range(fittings.tendon_reaches.shape[0]):
        if a <= fittings.tendon_reaches[tendon]:
            r = fittings.tendon_offsets[i, tendon, 0]
            slope = fittings.tendon_offsets[i, tendon, 1]
            x = strain[0] + strain[4] * r[2] - strain[5] * r[1] + slope[0]
            y = strain[1] + strain[5] * r[0] - strain[3] * r[2] + slope[1]
            z = strain[2] + strain[3] * r[1] - strain[4] * r[0] + slope[2]
            pull = extras.tensions[tendon] / square_root(x * x + y * y + z * z)
            x *= pull
            y *= pull
            z *= pull
            acting[0] -= x
            acting[1] -= y
            acting[2] -= z
            acting[3] -= r[1] * z - r[2] * y
            acting[4] -= r[2] * x - r[0] * z
            acting[5] -= r[0] * y - r[1] * x


@inlined
def pull_tendons(fraction, extras):
    """Sets the tensions to those at a fraction of the step."""
    for tendon in range(extras.fittings.tendon_reaches.shape[0]):
        begin, end = extras.tensions_begin[tendon], extras.tensions_end[tendon]
        extras.tensions[tendon] = begin + fraction * (end - begin)


@inlined
def actuation_at_rows(acting, s, w, section, grid, extras):
    """acting (R, 6) = w (R, 6) with the tendons of the exact model at elastic wrenches s."""
    strain = local(s[0, 0], (6,))
    room = (local(s[0, 0], (6,)), local(s[0, 0], (6,)), local(s[0, 0], (6,)), local(s[0, 0], (6,)))
    for a in range(grid.segments):
        part = part_of(room, a, section, grid)
        for i in range(grid.first_row[a], grid.first_row[a + 1]):
            strain_from_wrench(strain, s[i], part)
            for k in range(6):
                acting[i, k] = w[i, k]
            add_tendons(acting[i], strain, i, a, extras)


@inlined
def base_actuation(base, s, w, section, grid, extras):
    """base (6,) = actuation wrench at row 0, that of the tendons of the exact model included, and
    what does not resist, see `stiffening`."""
    for k in range(6):
        base[k] = w[0, k] + 0.0 * s[0, 0]
    if grid.stiffens > 0:
        add_unresisted(base, s, 0, section.compliance[0], section)
    if extras is not None:
        strain = local(s[0, 0], (6,))
        room = (
            local(s[0, 0], (6,)),
            local(s[0, 0], (6,)),
            local(s[0, 0], (6,)),
            local(s[0, 0], (6,)),
        )
        strain_from_wrench(strain, s[0], part_of(room, 0, section, grid))
        add_tendons(base, strain, 0, 0, extras)


@inlined
def survey(acting, mean_up, end_up, forces, stream, s, w, section, grid, extras):
    """One walk from base to tip for all that depends on strains and directions alone.

    Args:
        acting: (R, 6) written: w with the tendons of the exact model.
        mean_up: (R, 3) written: mean of g R^T e_z over each interval, Algorithm 1.
        end_up: (K, 3) written: g R^T e_z at the end of each segment.
        forces: (R, 6) written where any acts: what loads each node, body frame.
        stream: (R, 3) written where the fluid moves: its velocity at each row, body frame.
    """
    like = s[0, 0]
    fittings, loads = extras.fittings, extras.loads
    posed = loads.directed == 1 or fittings.moving_fluid == 1
    up = local(like, (3,))
    force = local(like, (3,))
    at_tip = local(like, (3,))
    rotation = local(like, (3, 3))
    position = local(like, (3,))
    room = (local(like, (6,)), local(like, (6,)), local(like, (6,)), local(like, (6,)))
    start_pose(rotation, position, like)
    if fittings.varying == 1:
        actuation_at_rows(acting, s, w, section, grid, extras)
    else:
        for i in range(grid.first_row[grid.segments]):
            for k in range(6):
                acting[i, k] = w[i, k]
    tip = grid.first_row[grid.segments] - 1
    for k in range(3):
        up[k] = grid.gravity[k] + 0.0 * like
    for a in range(grid.segments):
        first, last = grid.first_row[a], grid.first_row[a + 1] - 1
        part = part_of(room, a, section, grid)
        if a > 0:
            for k in range(3):
                force[k] = 0.0 * like
                for c in range(3):
                    force[k] += fittings.adjoint[a - 1, k, c] * up[c]
            for k in range(3):
                up[k] = force[k]
            if posed:
                cross_connector(
                    rotation, position, fittings.adjoint[a - 1], fittings.translation[a - 1]
                )
        for i in range(first, last + 1):
            if loads.acting == 1:
                for k in range(6):
                    forces[i, k] = loads.wrenches[i, k] + 0.0 * like
            if loads.directed == 1:
                turn_into_body(force, rotation, loads.forces[i])
                for k in range(3):
                    forces[i, k] += force[k]
            if loads.directed == 1 and i == tip:
                for k in range(3):
                    at_tip[k] = extras.tip_force[k] + loads.tip_force[k]
                turn_into_body(force, rotation, at_tip)
                lever = fittings.tip_lever
                for k in range(3):
                    forces[i, k] += force[k]
                forces[i, 3] += lever[1] * force[2] - lever[2] * force[1]
                forces[i, 4] += lever[2] * force[0] - lever[0] * force[2]
                forces[i, 5] += lever[0] * force[1] - lever[1] * force[0]
            if fittings.moving_fluid == 1:
                turn_into_body(stream[i], rotation, fittings.flow)
            if i < last:
                gravity_over_interval(mean_up[i], up, s, i, part, grid)
                if posed:
                    walk_interval(rotation, position, s, i, part, grid)
        for k in range(3):
            end_up[a, k] = up[k]


@inlined
def add_body_force(out, velocity, up, mass):
    """out (6,) += ad(e)^T M e - M [g R^T e_z; 0]: a rigid body's gyroscopic wrench and weight."""
    momentum = local(velocity[0], (6,))
    for r in range(6):
        momentum[r] = 0.0 * velocity[0]
        for k in range(3):
            out[r] -= mass[r, k] * up[k]
    add_product(momentum, mass, velocity)
    for k in range(6):
        momentum[k] = -momentum[k]
    subtract_ad_transposed(out, velocity, momentum)


@inlined
def add_shares(row, forces, i, a, part, grid):
    """row (6,) += the shares of nodes' loads in interval i of segment a.

    A load at an inner node is spread over the halves of both intervals beside it.
    """
    share = 0.5 / part.interval_length
    first, last = grid.first_row[a], grid.first_row[a + 1] - 1
    for k in range(6):
        if i > first:
            row[k] += share * forces[i, k]
        if i + 1 < last:
            row[k] += share * forces[i + 1, k]


@inlined
def add_fluid(row, velocity, mean_up, stream, i, a, fittings):
    """row (6,) += buoyancy and drag in interval i of segment a."""
    for k in range(6):
        row[k] -= fittings.drag[a, k] * velocity[k]
    for k in range(3):
        row[k] += fittings.displaced[a] * mean_up[i, k]
    if fittings.moving_fluid == 1:
        x = velocity[0] - 0.5 * (stream[i, 0] + stream[i + 1, 0])
        y = velocity[1] - 0.5 * (stream[i, 1] + stream[i + 1, 1])
        z = velocity[2] - 0.5 * (stream[i, 2] + stream[i + 1, 2])
        least = fittings.flow_smoothing * fittings.flow_smoothing
        across = fittings.cross_flow[a] * square_root(x * x + y * y + least)
        row[0] -= across * x
        row[1] -= across * y
        row[2] -= fittings.along_flow[a] * square_root(z * z + least) * z

"""Contact of a rod with planes and spheres: penalty forces with friction, and their linearisation.

The middle of every interval touches with a force per length, the last node with a force. With the
depth x of a point inside an obstacle of normal n, its velocity v and v_t across n,

    N = k f(x) max(0, 1 - b n.v),   F = N (n - mu v_t / sqrt(v_t.v_t + v_e^2)),

f(x) = x^2 / (2 e) up to x = e, then x - e/2. Positions are functions of all wrenches, but their
increments follow from those of the velocities, so the linearisation stays local: see
`linear_solver`. A step that begins outside an obstacle takes the slope of the chord up to where the
step would lead: any matrix serves a W-method, and the tangent, zero, would meet a huge force.

The body of a rod bounces on an obstacle with w = sqrt(stiffness / line density), whatever the grid.
A step much longer than 1 / w is stable, and settles where it should, but takes the rod through an
impact as if it hardly bounced. So sub-steps are divided wherever the rod touches, or may soon: see
`pieces`.
"""

from typing import NamedTuple

import numpy as np

from softcr_models.rod.backbone import part_of, start_pose
from softcr_models.rod.inner import inlined, inner
from softcr_models.rod.simd import any_positive, local, positive_part, square_root
from softcr_models.rod.twists import advance_pose, cross_connector, turn_into_body


class Obstacles(NamedTuple):
    """What a rod may touch, base frame.

    Attributes:
        planes: (P, 4) unit normal out of the obstacle, and its distance from the origin [-, m].
        spheres: (S, 4) centre and radius [m].
        radius: (K,) outer radius of each segment [m].
        base_height: of the rod's base [m].
        line_stiffness: of the body [N/m^2]; tip_stiffness: of the last node [N/m].
        smoothing: depth at which the force becomes linear [m].
        damping: b [s/m]; friction: mu [-]; friction_speed: v_e [m/s].
        longest_step: that follows the rod through an impact [s].
    """

    planes: np.ndarray
    spheres: np.ndarray
    radius: np.ndarray
    base_height: float
    line_stiffness: float
    tip_stiffness: float
    smoothing: float
    damping: float
    friction: float
    friction_speed: float
    longest_step: float


class Contacts(NamedTuple):
    """What touches, by rows: intervals at their lower row, the last node at its own.

    Attributes:
        force: (R, 3) body frame [N/m; at the last node N].
        stiffness, damping: (R, 3, 3) its linearisation by position and velocity, body frame.
        rate: (R, 3) velocity of the points in a stage, with what earlier stages moved, body frame.
        moves: (4, R, 3) how each stage moves the points, body frame [m].
        reach: (1,) the largest depth, above 0 inside, that any point has or will have where a step
            looks at its present velocity [m].
    """

    force: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    rate: np.ndarray
    moves: np.ndarray
    reach: np.ndarray


@inner
def touch(contacts, e, s, section, grid, fittings, obstacles, ahead):
    """Fills `contacts`; `ahead` [s] is how far a step looks, 0 for the forces alone."""
    like = s[0, 0]
    rotation = local(like, (3, 3))
    position = local(like, (3,))
    velocity = local(like, (3,))
    strain = local(like, (6,))
    room = (local(like, (6,)), local(like, (6,)), local(like, (6,)), local(like, (6,)))
    start_pose(rotation, position, like)
    position[2] = obstacles.base_height + 0.0 * like
    contacts.reach[0] = -1.0 + 0.0 * like
    for a in range(grid.segments):
        if a > 0:
            cross_connector(
                rotation, position, fittings.adjoint[a - 1], fittings.translation[a - 1]
            )
        part = part_of(room, a, section, grid)
        for i in range(grid.first_row[a], grid.first_row[a + 1] - 1):
            for half in range(2):
                for k in range(6):
                    at = s[i, k] + (0.25 + 0.5 * half) * (s[i + 1, k] - s[i, k])
                    strain[k] = part.compliance[k] * at
                strain[2] += 1.0
                advance_pose(rotation, position, strain, 0.5 * part.interval_length)
                if half == 0:
                    for k in range(3):
                        velocity[k] = 0.5 * (e[i, k] + e[i + 1, k])
                    _touch_at(
                        contacts, i, rotation, position, velocity, obstacles.line_stiffness,
                        obstacles.radius[a], obstacles, ahead,
                    )  # fmt: skip
    tip = grid.first_row[grid.segments] - 1
    for k in range(3):
        velocity[k] = e[tip, k]
    _touch_at(
        contacts, tip, rotation, position, velocity, obstacles.tip_stiffness, 0.0, obstacles, ahead
    )


@inner
def pieces(contacts, e, s, section, grid, fittings, obstacles, step, ahead):
    """How many pieces a step of `step` [s] needs: 1, unless a point of the rod touches an obstacle,
    or will within `ahead` [s] at its present velocity. Lanes share the answer."""
    touch(contacts, e, s, section, grid, fittings, obstacles, ahead)
    if any_positive(contacts.reach[0]):
        return int(np.ceil(step / obstacles.longest_step - 1e-9))
    return 1


@inner
def _touch_at(contacts, i, rotation, position, body_velocity, k, radius, obstacles, ahead):
    like = position[0]
    normal = local(like, (3,))
    velocity = local(like, (3,))
    force = local(like, (3,))
    stiffness = local(like, (3, 3))
    damping = local(like, (3, 3))
    for r in range(3):
        force[r] = 0.0 * like
        velocity[r] = (
            rotation[r, 0] * body_velocity[0]
            + rotation[r, 1] * body_velocity[1]
            + rotation[r, 2] * body_velocity[2]
        )
        for c in range(3):
            stiffness[r, c] = 0.0 * like
            damping[r, c] = 0.0 * like
    for plane in range(obstacles.planes.shape[0]):
        gap = -obstacles.planes[plane, 3] - radius + 0.0 * like
        for r in range(3):
            normal[r] = obstacles.planes[plane, r] + 0.0 * like
            gap += normal[r] * position[r]
        _push(
            contacts.reach, force, stiffness, damping, normal, -gap, velocity, 0.0, k, obstacles,
            ahead,
        )  # fmt: skip
    for sphere in range(obstacles.spheres.shape[0]):
        square = 0.0 * like
        for r in range(3):
            normal[r] = position[r] - obstacles.spheres[sphere, r]
            square += normal[r] * normal[r]
        distance = square_root(square)
        for r in range(3):
            normal[r] /= distance
        depth = obstacles.spheres[sphere, 3] + radius - distance
        _push(
            contacts.reach, force, stiffness, damping, normal, depth, velocity, 1.0 / distance, k,
            obstacles, ahead,
        )  # fmt: skip
    turn_into_body(contacts.force[i], rotation, force)
    if ahead > 0.0:
        _turn_matrix(contacts.stiffness[i], rotation, stiffness)
        _turn_matrix(contacts.damping[i], rotation, damping)


@inner
def _push(
    reach, force, stiffness, damping, normal, depth, velocity, curvature, k, obstacles, ahead
):
    """Adds the force of one obstacle, and with `ahead` its linearisation; `curvature` is that of
    the obstacle's level surfaces there, 1 / distance for a sphere [1/m]."""
    smoothing = obstacles.smoothing
    approach = 0.0 * depth
    for r in range(3):
        approach -= normal[r] * velocity[r]
    least = obstacles.friction_speed * obstacles.friction_speed
    speed = least + 0.0 * depth
    for r in range(3):
        slide = velocity[r] + approach * normal[r]
        speed += slide * slide
    speed = square_root(speed)
    damp = positive_part(1.0 + obstacles.damping * approach)
    size = k * _pressing(depth, smoothing)
    push = size * damp
    for r in range(3):
        slide = (velocity[r] + approach * normal[r]) / speed
        force[r] += push * (normal[r] - obstacles.friction * slide)
    reach[0] += positive_part(depth + positive_part(ahead * approach) - reach[0])
    if ahead > 0.0:
        slope = k * _chord(depth, ahead * approach, smoothing)
        for r in range(3):
            row = (velocity[r] + approach * normal[r]) / speed
            direction = normal[r] - obstacles.friction * row
            for c in range(3):
                across = (1.0 if r == c else 0.0) - normal[r] * normal[c]
                column = (velocity[c] + approach * normal[c]) / speed
                stiffness[r, c] += slope * damp * direction * normal[c]
                stiffness[r, c] -= push * across * curvature
                damping[r, c] += size * obstacles.damping * direction * normal[c]
                damping[r, c] += obstacles.friction * push * (across - row * column) / speed


@inner
def _pressing(depth, smoothing):
    """f(x)."""
    inside = positive_part(depth)
    deep = positive_part(depth - smoothing)
    return (inside * inside - deep * deep) / (2.0 * smoothing)


@inner
def _chord(depth, further, smoothing):
    """Slope of f over the way that the point still goes into the obstacle, or near f'(x)."""
    reach = positive_part(further) + 0.02 * smoothing
    return (_pressing(depth + reach, smoothing) - _pressing(depth, smoothing)) / reach


@inner
def _turn_matrix(out, rotation, matrix):
    """out = R^T A R."""
    half = local(matrix[0, 0], (3, 3))
    for r in range(3):
        for c in range(3):
            half[r, c] = 0.0 * matrix[0, 0]
            for k in range(3):
                half[r, c] += matrix[r, k] * rotation[k, c]
    for r in range(3):
        for c in range(3):
            out[r, c] = 0.0 * matrix[0, 0]
            for k in range(3):
                out[r, c] += rotation[k, r] * half[k, c]


# What the time step does with contacts. `obstacles` may be None in all of them, an argument of its
# own because numba leaves out what hangs on an argument that is None.


@inner
def forces(obstacles, contacts, e, s, section, grid, fittings):
    """The forces of contact at a state."""
    if obstacles is not None:
        touch(contacts, e, s, section, grid, fittings, obstacles, 0.0)


@inner
def look_ahead(obstacles, contacts, e, s, section, grid, fittings, dt):
    """The linearisation of contact for a step of `dt` [s]."""
    if obstacles is not None:
        touch(contacts, e, s, section, grid, fittings, obstacles, dt)


@inlined
def add_force(row, i, obstacles, contacts):
    """row (6,) += force of contact of an interval, or of the last node."""
    if obstacles is not None:
        for k in range(3):
            row[k] += contacts.force[i, k]


@inlined
def add_stiffness(out, share, alpha, i, obstacles, contacts):
    """out (6, 6) += a share of the linearised contact, K / alpha + C."""
    if obstacles is not None:
        for r in range(3):
            for c in range(3):
                out[r, c] += share * (
                    contacts.stiffness[i, r, c] / alpha + contacts.damping[i, r, c]
                )


@inlined
def add_rate(row, alpha, i, obstacles, contacts):
    """row (6,) -= K / alpha times the velocity of the point in this stage."""
    if obstacles is not None:
        for r in range(3):
            for c in range(3):
                row[r] -= contacts.stiffness[i, r, c] * contacts.rate[i, c] / alpha


@inner
def hold_still(obstacles, contacts, grid):
    """The points' velocities are none."""
    if obstacles is not None:
        for i in range(grid.first_row[grid.segments]):
            for k in range(3):
                contacts.rate[i, k] = 0.0 * contacts.rate[i, k]


@inner
def begin_stage(obstacles, contacts, e, grid):
    """The points' velocities at a stage."""
    if obstacles is not None:
        _mean_velocities(contacts.rate, e, grid)


@inner
def add_stage(obstacles, contacts, stage, weight, grid):
    """The share of an earlier stage in the points' velocities."""
    if obstacles is not None:
        for i in range(grid.first_row[grid.segments]):
            for k in range(3):
                contacts.rate[i, k] += weight * contacts.moves[stage, i, k]


@inner
def end_stage(obstacles, contacts, stage, d_e, alpha, grid):
    """How a stage whose increments are d_e moves the points."""
    if obstacles is not None:
        _mean_velocities(contacts.moves[stage], d_e, grid)
        for i in range(grid.first_row[grid.segments]):
            for k in range(3):
                moved = contacts.moves[stage, i, k] + contacts.rate[i, k]
                contacts.moves[stage, i, k] = moved / alpha


@inner
def _mean_velocities(out, e, grid):
    for a in range(grid.segments):
        end = grid.first_row[a + 1] - 1
        for k in range(3):
            for i in range(grid.first_row[a], end):
                out[i, k] = 0.5 * (e[i, k] + e[i + 1, k])
            out[end, k] = e[end, k]

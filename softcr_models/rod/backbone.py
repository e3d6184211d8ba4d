"""Along the centre line of a rod: its strain, where gravity points, and poses; see `kernel`."""

from softcr_models.rod.inner import inlined
from softcr_models.rod.section import Part
from softcr_models.rod.simd import local, positive_part
from softcr_models.rod.twists import advance_pose, rotate_back


@inlined
def part_of(room, a, section, grid):
    """The numbers of segment a, copied to `room`, four arrays (6,): registers, in inner loops."""
    compliance, stiffness, relaxation, relaxation_rate = room
    for k in range(6):
        compliance[k] = section.compliance[a, k]
        stiffness[k] = section.stiffness[a, k]
        relaxation[k] = section.relaxation[a, k]
        relaxation_rate[k] = section.relaxation_rate[a, k]
    return Part(
        compliance,
        stiffness,
        relaxation,
        relaxation_rate,
        grid.interval_length[a],
        grid.bending_inertia[a],
        grid.torsion_inertia[a],
        grid.payload_row,
        grid.payload_lever,
        grid.stiffens,
    )


@inlined
def midpoint(out, y, i):
    """out = mean of rows i and i + 1."""
    for k in range(6):
        out[k] = 0.5 * (y[i, k] + y[i + 1, k])


@inlined
def strain_from_wrench(out, s, part):
    """xi = xi_0 + C s, eq. (2), with xi_0 = e_z, in a segment."""
    for k in range(6):
        out[k] = part.compliance[k] * s[k]
    out[2] += 1.0


@inlined
def curvature_at(out, s, i, fraction, part):
    """out (3,) = bending and torsion strain at a fraction of interval i, linear in it."""
    for k in range(3):
        out[k] = part.compliance[k + 3] * (s[i, k + 3] + fraction * (s[i + 1, k + 3] - s[i, k + 3]))


@inlined
def gravity_over_interval(mean, up, s, i, part, grid):
    """Algorithm 1: mean (3,) of g R^T e_z over interval i; `up` is carried from its start to its
    end.

    Trapezoidal over the sub-intervals; the paper leaves the quadrature open. The strain of a
    sub-interval is taken at `grid.strain_point` of it (Algorithm 1 takes its end).
    """
    u = local(s[0, 0], (3,))
    step = part.interval_length / grid.gravity_subintervals
    weight = 0.5 / grid.gravity_subintervals
    for k in range(3):
        mean[k] = 0.0 * s[0, 0]
    for j in range(grid.gravity_subintervals):
        for k in range(3):
            mean[k] += weight * up[k]
        curvature_at(u, s, i, (j + grid.strain_point) / grid.gravity_subintervals, part)
        for k in range(3):
            u[k] *= step
        rotate_back(up, u)
        for k in range(3):
            mean[k] += weight * up[k]


@inlined
def largest_turn(s, section, grid):
    """The largest squared angle by which the rod turns in a sub-interval of Algorithm 1 [rad^2].

    Strains are linear between rows, so the rows have the extremes.
    """
    largest = 0.0 * s[0, 0]
    for a in range(grid.segments):
        step = grid.interval_length[a] / grid.gravity_subintervals
        for i in range(grid.first_row[a], grid.first_row[a + 1]):
            square = 0.0 * largest
            for k in range(3, 6):
                turn = step * section.compliance[a, k] * s[i, k]
                square += turn * turn
            largest += positive_part(square - largest)
    return largest


@inlined
def walk_interval(rotation, position, s, i, part, grid):
    """Carries a pose from row i to i + 1, strain constant in each sub-interval (Algorithm 1)."""
    strain = local(s[0, 0], (6,))
    step = part.interval_length / grid.gravity_subintervals
    for j in range(grid.gravity_subintervals):
        fraction = (j + grid.strain_point) / grid.gravity_subintervals
        for k in range(6):
            strain[k] = part.compliance[k] * (s[i, k] + fraction * (s[i + 1, k] - s[i, k]))
        strain[2] += 1.0
        advance_pose(rotation, position, strain, step)


@inlined
def start_pose(rotation, position, like):
    """The pose of the rod's base in its own frame: I, 0."""
    for r in range(3):
        position[r] = 0.0 * like
        for c in range(3):
            rotation[r, c] = 0.0 * like
        rotation[r, r] = 1.0 + 0.0 * like

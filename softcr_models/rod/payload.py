"""What a rod carries at its tip and a filter estimates: a point of mass m at the cap's outer face.

It moves as a part of the last interval's body, a lever L along the rod off that body's middle: with
p = m/h of an interval of length h and r = (0, 0, L) it adds to that interval's inertia M

    p [[I, -r^], [r^, -r^ r^]]

(linear first) and to its loads the weight and the weight's moment about the middle. So nothing else
of the equations changes, and the mass is a parameter that enters them linearly. A payload that a
robot's file names is a rigid body of its own instead, see `section.Fittings`: it couples the last
node's rates, which takes more time. Names are those of `kernel`.
"""

from softcr_models.rod.inner import inlined


@inlined
def add_momentum(out, velocity, part, section):
    """out (6,) += the payload's inertia times a velocity, or an acceleration, (6,)."""
    carried, lever = section.payload[0], part.payload_lever
    x = carried * (velocity[0] + lever * velocity[4])
    y = carried * (velocity[1] - lever * velocity[3])
    out[0] += x
    out[1] += y
    out[2] += carried * velocity[2]
    out[3] -= lever * y
    out[4] += lever * x


@inlined
def add_weight(row, mean_up, part, section):
    """row (6,) += the payload's weight and its moment; mean_up (3,) is g R^T e_z."""
    carried, lever = section.payload[0], part.payload_lever
    for k in range(3):
        row[k] -= carried * mean_up[k]
    row[3] += carried * lever * mean_up[1]
    row[4] -= carried * lever * mean_up[0]


@inlined
def accelerate_carrying(row, i, part, section):
    """row (6,) becomes M^-1 row times two, M the inertia of interval i with the payload."""
    mass, carried, lever = section.line_density[i], section.payload[0], part.payload_lever
    whole = mass + carried
    turning = mass * part.bending_inertia + carried * lever * lever
    coupling = carried * lever
    share = 2.0 / (whole * turning - coupling * coupling)
    x, y = row[0], row[1]
    row[0] = share * (turning * x - coupling * row[4])
    row[4] = share * (whole * row[4] - coupling * x)
    row[1] = share * (turning * y + coupling * row[3])
    row[3] = share * (whole * row[3] + coupling * y)
    row[2] *= 2.0 / whole
    row[5] *= 2.0 * section.length_per_mass[i] / part.torsion_inertia


@inlined
def fill_half_inertia(mass, part, section):
    """mass (6, 6) = half of what the payload adds to the inertia."""
    half, lever = 0.5 * section.payload[0], part.payload_lever
    for r in range(6):
        for c in range(6):
            mass[r, c] = 0.0 * half
    for k in range(3):
        mass[k, k] = half
    mass[0, 4] = mass[4, 0] = lever * half
    mass[1, 3] = mass[3, 1] = -lever * half
    mass[3, 3] = mass[4, 4] = lever * lever * half

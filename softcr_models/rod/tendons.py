"""How tendons pull a rod: by their tension, or as springs that motors wind.

A tendon at the offset r of the section has the tangent q = nu + u x r + r', of the straight rod
q_0 = e_z + r', and puts the wrench

    w = -T [t; r x t],    t = q / |q| (model exact),  t = q_0 / |q_0| (model constant)

on each section (Rucker and Webster, IEEE T-RO 27 (2011) 1033). It is conjugate to the length whose
change from row to row is t.dq: the integral of |q| in the exact model, that of t.q in the constant
one. Its change from the straight rod, by the trapezoidal rule as the balance of an interval takes
actuation, is L. An elastic tendon of the stiffness k, of which a motor winds up the length l, has
the tension of its stretch L + l (Camarillo et al., IEEE T-RO 24 (2008) 1262):

    T = (x + sqrt(x^2 + d^2)) / 2,    x = x_0 + k (L + l),

its pretension at L + l = 0, and never below zero. So the tension does work against a potential,
the spring's energy, and frozen motors put none into the rod.
"""

from softcr_models.rod.backbone import part_of, strain_from_wrench
from softcr_models.rod.inner import inlined, inner
from softcr_models.rod.simd import local, positive_part, square_root
from softcr_models.rod.stiffening import add_hyperelastic, add_unresisted


@inlined
def add_tendons(springs, acting, strain, i, a, extras):
    """acting (6,) += wrench of the tendons at row i of segment a, by its strain (6,)."""
    fittings = extras.fittings
    if springs is None:  # all are of the exact model, and the inputs are their tensions
        for tendon in range(fittings.tendon_reaches.shape[0]):
            if a <= fittings.tendon_reaches[tendon]:
                r = fittings.tendon_offsets[i, tendon, 0]
                slope = fittings.tendon_offsets[i, tendon, 1]
                x = strain[0] + strain[4] * r[2] - strain[5] * r[1] + slope[0]
                y = strain[1] + strain[5] * r[0] - strain[3] * r[2] + slope[1]
                z = strain[2] + strain[3] * r[1] - strain[4] * r[0] + slope[2]
                pull = extras.pulls[tendon] / square_root(x * x + y * y + z * z)
                x *= pull
                y *= pull
                z *= pull
                acting[0] -= x
                acting[1] -= y
                acting[2] -= z
                acting[3] -= r[1] * z - r[2] * y
                acting[4] -= r[2] * x - r[0] * z
                acting[5] -= r[0] * y - r[1] * x
    else:
        column = local(strain[0], (6,))
        for tendon in range(fittings.tendon_reaches.shape[0]):
            if a <= fittings.tendon_reaches[tendon]:
                set_column(column, strain, i, tendon, fittings)
                for k in range(6):
                    acting[k] += column[k] * extras.tensions[tendon]


@inlined
def set_column(column, strain, i, tendon, fittings):
    """column (6,) = -[t; r x t] of a tendon at row i, by the strain (6,) there."""
    r = fittings.tendon_offsets[i, tendon, 0]
    slope = fittings.tendon_offsets[i, tendon, 1]
    x = slope[0] + 0.0 * strain[0]
    y = slope[1] + 0.0 * strain[0]
    z = slope[2] + 1.0 + 0.0 * strain[0]
    if fittings.exact == 1:
        x += strain[0] + strain[4] * r[2] - strain[5] * r[1]
        y += strain[1] + strain[5] * r[0] - strain[3] * r[2]
        z += strain[2] - 1.0 + strain[3] * r[1] - strain[4] * r[0]
    per_length = 1.0 / square_root(x * x + y * y + z * z)
    x *= per_length
    y *= per_length
    z *= per_length
    column[0] = -x
    column[1] = -y
    column[2] = -z
    column[3] = r[2] * y - r[1] * z
    column[4] = r[0] * z - r[2] * x
    column[5] = r[1] * x - r[0] * y


@inlined
def pull_tendons(fraction, extras):
    """Sets what inputs ask of tendons to that at a fraction of the step."""
    for tendon in range(extras.fittings.tendon_reaches.shape[0]):
        begin, end = extras.pulls_begin[tendon], extras.pulls_end[tendon]
        extras.pulls[tendon] = begin + fraction * (end - begin)


@inner
def pull_of(springs, tendon, value):
    """What an input asks of a tendon: a tension, not below zero [N], or a wound length [m]."""
    if springs is None:
        return positive_part(value)
    return springs[tendon, 0] * value if springs[tendon, 1] > 0.0 else positive_part(value)


@inner
def set_tensions(springs, s, section, grid, extras):
    """Sets the tensions (T,) to those at elastic wrenches s (R, 6), where any tendon is elastic."""
    if springs is not None:
        tensions = extras.tensions
        set_stretches(tensions, s, section, grid, extras)
        for tendon in range(springs.shape[0]):
            if springs[tendon, 1] > 0.0:
                x = unsmoothed(springs, tendon, tensions[tendon])
                tensions[tendon] = 0.5 * (x + square_root(x * x + springs[tendon, 3]))
            else:
                tensions[tendon] = extras.pulls[tendon]


@inlined
def unsmoothed(springs, tendon, stretch):
    """x of this module's heading [N]."""
    return springs[tendon, 2] + springs[tendon, 1] * stretch


@inlined
def set_stretches(stretches, s, section, grid, extras):
    """stretches (T,) = L + l of each tendon [m]."""
    like = s[0, 0]
    fittings = extras.fittings
    strain = local(like, (6,))
    column = local(like, (6,))
    room = (local(like, (6,)), local(like, (6,)), local(like, (6,)), local(like, (6,)))
    count = fittings.tendon_reaches.shape[0]
    for tendon in range(count):
        stretches[tendon] = extras.pulls[tendon]
    for a in range(grid.segments):
        part = part_of(room, a, section, grid)
        for i in range(grid.first_row[a], grid.first_row[a + 1]):
            share = share_of(i, a, grid)
            strain_from_wrench(strain, s[i], part)
            for tendon in range(count):
                if a <= fittings.tendon_reaches[tendon]:
                    if fittings.exact == 1:
                        longer = _longer(strain, i, tendon, fittings)
                        stretches[tendon] += share * longer
                    else:
                        set_column(column, strain, i, tendon, fittings)
                        stretches[tendon] += share * column[2]
                        for k in range(6):
                            stretches[tendon] -= share * column[k] * strain[k]


@inlined
def share_of(i, a, grid):
    """Length of the rod that row i of segment a stands for [m]."""
    first, last = grid.first_row[a], grid.first_row[a + 1] - 1
    return 0.5 * grid.interval_length[a] * (2 - (i == first) - (i == last))


@inlined
def _longer(strain, i, tendon, fittings):
    """|q| - |q_0| of a tendon at row i."""
    r = fittings.tendon_offsets[i, tendon, 0]
    slope = fittings.tendon_offsets[i, tendon, 1]
    x = strain[0] + strain[4] * r[2] - strain[5] * r[1]
    y = strain[1] + strain[5] * r[0] - strain[3] * r[2]
    z = strain[2] + strain[3] * r[1] - strain[4] * r[0] - 1.0
    along = 1.0 + slope[2]
    before = slope[0] * slope[0] + slope[1] * slope[1] + along * along
    # of the difference of squares, which keeps its digits in float32
    gained = x * (x + 2.0 * slope[0]) + y * (y + 2.0 * slope[1]) + z * (z + 2.0 * along)
    return gained / (square_root(before + gained) + square_root(before))


@inlined
def actuation_at_rows(acting, s, w, section, grid, extras):
    """acting (R, 6) = w (R, 6) with the tendons of `fittings` at elastic wrenches s, and what acts
    like an actuation in a hyperelastic rod."""
    strain = local(s[0, 0], (6,))
    room = (local(s[0, 0], (6,)), local(s[0, 0], (6,)), local(s[0, 0], (6,)), local(s[0, 0], (6,)))
    set_tensions(extras.fittings.springs, s, section, grid, extras)
    for a in range(grid.segments):
        part = part_of(room, a, section, grid)
        for i in range(grid.first_row[a], grid.first_row[a + 1]):
            strain_from_wrench(strain, s[i], part)
            for k in range(6):
                acting[i, k] = w[i, k]
            add_tendons(extras.fittings.springs, acting[i], strain, i, a, extras)
            add_hyperelastic(
                extras.fittings.hyperelastic, acting[i], s, i, part.compliance, section
            )


@inlined
def base_actuation(base, s, w, section, grid, extras):
    """base (6,) = actuation wrench at row 0, that of the tendons of `fittings` included, and what
    does not resist, see `stiffening`."""
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
        set_tensions(extras.fittings.springs, s, section, grid, extras)
        strain_from_wrench(strain, s[0], part_of(room, 0, section, grid))
        add_tendons(extras.fittings.springs, base, strain, 0, 0, extras)
        add_hyperelastic(extras.fittings.hyperelastic, base, s, 0, section.compliance[0], section)

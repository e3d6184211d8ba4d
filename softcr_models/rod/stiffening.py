"""A stiffness that changes with curvature and stretch, as parameters that filters estimate.

A node's elastic wrench s stands for its strain by the nominal compliance C, so that shapes are what
they are without it: the curvature is kappa = c_b m of the moment m in s. With

    f = 1 + a |kappa|^2                          kept between STIFFEST and SOFTEST

the compliance there is f c_b, and what resists the curvature is m / f. So the rest, m - m / f, acts
like a moment of the actuators. Viscosity is that of the nominal compliance. Names are those of
`kernel`.

A material may be in part, h, an incompressible neo-Hookean one. A fibre at X from the centre line
is then stretched by l + kappa X / sqrt(l), where l is the centre line's stretch, and to the second
order in X the energy of a length is, for E = 3 G,

    E A (l^2 + 2 / l - 3) / 6 + phi E I kappa^2 / 2,    phi = (1 + 2 / l^3) / (3 l)

With h = 1 the moment that resists is phi m / f, and the force along the rod the derivative of this
by l; with any other h the difference from the linear law counts h times. This difference is added
to the actuation of each row: kernels of rods without it have no trace of it, so that their
rounding does not depend on it.
"""

from softcr_models.rod.inner import inlined
from softcr_models.rod.simd import local, positive_part

USUAL_CURVATURE = 15.0
"""At which the parameter says how much the compliance changes, the tightest bends [1/m]."""

STIFFEST, SOFTEST = 0.25, 2.0
"""Of the bending compliance, at most: a candidate that is far away stays sound [-]."""

_LEAST_STRETCH = 0.3  # of the centre line, for the same reason [-]


@inlined
def unresisted(out, s, i, compliance, section):
    """out (2,) = m - m / f of row i, of compliances (6,)."""
    share = 1.0 - 1.0 / _softening(s, i, compliance, section)
    out[0] = share * s[i, 3]
    out[1] = share * s[i, 4]


@inlined
def _softening(s, i, compliance, section):
    """f of row i."""
    curvature_x, curvature_y = compliance[3] * s[i, 3], compliance[4] * s[i, 4]
    square = curvature_x * curvature_x + curvature_y * curvature_y
    factor = 1.0 + section.stiffening[0] * square - STIFFEST
    factor = STIFFEST + positive_part(factor)
    return SOFTEST - positive_part(SOFTEST - factor)


@inlined
def add_unresisted(row, s, i, compliance, section):
    """row (6,) += what does not resist at row i."""
    rest = local(s[0, 0], (2,))
    unresisted(rest, s, i, compliance, section)
    row[3] += rest[0]
    row[4] += rest[1]


@inlined
def yield_in_interval(row, stress, s, i, part, section):
    """Takes what does not resist off the mean wrench (6,) of interval i and off its slope (6,)."""
    below = local(s[0, 0], (2,))
    above = local(s[0, 0], (2,))
    unresisted(below, s, i, part.compliance, section)
    unresisted(above, s, i + 1, part.compliance, section)
    per_length = 1.0 / part.interval_length
    for k in range(2):
        row[3 + k] -= (above[k] - below[k]) * per_length
        stress[3 + k] -= 0.5 * (above[k] + below[k])


@inlined
def add_hyperelastic(hyperelastic, acting, s, i, compliance, section):
    """acting (6,) += what a neo-Hookean material resists less than a linear one at row i; nothing
    where `hyperelastic` is None."""
    if hyperelastic is not None:
        part = section.stiffening[1]
        stretch = _LEAST_STRETCH + positive_part(1.0 + compliance[2] * s[i, 2] - _LEAST_STRETCH)
        inverse = 1.0 / stretch
        cube = inverse * inverse * inverse
        less = part * (1.0 - inverse * (1.0 + 2.0 * cube) / 3.0)
        slope = -part * inverse * inverse * (1.0 + 8.0 * cube) / 3.0
        energy = compliance[3] * s[i, 3] * s[i, 3] + compliance[4] * s[i, 4] * s[i, 4]
        linear, true = stretch - 1.0, (stretch - inverse * inverse) / 3.0
        acting[2] += part * (linear - true) / compliance[2] - 0.5 * energy * slope
        share = less / _softening(s, i, compliance, section)
        acting[3] += share * s[i, 3]
        acting[4] += share * s[i, 4]

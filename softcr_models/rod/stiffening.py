"""A bending stiffness that changes with the curvature, as a parameter that filters estimate.

A node's elastic wrench s stands for its strain by the nominal compliance C, so that shapes are what
they are without it: the curvature is kappa = c_b m of the moment m in s. With

    f = 1 + change (|kappa| / (15/m))^2

the compliance there is f c_b, and what resists the curvature is m / f. So the rest, m - m / f, acts
like a moment of the actuators. Viscosity is that of the nominal compliance. Names are those of
`kernel`.
"""

from softcr_models.rod.inner import inlined
from softcr_models.rod.simd import local, positive_part

USUAL_CURVATURE = 15.0
"""At which the relative change of the bending compliance is the parameter [1/m]."""

STIFFEST, SOFTEST = 0.25, 2.0
"""Of the bending compliance, at most: a candidate that is far away stays sound [-]."""


@inlined
def unresisted(out, s, i, compliance, section):
    """out (2,) = m - m / f of row i, of compliances (6,)."""
    curvature_x, curvature_y = compliance[3] * s[i, 3], compliance[4] * s[i, 4]
    square = curvature_x * curvature_x + curvature_y * curvature_y
    factor = 1.0 + section.stiffening[0] * square - STIFFEST
    factor = STIFFEST + positive_part(factor)
    factor = SOFTEST - positive_part(SOFTEST - factor)
    share = 1.0 - 1.0 / factor
    out[0] = share * s[i, 3]
    out[1] = share * s[i, 4]


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

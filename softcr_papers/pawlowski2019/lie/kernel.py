"""The maps of `se3` for single vectors, written so that numba inlines them into compiled loops.

What a function returns is written into `out`, its first argument, which must be none of the others.
Twists and wrenches are (6,), linear first; a pose is rotation (3, 3) and position (3,). The text
runs as plain Python, too. Tests compare it with `se3`.
"""

import math

from numba.extending import register_jitable

from softcr_models.rod.simd import local
from softcr_papers.pawlowski2019.lie.stumpff import BORDER, TERMS

NEAR = 0.02
"""Square of an angle [rad^2] below which short series do; beside it they join to rounding."""


@register_jitable
def _turning(t):
    """c_1, c_2, c_3 of t >= 0, what an exponential takes."""
    if t < NEAR:
        # divisors stand in brackets: a product is faster than a quotient
        c1 = 1.0 / 120.0 - t * (1.0 / 5040.0 - t * (1.0 / 362880.0))
        c2 = 1.0 / 720.0 - t * (1.0 / 40320.0 - t * (1.0 / 3628800.0))
        c3 = 1.0 / 5040.0 - t * (1.0 / 362880.0 - t * (1.0 / 39916800.0))
        c1 = 1.0 - t * (1.0 / 6.0 - t * c1)
        c2 = 0.5 - t * (1.0 / 24.0 - t * c2)
        c3 = 1.0 / 6.0 - t * (1.0 / 120.0 - t * c3)
        return c1, c2, c3
    _, c1, c2, c3, _, _, _ = stumpff(t)
    return c1, c2, c3


@register_jitable
def _series(t, k, terms):
    """k! c_k(t)."""
    total = 1.0
    for j in range(terms, 0, -1):
        total = 1.0 - t * total * (1.0 / ((k + 2 * j - 1) * (k + 2 * j)))
    return total


@register_jitable
def stumpff(t):
    """c_0 to c_6 of t >= 0, see `stumpff.stumpff`."""
    if t < BORDER:
        c5, c6 = _series(t, 5, TERMS) / 120.0, _series(t, 6, TERMS) / 720.0
    else:
        theta = math.sqrt(t)
        c0, c1 = math.cos(theta), math.sin(theta) / theta
        c2, c3 = (1.0 - c0) / t, (1.0 - c1) / t
        c4, c5 = (0.5 - c2) / t, (1.0 / 6.0 - c3) / t
        return c0, c1, c2, c3, c4, c5, (1.0 / 24.0 - c4) / t
    c3, c4 = 1.0 / 6.0 - t * c5, 1.0 / 24.0 - t * c6
    c1, c2 = 1.0 - t * c3, 0.5 - t * c4
    return 1.0 - t * c2, c1, c2, c3, c4, c5, c6


@register_jitable
def exponential(rotation, position, twist):
    """Pose of a twist: rotation (3, 3), position (3,)."""
    x, y, z = twist[3], twist[4], twist[5]
    c1, c2, c3 = _turning(x * x + y * y + z * z)
    rotation[0, 0] = 1.0 - c2 * (y * y + z * z)
    rotation[1, 1] = 1.0 - c2 * (x * x + z * z)
    rotation[2, 2] = 1.0 - c2 * (x * x + y * y)
    rotation[0, 1], rotation[1, 0] = c2 * x * y - c1 * z, c2 * x * y + c1 * z
    rotation[0, 2], rotation[2, 0] = c2 * x * z + c1 * y, c2 * x * z - c1 * y
    rotation[1, 2], rotation[2, 1] = c2 * y * z - c1 * x, c2 * y * z + c1 * x
    a0 = y * twist[2] - z * twist[1]
    a1 = z * twist[0] - x * twist[2]
    a2 = x * twist[1] - y * twist[0]
    position[0] = twist[0] + c2 * a0 + c3 * (y * a2 - z * a1)
    position[1] = twist[1] + c2 * a1 + c3 * (z * a0 - x * a2)
    position[2] = twist[2] + c2 * a2 + c3 * (x * a1 - y * a0)


@register_jitable
def compose(rotation, position, first, by, second, move):
    """(rotation, position) = (first, by) (second, move), poses; may be the first one itself."""
    for r in range(3):
        x, y, z = first[r, 0], first[r, 1], first[r, 2]
        position[r] = by[r] + x * move[0] + y * move[1] + z * move[2]
        for c in range(3):
            rotation[r, c] = x * second[0, c] + y * second[1, c] + z * second[2, c]


@register_jitable(forceinline=True)
def advance(rotation, position, twist):
    """A pose g becomes g exp(twist), (1.14)."""
    turn, move = local(twist[0], (3, 3)), local(twist[0], (3,))
    exponential(turn, move, twist)
    compose(rotation, position, rotation, position, turn, move)


@register_jitable
def orthonormalise(rotation):
    """R becomes (3 - R R^T) R / 2: rounding of many products does not add up to a stretch."""
    excess, old = local(rotation[0, 0], (3, 3)), local(rotation[0, 0], (3, 3))
    for a in range(3):
        for b in range(3):
            old[a, b] = rotation[a, b]
            excess[a, b] = -0.5 if a == b else 0.0
            for k in range(3):
                excess[a, b] += 0.5 * rotation[a, k] * rotation[b, k]
    for a in range(3):
        for b in range(3):
            for k in range(3):
                rotation[a, b] -= excess[a, k] * old[k, b]


@register_jitable
def logarithm(out, rotation, position):
    """out (6,) the twist with the smallest turn that `exponential` makes this pose of."""
    w, x, y, z = _quaternion(rotation)
    square = x * x + y * y + z * z
    if square < 0.25 * NEAR * w * w:  # 2 atan(length / w) / length by its series
        s = square / (w * w)
        factor = 1.0 / 7.0 - s * (1.0 / 9.0 - s * (1.0 / 11.0 - s * (1.0 / 13.0)))
        factor = 2.0 / w * (1.0 - s * (1.0 / 3.0 - s * (0.2 - s * factor)))
    else:
        length = math.sqrt(square)
        factor = 2.0 * math.atan2(length, w) / length
    out[3], out[4], out[5] = factor * x, factor * y, factor * z
    t = out[3] * out[3] + out[4] * out[4] + out[5] * out[5]
    e, _ = inverse_tangent(t)
    a0 = out[4] * position[2] - out[5] * position[1]
    a1 = out[5] * position[0] - out[3] * position[2]
    a2 = out[3] * position[1] - out[4] * position[0]
    out[0] = position[0] - 0.5 * a0 + e * (out[4] * a2 - out[5] * a1)
    out[1] = position[1] - 0.5 * a1 + e * (out[5] * a0 - out[3] * a2)
    out[2] = position[2] - 0.5 * a2 + e * (out[3] * a1 - out[4] * a0)


@register_jitable
def _quaternion(m):
    """w >= 0, x, y, z of a rotation (3, 3) (Shepperd)."""
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    if trace > 0.0:
        s = 2.0 * math.sqrt(1.0 + trace)
        return 0.25 * s, (m[2, 1] - m[1, 2]) / s, (m[0, 2] - m[2, 0]) / s, (m[1, 0] - m[0, 1]) / s
    if m[0, 0] >= m[1, 1] and m[0, 0] >= m[2, 2]:
        s = 2.0 * math.sqrt(1.0 + m[0, 0] - m[1, 1] - m[2, 2])
        w, x, y, z = m[2, 1] - m[1, 2], 0.25 * s * s, m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]
    elif m[1, 1] >= m[2, 2]:
        s = 2.0 * math.sqrt(1.0 + m[1, 1] - m[0, 0] - m[2, 2])
        w, x, y, z = m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], 0.25 * s * s, m[1, 2] + m[2, 1]
    else:
        s = 2.0 * math.sqrt(1.0 + m[2, 2] - m[0, 0] - m[1, 1])
        w, x, y, z = m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], 0.25 * s * s
    s = -s if w < 0.0 else s
    return w / s, x / s, y / s, z / s


@register_jitable
def inverse_tangent(t):
    """e and de/dt, see `stumpff.inverse_tangent`; near zero by Bernoulli's numbers."""
    if t < NEAR:
        e = 1.0 / 1209600.0 + t * (1.0 / 47900160.0 + t * (691.0 / 1307674368000.0))
        e = 1.0 / 12.0 + t * (1.0 / 720.0 + t * (1.0 / 30240.0 + t * e))
        rate = 4.0 / 47900160.0 + t * (3455.0 / 1307674368000.0 + t * (1.0 / 12454041600.0))
        return e, 1.0 / 720.0 + t * (1.0 / 15120.0 + t * (1.0 / 403200.0 + t * rate))
    _, _, c2, c3, c4, c5, c6 = stumpff(t)
    below_rate = 2.0 * c4 - c3
    e = (c3 - 2.0 * c4) / (2.0 * c2)
    return e, (2.5 * c5 - 0.5 * c4 - 4.0 * c6 - e * below_rate) / (2.0 * c2)


@register_jitable
def transport_wrench(out, rotation, position, wrench):
    """out (6,) = Ad^T wrench: a wrench at the origin of a frame, as felt in this pose's frame."""
    n0, n1, n2 = wrench[0], wrench[1], wrench[2]
    m0 = wrench[3] - (position[1] * n2 - position[2] * n1)
    m1 = wrench[4] - (position[2] * n0 - position[0] * n2)
    m2 = wrench[5] - (position[0] * n1 - position[1] * n0)
    for k in range(3):
        out[k] = rotation[0, k] * n0 + rotation[1, k] * n1 + rotation[2, k] * n2
        out[3 + k] = rotation[0, k] * m0 + rotation[1, k] * m1 + rotation[2, k] * m2


@register_jitable(forceinline=True)
def add_ad(out, x, y):
    """out (6,) += ad(x) y."""
    _add_cross(out, 0, 1.0, x, 3, y, 0)
    _add_cross(out, 0, 1.0, x, 0, y, 3)
    _add_cross(out, 3, 1.0, x, 3, y, 3)


@register_jitable(forceinline=True)
def add_ad_transposed(out, gain, x, y):
    """out (6,) += gain ad(x)^T y = -gain [w cross n; q cross n + w cross m]."""
    _add_cross(out, 0, -gain, x, 3, y, 0)
    _add_cross(out, 3, -gain, x, 0, y, 0)
    _add_cross(out, 3, -gain, x, 3, y, 3)


@register_jitable(forceinline=True)
def _add_cross(out, at, gain, x, i, y, j):
    out[at] += gain * (x[i + 1] * y[j + 2] - x[i + 2] * y[j + 1])
    out[at + 1] += gain * (x[i + 2] * y[j] - x[i] * y[j + 2])
    out[at + 2] += gain * (x[i] * y[j + 1] - x[i + 1] * y[j])


@register_jitable
def dexp_inverse_times(out, x, y):
    """out (6,) = dexp_inverse(x) y."""
    e, e_rate = inverse_tangent(x[3] * x[3] + x[4] * x[4] + x[5] * x[5])
    along = 2.0 * e_rate * (x[0] * x[3] + x[1] * x[4] + x[2] * x[5])
    first, second = local(x[0], (6,)), local(x[0], (6,))
    for k in range(6):
        out[k], first[k], second[k] = y[k], 0.0, 0.0
    add_ad(first, x, y)
    add_ad(second, x, first)
    for k in range(6):
        out[k] += e * second[k] - 0.5 * first[k]
    # (w^ w^) acts on the turn: the derivative of e along the twist
    turned = local(x[0], (3,))
    for k in range(3):
        turned[k] = 0.0
    _add_cross(turned, 0, along, x, 3, y, 3)
    _add_cross(out, 0, 1.0, x, 3, turned, 0)


@register_jitable
def dexp_inverse_transposed_times(out, x, y):
    """out (6,) = dexp_inverse(x)^T y."""
    e, e_rate = inverse_tangent(x[3] * x[3] + x[4] * x[4] + x[5] * x[5])
    along = 2.0 * e_rate * (x[0] * x[3] + x[1] * x[4] + x[2] * x[5])
    first, second = local(x[0], (6,)), local(x[0], (6,))
    for k in range(6):
        out[k], first[k], second[k] = y[k], 0.0, 0.0
    add_ad_transposed(first, 1.0, x, y)
    add_ad_transposed(second, 1.0, x, first)
    for k in range(6):
        out[k] += e * second[k] - 0.5 * first[k]
    turned = local(x[0], (3,))
    for k in range(3):
        turned[k] = 0.0
    _add_cross(turned, 0, along, x, 3, y, 0)
    _add_cross(out, 3, 1.0, x, 3, turned, 0)

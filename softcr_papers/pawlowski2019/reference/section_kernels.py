"""Functions that are inlined into compiled loops: strains, rates along the rod, elimination.

`lam` (6,) is the total internal wrench, of the material and of the lines and muscles that run
through a section: K (xi - xi*) + C xi + A + sum T [e; r x e]. With it the balance (2.32) is
lam' = ad(xi)^T lam - W, in which W holds no actuator, and it is continuous where lines end.
"""

import math

from numba.extending import register_jitable

from softcr_models.rod.simd import local
from softcr_papers.pawlowski2019.lie.kernel import add_ad_transposed, dexp_inverse_transposed_times

_CHANGE = 1e-8  # of a strain in a step of Newton's method after which rounding is left


@register_jitable(forceinline=True)
def strain_of(xi, lam, stiffness, shift, at, numbers):
    """xi (6,) of the total wrench lam (6,) at a place; xi comes as a guess.

    Solves stiffness (xi - shift) + C xi + A + sum T [e; r x e] = lam with C and A of the place,
    `Numbers.bonds` and `Numbers.steady`; `stiffness` and `shift` (6,) are K and xi* in statics.
    Newton's method where lines act along their tangents or muscles are bonded, else at once.
    """
    if numbers.bent == 0 and numbers.bonded == 0:
        for k in range(6):
            xi[k] = shift[k] + (lam[k] - numbers.steady[at, k]) / stiffness[k]
    else:
        _strain_by_newton(
            xi, lam, stiffness, shift, numbers.steady[at], numbers.bonds[at], numbers.bonded,
            numbers.pulls[at], numbers.offsets[at],
        )  # fmt: skip


@register_jitable
def _strain_by_newton(xi, lam, stiffness, shift, steady, bonds, bonded, pulls, offsets):
    """See `strain_of`; of one place."""
    residual, jacobian = local(xi[0], (6,)), local(xi[0], (6, 6))
    e = local(xi[0], (3,))
    for _ in range(30):
        for r in range(6):
            residual[r] = stiffness[r] * (xi[r] - shift[r]) - lam[r] + steady[r]
            for c in range(6):
                jacobian[r, c] = 0.0
                if bonded == 1:
                    jacobian[r, c] = bonds[r, c]
                    residual[r] += bonds[r, c] * xi[c]
            jacobian[r, r] += stiffness[r]
        for i in range(len(pulls)):
            if pulls[i] == 0.0:
                continue
            per_length = 1.0 / _run(e, xi, offsets[i])
            for k in range(3):
                e[k] *= per_length
            _add_line(residual, pulls[i], e, offsets[i])
            _add_line_stiffness(jacobian, pulls[i] * per_length, e, offsets[i, 0])
        eliminate(jacobian, residual)
        largest = 0.0
        for k in range(6):
            xi[k] -= residual[k]
            largest = max(largest, abs(residual[k]) / (1.0 + abs(xi[k])))
        if largest < _CHANGE:
            return


@register_jitable
def add_lines(out, xi, at, numbers):
    """out (6,) += A + C xi + sum T [e; r x e] of a section with strain xi (6,), see `strain_of`."""
    e = local(xi[0], (3,))
    for k in range(6):
        out[k] += numbers.steady[at, k]
        if numbers.bonded == 1:
            for c in range(6):
                out[k] += numbers.bonds[at, k, c] * xi[c]
    for i in range(numbers.pulls.shape[1]):
        pull = numbers.pulls[at, i]
        if pull != 0.0:
            gain = pull / _run(e, xi, numbers.offsets[at, i])
            _add_line(out, gain, e, numbers.offsets[at, i])


@register_jitable
def _run(q, xi, offset):
    """q (3,) = nu + w x r + r', (2.39); returns its length."""
    r, slope = offset[0], offset[1]
    q[0] = xi[0] + xi[4] * r[2] - xi[5] * r[1] + slope[0]
    q[1] = xi[1] + xi[5] * r[0] - xi[3] * r[2] + slope[1]
    q[2] = xi[2] + xi[3] * r[1] - xi[4] * r[0] + slope[2]
    return math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2])


@register_jitable
def _add_line(out, pull, e, offset):
    """out (6,) += pull [e; r x e]."""
    for k in range(3):
        out[k] += pull * e[k]
    out[3] += pull * (offset[0, 1] * e[2] - offset[0, 2] * e[1])
    out[4] += pull * (offset[0, 2] * e[0] - offset[0, 0] * e[2])
    out[5] += pull * (offset[0, 0] * e[1] - offset[0, 1] * e[0])


@register_jitable
def _add_line_stiffness(out, gain, e, r):
    """out (6, 6) += gain S (1 - e e^T) S^T, S = [1; r^]: how [e; r x e] changes with the strain."""
    w, s = local(gain, (6,)), local(gain, (6, 3))
    for a in range(6):
        w[a] = 0.0
        for b in range(3):
            s[a, b] = 1.0 if a == b else 0.0
    s[3, 1], s[3, 2], s[4, 0], s[4, 2], s[5, 0], s[5, 1] = -r[2], r[1], r[2], -r[0], -r[1], r[0]
    for a in range(6):
        for b in range(3):
            w[a] += s[a, b] * e[b]
    for a in range(6):
        for b in range(6):
            inner = s[a, 0] * s[b, 0] + s[a, 1] * s[b, 1] + s[a, 2] * s[b, 2]
            out[a, b] += gain * (inner - w[a] * w[b])


@register_jitable(forceinline=True)
def balance(out, rotation, xi, lam, at, numbers):
    """out (6,) = ad(xi)^T lam - W, with W of weight, body wrench and the moment (2.51)."""
    for k in range(6):
        out[k] = -numbers.body_wrench[k]
    add_ad_transposed(out, 1.0, xi, lam)
    w, force = numbers.weight, local(xi[0], (3,))
    for k in range(3):
        force[k] = rotation[0, k] * w[0] + rotation[1, k] * w[1] + rotation[2, k] * w[2]
        out[k] -= force[k]
    if numbers.bonded == 1:  # the weight acts where the mass is
        c = numbers.centres[at]
        out[3] -= c[1] * force[2] - c[2] * force[1]
        out[4] -= c[2] * force[0] - c[0] * force[2]
        out[5] -= c[0] * force[1] - c[1] * force[0]
    if numbers.restoring != 0.0:
        out[3] -= numbers.restoring * rotation[1, 2]
        out[4] += numbers.restoring * rotation[0, 2]
        out[5] += numbers.restoring * (rotation[1, 0] - rotation[0, 1])


@register_jitable(forceinline=True)
def add_drag(out, gain, speed, drag):
    """out (6,) += gain (D_lin + D_sq |v|) speed, (3.11) and (3.12), of drag (2, 6)."""
    size = math.sqrt(speed[0] * speed[0] + speed[1] * speed[1] + speed[2] * speed[2])
    for k in range(6):
        out[k] += gain * (drag[0, k] + drag[1, k] * size) * speed[k]


@register_jitable
def end_wrench(out, rotation, xi, at, numbers):
    """out (6,): the wrench that loads and lines that act there alone put on the rod's end."""
    f, lever = numbers.tip_force, numbers.tip_lever
    for k in range(3):
        out[k] = rotation[0, k] * f[0] + rotation[1, k] * f[1] + rotation[2, k] * f[2]
    out[3], out[4], out[5] = -lever * out[1], lever * out[0], 0.0
    for k in range(6):
        out[k] += numbers.tip_wrench[k]
    e = local(xi[0], (3,))
    for i in range(len(numbers.end_pulls)):
        pull = numbers.end_pulls[i]
        if pull == 0.0:
            continue
        gain = -pull / _run(e, xi, numbers.offsets[at, i])
        _add_line(out, gain, e, numbers.offsets[at, i])


@register_jitable
def set_sum(out, a, gain, b):
    """out = a + gain b, vectors of one length; array expressions compile slowly."""
    for k in range(len(out)):
        out[k] = a[k] + gain * b[k]


@register_jitable
def set_product(out, gain, a):
    """out = gain a."""
    for k in range(len(out)):
        out[k] = gain * a[k]


@register_jitable
def copy_pose(rotation, position, turn, place):
    """(rotation, position) = (turn, place)."""
    for r in range(3):
        position[r] = place[r]
        for c in range(3):
            rotation[r, c] = turn[r, c]


@register_jitable
def invert_pose(back, away, turn, move):
    """(back, away) = (turn, move)^-1."""
    for r in range(3):
        away[r] = 0.0
        for c in range(3):
            back[r, c] = turn[c, r]
            away[r] -= turn[c, r] * move[c]


@register_jitable
def velocity_of(eta, mu, dt, inertia, twist, momentum, found):
    """eta (6,) of mu = dexp^-T(dt eta) M eta, (3.42), from a guess; the last three are scratch."""
    for _ in range(6):  # two or three are taken
        for k in range(6):
            twist[k], momentum[k] = dt * eta[k], inertia[k] * eta[k]
        dexp_inverse_transposed_times(found, twist, momentum)
        change, size = 0.0, 0.0
        for k in range(6):
            moved = (mu[k] - found[k]) / inertia[k]
            eta[k] += moved
            change, size = max(change, abs(moved)), max(size, abs(eta[k]))
        if not change > 1e-14 * size:
            return


@register_jitable
def eliminate(matrix, vector):
    """vector (6,) = matrix^-1 vector, matrix (6, 6) is lost; Gauss with pivoting by rows."""
    for c in range(6):
        best = c
        for r in range(c + 1, 6):
            if abs(matrix[r, c]) > abs(matrix[best, c]):
                best = r
        if best != c:
            for k in range(c, 6):
                matrix[c, k], matrix[best, k] = matrix[best, k], matrix[c, k]
            vector[c], vector[best] = vector[best], vector[c]
        per_pivot = 1.0 / matrix[c, c]
        for r in range(c + 1, 6):
            factor = matrix[r, c] * per_pivot
            for k in range(c + 1, 6):
                matrix[r, k] -= factor * matrix[c, k]
            vector[r] -= factor * vector[c]
    for r in range(5, -1, -1):
        for k in range(r + 1, 6):
            vector[r] -= matrix[r, k] * vector[k]
        vector[r] /= matrix[r, r]

"""Twists and wrenches as six numbers, LINEAR FIRST, and the poses they move.

eta = [q; w], Lambda = [n; m]; ad(eta) = [[w^, q^], [0, w^]]. Written for numbers, arrays of lanes
and compiled lanes alike, see `kernel`.
"""

import numpy as np

from softcr_models.rod.inner import inlined, inner
from softcr_models.rod.simd import local

LARGEST_TURN = 0.5 * np.pi
"""Angle [rad] up to which the series below serve for poses: there they are off by 3e-5."""


@inlined
def add_ad(out, x, y):
    """out += ad(x) y."""
    out[0] += x[4] * y[2] - x[5] * y[1] + x[1] * y[5] - x[2] * y[4]
    out[1] += x[5] * y[0] - x[3] * y[2] + x[2] * y[3] - x[0] * y[5]
    out[2] += x[3] * y[1] - x[4] * y[0] + x[0] * y[4] - x[1] * y[3]
    out[3] += x[4] * y[5] - x[5] * y[4]
    out[4] += x[5] * y[3] - x[3] * y[5]
    out[5] += x[3] * y[4] - x[4] * y[3]


@inlined
def subtract_ad_transposed(out, x, y):
    """out -= ad(x)^T y, that is out += [w x n; q x n + w x m]."""
    out[0] += x[4] * y[2] - x[5] * y[1]
    out[1] += x[5] * y[0] - x[3] * y[2]
    out[2] += x[3] * y[1] - x[4] * y[0]
    out[3] += x[1] * y[2] - x[2] * y[1] + x[4] * y[5] - x[5] * y[4]
    out[4] += x[2] * y[0] - x[0] * y[2] + x[5] * y[3] - x[3] * y[5]
    out[5] += x[0] * y[1] - x[1] * y[0] + x[3] * y[4] - x[4] * y[3]


@inlined
def add_product(out, matrix, y):
    """out (6,) += matrix (6, 6) y."""
    for r in range(6):
        for k in range(6):
            out[r] += matrix[r, k] * y[k]


@inlined
def add_symmetric_product(out, matrix, y):
    """out (6,) += matrix (6, 6) y of a symmetric matrix, whose upper half alone is read."""
    for r in range(6):
        out[r] += matrix[r, r] * y[r]
        for k in range(r + 1, 6):
            out[r] += matrix[r, k] * y[k]
            out[k] += matrix[r, k] * y[r]


@inlined
def add_transposed_product(out, matrix, y):
    """out (6,) += matrix^T y."""
    for r in range(6):
        for k in range(6):
            out[r] += matrix[k, r] * y[k]


@inner
def add_congruence(out, transform, inner):
    """out (6, 6) += X^T A X."""
    half = local(inner[0, 0], (6, 6))
    for r in range(6):
        for c in range(6):
            half[r, c] = 0.0 * inner[0, 0]
            for k in range(6):
                half[r, c] += inner[r, k] * transform[k, c]
    for r in range(6):
        for c in range(6):
            for k in range(6):
                out[r, c] += transform[k, r] * half[k, c]


@inlined
def rotate_back(v, u):
    """v (3,) becomes Exp(u)^T v. Series in |u|^2: exact to 1e-10 up to |u| = 1, no trigonometry."""
    t = u[0] * u[0] + u[1] * u[1] + u[2] * u[2]
    sine = 1.0 - t * (1 / 6) * (1.0 - t * (1 / 20) * (1.0 - t * (1 / 42) * (1.0 - t * (1 / 72))))
    cosine = 0.5 * (1.0 - t * (1 / 12) * (1.0 - t * (1 / 30) * (1.0 - t * (1 / 56))))
    a0 = u[1] * v[2] - u[2] * v[1]
    a1 = u[2] * v[0] - u[0] * v[2]
    a2 = u[0] * v[1] - u[1] * v[0]
    v[0] += cosine * (u[1] * a2 - u[2] * a1) - sine * a0
    v[1] += cosine * (u[2] * a0 - u[0] * a2) - sine * a1
    v[2] += cosine * (u[0] * a1 - u[1] * a0) - sine * a2


@inlined
def advance_pose(rotation, position, strain, length):
    """T becomes T Exp_SE3(strain * length), eq. (1): rotation (3, 3), position (3,)."""
    u = local(strain[0], (3,))
    move = local(strain[0], (3,))
    for k in range(3):
        u[k] = strain[k + 3] * length
        move[k] = strain[k] * length
    t = u[0] * u[0] + u[1] * u[1] + u[2] * u[2]
    # Exp of the translation: v + cosine u x v + cubic u x (u x v)
    cosine = 0.5 * (1.0 - t * (1 / 12) * (1.0 - t * (1 / 30) * (1.0 - t * (1 / 56))))
    cubic = (1 / 6) * (1.0 - t * (1 / 20) * (1.0 - t * (1 / 42) * (1.0 - t * (1 / 72))))
    a0 = u[1] * move[2] - u[2] * move[1]
    a1 = u[2] * move[0] - u[0] * move[2]
    a2 = u[0] * move[1] - u[1] * move[0]
    b0 = u[1] * a2 - u[2] * a1
    b1 = u[2] * a0 - u[0] * a2
    b2 = u[0] * a1 - u[1] * a0
    move[0] += cosine * a0 + cubic * b0
    move[1] += cosine * a1 + cubic * b1
    move[2] += cosine * a2 + cubic * b2
    move_along(rotation, position, move)
    for k in range(3):
        # a row of R Exp(u), transposed, is Exp(u)^T times that row
        rotate_back(rotation[k], u)


@inlined
def move_along(rotation, position, move):
    """position (3,) += R move."""
    for k in range(3):
        position[k] += (
            rotation[k, 0] * move[0] + rotation[k, 1] * move[1] + rotation[k, 2] * move[2]
        )


@inlined
def cross_connector(rotation, position, adjoint, translation):
    """Carries a pose over a rigid connector: its X = [[Rc^T, ...], ...] (6, 6), and t (3,)."""
    row = local(rotation[0, 0], (3,))
    move_along(rotation, position, translation)
    for r in range(3):
        for c in range(3):
            row[c] = 0.0 * rotation[0, 0]
            for k in range(3):
                row[c] += adjoint[c, k] * rotation[r, k]
        for c in range(3):
            rotation[r, c] = row[c]


@inlined
def turn_into_body(out, rotation, v):
    """out (3,) = R^T v."""
    for k in range(3):
        out[k] = rotation[0, k] * v[0] + rotation[1, k] * v[1] + rotation[2, k] * v[2]

"""The compiled text of the statics: marching along the rod on SE(3), shooting, rates of a chart.

Places of `Numbers` are, for marching over N points, the points and the middles between them:
2 N - 1, so that point j has the place 2 j. Equation numbers are those of Pawlowski (2019).
Imported by `kernel.statics_kernels` alone.
"""

from typing import Any

import numba
import numpy as np

from softcr_papers.pawlowski2019.lie.kernel import (
    advance,
    compose,
    dexp_inverse_times,
    exponential,
    logarithm,
    orthonormalise,
)
from softcr_papers.pawlowski2019.reference.section_kernels import (
    balance,
    copy_pose,
    eliminate,
    end_wrench,
    set_product,
    set_sum,
    strain_of,
)

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True}
EXPLICIT_EULER, IMPLICIT_EULER, EXPLICIT_MIDPOINT, IMPLICIT_MIDPOINT = range(4)
_SWEEPS = 200  # of the fixed point in a step of an implicit scheme
_FINE = 1e-15


@numba.njit(**_OPTIONS)
def march(scheme, h, base, numbers, rotations, positions, strains, wrenches):
    """Poses (N, 3, 3), (N, 3), strains and total wrenches (N, 6) from the wrench at the base (6,).

    The first pose is given. The scheme advances lam and, by the exponential, the pose: (2.106) to
    (2.109), (2.92).
    """
    xi, lam, rate, step = np.empty(6), np.empty(6), np.empty(6), np.empty(6)
    rotation, position = np.empty((3, 3)), np.empty(3)
    set_product(wrenches[0], 1.0, base)
    set_product(strains[0], 1.0, numbers.rest_strain)
    strain_of(strains[0], base, numbers.stiffness, numbers.rest_strain, 0, numbers)
    for j in range(len(positions) - 1):
        # where the scheme takes its rates: the begin of the interval, its middle or its end
        copy_pose(rotation, position, rotations[j], positions[j])
        set_product(xi, 1.0, strains[j])
        set_product(lam, 1.0, wrenches[j])
        at = 2 * j
        if scheme == EXPLICIT_MIDPOINT:
            balance(rate, rotation, xi, lam, at, numbers)
            set_product(step, 0.5 * h, xi)
            advance(rotation, position, step)
            set_sum(lam, wrenches[j], 0.5 * h, rate)
            at += 1
            strain_of(xi, lam, numbers.stiffness, numbers.rest_strain, at, numbers)
        elif scheme != EXPLICIT_EULER:
            at += 2 if scheme == IMPLICIT_EULER else 1
            _settle(scheme, h, j, at, rotation, position, xi, lam, numbers, rotations, positions,
                    wrenches)  # fmt: skip
        balance(rate, rotation, xi, lam, at, numbers)
        copy_pose(rotations[j + 1], positions[j + 1], rotations[j], positions[j])
        set_product(step, h, xi)
        advance(rotations[j + 1], positions[j + 1], step)
        orthonormalise(rotations[j + 1])
        set_sum(wrenches[j + 1], wrenches[j], h, rate)
        set_product(strains[j + 1], 1.0, xi)
        strain_of(strains[j + 1], wrenches[j + 1], numbers.stiffness, numbers.rest_strain,
                  2 * j + 2, numbers)  # fmt: skip


@numba.njit(**_OPTIONS)
def _settle(scheme, h, j, at, rotation, position, xi, lam, numbers, rotations, positions,
            wrenches):  # fmt: skip
    """Pose, strain and wrench at the end of interval j (implicit Euler), or in its middle: a fixed
    point, from those at its begin."""
    share = h if scheme == IMPLICIT_EULER else 0.5 * h
    rate, step = np.empty(6), np.empty(6)
    for _ in range(_SWEEPS):
        strain_of(xi, lam, numbers.stiffness, numbers.rest_strain, at, numbers)
        copy_pose(rotation, position, rotations[j], positions[j])
        set_product(step, share, xi)
        advance(rotation, position, step)
        balance(rate, rotation, xi, lam, at, numbers)
        change, size = 0.0, 0.0
        for k in range(6):
            moved = wrenches[j, k] + share * rate[k]
            change, size = max(change, abs(moved - lam[k])), max(size, abs(moved))
            lam[k] = moved
        if not change > _FINE * size:  # NaN stops as well
            break


@numba.njit(**_OPTIONS)
def _miss(out, clamped, goal, scale, h, numbers, rotations, positions, strains, wrenches):
    """out (6,): what is wrong at the rod's end, without unit.

    Of a free end the wrench; of a clamped one the pose, moved in parts of the length.
    """
    last = len(positions) - 1
    if clamped:
        turn, move = np.empty((3, 3)), np.empty(3)
        for r in range(3):
            move[r] = 0.0
            for c in range(3):
                turn[r, c] = 0.0
                move[r] += goal[c, r] * (positions[last, c] - goal[c, 3])
                for k in range(3):
                    turn[r, c] += goal[k, r] * rotations[last, k, c]
        logarithm(out, turn, np.zeros(3))
        for k in range(3):
            out[k] = move[k] / (h * last)
        return
    end_wrench(out, rotations[last], strains[last], 2 * last, numbers)
    for k in range(6):
        out[k] = (wrenches[last, k] - out[k]) / scale[k]


@numba.njit(**_OPTIONS)
def shoot(scheme, h, base, clamped, goal, scale, numbers, rotations, positions, strains, wrenches,
          steps, tolerance):  # fmt: skip
    """Newton's method for the wrench at the base (6,), a guess that becomes the solution.

    Returns:
        Steps that were taken, and the largest number of what is wrong at the end.
    """
    miss, moved, trial = np.empty(6), np.empty(6), np.empty(6)
    jacobian = np.empty((6, 6))
    size = _try(miss, scheme, h, base, clamped, goal, scale, numbers, rotations, positions, strains,
                wrenches)  # fmt: skip
    for step in range(steps):
        if not size > tolerance:
            return step, size
        for c in range(6):
            reach = 1e-7 * max(1.0, abs(base[c] / scale[c])) * scale[c]
            set_product(trial, 1.0, base)
            trial[c] += reach
            _try(moved, scheme, h, trial, clamped, goal, scale, numbers, rotations, positions,
                 strains, wrenches)  # fmt: skip
            for r in range(6):
                jacobian[r, c] = (moved[r] - miss[r]) / reach
        eliminate(jacobian, miss)
        share, found = 2.0, size
        while not found < size and share > 1e-3:
            share *= 0.5
            set_sum(trial, base, -share, miss)
            found = _try(moved, scheme, h, trial, clamped, goal, scale, numbers, rotations,
                         positions, strains, wrenches)  # fmt: skip
        if not found < size:  # rounding, or the end of Newton's reach
            _try(miss, scheme, h, base, clamped, goal, scale, numbers, rotations, positions,
                 strains, wrenches)  # fmt: skip
            return step, size
        size = found
        set_product(base, 1.0, trial)
        set_product(miss, 1.0, moved)
    return steps, size


@numba.njit(**_OPTIONS)
def _try(miss, scheme, h, base, clamped, goal, scale, numbers, rotations, positions, strains,
         wrenches):  # fmt: skip
    """Marches, and returns the largest number of what is wrong at the end, miss (6,)."""
    march(scheme, h, base, numbers, rotations, positions, strains, wrenches)
    _miss(miss, clamped, goal, scale, h, numbers, rotations, positions, strains, wrenches)
    size = 0.0
    for k in range(6):
        size = abs(miss[k]) if not abs(miss[k]) <= size else size
    return size


@numba.njit(**_OPTIONS)
def chart_rates(theta, lam, numbers, rotations, positions, strains, out):
    """Rates (P, 12) by arc length of theta (P, 6), g = g_0 exp(theta), and of lam (P, 6).

    theta' = dexp^-1(-theta) xi, (2.84), and (2.32). Strains (P, 6) come as guesses; the first
    place's pose is g_0 = (rotations[P], positions[P]), the last row of both.
    """
    places = len(theta)
    turn, move, back = np.empty((3, 3)), np.empty(3), np.empty(6)
    for i in range(places):
        strain_of(strains[i], lam[i], numbers.stiffness, numbers.rest_strain, i, numbers)
        set_product(back, -1.0, theta[i])
        dexp_inverse_times(out[i, :6], back, strains[i])
        exponential(turn, move, theta[i])
        compose(rotations[i], positions[i], rotations[places], positions[places], turn, move)
        balance(out[i, 6:], rotations[i], strains[i], lam[i], i, numbers)


@numba.njit(**_OPTIONS)
def wrench_at_end(rotation, strain, at, numbers):
    """(6,) that loads put on the rod's end."""
    out = np.empty(6)
    end_wrench(out, rotation, strain, at, numbers)
    return out

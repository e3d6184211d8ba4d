"""The compiled text of the implicit integrator: midpoint in time, shooting in space, Sec. 3.3.3.

After J. Till, V. Aloi, C. Rucker (IJRR 38, 2019) as Pawlowski (2019) has it. N points, the first at
the base; places of `Numbers` are these points. What ends in `middle` is at the half of a step.
Imported by `kernel.implicit_kernels` alone.
"""

from typing import Any

import numba
import numpy as np

from softcr_models.lie.kernel import add_ad, add_ad_transposed, advance
from softcr_models.reference.section_text import (
    balance,
    copy_pose,
    eliminate,
    end_wrench,
    set_product,
    strain_of,
)

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True}
_TRIES = 40  # marches that correct the wrench at the base, of one step


@numba.njit(**_OPTIONS)
def march(h, dt, stiffness, pull, guess, base, numbers, inertia, drag, xi, eta, middle_xi,
          middle_eta, miss, scale):  # fmt: skip
    """Strains and velocities (N, 6) at the half of a step from the wrench at the base (6,).

    (3.51) and (3.52) with (3.50), x_half' = 2 (x_half - x) / dt, by explicit Euler in s. `miss`
    (6,): what is wrong at the end, without unit; returns its largest number.

    Args:
        stiffness: (6,) K + 2 V / dt; `pull` (N, 6): K xi* + (2 V / dt) xi over it: lam is
            stiffness (xi_half - pull) + sum T [e; r x e].
        guess: (4, 3) rotation and position of the base.
    """
    points = len(xi)
    rotation, position = np.empty((3, 3)), np.empty(3)
    copy_pose(rotation, position, guess[:3], guess[3])
    lam, rate, momentum, step = np.empty(6), np.empty(6), np.empty(6), np.empty(6)
    set_product(lam, 1.0, base)
    set_product(middle_eta[0], 0.0, base)
    for j in range(points):
        half, speed = middle_xi[j], middle_eta[j]
        strain_of(half, lam, stiffness, pull[j], j, numbers)
        if j == points - 1:
            break
        balance(rate, rotation, half, lam, numbers)
        for k in range(6):
            momentum[k] = inertia[k] * speed[k]
            rate[k] += 2.0 / dt * inertia[k] * (speed[k] - eta[j, k]) + drag[k] * speed[k]
        add_ad_transposed(rate, -1.0, speed, momentum)
        for k in range(6):
            lam[k] += h * rate[k]
            rate[k] = 0.0
            step[k] = h * half[k]
        add_ad(rate, half, speed)
        for k in range(6):
            slope = 2.0 / dt * (half[k] - xi[j, k]) - rate[k]
            middle_eta[j + 1, k] = speed[k] + h * slope
        advance(rotation, position, step)
    end_wrench(step, rotation, middle_xi[points - 1], points - 1, numbers)
    size = 0.0
    for k in range(6):
        miss[k] = (lam[k] - step[k]) / scale[k]
        size = abs(miss[k]) if not abs(miss[k]) <= size else size
    return size


@numba.njit(**_OPTIONS)
def simulate(count, dt, h, start, base, numbers, inertia, viscosity, drag, scale, tolerance, xi,
             eta, tips):  # fmt: skip
    """`count` steps of strains and velocities (N, 6); base (6,) is the first guess and the last.

    Broyden's method: a Jacobian of differences, made again where it does not bring the error down.

    Returns:
        The steps that were done, and the marches that they took.
    """
    points = len(xi)
    middle_xi, middle_eta, pull = xi.copy(), eta.copy(), np.empty((points, 6))
    stiffness, miss, moved, trial = np.empty(6), np.empty(6), np.empty(6), np.empty(6)
    inverse, matrix, move = np.empty((6, 6)), np.empty((6, 6)), np.empty(6)
    rotation, position, step_twist = np.empty((3, 3)), np.empty(3), np.empty(6)
    marches, known = 0, False
    for k in range(6):
        stiffness[k] = numbers.stiffness[k] + 2.0 / dt * viscosity[k]
    for step in range(count):
        for j in range(points):
            for k in range(6):
                share = 2.0 * viscosity[k] / (dt * stiffness[k])
                pull[j, k] = numbers.rest_strain[k] + share * (xi[j, k] - numbers.rest_strain[k])
        size = march(h, dt, stiffness, pull, start, base, numbers, inertia, drag, xi, eta,
                     middle_xi, middle_eta, miss, scale)  # fmt: skip
        marches += 1
        tries, fresh = 0, False
        while not size <= tolerance:
            if tries == _TRIES or not np.isfinite(size):
                return step, marches
            if not known:
                for c in range(6):
                    reach = 1e-6 * max(1.0, abs(base[c] / scale[c])) * scale[c]
                    set_product(trial, 1.0, base)
                    trial[c] += reach
                    march(h, dt, stiffness, pull, start, trial, numbers, inertia, drag, xi, eta,
                          middle_xi, middle_eta, moved, scale)  # fmt: skip
                    for r in range(6):
                        matrix[r, c] = (moved[r] - miss[r]) / reach
                _invert(inverse, matrix)
                marches += 6
                known, fresh = True, True
            for r in range(6):
                move[r] = 0.0
                for c in range(6):
                    move[r] -= inverse[r, c] * miss[c]
                trial[r] = base[r] + move[r]
            found = march(h, dt, stiffness, pull, start, trial, numbers, inertia, drag, xi, eta,
                          middle_xi, middle_eta, moved, scale)  # fmt: skip
            marches += 1
            tries += 1
            if not found < size and not fresh:
                known = False  # an old Jacobian: a new one, from where we are
                continue
            _update(inverse, move, miss, moved)
            known, fresh = found < 0.5 * size, False
            size = found
            set_product(base, 1.0, trial)
            set_product(miss, 1.0, moved)
        copy_pose(rotation, position, start[:3], start[3])
        for j in range(points):
            for k in range(6):
                xi[j, k] = 2.0 * middle_xi[j, k] - xi[j, k]
                eta[j, k] = 2.0 * middle_eta[j, k] - eta[j, k]
                step_twist[k] = h * xi[j, k]
            if j < points - 1:
                advance(rotation, position, step_twist)
        set_product(tips[step], 1.0, position)
    return count, marches


@numba.njit(**_OPTIONS)
def _invert(inverse, matrix):
    """inverse (6, 6) of matrix (6, 6)."""
    work, column = np.empty((6, 6)), np.empty(6)
    for c in range(6):
        for r in range(6):
            column[r] = 1.0 if r == c else 0.0
            for k in range(6):
                work[r, k] = matrix[r, k]
        eliminate(work, column)
        for r in range(6):
            inverse[r, c] = column[r]


@numba.njit(**_OPTIONS)
def _update(inverse, move, before, after):
    """Broyden's update of an inverse Jacobian (6, 6): it then takes the change (6,) to the move."""
    taken, back = np.zeros(6), np.zeros(6)
    size = 0.0
    for r in range(6):
        for c in range(6):
            taken[r] += inverse[r, c] * (after[c] - before[c])
            back[c] += move[r] * inverse[r, c]
    for r in range(6):
        size += move[r] * taken[r]
    if size == 0.0:
        return
    for r in range(6):
        for c in range(6):
            inverse[r, c] += (move[r] - taken[r]) * back[c] / size

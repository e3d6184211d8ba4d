"""The compiled text of the implicit integrator: midpoint in time, shooting in space, Sec. 3.3.3.

After J. Till, V. Aloi, C. Rucker (IJRR 38, 2019) as Pawlowski (2019) has it. N points, the first at
the base. Places of `Numbers` are these points, or, where space is marched by the midpoint rule, the
points and the middles between them. What is "half" is at the half of a step of time.
Imported by `kernel.implicit_kernels` alone.
"""

from typing import Any

import numba
import numpy as np
from numba.extending import register_jitable

from softcr_models.lie.kernel import add_ad, add_ad_transposed, advance
from softcr_models.reference.section_text import (
    add_drag,
    balance,
    copy_pose,
    eliminate,
    end_wrench,
    set_product,
    strain_of,
)
from softcr_models.rod.simd import local

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True}
_TRIES = 40  # marches that correct the wrench at the base, of one step


@register_jitable(forceinline=True)
def _rates(lam_rate, eta_rate, momentum, rotation, half, speed, lam, per_half, xi, eta, at, numbers,
           inertia, drag):  # fmt: skip
    """(3.51) and (3.52): rates by arc length, with (3.50), x' = (x_half - x) 2 / dt."""
    balance(lam_rate, rotation, half, lam, at, numbers)
    for k in range(6):
        momentum[k] = inertia[k] * speed[k]
        lam_rate[k] += per_half * inertia[k] * (speed[k] - eta[k])
        eta_rate[k] = 0.0
        if numbers.bonded == 1:
            for c in range(6):
                momentum[k] += numbers.masses[at, k, c] * speed[c]
                lam_rate[k] += per_half * numbers.masses[at, k, c] * (speed[c] - eta[c])
    add_drag(lam_rate, 1.0, speed, drag)
    add_ad_transposed(lam_rate, -1.0, speed, momentum)
    add_ad(eta_rate, half, speed)
    for k in range(6):
        eta_rate[k] = per_half * (half[k] - xi[k]) - eta_rate[k]


@numba.njit(**_OPTIONS)
def march(midpoint, h, dt, stiffness, pull, guess, base, numbers, inertia, drag, xi, eta, half_xi,
          half_eta, miss, scale):  # fmt: skip
    """Strains and velocities (N, 6) at the half of a step from the wrench at the base (6,).

    By explicit Euler in s, or by the explicit midpoint rule, which takes what was before between
    two points as their mean. `miss` (6,): what is wrong at the end, without unit; returns its
    largest number.

    Args:
        midpoint: whether by the midpoint rule.
        stiffness: (6,) K + 2 V / dt; `pull` (N, 6): K xi* + (2 V / dt) xi over it: lam is
            stiffness (xi_half - pull) + what muscles and lines add.
        guess: (4, 3) rotation and position of the base.
    """
    points, per_half, stages = len(xi), 2.0 / dt, 2 if midpoint else 1
    rotation, position = local(h, (3, 3)), local(h, (3,))
    turn, place = local(h, (3, 3)), local(h, (3,))
    lam, lam_now, lam_rate = local(h, (6,)), local(h, (6,)), local(h, (6,))
    speed, eta_rate, momentum = local(h, (6,)), local(h, (6,)), local(h, (6,))
    half, shift, before = local(h, (6,)), local(h, (6,)), local(h, (6,))
    was, step = local(h, (6,)), local(h, (6,))
    copy_pose(rotation, position, guess[:3], guess[3])
    set_product(lam, 1.0, base)
    set_product(half_eta[0], 0.0, base)
    for j in range(points):
        copy_pose(turn, place, rotation, position)
        for k in range(6):
            lam_now[k], half[k], speed[k] = lam[k], half_xi[j, k], half_eta[j, k]
            before[k], was[k], shift[k] = xi[j, k], eta[j, k], pull[j, k]
        for stage in range(stages):
            at = stages * j + stage
            strain_of(half, lam_now, stiffness, shift, at, numbers)
            if stage == 0:
                set_product(half_xi[j], 1.0, half)
                if j == points - 1:
                    break
            _rates(lam_rate, eta_rate, momentum, turn, half, speed, lam_now, per_half, before, was,
                   at, numbers, inertia, drag)  # fmt: skip
            if stage < stages - 1:  # to the middle of the interval
                set_product(step, 0.5 * h, half)
                advance(turn, place, step)
                for k in range(6):
                    lam_now[k] += 0.5 * h * lam_rate[k]
                    speed[k] += 0.5 * h * eta_rate[k]
                    before[k] = 0.5 * (xi[j, k] + xi[j + 1, k])
                    was[k] = 0.5 * (eta[j, k] + eta[j + 1, k])
                    shift[k] = 0.5 * (pull[j, k] + pull[j + 1, k])
        if j < points - 1:
            for k in range(6):
                lam[k] += h * lam_rate[k]
                half_eta[j + 1, k] = half_eta[j, k] + h * eta_rate[k]
                step[k] = h * half[k]
            advance(rotation, position, step)
    end_wrench(step, rotation, half_xi[points - 1], stages * (points - 1), numbers)
    size = 0.0
    for k in range(6):
        miss[k] = (lam[k] - step[k]) / scale[k]
        size = abs(miss[k]) if not abs(miss[k]) <= size else size
    return size


@numba.njit(**_OPTIONS)
def simulate(count, midpoint, dt, h, start, base, numbers, inertia, viscosity, drag, scale,
             tolerance, xi, eta, tips):  # fmt: skip
    """`count` steps of strains and velocities (N, 6); base (6,) is the first guess and the last.

    Broyden's method: a Jacobian of differences, made again where it does not bring the error down.

    Returns:
        The steps that were done, and the marches that they took.
    """
    points = len(xi)
    half_xi, half_eta, pull = xi.copy(), eta.copy(), np.empty((points, 6))
    stiffness, miss, moved, trial = np.empty(6), np.empty(6), np.empty(6), np.empty(6)
    move, step_twist = np.empty(6), np.empty(6)
    inverse, matrix = np.empty((6, 6)), np.empty((6, 6))
    rotation, position = np.empty((3, 3)), np.empty(3)
    marches, known = 0, False
    for k in range(6):
        stiffness[k] = numbers.stiffness[k] + 2.0 / dt * viscosity[k]
    for step in range(count):
        for j in range(points):
            for k in range(6):
                share = 2.0 * viscosity[k] / (dt * stiffness[k])
                pull[j, k] = numbers.rest_strain[k] + share * (xi[j, k] - numbers.rest_strain[k])
        size = march(midpoint, h, dt, stiffness, pull, start, base, numbers, inertia, drag, xi, eta,
                     half_xi, half_eta, miss, scale)  # fmt: skip
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
                    march(midpoint, h, dt, stiffness, pull, start, trial, numbers, inertia, drag,
                          xi, eta, half_xi, half_eta, moved, scale)  # fmt: skip
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
            found = march(midpoint, h, dt, stiffness, pull, start, trial, numbers, inertia, drag,
                          xi, eta, half_xi, half_eta, moved, scale)  # fmt: skip
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
                xi[j, k] = 2.0 * half_xi[j, k] - xi[j, k]
                eta[j, k] = 2.0 * half_eta[j, k] - eta[j, k]
        for j in range(points - 1):
            for k in range(6):
                step_twist[k] = h * xi[j, k]
                if midpoint:
                    step_twist[k] += 0.5 * h * (xi[j + 1, k] - xi[j, k])
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

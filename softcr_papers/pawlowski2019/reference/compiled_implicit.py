"""The compiled text of the implicit integrator: midpoint in time, shooting in space, Sec. 3.3.3.

After J. Till, V. Aloi, C. Rucker (IJRR 38, 2019) as Pawlowski (2019) has it. N points, the first at
the base. Strains, velocities and places of `Numbers` are those of P = N points, or, where space is
marched by the midpoint rule, of P = 2 N - 1, the middles between them as well. What is "half" is at
the half of a step of time.
Imported by `kernel.implicit_kernels` alone.
"""

from typing import Any

import numba
import numpy as np
from numba.extending import register_jitable

from softcr_models.rod.simd import local
from softcr_papers.pawlowski2019.lie.kernel import add_ad, add_ad_transposed, advance
from softcr_papers.pawlowski2019.reference.section_kernels import (
    add_drag,
    add_lines,
    balance,
    copy_pose,
    eliminate,
    end_wrench,
    set_product,
    set_sum,
    strain_of,
)

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
    """Strains and velocities (P, 6) at the half of a step from the wrench at the base (6,).

    By explicit Euler in s, or by the explicit midpoint rule. `miss` (6,): what is wrong at the end,
    without unit; returns its largest number.

    Args:
        midpoint: whether by the midpoint rule.
        stiffness: (6,) K + 2 V / dt; `pull` (P, 6): K xi* + (2 V / dt) xi over it: lam is
            stiffness (xi_half - pull) + what muscles and lines add.
        guess: (4, 3) rotation and position of the base.
    """
    last, per_half, stages = len(xi) - 1, 2.0 / dt, 2 if midpoint else 1
    rotation, position = local(h, (3, 3)), local(h, (3,))
    turn, place = local(h, (3, 3)), local(h, (3,))
    lam, lam_now, lam_rate = local(h, (6,)), local(h, (6,)), local(h, (6,))
    eta_rate, momentum, step = local(h, (6,)), local(h, (6,)), local(h, (6,))
    copy_pose(rotation, position, guess[:3], guess[3])
    set_product(lam, 1.0, base)
    set_product(half_eta[0], 0.0, base)
    for first in range(0, last + 1, stages):
        copy_pose(turn, place, rotation, position)
        set_product(lam_now, 1.0, lam)
        for at in range(first, min(first + stages, last + 1)):
            half, speed = half_xi[at], half_eta[at]
            strain_of(half, lam_now, stiffness, pull[at], at, numbers)
            if at == last:
                break
            _rates(lam_rate, eta_rate, momentum, turn, half, speed, lam_now, per_half, xi[at],
                   eta[at], at, numbers, inertia, drag)  # fmt: skip
            if at == first and midpoint:
                set_product(step, 0.5 * h, half)
                advance(turn, place, step)
                set_sum(lam_now, lam, 0.5 * h, lam_rate)
                set_sum(half_eta[at + 1], speed, 0.5 * h, eta_rate)
        if first < last:
            set_sum(lam, lam, h, lam_rate)
            set_sum(half_eta[first + stages], half_eta[first], h, eta_rate)
            set_product(step, h, half_xi[first + stages - 1])
            advance(rotation, position, step)
    end_wrench(step, rotation, half_xi[last], last, numbers)
    size = 0.0
    for k in range(6):
        miss[k] = (lam[k] - step[k]) / scale[k]
        size = abs(miss[k]) if not abs(miss[k]) <= size else size
    return size


@numba.njit(**_OPTIONS)
def simulate(count, midpoint, dt, h, start, base, numbers, inertia, viscosity, drag, scale,
             tolerance, xi, eta, tips):  # fmt: skip
    """`count` steps of strains and velocities (P, 6); base (6,) is the first guess and the last.

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
        stages = 2 if midpoint else 1
        for j in range(stages - 1, points - 1, stages):
            set_product(step_twist, h, xi[j])
            advance(rotation, position, step_twist)
        set_product(tips[step], 1.0, position)
    return count, marches


@numba.njit(**_OPTIONS)
def rollout(substeps, midpoint, dt, h, start, numbers, of_section, of_tangent, of_end, inertia,
            viscosity, drag, scale, tolerance, states, levels, parameters, out):  # fmt: skip
    """out (B, T, 12 P): states after each of T steps of dt [s], NaN from where none was found.

    Args:
        substeps: of each step.
        numbers: of the rod without inputs; its stiffness, weight, steady, pulls and end_pulls are
            written over.
        of_section, of_tangent, of_end: (P, m, 6), (P, m), (m,): these per input.
        states: (B, 12 P) or (1, 12 P), strains before velocities.
        levels: (B, T + 1, m) inputs, linear in between.
        parameters: (B, 3) or (1, 3): stiffness, viscosity and mass over those given.
    """
    size = states.shape[1] // 12
    k_now, w_now = numbers.stiffness.copy(), numbers.weight.copy()
    m_now, v_now, base = np.empty(6), np.empty(6), np.empty(6)
    xi, eta, tips = np.empty((size, 6)), np.empty((size, 6)), np.empty((1, 3))
    for b in range(len(levels)):
        state = states[b % len(states)]
        stiff, damping, mass = parameters[b % len(parameters)]
        set_product(numbers.stiffness, stiff, k_now)
        set_product(numbers.weight, mass, w_now)
        set_product(m_now, mass, inertia)
        set_product(v_now, damping, viscosity)
        for j in range(size):
            set_product(xi[j], 1.0, state[6 * j : 6 * j + 6])
            set_product(eta[j], 1.0, state[6 * (size + j) : 6 * (size + j) + 6])
        found = True
        for t in range(out.shape[1]):
            for piece in range(substeps):
                share = (piece + 0.5) / substeps
                _set_inputs(numbers, of_section, of_tangent, of_end, levels[b, t],
                            levels[b, t + 1], share)  # fmt: skip
                for k in range(6):
                    base[k] = numbers.stiffness[k] * (xi[0, k] - numbers.rest_strain[k])
                add_lines(base, xi[0], 0, numbers)
                done, _ = simulate(1, midpoint, dt / substeps, h, start, base, numbers, m_now,
                                   v_now, drag, scale, tolerance, xi, eta, tips)  # fmt: skip
                found = found and done == 1
            for j in range(size):
                for k in range(6):
                    out[b, t, 6 * j + k] = xi[j, k] if found else np.nan
                    out[b, t, 6 * (size + j) + k] = eta[j, k] if found else np.nan


@numba.njit(**_OPTIONS)
def _set_inputs(numbers, of_section, of_tangent, of_end, begin, end, share):
    """Numbers of inputs between two."""
    numbers.steady[:] = 0.0
    for i in range(len(of_end)):
        now = (1.0 - share) * begin[i] + share * end[i]
        numbers.end_pulls[i] = now * of_end[i]
        for p in range(len(of_tangent)):
            numbers.pulls[p, i] = now * of_tangent[p, i]
            for k in range(6):
                numbers.steady[p, k] += now * of_section[p, i, k]


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

"""The compiled text of the explicit integrator without shear and stretch, and with their force.

As `compiled_explicit`, but nu = nu*, (3.45), holds at every step, by the forces n of the intervals:
Lagrange multipliers, which the thesis leaves out. With A and B (6, 3) of each interval, the columns
of force in dexp^-T and in what of it reaches the next node, the strains after the next step depend
on them by a block tridiagonal matrix that is symmetric and positive; Newton's method takes it.
Imported by `kernel.kirchhoff_kernels` alone.
"""

from typing import Any

import numba
import numpy as np

from softcr_papers.pawlowski2019.lie.kernel import (
    compose,
    dexp_inverse_transposed_times,
    exponential,
    logarithm,
    transport_wrench,
)
from softcr_papers.pawlowski2019.reference.section_kernels import (
    add_drag,
    add_lines,
    balance,
    copy_pose,
    end_wrench,
    invert_pose,
    set_product,
    velocity_of,
)

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True}
_NEWTON, _FINE, _GOOD = 8, 1e-12, 1e-9  # steps, and what they leave of shear and stretch


@numba.njit(**_OPTIONS)
def advance(count, dt, h, inertia, viscosity, drag, numbers, xi, eta, mu, force, base, turns,
            moves, rotations, positions, tips):  # fmt: skip
    """`count` steps; arguments as those of `compiled_explicit.advance`, and force (N - 1, 3) [N].

    Returns:
        The steps that were done.
    """
    nodes = len(eta)
    zero = np.zeros(6)
    twist, load, wrench, before = np.empty(6), np.empty(6), np.empty(6), np.empty(6)
    turn, move, back, away = np.empty((3, 3)), np.empty(3), np.empty((3, 3)), np.empty(3)
    drifts, shifts = np.empty((nodes, 3, 3)), np.empty((nodes, 3))
    lam, known = np.empty((nodes, 6)), np.empty((nodes, 6))
    here, there = np.zeros((nodes, 3, 6)), np.zeros((nodes, 3, 6))  # A and B, transposed
    miss = np.empty((nodes - 1, 3))
    copy_pose(rotations[0], positions[0], base[:, :3], base[:, 3])
    for j in range(nodes - 1):
        compose(rotations[j + 1], positions[j + 1], rotations[j], positions[j], turns[j], moves[j])
    for step in range(count):
        for j in range(nodes):
            set_product(twist, dt, eta[j])
            exponential(drifts[j], shifts[j], twist)
            if j < nodes - 1:  # (3.29): W of node j in the state before, for node j + 1
                balance(load, rotations[j], zero, zero, j, numbers)
                add_drag(load, 1.0, eta[j], drag)
                set_product(known[j + 1], -dt, load)
        for j in range(nodes - 1):
            invert_pose(back, away, drifts[j], shifts[j])
            compose(turn, move, back, away, turns[j], moves[j])
            compose(turns[j], moves[j], turn, move, drifts[j + 1], shifts[j + 1])
            logarithm(twist, turns[j], moves[j])  # (3.38)
            for k in range(6):
                new = twist[k] / h
                wrench[k] = numbers.stiffness[k] * (new - numbers.rest_strain[k])
                wrench[k] += viscosity[k] * (new - xi[j, k]) / dt
                xi[j, k] = new
            add_lines(wrench, xi[j], j, numbers)
            for k in range(3):
                wrench[k] = 0.0  # the force is unknown
                for i in range(6):
                    before[i] = 1.0 if i == k else 0.0
                dexp_inverse_transposed_times(here[j, k], twist, before)
                transport_wrench(there[j, k], turns[j], moves[j], here[j, k])
            dexp_inverse_transposed_times(lam[j], twist, wrench)
            compose(rotations[j + 1], positions[j + 1], rotations[j], positions[j], turns[j],
                    moves[j])  # fmt: skip
        set_product(wrench, 1.0, xi[nodes - 2])
        end_wrench(lam[nodes - 1], rotations[nodes - 1], wrench, nodes - 1, numbers)
        for j in range(1, nodes):  # (3.41) without the unknown forces
            transport_wrench(before, drifts[j], shifts[j], mu[j])
            transport_wrench(wrench, turns[j - 1], moves[j - 1], lam[j - 1])
            for k in range(6):
                known[j, k] += before[k] + dt / h * (lam[j, k] - wrench[k])
        if not _hold(dt, h, inertia, numbers.rest_strain, known, here, there, force, mu, eta,
                     turns, moves, miss):  # fmt: skip
            return step
        set_product(tips[step], 1.0, positions[nodes - 1])
    return count


@numba.njit(**_OPTIONS)
def _hold(dt, h, inertia, rest, known, here, there, force, mu, eta, turns, moves, miss):
    """Forces (N - 1, 3) with which the next strains have neither shear nor stretch, and the momenta
    and velocities (N, 6) that they make; whether there are."""
    nodes = len(eta)
    twist, scratch, found = np.empty(6), np.empty(6), np.empty(6)
    turn, move, back, away = np.empty((3, 3)), np.empty(3), np.empty((3, 3)), np.empty(3)
    drift, shift = np.empty((3, 3)), np.empty(3)
    size = 0.0
    for _ in range(_NEWTON):
        for j in range(1, nodes):
            for k in range(6):
                pull = 0.0
                for i in range(3):
                    pull -= there[j - 1, i, k] * force[j - 1, i]
                    if j < nodes - 1:
                        pull += here[j, i, k] * force[j, i]
                mu[j, k] = known[j, k] + dt / h * pull
            velocity_of(eta[j], mu[j], dt, inertia, twist, scratch, found)
        size = 0.0
        for j in range(nodes - 1):
            set_product(twist, -dt, eta[j])
            exponential(back, away, twist)
            set_product(twist, dt, eta[j + 1])
            exponential(drift, shift, twist)
            compose(turn, move, back, away, turns[j], moves[j])
            compose(turn, move, turn, move, drift, shift)
            logarithm(twist, turn, move)
            for k in range(3):
                miss[j, k] = twist[k] / h - rest[k]
                size = abs(miss[j, k]) if not abs(miss[j, k]) <= size else size
        if size < _FINE:
            return True
        if not np.isfinite(size):
            return False
        _correct(h / dt, inertia, here, there, miss, force)
    return size < _GOOD


@numba.njit(**_OPTIONS)
def _correct(slowness, inertia, here, there, miss, force):
    """force += T^-1 miss (h / dt)^2, T block tridiagonal: elimination by blocks (3, 3)."""
    count = len(force)
    diagonal, above = np.zeros((count, 3, 3)), np.zeros((count, 3, 3))
    for j in range(count):
        for a in range(3):
            for b in range(3):
                for k in range(6):
                    diagonal[j, a, b] += there[j, a, k] * there[j, b, k] / inertia[k]
                    if j > 0:  # the first node does not move
                        diagonal[j, a, b] += here[j, a, k] * here[j, b, k] / inertia[k]
                    if j < count - 1:
                        above[j, a, b] -= there[j, a, k] * here[j + 1, b, k] / inertia[k]
    inverse = np.empty((count, 3, 3))
    for j in range(count):
        for a in range(3):
            miss[j, a] *= slowness * slowness
        if j > 0:
            gain = above[j - 1].T @ inverse[j - 1]
            diagonal[j] -= gain @ above[j - 1]
            miss[j] -= gain @ miss[j - 1]
        inverse[j] = np.linalg.inv(diagonal[j])
    for j in range(count - 1, -1, -1):
        if j < count - 1:
            miss[j] -= above[j] @ miss[j + 1]
        miss[j] = inverse[j] @ miss[j]
        for a in range(3):
            force[j, a] += miss[j, a]

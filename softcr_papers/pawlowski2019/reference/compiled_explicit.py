"""The compiled text of the explicit variational integrator, Pawlowski (2019), Sec. 3.3.1.

N nodes, the first at the base, at rest; interval j lies between the nodes j and j + 1 and has the
strain xi[j]. Places of `Numbers` are the middles of the intervals, then the rod's end: N in all.
Imported by `kernel.explicit_kernels` alone.
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


@numba.njit(**_OPTIONS)
def advance(count, dt, h, frozen, inertia, viscosity, drag, numbers, xi, eta, mu, base, turns,
            moves, rotations, positions, tips):  # fmt: skip
    """`count` steps (3.38) to (3.42) of strains xi (N - 1, 6), velocities and momenta (N, 6).

    Args:
        dt, h: Delta t [s] and Delta s [m].
        frozen: 1 for Kirchhoff's restriction as the thesis has it: nu = nu*, and no force.
        inertia, viscosity: (6,) diagonals; drag: (2, 6), see `add_drag`.
        numbers: of the rod and its loads.
        base: (3, 4) pose of the first node.
        turns, moves: (N - 1, 3, 3), (N - 1, 3): exp(h xi), kept from step to step.
        rotations, positions: (N, 3, 3), (N, 3) of the nodes.
        tips: (count, 3) positions of the last node after each step [m].
    """
    nodes = len(eta)
    zero = np.zeros(6)
    twist, load, rate, wrench, before = (np.empty(6), np.empty(6), np.empty(6), np.empty(6),
                                         np.empty(6))  # fmt: skip
    turn, move, back, away = np.empty((3, 3)), np.empty(3), np.empty((3, 3)), np.empty(3)
    drifts, shifts = np.empty((nodes, 3, 3)), np.empty((nodes, 3))
    lam, loads = np.empty((nodes, 6)), np.empty((nodes, 6))
    copy_pose(rotations[0], positions[0], base[:, :3], base[:, 3])
    for j in range(nodes - 1):
        compose(rotations[j + 1], positions[j + 1], rotations[j], positions[j], turns[j], moves[j])
    for step in range(count):
        for j in range(nodes):
            set_product(twist, dt, eta[j])
            exponential(drifts[j], shifts[j], twist)
            # W of node j in the state before, for node j + 1: the virtual work of (3.29)
            balance(load, rotations[j], zero, zero, j, numbers)
            add_drag(load, 1.0, eta[j], drag)
            set_product(loads[j], -1.0, load)
        for j in range(nodes - 1):
            # (3.38): exp(-dt eta_j) exp(h xi_j) exp(dt eta_(j+1))
            invert_pose(back, away, drifts[j], shifts[j])
            compose(turn, move, back, away, turns[j], moves[j])
            compose(turn, move, turn, move, drifts[j + 1], shifts[j + 1])
            logarithm(twist, turn, move)
            for k in range(6):
                new = twist[k] / h
                if frozen == 1 and k < 3:
                    new = numbers.rest_strain[k]
                rate[k] = (new - xi[j, k]) / dt
                xi[j, k] = new
                wrench[k] = numbers.stiffness[k] * (new - numbers.rest_strain[k])
                wrench[k] += viscosity[k] * rate[k]
                twist[k] = h * new
            if frozen == 1:
                exponential(turn, move, twist)
            copy_pose(turns[j], moves[j], turn, move)
            add_lines(wrench, xi[j], j, numbers)
            dexp_inverse_transposed_times(lam[j], twist, wrench)  # (3.40)
            compose(rotations[j + 1], positions[j + 1], rotations[j], positions[j], turn, move)
        set_product(wrench, 1.0, xi[nodes - 2])
        end_wrench(lam[nodes - 1], rotations[nodes - 1], wrench, nodes - 1, numbers)
        for j in range(1, nodes):
            transport_wrench(before, drifts[j], shifts[j], mu[j])
            transport_wrench(wrench, turns[j - 1], moves[j - 1], lam[j - 1])
            for k in range(6):  # (3.41)
                mu[j, k] = before[k] + dt / h * (lam[j, k] - wrench[k]) + dt * loads[j - 1, k]
                if frozen == 1 and k < 3:
                    mu[j, k] = 0.0
            velocity_of(eta[j], mu[j], dt, inertia, twist, wrench, rate)
        set_product(tips[step], 1.0, positions[nodes - 1])

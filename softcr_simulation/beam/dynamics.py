"""Motion of a chain of beam elements: forces on its nodes, and a second-order implicit step.

Every node is a rigid body, M V' = ad(V)^T M V + forces, of the mass of half the elements beside it.
Time goes by the two-stage singly diagonally implicit Runge-Kutta method of order 2 (Alexander, SIAM
Journal on Numerical Analysis 14 (1977) 1006), L-stable, its position increments taken on SE(3):

    stage 1: V_1 = V + g dt V_1',                    H_1 = H exp(g dt V_1)
    stage 2: V_2 = V + (1 - g) dt V_1' + g dt V_2',  H_2 = H exp((1 - g) dt V_1 + g dt V_2)

with g = 1 - 1/sqrt(2). Newton's matrix leaves out what is small over a step, the stress in the
geometry and the gyroscopic forces: it is symmetric, positive definite and block tridiagonal.
"""

import math
from typing import NamedTuple

import numpy as np

from softcr_models.rod.inner import inner
from softcr_models.room_kernels import compiled
from softcr_simulation.beam.element import moved, relative_log, strain_maps

GAMMA = 1.0 - 1.0 / math.sqrt(2.0)
TOLERANCE, MOST_ITERATIONS = 1e-7, 25
"""Newton's method ends when no velocity changes by more [m/s, rad/s]; a step that takes more
iterations has failed."""


class Numbers(NamedTuple):
    """Constants of a beam of N elements and N + 1 nodes, of which node 0 does not move.

    Attributes:
        lengths: (N,) of the elements [m].
        stiffness: (N, 6) diagonals [N, N m^2].
        relaxation: (N, 6) viscous over elastic coefficients [s].
        inertia: (N + 1, 6, 6) of the nodes, linear first.
        gravity: (3,) acceleration that pulls the nodes, base frame [m/s^2].
        offsets: (N, 3, 4) from an element's lower node to where the element begins.
        lower: (N, 6, 6) velocity there of the velocity of the lower node.
        is_offset: (N,) whether these are not the identity.
        actuation: (N, 6, m) wrench per input in the elements' middles.
        curvature_share: relative change of the bending compliance at the reference curvature [-].
        reference_curvature: [1/m].
        tip_lever: from the last node to where the tip's force acts, along z [m].
    """

    lengths: np.ndarray
    stiffness: np.ndarray
    relaxation: np.ndarray
    inertia: np.ndarray
    gravity: np.ndarray
    offsets: np.ndarray
    lower: np.ndarray
    is_offset: np.ndarray
    actuation: np.ndarray
    curvature_share: float
    reference_curvature: float
    tip_lever: float


class Room(NamedTuple):
    """Scratch arrays of a beam, see `room_for`."""

    maps: np.ndarray
    psi: np.ndarray
    wrench: np.ndarray
    forces: np.ndarray
    poses: np.ndarray
    stages: np.ndarray
    change: np.ndarray
    diagonal: np.ndarray
    beside: np.ndarray
    carried: np.ndarray
    acting: np.ndarray
    rate: np.ndarray


def room_for(elements: int, inputs: int) -> Room:
    """Scratch arrays for a beam."""
    nodes = elements + 1
    return Room(
        maps=np.zeros((elements, 2, 6, 6)),
        psi=np.zeros((elements, 6)),
        wrench=np.zeros((elements, 6)),
        forces=np.zeros((nodes, 6)),
        poses=np.zeros((nodes, 3, 4)),
        stages=np.zeros((2, nodes, 6)),
        change=np.zeros((nodes, 6)),
        diagonal=np.zeros((nodes, 6, 6)),
        beside=np.zeros((elements, 6, 6)),
        carried=np.zeros((elements, 6, 6)),
        acting=np.zeros(inputs),
        rate=np.zeros((nodes, 6)),
    )


@inner
def softer(psi, length, softness, share, curvature):
    """Bending compliance over the nominal one in an element."""
    squared = (psi[3] * psi[3] + psi[4] * psi[4]) / (length * curvature) ** 2
    return softness * min(max(1.0 + share * squared, 0.5), 2.0)


@compiled
def node_forces(room, poses, velocities, acting, numbers, softness, tip_force):
    """Fill `room.forces` (N + 1, 6) with all that accelerates the nodes, body frames.

    Node 0's row is what the beam puts on its mounting, without node 0's own weight. On the way
    psi, maps and internal wrenches of the elements.

    Args:
        room: changed.
        poses: (N + 1, 3, 4) base frame; velocities: (N + 1, 6) body frames.
        acting: (m,) inputs.
        numbers: of the beam.
        softness: factor on the bending compliance.
        tip_force: (3,) at the tip, base frame [N].
    """
    forces, inertia = room.forces, numbers.inertia
    momentum = np.empty(6)
    begin = np.empty((3, 4))
    product = np.empty((6, 6))
    for i in range(forces.shape[0]):
        velocity = velocities[i]
        for k in range(6):
            momentum[k] = 0.0
            for j in range(6):
                momentum[k] += inertia[i, k, j] * velocity[j]
        for k in range(3):
            n, f = (k + 1) % 3, (k + 2) % 3
            forces[i, k] = momentum[n] * velocity[3 + f] - momentum[f] * velocity[3 + n]
            forces[i, 3 + k] = (
                momentum[3 + n] * velocity[3 + f] - momentum[3 + f] * velocity[3 + n]
                + momentum[n] * velocity[f] - momentum[f] * velocity[n]
            )  # fmt: skip
        for j in range(3 if i > 0 else 0):
            pull = 0.0
            for k in range(3):
                pull += poses[i, k, j] * numbers.gravity[k]
            for k in range(6):
                forces[i, k] += inertia[i, k, j] * pull
    for i in range(room.psi.shape[0]):
        psi, length = room.psi[i], numbers.lengths[i]
        map_a, map_b = room.maps[i, 0], room.maps[i, 1]
        if numbers.is_offset[i]:
            for r in range(3):
                for c in range(4):
                    begin[r, c] = poses[i, r, 3] if c == 3 else 0.0
                    for k in range(3):
                        begin[r, c] += poses[i, r, k] * numbers.offsets[i, k, c]
            relative_log(psi, begin, poses[i + 1])
        else:
            relative_log(psi, poses[i], poses[i + 1])
        strain_maps(map_a, map_b, psi)
        if numbers.is_offset[i]:
            for r in range(6):
                for c in range(6):
                    product[r, c] = 0.0
                    for k in range(6):
                        product[r, c] += map_a[r, k] * numbers.lower[i, k, c]
            map_a[:] = product
        bending = softer(
            psi, length, softness, numbers.curvature_share, numbers.reference_curvature
        )
        for k in range(6):
            rate = 0.0
            for j in range(6):
                rate += map_a[k, j] * velocities[i, j] + map_b[k, j] * velocities[i + 1, j]
            stretch = psi[k] - length if k == 2 else psi[k]
            stiffness = numbers.stiffness[i, k]
            stress = stiffness * stretch / (bending if k == 3 or k == 4 else 1.0)
            stress = (stress + stiffness * numbers.relaxation[i, k] * rate) / length
            for j in range(acting.shape[0]):
                stress -= numbers.actuation[i, k, j] * acting[j]
            room.wrench[i, k] = stress
        for k in range(6):
            for j in range(6):
                forces[i, k] -= map_a[j, k] * room.wrench[i, j]
                forces[i + 1, k] -= map_b[j, k] * room.wrench[i, j]
    tip = poses.shape[0] - 1
    for k in range(3):
        momentum[k] = 0.0
        for j in range(3):
            momentum[k] += poses[tip, j, k] * tip_force[j]
    for k in range(3):
        forces[tip, k] += momentum[k]
    forces[tip, 3] -= numbers.tip_lever * momentum[1]
    forces[tip, 4] += numbers.tip_lever * momentum[0]


@inner
def factorised(room, numbers, step, softness):
    """Newton's matrix M + step D + step^2 K of the elements' present strains, factorised.

    `room.diagonal` then holds Cholesky factors of the blocks, `room.carried` what of each block's
    solution goes to the one below.
    """
    nodes = room.diagonal.shape[0]
    room.diagonal[:] = numbers.inertia
    for i in range(nodes - 1):
        length = numbers.lengths[i]
        bending = softer(
            room.psi[i], length, softness, numbers.curvature_share, numbers.reference_curvature
        )
        map_a, map_b = room.maps[i, 0], room.maps[i, 1]
        below, above, beside = room.diagonal[i], room.diagonal[i + 1], room.beside[i]
        beside[:] = 0.0
        for j in range(6):
            elastic = step * step / (bending if j == 3 or j == 4 else 1.0)
            weight = step * numbers.relaxation[i, j] + elastic
            weight *= numbers.stiffness[i, j] / length
            for r in range(6):
                left, right = weight * map_a[j, r], weight * map_b[j, r]
                for c in range(6):
                    below[r, c] += left * map_a[j, c]
                    beside[r, c] += left * map_b[j, c]
                    above[r, c] += right * map_b[j, c]
    for i in range(1, nodes):
        block = room.diagonal[i]
        if i > 1:
            upper, carried = room.beside[i - 1], room.carried[i - 1]
            for r in range(6):
                for k in range(6):
                    for c in range(6):
                        block[r, c] -= upper[k, r] * carried[k, c]
        for c in range(6):
            for r in range(c, 6):
                total = block[r, c]
                for k in range(c):
                    total -= block[r, k] * block[c, k]
                block[r, c] = math.sqrt(total) if r == c else total / block[c, c]
        if i + 1 < nodes:
            room.carried[i][:] = room.beside[i]
            solve_block(block, room.carried[i])


@inner
def solve_block(factor, sides):
    """sides (6, s) become S^-1 sides, of the Cholesky factor (6, 6) of S."""
    for r in range(6):
        for k in range(r):
            for c in range(sides.shape[1]):
                sides[r, c] -= factor[r, k] * sides[k, c]
        for c in range(sides.shape[1]):
            sides[r, c] /= factor[r, r]
    for back in range(6):
        r = 5 - back
        for k in range(r + 1, 6):
            for c in range(sides.shape[1]):
                sides[r, c] -= factor[k, r] * sides[k, c]
        for c in range(sides.shape[1]):
            sides[r, c] /= factor[r, r]


@inner
def solve(room):
    """`room.change` (N + 1, 6) becomes the matrix' inverse times itself; row 0 is left alone."""
    change, nodes = room.change, room.change.shape[0]
    for i in range(1, nodes):
        if i > 1:
            for c in range(6):
                for k in range(6):
                    change[i, c] -= room.carried[i - 1][k, c] * change[i - 1, k]
    for below in range(nodes - 1):
        i = nodes - 1 - below
        solve_block(room.diagonal[i], change[i].reshape(6, 1))
        if i + 1 < nodes:
            for r in range(6):
                for k in range(6):
                    change[i, r] -= room.carried[i][r, k] * change[i + 1, k]


@compiled
def march(poses, velocities, levels, dt, numbers, room, softness, tip_force):
    """Advance a beam by S steps of `dt` [s] along inputs (S + 1, m), linear in between.

    Poses (N + 1, 3, 4) and velocities (N + 1, 6) are changed.

    Returns:
        Newton iterations of all stages; -1 if a step failed, and the beam is then of no use.
    """
    nodes = poses.shape[0]
    step = GAMMA * dt
    first, second = room.stages[0], room.stages[1]
    twist = np.empty(6)
    total = 0
    for piece in range(levels.shape[0] - 1):
        for stage in range(2):
            now = room.stages[stage]
            share = GAMMA if stage == 0 else 1.0
            for j in range(levels.shape[1]):
                apart = levels[piece + 1, j] - levels[piece, j]
                room.acting[j] = levels[piece, j] + share * apart
            for i in range(1, nodes):
                for k in range(6):
                    rate = room.rate[i, k]
                    if stage == 1:
                        rate = (first[i, k] - velocities[i, k]) / step
                    now[i, k] = velocities[i, k] + share * dt * rate
            iteration, largest = 0, np.inf
            while largest > TOLERANCE:
                for i in range(nodes):
                    for k in range(6):
                        twist[k] = step * now[i, k]
                        if stage == 1:
                            twist[k] += (dt - step) * first[i, k]
                    moved(room.poses[i], poses[i], twist)
                node_forces(room, room.poses, now, room.acting, numbers, softness, tip_force)
                if stage == 0 and iteration == 0:
                    factorised(room, numbers, step, softness)
                for i in range(1, nodes):
                    for k in range(6):
                        wrong = step * room.forces[i, k]
                        for j in range(6):
                            base = velocities[i, j]
                            if stage == 1:
                                base += (dt / step - 1.0) * (first[i, j] - velocities[i, j])
                            wrong -= numbers.inertia[i, k, j] * (now[i, j] - base)
                        room.change[i, k] = wrong
                solve(room)
                largest = 0.0
                for i in range(1, nodes):
                    for k in range(6):
                        now[i, k] += room.change[i, k]
                        largest = max(largest, abs(room.change[i, k]))
                iteration += 1
                if not largest < 1e6 or iteration > MOST_ITERATIONS:
                    return -1
            total += iteration
        for i in range(1, nodes):
            for k in range(6):
                twist[k] = step * second[i, k] + (dt - step) * first[i, k]
                room.rate[i, k] = (second[i, k] - velocities[i, k]) / dt
                velocities[i, k] = second[i, k]
            moved(room.poses[i], poses[i], twist)
            poses[i] = room.poses[i]
    return total

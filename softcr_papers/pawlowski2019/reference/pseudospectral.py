"""Statics by Chebyshev collocation, Pawlowski (2019), Sec. 2.6.2.

The unknowns at each point are theta (6,), a chart of the pose, g = g_0 exp(theta), and the total
internal wrench. D y = (L / 2) y' holds for both; the thesis's (2.104) lacks the factor L / 2. The
chart ends where the rod has turned by 2 pi.
"""

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from softcr_papers.pawlowski2019.lie import se3, so3
from softcr_papers.pawlowski2019.reference.kernel import statics_kernels
from softcr_papers.pawlowski2019.reference.numbers import Numbers, numbers_of
from softcr_papers.pawlowski2019.reference.steady import Equilibrium, Problem, base_pose, poses_of

_STEPS, _TOLERANCE, _REACH, _LEAST = 40, 1e-13, 1e-7, 1e-2


def chebyshev(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Points cos(i pi / N), i = 0 to N, from 1 down to -1, and D (N + 1, N + 1), (2.102)."""
    i = np.arange(order + 1)
    # the sine is odd to rounding, and differences of points keep their digits
    x = np.sin(0.5 * np.pi * (order - 2 * i) / order)
    weight = np.where((i == 0) | (i == order), 2.0, 1.0) * (-1.0) ** i
    gaps = x[:, None] - x + np.eye(order + 1)
    matrix = weight[:, None] / weight / gaps
    # rows of a derivative sum to zero: better rounded than (2.102)'s diagonal, and the same
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return x, matrix


def solve(problem: Problem, guess: Equilibrium | None) -> Equilibrium:
    """What Newton's method finds from a guess, or from the unloaded rod."""
    rod, points = problem.rod, problem.points
    x, matrix = chebyshev(points - 1)
    arc_lengths = 0.5 * rod.length * (1.0 + x)  # from the end down to the base
    about = None if guess is None else guess.strains_at(arc_lengths)
    numbers = numbers_of(rod, problem.loads, arc_lengths, about)
    collocation = _Collocation(problem, numbers, matrix)
    y = np.zeros((points, 12))
    if guess is None:
        y[:, :6] = arc_lengths[:, None] * rod.rest_strain
    else:
        y[:, :6] = se3.log(se3.inverse(base_pose(rod)) @ guess.poses[::-1])
        y[:, 6:] = guess.wrenches[::-1]
    z = y / collocation.sizes
    miss = collocation.miss(z)
    steps, size = 0, np.abs(miss).max()
    while steps < _STEPS and size > _TOLERANCE:
        try:
            change = lu_solve(lu_factor(collocation.jacobian(z)), miss.ravel()).reshape(z.shape)
        except (ValueError, np.linalg.LinAlgError):  # not finite, or singular
            break
        moved, found, share = z, miss, 2.0
        while not np.abs(found).max() < size and share > _LEAST:
            share *= 0.5
            moved = z - share * change
            found = collocation.miss(moved)
        if not np.abs(found).max() < size:
            break
        z, miss, size, steps = moved, found, np.abs(found).max(), steps + 1
    rotations, positions, strains, _ = collocation.evaluate(z)
    if not np.linalg.norm(z[:, 3:6], axis=1).max() < 2.0 * np.pi:
        size = np.inf  # beyond the chart
    return Equilibrium(
        arc_lengths[::-1], poses_of(rotations, positions)[::-1], strains[::-1],
        (z * collocation.sizes)[::-1, 6:], float(size), steps,
    )  # fmt: skip


class _Collocation:
    """What is wrong at all points, and its derivatives, of unknowns (P, 12) without unit."""

    def __init__(self, problem: Problem, numbers: Numbers, matrix: np.ndarray) -> None:
        rod = problem.rod
        self.problem, self.numbers, self.matrix = problem, numbers, matrix
        self.sizes = np.concatenate((np.repeat([rod.length, 1.0], 3), rod.scales))
        self.strains = np.tile(rod.rest_strain, (len(matrix), 1)).astype(float)

    def evaluate(self, z):
        """Rotations, positions, strains and rates (P, 12) without unit, at (P,) points."""
        y, places = z * self.sizes, len(z)
        rotations, positions = np.empty((places + 1, 3, 3)), np.empty((places + 1, 3))
        start, strains, rates = base_pose(self.problem.rod), self.strains.copy(), np.empty(z.shape)
        rotations[-1], positions[-1] = start[:3, :3], start[:3, 3]
        theta, lam = np.ascontiguousarray(y[:, :6]), np.ascontiguousarray(y[:, 6:])
        statics_kernels().chart_rates(
            theta, lam, self.numbers, rotations, positions, strains, rates
        )
        return rotations[:-1], positions[:-1], strains, rates / self.sizes

    def _parts(self, z):
        """Rates times L / 2, and what is wrong at the end (6,)."""
        rotations, positions, strains, rates = self.evaluate(z)
        goal, rod = self.problem.goal, self.problem.rod
        if goal is None:
            wrench = statics_kernels().wrench_at_end(rotations[0], strains[0], 0, self.numbers)
            end = z[0, 6:] - wrench / rod.scales
        else:
            back = goal[:3, :3].T
            move = back @ (positions[0] - goal[:3, 3]) / rod.length
            turned = back @ rotations[0]
            # of a rotation that Newton's method has not made one yet, NaN too
            turn = so3.log(turned) if np.isfinite(turned).all() else np.full(3, np.nan)
            end = np.concatenate((move, turn))
        return 0.5 * rod.length * rates, end

    def miss(self, z):
        """(P, 12)."""
        rates, end = self._parts(z)
        out = self.matrix @ z - rates
        out[-1, :6] = z[-1, :6]  # theta = 0 at the base
        out[0, 6:] = end
        return out

    def jacobian(self, z):
        """(12 P, 12 P): D, and differences of the rates, which are those of each point alone."""
        places = len(z)
        rates, end = self._parts(z)
        out = np.einsum("ij,ab->iajb", self.matrix, np.eye(12))
        ends = np.zeros((6, 12))
        for c in range(12):
            moved = z.copy()
            moved[:, c] += _REACH
            their_rates, their_end = self._parts(moved)
            ends[:, c] = (their_end - end) / _REACH
            change = (their_rates - rates) / _REACH
            for i in range(places):
                out[i, :, i, c] -= change[i]
        out[-1, :6], out[0, 6:] = 0.0, 0.0
        out[-1, :6, -1, :6] = np.eye(6)
        out[0, 6:, 0] = ends
        return out.reshape(12 * places, 12 * places)

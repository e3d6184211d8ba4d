"""How fast disturbances grow in the implicit integrator, since it marches explicitly along the rod.

The midpoint rule in time neither damps nor excites. Marching by explicit rules in space does where
shear and bending are coupled: waves of short steps and coarse grids gain energy in every step, and
viscosity has to take it away. Below the shortest step of Pawlowski (2019), Sec. 3.4, they win.
"""

import numpy as np

from softcr_papers.pawlowski2019.lie import se3
from softcr_papers.pawlowski2019.reference.reference_rod import ReferenceRod

_PLANES = ([0, 4], [1, 3], [2], [5])
"""Strains that are coupled in a straight rod: bending with shear, stretch, torsion."""


def growth_rate(rod: ReferenceRod, points: int, dt: float, space: str = "euler") -> float:
    """Rate at which the fastest growing motion about the unloaded rod grows [1/s], 0 for none.

    Eigenvalues of one step of time, linear in small strains and velocities. Muscles, drag, loads
    and inputs have no part in it.

    Args:
        rod: straight at rest.
        points: N of the integrator.
        dt: its step [s].
        space: how it is marched along, as in `implicit_motion`.
    """
    fastest = max(_radius(rod, points, dt, space, plane) for plane in _PLANES)
    # rounding of eigenvalues that lie on the circle
    return float(max(0.0, np.log(fastest) / dt)) if fastest > 1.0 + 1e-7 else 0.0


def _radius(rod: ReferenceRod, points: int, dt: float, space: str, plane: list[int]) -> float:
    """Largest absolute eigenvalue of a step of the strains of a plane and their velocities."""
    m = len(plane)
    stages = 1 if space == "euler" else 2
    rows, h = stages * (points - 1) + 1, rod.length / (points - 1)
    bracket = se3.ad(rod.rest_strain)[np.ix_(plane, plane)]
    inertia, viscosity = np.diag(rod.inertia[plane]), np.diag(rod.viscosity[plane])
    stiffness = np.diag(rod.stiffness[plane])
    size = 2 * m * rows  # strains, then velocities, of all rows
    now, old = np.zeros((size, size)), np.zeros((size, size))

    def at(row: int) -> tuple[slice, slice]:
        return slice(m * row, m * row + m), slice(m * (rows + row), m * (rows + row) + m)

    def wrench(row: int) -> tuple[np.ndarray, np.ndarray]:
        """lam of a row, of strains at the half of the step and before it: K xi + V xi'."""
        half, before = np.zeros((m, size)), np.zeros((m, size))
        strain, _ = at(row)
        half[:, strain], before[:, strain] = stiffness + 2.0 / dt * viscosity, 2.0 / dt * viscosity
        return half, before

    def rates(row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of lam and of eta, (3.51) and (3.52), of what is at the half and before."""
        half, before = wrench(row)
        strain, velocity = at(row)
        force, force_before = bracket.T @ half, bracket.T @ before
        force[:, velocity] += 2.0 / dt * inertia
        force_before[:, velocity] += 2.0 / dt * inertia
        move, move_before = np.zeros((m, size)), np.zeros((m, size))
        move[:, strain], move_before[:, strain] = 2.0 / dt * np.eye(m), 2.0 / dt * np.eye(m)
        move[:, velocity] -= bracket
        return force, force_before, move, move_before

    def equate(line: int, row: int, begin: int, by: int, length: float) -> int:
        """lam and eta of a row are those of another plus its length times rates of a third."""
        force, force_before, move, move_before = rates(by)
        (later, later_before), (early, early_before) = wrench(row), wrench(begin)
        now[line : line + m] = later - early - length * force
        old[line : line + m] = later_before - early_before - length * force_before
        _, velocity = at(row)
        _, velocity_begin = at(begin)
        now[line + m : line + 2 * m] = -length * move
        now[line + m : line + 2 * m, velocity] += np.eye(m)
        now[line + m : line + 2 * m, velocity_begin] -= np.eye(m)
        old[line + m : line + 2 * m] = -length * move_before
        return line + 2 * m

    line = 0
    for row in range(0, rows - 1, stages):
        if stages == 2:
            line = equate(line, row + 1, row, row, 0.5 * h)
        line = equate(line, row + stages, row, row + stages - 1, h)
    now[line : line + m, at(0)[1]] = np.eye(m)  # the base does not move
    now[line + m :], old[line + m :] = wrench(rows - 1)  # the end is free
    step = 2.0 * np.linalg.solve(now, old) - np.eye(size)
    return float(np.abs(np.linalg.eigvals(step)).max())

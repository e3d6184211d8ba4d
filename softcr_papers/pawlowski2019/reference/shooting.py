"""Statics by shooting: a scheme marches from the base, Newton's method finds the wrench there.

Runge-Kutta-Munthe-Kaas schemes of Pawlowski (2019), Sec. 2.6.1, of orders one and two, for which
dexp is the identity.
"""

import numpy as np

from softcr_papers.pawlowski2019.reference.kernel import statics_kernels
from softcr_papers.pawlowski2019.reference.numbers import numbers_of
from softcr_papers.pawlowski2019.reference.steady import Equilibrium, Problem, base_pose, poses_of

SCHEMES = ("explicit_euler", "implicit_euler", "explicit_midpoint", "implicit_midpoint")
"""In the order of the numbers that they have in compiled text."""

_TOLERANCE, _STEPS = 1e-13, 40


def solve(problem: Problem, scheme: str, guess: Equilibrium | None) -> Equilibrium:
    """What the scheme finds from a guess, or from an unloaded base; its residual says how good."""
    rod, points = problem.rod, problem.points
    h = rod.length / (points - 1)
    places = np.linspace(0.0, rod.length, 2 * points - 1)
    about = None if guess is None else guess.strains_at(places)
    numbers = numbers_of(rod, problem.loads, places, about)
    base = np.zeros(6) if guess is None else guess.base_wrench.copy()
    rotations, positions = np.zeros((points, 3, 3)), np.zeros((points, 3))
    rotations[0], positions[0] = np.eye(3), base_pose(rod)[:3, 3]
    strains, wrenches = np.zeros((points, 6)), np.zeros((points, 6))
    goal = np.eye(4) if problem.goal is None else problem.goal
    steps, residual = statics_kernels().shoot(
        SCHEMES.index(scheme), h, base, problem.goal is not None, goal, rod.scales, numbers,
        rotations, positions, strains, wrenches, _STEPS, _TOLERANCE,
    )  # fmt: skip
    return Equilibrium(
        h * np.arange(points), poses_of(rotations, positions), strains, wrenches, residual, steps
    )

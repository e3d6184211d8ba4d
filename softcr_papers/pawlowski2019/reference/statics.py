"""Steady states of a `ReferenceRod` by five methods."""

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.lie import se3
from softcr_papers.pawlowski2019.reference import pseudospectral, shooting
from softcr_papers.pawlowski2019.reference.muscles import no_law
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.reference.steady import Equilibrium, Problem, base_pose

Method = Literal[
    "explicit_euler", "implicit_euler", "explicit_midpoint", "implicit_midpoint", "pseudospectral"
]
METHODS: tuple[Method, ...] = get_args(Method)
"""Four schemes that shoot, see `shooting`, and Chebyshev collocation, see `pseudospectral`."""

_GOOD = 1e-9  # of what is wrong, see `Equilibrium.residual`
_ROUNDS = 30  # of laws made linear
_LEAST = 1e-3  # share of the loads by which they are raised at least


class NoEquilibrium(ArithmeticError):
    """A method found no steady state; one line."""


def equilibrium(
    rod: ReferenceRod,
    loads: Loads | None = None,
    method: Method = "implicit_midpoint",
    points: int = 21,
    tip_pose: np.ndarray | None = None,
) -> Equilibrium:
    """The steady state reached by raising weight and loads from zero.

    Args:
        rod: which.
        loads: beside its weight.
        method: how it is found.
        points: N, both ends included; Chebyshev's for "pseudospectral", else evenly spaced.
        tip_pose: (4, 4) in the base frame where the rod's end is clamped; None: it is free.

    Raises:
        NoEquilibrium: none was found.
        UserError: an argument is not allowed.
    """
    loads = loads or Loads()
    if method not in METHODS:
        raise UserError(f"method {method!r}: must be one of {', '.join(METHODS)}")
    if points < 2:
        raise UserError(f"points: {points} is not allowed: at least 2")
    if tip_pose is not None and np.shape(tip_pose) != (4, 4):
        raise UserError(f"tip_pose of shape {np.shape(tip_pose)}: must be (4, 4)")
    if method == "pseudospectral" and any(line.is_partial(rod.length) for line in rod.lines):
        raise UserError("method 'pseudospectral': strains jump where a line ends before the rod")
    # what is not allowed is told before the search
    loads.wrenches(), loads.tensions(rod), loads.muscle_inputs(rod)
    guess, reached, piece = None, 0.0, 1.0
    while reached < 1.0:
        share = min(1.0, reached + piece)
        part = replace(rod, weight=share * rod.weight)
        goal = None if tip_pose is None else _towards(rod, np.asarray(tip_pose, float), share)
        problem = Problem(part, loads.scaled(share), points, goal)
        found = _solve(problem, method, guess)
        if found.residual < _GOOD:
            guess, reached, piece = found, share, 2.0 * piece
        elif piece > _LEAST:
            piece *= 0.5
        else:
            raise NoEquilibrium(
                f"{method}, {points} points: no steady state found beyond {reached:.3g} of the "
                "loads"
            )
    assert guess is not None
    return guess


def _solve(problem: Problem, method: Method, guess: Equilibrium | None) -> Equilibrium:
    """From a guess; laws of muscles are linear about its strains, until these no longer change."""
    laws = any(muscle.law is not no_law for muscle in problem.rod.muscles)
    for _ in range(_ROUNDS):
        if method == "pseudospectral":
            found = pseudospectral.solve(problem, guess)
        else:
            found = shooting.solve(problem, method, guess)
        if not laws or not found.residual < _GOOD:
            return found
        if guess is not None and len(guess.strains) == len(found.strains):
            change = np.abs(found.strains - guess.strains) / (1.0 + np.abs(found.strains))
            if change.max() < _GOOD:
                return found
        guess = found
    return replace(found, residual=np.inf)


def _towards(rod: ReferenceRod, tip_pose: np.ndarray, share: float) -> np.ndarray:
    """(4, 4) at a share of the way from the unloaded rod's end."""
    free = base_pose(rod) @ se3.exp(rod.length * rod.rest_strain)
    way: np.ndarray = free @ se3.exp(share * se3.log(se3.inverse(free) @ tip_pose))
    return way

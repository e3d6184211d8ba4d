"""How long the lines of a rod are, and the tensions that make them so, Pawlowski (2019), (2.47)."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.optimize import least_squares

from softcr_models.errors import UserError
from softcr_models.reference.actuator_lines import direction
from softcr_models.reference.reference_rod import Loads, ReferenceRod
from softcr_models.reference.statics import Method, NoEquilibrium, equilibrium
from softcr_models.reference.steady import Equilibrium

_GOOD = 1e-9  # of a length, in parts of the rod's


def line_changes(rod: ReferenceRod, rest: Equilibrium) -> np.ndarray:
    """(m,) how much longer than in the unloaded rod each line is [m]."""
    places = rest.arc_lengths
    changes = []
    for line in rod.lines:
        offset = line.offset(places)
        _, strained = direction(offset, rest.strains)
        _, unstrained = direction(offset, rod.rest_strain)
        changes.append(float(CubicSpline(places, strained - unstrained).integrate(0, rod.length)))
    return np.array(changes)


def equilibrium_of_changes(
    rod: ReferenceRod,
    changes: ArrayLike,
    loads: Loads | None = None,
    method: Method = "implicit_midpoint",
    points: int = 21,
) -> tuple[Equilibrium, np.ndarray]:
    """The steady state in which the lines have changed their lengths, and their tensions (m,) [N].

    Args:
        rod: whose lines are all cables that act along their tangents.
        changes: (m,) of the lines' lengths, below zero where they are pulled in [m].
        loads: beside the cables; their inputs are a guess of the tensions.
        method, points: of `equilibrium`.

    Raises:
        NoEquilibrium: the cables would have to push, or no state was found.
        UserError: a wrong number of changes, or lines that are no such cables.
    """
    loads, wanted = loads or Loads(), np.asarray(changes, float)
    if wanted.shape != (len(rod.lines),) or not np.isfinite(wanted).all():
        raise UserError(f"changes {wanted.tolist()}: must be {len(rod.lines)} finite lengths")
    if not all(line.is_cable and line.acting == "tangent" for line in rod.lines):
        raise UserError("changes of lengths: every line must be a cable along its tangent")
    force = float(rod.scales[0])

    def miss(scaled: np.ndarray) -> np.ndarray:
        found = equilibrium(rod, replace(loads, inputs=force * scaled), method, points)
        away: np.ndarray = (line_changes(rod, found) - wanted) / rod.length
        return away

    guess = np.asarray(loads.inputs, float) / force
    guess = guess if guess.size else np.ones(len(rod.lines))
    solved = least_squares(miss, guess, bounds=(0.0, np.inf), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    tensions: np.ndarray = force * solved.x
    if np.abs(solved.fun).max() > _GOOD:
        raise NoEquilibrium(
            f"changes {wanted.tolist()} m: no tensions from 0 on make them; a cable would be slack"
        )
    return equilibrium(rod, replace(loads, inputs=tensions), method, points), tensions

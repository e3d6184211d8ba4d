"""A rod and its loads at chosen places, as the named tuple that compiled solvers take."""

from typing import NamedTuple

import numpy as np

from softcr_models.reference.actuator_lines import direction
from softcr_models.reference.reference_rod import Loads, ReferenceRod


class Numbers(NamedTuple):
    """What a solver needs of a rod with m lines at P places.

    Attributes:
        stiffness, rest_strain: (6,).
        weight: (3,) per length, base frame [N/m].
        body_wrench: (6,) per length, section's frame.
        restoring: pressure times area of the chambers that have the moment (2.51) [N].
        offsets: (P, m, 2, 3) of the lines.
        directions: (P, m, 3) of the lines in the unstrained rod.
        tangent: (m,) 1 for lines that act along their own direction in the bent rod.
        pulls: (m,) tensions of lines that act along the rod, 0 of the others [N].
        end_pulls: (m,) tensions of those that act at its end alone [N].
        bent: 1 if a line acts along its tangent, so that strain follows by Newton's method.
        tip_force, tip_wrench: (3,) base frame, (6,) section's frame.
        tip_lever: from the rod's end to where the tip force acts, along z [m].
    """

    stiffness: np.ndarray
    rest_strain: np.ndarray
    weight: np.ndarray
    body_wrench: np.ndarray
    restoring: float
    offsets: np.ndarray
    directions: np.ndarray
    tangent: np.ndarray
    pulls: np.ndarray
    end_pulls: np.ndarray
    bent: int
    tip_force: np.ndarray
    tip_wrench: np.ndarray
    tip_lever: float


def numbers_of(rod: ReferenceRod, loads: Loads, places: np.ndarray) -> Numbers:
    """The numbers at arc lengths (P,) [m].

    Raises:
        UserError: see `Loads`.
    """
    tensions = loads.tensions(rod)
    tip_force, tip_wrench, body_wrench = loads.wrenches()
    offsets = np.zeros((len(places), len(rod.lines), 2, 3))
    for i, line in enumerate(rod.lines):
        offsets[:, i] = line.offset(places)
    at_end = np.array([line.acting == "tip" for line in rod.lines], bool)
    tangent = np.array([line.acting == "tangent" for line in rod.lines], bool)
    pushes = [-t for line, t in zip(rod.lines, tensions, strict=True) if line.restoring]
    return Numbers(
        stiffness=np.array(rod.stiffness, float),
        rest_strain=np.array(rod.rest_strain, float),
        weight=np.array(rod.weight, float),
        body_wrench=body_wrench,
        restoring=float(sum(pushes)),
        offsets=offsets,
        directions=np.ascontiguousarray(direction(offsets, rod.rest_strain)[0]),
        tangent=tangent.astype(np.int64),
        pulls=np.where(at_end, 0.0, tensions),
        end_pulls=np.where(at_end, tensions, 0.0),
        bent=int((tangent & (tensions != 0.0)).any()),
        tip_force=tip_force,
        tip_wrench=tip_wrench,
        tip_lever=float(rod.tip_cap_length),
    )

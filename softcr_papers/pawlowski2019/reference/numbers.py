"""A rod and its loads at chosen places, as the named tuple that compiled solvers take."""

from typing import NamedTuple

import numpy as np

from softcr_papers.pawlowski2019.reference.actuator_lines import section_wrench
from softcr_papers.pawlowski2019.reference.muscles import bond_of
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod


class Numbers(NamedTuple):
    """What a solver needs of a rod with m lines at P places.

    Attributes:
        stiffness, rest_strain: (6,).
        weight: (3,) per length, base frame [N/m].
        body_wrench: (6,) per length, section's frame.
        restoring: pressure times area of the chambers that have the moment (2.51) [N].
        centres: (P, 3) where the weight acts in the section [m].
        offsets: (P, m, 2, 3) of the lines.
        pulls: (P, m) tensions of lines that run there and act along their tangents [N].
        end_pulls: (m,) tensions of those that act at the rod's end alone [N].
        steady: (P, 6) of the internal wrench, what does not depend on the strain: of lines that act
            as in the unstrained rod, and of muscles.
        bonds: (P, 6, 6) of the internal wrench, what is proportional to the strain: of muscles.
        masses: (P, 6, 6) inertia of muscles per length, of the section's velocity.
        bent, bonded: 1 if there are pulls, or muscles.
        tip_force, tip_wrench: (3,) base frame, (6,) section's frame.
        tip_lever: from the rod's end to where the tip force acts, along z [m].
    """

    stiffness: np.ndarray
    rest_strain: np.ndarray
    weight: np.ndarray
    body_wrench: np.ndarray
    restoring: float
    centres: np.ndarray
    offsets: np.ndarray
    pulls: np.ndarray
    end_pulls: np.ndarray
    steady: np.ndarray
    bonds: np.ndarray
    masses: np.ndarray
    bent: int
    bonded: int
    tip_force: np.ndarray
    tip_wrench: np.ndarray
    tip_lever: float


def numbers_of(
    rod: ReferenceRod, loads: Loads, places: np.ndarray, strains: np.ndarray | None = None
) -> Numbers:
    """The numbers at arc lengths (P,) [m].

    Args:
        rod, loads, places: which.
        strains: (P, 6) about which muscles' laws are made linear; None: the unloaded rod's.

    Raises:
        UserError: see `Loads`.
    """
    tensions = loads.tensions(rod)
    tip_force, tip_wrench, body_wrench = loads.wrenches()
    count = len(places)
    offsets, running = np.zeros((count, len(rod.lines), 2, 3)), np.zeros((count, len(rod.lines)))
    for i, line in enumerate(rod.lines):
        offsets[:, i] = line.offset(places)
        running[:, i] = line.runs_at(places, rod.length)
    acting = np.array([line.acting for line in rod.lines], "U7")
    columns = -section_wrench(offsets, np.asarray(rod.rest_strain, float))
    straight = running * tensions * (acting == "section")
    pulls = running * tensions * (acting == "tangent")
    about = np.broadcast_to(rod.rest_strain, (count, 6)) if strains is None else strains
    bond = bond_of(rod.muscles, loads.muscle_inputs(rod), places, about, rod.rest_strain,
                   (rod.weight, float(rod.inertia[0])))  # fmt: skip
    pushes = [-t for line, t in zip(rod.lines, tensions, strict=True) if line.restoring]
    return Numbers(
        stiffness=np.array(rod.stiffness, float),
        rest_strain=np.array(rod.rest_strain, float),
        weight=rod.weight + bond.weight,
        body_wrench=body_wrench,
        restoring=float(sum(pushes)),
        centres=bond.centres,
        offsets=offsets,
        pulls=pulls,
        end_pulls=np.where(acting == "tip", tensions, 0.0),
        steady=np.einsum("pm,pmk->pk", straight, columns) + bond.steady,
        bonds=bond.stiffness,
        masses=bond.inertia,
        bent=int(pulls.any()),
        bonded=int(bool(rod.muscles)),
        tip_force=tip_force,
        tip_wrench=tip_wrench,
        tip_lever=float(rod.tip_cap_length),
    )

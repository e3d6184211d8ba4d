"""Artificial muscles bonded in a rod along their whole length, Pawlowski (2019), 2.4.4 and 3.2.3.

A muscle is a rod itself, with the pose g T(s) beside the section's g, (2.54). Its strain and
velocity follow from the section's, (2.59) and (3.20), and its internal wrench W_a is Ad(T)^-T W_a
in the section's frame. In these frames the sum of the balances of rod and muscle, (2.64) and (3.16)
with (3.17), is the balance of one rod: of stiffness K + Ad(T)^-T K_a Ad(T)^-1 and of such an
inertia, in which what the muscle generates is a wrench inside. The thesis prints (2.64) with the
opposite sign of the muscle's part and Ad(T)^T, and (3.17) without the minus of a reaction.

A muscle that is fixed at its ends alone is a `Line` with a law of its length, see `drives`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.lie import se3

Frame = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""(J,) arc lengths [m] -> T (J, 4, 4) in the section's frame, and xi_T (J, 6) of T' = T hat(xi_T).
"""

Law = Callable[[float, np.ndarray], np.ndarray]
"""Input q, strains xi_a (J, 6) -> (J, 6) wrench that the muscle generates inside, in its frame, as
one that pulls: the distributed load W_gen of (2.63) is its W' - ad(xi_a)^T W."""

_REACH = 1e-6


def no_law(_: float, strains: np.ndarray) -> np.ndarray:
    """Generates nothing."""
    return np.zeros_like(strains)


@dataclass(frozen=True, eq=False)
class Muscle:
    """A muscle bonded in a rod; twists and wrenches (6,) linear first, in its frame.

    Attributes:
        name: of it.
        frame: where it lies in the section.
        stiffness: (6,) diagonal of K_a [N, N m^2].
        inertia: (6,) diagonal of M_a [kg/m, kg m].
        rest_strain: (6,) at which its material bears nothing; None: that in the unloaded rod.
        law: what it generates of its input and its strain.
    """

    name: str
    frame: Frame
    stiffness: np.ndarray
    inertia: np.ndarray = field(default_factory=lambda: np.zeros(6))
    rest_strain: np.ndarray | None = None
    law: Law = no_law


def beside(offset: Callable[[np.ndarray], np.ndarray]) -> Frame:
    """T = [[1, r], [0, 1]], (3.13), of places and slopes (J, 2, 3) as those of a `Line`."""

    def frame(arc_lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        run = offset(arc_lengths)
        poses, rates = np.tile(np.eye(4), (len(run), 1, 1)), np.zeros((len(run), 6))
        poses[:, :3, 3], rates[:, :3] = run[:, 0], run[:, 1]
        return poses, rates

    return frame


class Bond(NamedTuple):
    """What muscles add to a rod at P places.

    Attributes:
        stiffness, inertia: (P, 6, 6) of the section's strain and velocity.
        steady: (P, 6) internal wrench at zero strain.
        weight: (3,) per length, base frame [N/m].
        centres: (P, 3) where the weight of rod and muscles acts in the section [m].
    """

    stiffness: np.ndarray
    inertia: np.ndarray
    steady: np.ndarray
    weight: np.ndarray
    centres: np.ndarray


def bond_of(
    muscles: Sequence[Muscle],
    inputs: np.ndarray,
    places: np.ndarray,
    strains: np.ndarray,
    rest_strain: np.ndarray,
    weight_per_mass: tuple[np.ndarray, float],
) -> Bond:
    """What they add; laws are linear about strains (P, 6), exact there.

    Args:
        muscles, inputs: (k,) of each.
        places: (P,) arc lengths [m].
        strains: (P, 6) of the rod.
        rest_strain: (6,) of the unloaded rod.
        weight_per_mass: the rod's weight (3,) [N/m] and its mass [kg/m] per length.
    """
    count = len(places)
    stiffness, inertia = np.zeros((count, 6, 6)), np.zeros((count, 6, 6))
    steady, moments, heavier = np.zeros((count, 6)), np.zeros((count, 3)), 0.0
    for muscle, q in zip(muscles, inputs.tolist(), strict=True):
        poses, rates = muscle.frame(places)
        into = np.linalg.inv(se3.adjoint(poses))  # (2.59): xi_a = Ad(T)^-1 xi + xi_T
        out = np.swapaxes(into, -1, -2)
        seen = _times(into, strains) + rates
        rest = muscle.rest_strain
        rest = _times(into, rest_strain) + rates if rest is None else rest
        generated, slope = _linear(muscle.law, q, seen)
        inside = np.diag(muscle.stiffness) + slope
        stiffness += out @ inside @ into
        # at zero strain of the rod its own is xi_T
        at_zero = generated + _times(slope, rates - seen) + muscle.stiffness * (rates - rest)
        steady += _times(out, at_zero)
        inertia += out @ np.diag(muscle.inertia) @ into
        heavier += muscle.inertia[0]
        moments += muscle.inertia[0] * poses[:, :3, 3]
    weight, mass = weight_per_mass
    return Bond(stiffness, inertia, steady, weight * heavier / mass, moments / (mass + heavier))


def require_inputs(muscles: Sequence[Muscle], inputs: np.ndarray) -> np.ndarray:
    """(k,) inputs, zeros where none are given.

    Raises:
        UserError: a wrong number of them.
    """
    inputs = inputs if inputs.size else np.zeros(len(muscles))
    if inputs.shape != (len(muscles),):
        raise UserError(f"muscles of shape {inputs.shape}: this rod has {len(muscles)} muscles")
    return inputs


def _linear(law: Law, q: float, strains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(P, 6) of a law, and its slope (P, 6, 6) by the strain."""
    value = law(q, strains)
    slope = np.zeros((len(strains), 6, 6))
    for k in range(6):
        step = np.zeros(6)
        step[k] = _REACH * (1.0 if k < 3 else 1e2)
        slope[:, :, k] = (law(q, strains + step) - law(q, strains - step)) / (2.0 * step[k])
    return value, slope


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(P, 6) of matrices (P, 6, 6) and vectors (P, 6) or (6,)."""
    found: np.ndarray = (matrices @ np.broadcast_to(vectors, (len(matrices), 6))[..., None])[..., 0]
    return found

"""Where goals lie: in a box of bending, direction and stretch, or where tips have been seen."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.spatial import KDTree

from softcr_models.errors import UserError
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.policy.observation import straight_tip
from softcr_papers.pawlowski2019.reference.dynamic_workspace import (
    Excitation,
    dynamic_workspace,
    reached_tips,
)
from softcr_papers.pawlowski2019.reference.workspace import Workspace, coordinates_of, tip_of

QUANTILE = 0.999
"""Share of the tips that the box without rare ones contains, of each of its bounds."""

_ROUGH = 2.0
"""A point is among seen tips where the nearest is no further than so many times its neighbour."""


class Goals(Protocol):
    """A set of goals."""

    def sample(self, count: int, random: np.random.Generator) -> np.ndarray:
        """(count, 3) of them, base frame [m]."""
        ...

    def contains(self, goals: np.ndarray) -> np.ndarray:
        """(B,) whether goals (B, 3) are of the set."""
        ...

    def __str__(self) -> str:
        """In words, for a person."""
        ...


@dataclass(frozen=True)
class Polar:
    """Tips as bending of an arc from the rod's base, in two directions, and its stretch, (2.120).

    Attributes:
        length: of the straight robot from the rod's base to the tip [m].
        height: of the rod's base above the base frame [m].
    """

    length: float
    height: float

    @property
    def _up(self) -> np.ndarray:
        return np.array([0.0, 0.0, self.height])

    @classmethod
    def of_plant(cls, plant: Plant) -> "Polar":
        """That of a plant's robot."""
        height = plant.model.rod.base_height
        return cls(float(straight_tip(plant.model)[2]) - height, height)

    def tips(self, bends: np.ndarray) -> np.ndarray:
        """(..., 3) tips [m] of bendings towards x and y [1/m] and stretches [-] (..., 3)."""
        x, y, stretch = np.moveaxis(np.asarray(bends, float), -1, 0)
        box = np.stack((np.hypot(x, y), np.arctan2(x, -y), stretch), axis=-1)
        tips: np.ndarray = tip_of(box, self.length) + self._up
        return tips

    def bends(self, tips: np.ndarray) -> np.ndarray:
        """(..., 3) what `tips` was given."""
        box = coordinates_of(np.asarray(tips) - self._up, self.length)
        curvature, direction, stretch = np.moveaxis(box, -1, 0)
        return np.stack(
            (curvature * np.sin(direction), -curvature * np.cos(direction), stretch), axis=-1
        )


@dataclass(frozen=True)
class BoxGoals:
    """The thesis's workspace, Sec. 2.7.3 and 3.4.1: uniform in bending, direction and stretch.

    Attributes:
        box: of the rod without what is below its base.
        height: of the rod's base above the base frame [m].
    """

    box: Workspace
    height: float = 0.0

    def sample(self, count: int, random: np.random.Generator) -> np.ndarray:
        return self.box.sample(count, random) + np.array([0.0, 0.0, self.height])

    def contains(self, goals: np.ndarray) -> np.ndarray:
        return self.box.contains(goals - (0.0, 0.0, self.height))

    def __str__(self) -> str:
        low, high = self.box.stretch
        return f"bending up to {self.box.curvature:.4g} 1/m, stretch from {low:.3g} to {high:.3g}"


@dataclass(frozen=True, eq=False)
class SeenGoals:
    """Tips that a robot was seen at.

    Attributes:
        seen: (J, 3) of them [m].
    """

    seen: np.ndarray

    def sample(self, count: int, random: np.random.Generator) -> np.ndarray:
        return self.seen[random.integers(len(self.seen), size=count)]

    def contains(self, goals: np.ndarray) -> np.ndarray:
        """See Goals; roughly."""
        distance, nearest = self._tree.query(goals)
        return np.asarray(distance <= _ROUGH * self._tree.query(self.seen[nearest], k=2)[0][:, 1])

    def __str__(self) -> str:
        low, high = 1e3 * self.seen.min(axis=0), 1e3 * self.seen.max(axis=0)
        told = (f"{a:.0f} to {b:.0f}" for a, b in zip(low, high, strict=True))
        return f"{len(self.seen)} tips, {', '.join(told)} mm"

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.seen)


@dataclass(frozen=True, eq=False)
class OneGoal:
    """A single goal.

    Attributes:
        place: (3,) [m].
    """

    place: np.ndarray

    def sample(self, count: int, random: np.random.Generator) -> np.ndarray:
        return np.tile(self.place, (count, 1))

    def contains(self, goals: np.ndarray) -> np.ndarray:
        return np.linalg.norm(goals - self.place, axis=1) < 1e-9

    def __str__(self) -> str:
        return "(" + ", ".join(f"{1e3 * each:.4g}" for each in self.place) + ") mm"


def tips_in_motion(plant: Plant, seed: int = 0, excitation: Excitation | None = None) -> np.ndarray:
    """(runs, steps, 3) tips under random held inputs, Sec. 3.4.1, on the plant's grid [m]."""
    own = plant.settings
    substep = own.period / (own.linearisations * own.substeps)
    rod = CosseratRod(plant.robot, own.intervals, substep)
    chosen = excitation or Excitation(period=own.period)
    return reached_tips(rod, chosen, np.random.default_rng(seed))


def box_around(plant: Plant, tips: np.ndarray, share: float = 1.0) -> BoxGoals:
    """The box around tips (..., 3) of a plant's robot, or around a share of them."""
    polar = Polar.of_plant(plant)
    box = dynamic_workspace(tips - (0.0, 0.0, polar.height), polar.length, share)
    return BoxGoals(box, polar.height)


def require_goals(goals: np.ndarray, allowed: Goals, what: str) -> None:
    """That goals (B, 3) are inside.

    Args:
        goals: [m].
        allowed: where they may lie.
        what: names them in the line.

    Raises:
        UserError: with the first that is not.
    """
    if goals.ndim != 2 or goals.shape[1] != 3 or not np.isfinite(goals).all():
        raise UserError(f"{what}: must be three finite numbers [m] each")
    outside = ~allowed.contains(goals)
    if outside.any():
        place = ", ".join(f"{each:.4g}" for each in goals[outside][0])
        raise UserError(f"{what} ({place}) m: is outside of the workspace: {allowed}")

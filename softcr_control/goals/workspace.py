"""Where a robot's tip can stand still: known roughly from samples, and exactly by looking for it.

`ModelTipSolver` asks a model for its equilibria, whatever drives it; a robot whose controller needs
no model's states may bring a `TipSolver` of its own.
"""

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation
from scipy.stats import qmc

from softcr_control.reference.inverse_statics import holding_numbers
from softcr_models.errors import UserError
from softcr_models.model import TIP, Model, nominal_parameters
from softcr_models.rod.cosserat_rod import EquilibriumError

_EDGE = 1e-3  # of the range: a search begins inside the limits
_SAMPLES = 256  # a power of two, as Sobol's sequence wants it
_ROUGH = 2.0
"""A point is in the workspace, roughly, where its distance to a sample is at most so many times the
sample's own to the next one."""

_ENOUGH = 0.01  # of the tolerance, where a search ends

_COORDINATES = 3  # of a tip
_NEAREST = 4  # samples where a search of a pose begins
_MM_PER_RADIAN = 180.0 / np.pi
"""A search of a pose minds a degree of the tip's axis as much as a millimetre of its place."""

_FAR = 1e3  # where a tip is said to be that does not stand [m]


class TipSolver(Protocol):
    """Finds the inputs, or the shape, with which a tip stands at a position.

    Attributes:
        low, high: (m,) of the numbers that are chosen.
        rate: (m,) how fast they may change [1/s]; inf where nothing is known.
        chooses_orientation: whether the tip's axis can be chosen beside its place.
    """

    low: np.ndarray
    high: np.ndarray
    rate: np.ndarray
    chooses_orientation: bool

    def tip(self, numbers: np.ndarray) -> np.ndarray | None:
        """(3,) where the tip stands with (m,) numbers [m]; None where it does not."""
        ...

    def orientation(self, numbers: np.ndarray) -> np.ndarray | None:
        """(3, 3) of the tip that stands with (m,) numbers; None where nothing tells it."""
        ...

    @property
    def rest(self) -> np.ndarray:
        """(m,) numbers of the robot that nothing drives."""
        ...


class ModelTipSolver:
    """The inputs of a model, and its equilibria with nominal parameters."""

    def __init__(self, model: Model) -> None:
        self._model, self._nominal = model, nominal_parameters(model.parameters)
        inputs = model.inputs
        self.low, self.high, self.rate = inputs.low, inputs.high, inputs.rate
        self.chooses_orientation = inputs.size > _COORDINATES

    def tip(self, numbers: np.ndarray) -> np.ndarray | None:
        pose = self._pose(numbers)
        return None if pose is None else pose[:, 3]

    def orientation(self, numbers: np.ndarray) -> np.ndarray | None:
        pose = self._pose(numbers)
        return None if pose is None else pose[:, :3]

    def _pose(self, numbers: np.ndarray) -> np.ndarray | None:
        """(3, 4) of the tip."""
        try:
            state = self._model.equilibrium(numbers, self._nominal)
        except (EquilibriumError, UserError):
            return None
        pose = self._model.observe((TIP,), state[None], None, self._nominal[None])[TIP][0]
        return np.asarray(pose) if np.isfinite(pose).all() else None

    @property
    def rest(self) -> np.ndarray:
        return self._model.inputs.rest


@dataclass(frozen=True, eq=False)
class Way:
    """A way that the tip can go, or why there is none.

    Attributes:
        points: (k, 3) behind the start [m].
        speeds: (k,) highest speed on the way to each, by how fast inputs may change [m/s].
        problem: why there is none; empty where there is one.
    """

    points: np.ndarray
    speeds: np.ndarray
    problem: str = ""

    @classmethod
    def refused(cls, problem: str) -> "Way":
        """An empty way with the reason why it was refused."""
        return cls(np.empty((0, 3)), np.empty(0), problem)


class Workspace:
    """Where a tip can stand, and with which numbers.

    Attributes:
        rest: (3,) the tip of the robot that nothing drives [m].
    """

    def __init__(
        self, reach: TipSolver, tolerance: float, seed: int = 0, rest_share: float = 0.0
    ) -> None:
        """Samples are made when they are first needed.

        Args:
            reach: what brings the tip somewhere.
            tolerance: how far from a point the tip may end and still be there [m].
            seed: of the samples.
            rest_share: how long the search rests after each look at where a tip is, for other
                threads of the process, over the time that the look took.

        Raises:
            UserError: the robot does not even stand at rest.
        """
        self._reach, self._tolerance, self._seed = reach, tolerance, seed
        self._rest_share = rest_share
        rest = reach.tip(reach.rest)
        if rest is None:
            raise UserError("goals: the model has no steady state at rest")
        self.rest = rest

    def contains(self, tip: np.ndarray) -> bool:
        """Whether a point (3,) [m] is as near to a sample as samples are to one another there:
        quickly, and roughly."""
        distance, nearest = self._tree.query(tip)
        return bool(distance <= _ROUGH * max(self._spacing[nearest], self._tolerance))

    def numbers_at(
        self, tip: np.ndarray, start: np.ndarray | None = None
    ) -> tuple[np.ndarray, float]:
        """(m,) numbers that bring the tip closest to a point (3,), and the distance left [m].

        Args:
            tip: wanted [m].
            start: where the search begins; None: at the nearest sample.
        """
        begin = self._numbers[int(self._tree.query(tip)[1])] if start is None else start

        def tip_of(numbers: np.ndarray) -> np.ndarray:
            began = time.perf_counter()
            found = self._reach.tip(numbers)
            if self._rest_share:
                time.sleep(self._rest_share * (time.perf_counter() - began))
            return self.rest + _FAR if found is None else found

        enough = _ENOUGH * self._tolerance
        return holding_numbers(tip_of, self._reach.low, self._reach.high, begin, tip, enough)

    @property
    def chooses_orientation(self) -> bool:
        """Whether the tip's axis can be chosen beside its place."""
        return self._reach.chooses_orientation

    def orientation_at(self, tip: np.ndarray) -> Rotation | None:
        """That the tip has at a point (3,) [m] with the numbers that `numbers_at` finds; None where
        nothing tells it."""
        found = self._reach.orientation(self.numbers_at(tip)[0])
        return None if found is None else Rotation.from_matrix(found)

    def numbers_at_pose(
        self, tip: np.ndarray, wanted: np.ndarray
    ) -> tuple[np.ndarray, float, float]:
        """(m,) numbers that bring the tip closest to a point (3,) and its axis closest to that of a
        quaternion (4,) x y z w; the distance [m] and the angle [rad] that are left.

        The turn about the tip's axis is free. The search begins at the samples that are nearest.
        """
        axis = Rotation.from_quat(wanted).as_matrix()[:, 2]
        low, span = self._reach.low, self._reach.high - self._reach.low

        def away(parts: np.ndarray) -> np.ndarray:
            numbers = low + span * parts
            place, turned = self._reach.tip(numbers), self._reach.orientation(numbers)
            if place is None or turned is None:
                return np.full(2 * _COORDINATES, _FAR)
            return np.r_[1e3 * (place - tip), _MM_PER_RADIAN * (turned[:, 2] - axis)]

        best: tuple[float, np.ndarray, np.ndarray] | None = None
        apart = 1e3 * np.linalg.norm(self._tips - tip, axis=1)
        apart += _MM_PER_RADIAN * np.linalg.norm(self._axes - axis, axis=1)
        for sample in np.argsort(apart)[:_NEAREST]:
            begin = np.clip((self._numbers[sample] - low) / span, _EDGE, 1.0 - _EDGE)
            found = least_squares(away, begin, bounds=(0.0, 1.0), diff_step=1e-4, xtol=1e-7)
            if best is None or found.cost < best[0]:
                best = found.cost, low + span * found.x, found.fun
            if best[0] < 0.5 * (1e3 * _ENOUGH * self._tolerance) ** 2:
                break
        assert best is not None
        rest = best[2]
        chord = float(np.linalg.norm(rest[3:])) / _MM_PER_RADIAN
        angle = 2.0 * math.asin(min(0.5 * chord, 1.0))
        return best[1], 1e-3 * float(np.linalg.norm(rest[:3])), angle

    def turn_at(self, tip: np.ndarray, wanted: np.ndarray) -> float:
        """Angle between the orientation that the tip has at a point (3,) and a quaternion (4,)
        x, y, z, w [rad]; infinite where nothing tells its orientation there."""
        found = self._reach.orientation(self.numbers_at(tip)[0])
        if found is None:
            return np.inf
        turn = Rotation.from_matrix(found).inv() * Rotation.from_quat(wanted)
        return float(turn.magnitude())

    def way(self, start: np.ndarray, goals: np.ndarray, spacing: float) -> Way:
        """A way through points, looked for every so often.

        It is straight from one to the next. Where the straight line to the first of them leaves the
        workspace, the way there is that of the tip while the inputs change evenly.

        Args:
            start: (3,) where the tip is [m].
            goals: (k, 3) [m].
            spacing: largest distance between two points that are looked for [m].
        """
        numbers, left = self._found(goals[0])
        if left > self._tolerance:
            what = "the goal" if len(goals) == 1 else "the path's first point"
            return Way.refused(self._refusal(what, goals[0], left))
        begin, _ = self._found(start)
        first = self._straight(start, begin, goals[:1], spacing)
        if isinstance(first, str):
            first = self._bent(start, begin, goals[0], numbers, spacing)
        rest = self._straight(goals[0], first[1][-1], goals[1:], spacing)
        if isinstance(rest, str):
            return Way.refused(rest)
        points = np.concatenate((first[0], rest[0]))
        return Way(points, self._speeds(np.vstack((start, points)), [begin, *first[1], *rest[1]]))

    def _found(self, tip: np.ndarray, start: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """As `numbers_at`, from a start and, where that fails, from the nearest sample."""
        found, left = self.numbers_at(tip, start)
        if left > self._tolerance and start is not None:
            return self.numbers_at(tip)
        return found, left

    def _straight(
        self, start: np.ndarray, begin: np.ndarray, goals: np.ndarray, spacing: float
    ) -> tuple[np.ndarray, list[np.ndarray]] | str:
        """Points behind the start and their numbers; or why there is no such way."""
        points, numbers = _dense(start, goals, spacing), [begin]
        for point in points:
            found, left = self._found(point, numbers[-1])
            if left > self._tolerance:
                return self._refusal("a point on the way", point, left)
            numbers.append(found)
        return points, numbers[1:]

    def _bent(
        self,
        start: np.ndarray,
        begin: np.ndarray,
        goal: np.ndarray,
        end: np.ndarray,
        spacing: float,
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """The way of the tip while numbers change evenly: each is inside the limits."""
        count = max(int(np.ceil(2.0 * np.linalg.norm(goal - start) / spacing)), 4)
        numbers = [begin + part * (end - begin) for part in np.linspace(0.0, 1.0, count + 1)[1:]]
        tips = [(each, self._reach.tip(each)) for each in numbers[:-1]]
        stands = [(each, tip) for each, tip in tips if tip is not None]
        points = np.array([*(tip for _, tip in stands), goal])
        return points, [*(each for each, _ in stands), end]

    def _speeds(self, points: np.ndarray, numbers: list[np.ndarray]) -> np.ndarray:
        """(k - 1,) [m/s] on the way to each point but the first, by how fast numbers change."""
        ways = np.linalg.norm(np.diff(points, axis=0), axis=1)
        times = np.max(np.abs(np.diff(numbers, axis=0)) / self._reach.rate, axis=1)
        return np.divide(ways, times, out=np.full(len(ways), np.inf), where=times > 0.0)

    def _refusal(self, what: str, point: np.ndarray, left: float) -> str:
        place = ", ".join(f"{value:.4g}" for value in point)
        return (
            f"{what}, ({place}) m, is outside of the workspace: the tip comes no nearer than "
            f"{1e3 * left:.1f} mm, must be {1e3 * self._tolerance:.1f} mm"
        )

    @cached_property
    def _samples(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._reach.low, self._reach.high
        parts = qmc.Sobol(len(low), seed=self._seed).random(_SAMPLES)
        chosen = [self._reach.rest, *(low + parts * (high - low))]
        tips = [(numbers, self._reach.tip(numbers)) for numbers in chosen]
        stands = [(numbers, tip) for numbers, tip in tips if tip is not None]
        return np.array([n for n, _ in stands]), np.array([t for _, t in stands])

    @property
    def _numbers(self) -> np.ndarray:
        return self._samples[0]

    @property
    def _tips(self) -> np.ndarray:
        return self._samples[1]

    @cached_property
    def _axes(self) -> np.ndarray:
        """(n, 3) axes of the tips of the samples."""
        found = (self._reach.orientation(each) for each in self._numbers)
        return np.array([np.full(3, np.inf) if turn is None else turn[:, 2] for turn in found])

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self._tips)

    @cached_property
    def _spacing(self) -> np.ndarray:
        """(n,) from each sample to its nearest neighbour [m]."""
        return np.asarray(self._tree.query(self._tips, k=2)[0][:, 1])


def _dense(start: np.ndarray, goals: np.ndarray, spacing: float) -> np.ndarray:
    """Points behind the start, through all goals (k, 3), no farther from one another [m]."""
    found = [np.empty((0, 3))]
    for before, after in zip((start, *goals), goals, strict=False):
        count = max(int(np.ceil(np.linalg.norm(after - before) / spacing)), 1)
        found.append(before + np.linspace(0.0, 1.0, count + 1)[1:, None] * (after - before))
    return np.concatenate(found)

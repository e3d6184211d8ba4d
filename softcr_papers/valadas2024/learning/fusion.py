"""Kinematic fusion: how few segments of constant strain have the robot's shapes.

Valadas et al. (2024), Section III-A, Eqs. (3) and (4). Every interval between two markers is a
segment at first. Neighbours whose strains differ little over all frames become one; strains of the
longer segments follow from the poses of their ends, and so on until no more pair is close. What the
paper does not have: an interval that is left alone between two longer segments, since an end lies
in it, is fused, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.motion import ShapeMotion
from softcr_papers.valadas2024.learning.smoothing import Smoothing
from softcr_papers.valadas2024.strain.kinematics import strains_between

Scale = Literal["percentile", "minmax", "constants"]

CONSTANTS = (np.deg2rad(350.0) / 0.1, 0.3, 0.3)
"""Ranges of bending [rad/m], shear and axial strain [-] of the scale `constants`."""


@dataclass(frozen=True)
class FusionSettings:
    """How strains of neighbours are compared.

    Attributes:
        threshold: h; neighbours whose mean distance is at most this are fused [-].
        scale: what differences are divided by: the range of each kind of strain from the 1st to the
            99th percentile; from the least to the greatest as Eq. (4) has it, which the noise of
            short intervals decides; or `CONSTANTS`.
        denoise: window [frames] of a smoothing in time that tells the noise of the distances, whose
            share is then taken off; 0: poses are taken as they are.
    """

    threshold: float = 0.2
    scale: Scale = "percentile"
    denoise: int = 0

    def __post_init__(self) -> None:
        """Raises UserError for numbers that are not allowed."""
        if not 0.0 < self.threshold < np.inf:
            raise UserError(f"threshold {self.threshold}: must be finite and above 0")


@dataclass(frozen=True, eq=False)
class Round:
    """One round of the fusion.

    Attributes:
        kept: (S + 1,) markers at the ends of the segments.
        distances: (S - 1,) of Eq. (3), between neighbours [-].
    """

    kept: np.ndarray
    distances: np.ndarray


@dataclass(frozen=True, eq=False)
class Fusion:
    """Segments found.

    Attributes:
        kept: (S + 1,) markers at their ends, base and tip among them.
        lengths: (S,) of the unloaded segments [m].
        strains: (R, T, 3 S) of the poses of the ends.
        history: the rounds, the last one included.
    """

    kept: np.ndarray
    lengths: np.ndarray
    strains: np.ndarray
    history: tuple[Round, ...]

    @property
    def segments(self) -> int:
        """S."""
        return len(self.lengths)


def fuse(motion: ShapeMotion, settings: FusionSettings | None = None) -> Fusion:
    """The segments of a robot: all close neighbours of a round at a time.

    Args:
        motion: its shapes.
        settings: how strains are compared.

    Raises:
        UserError: the markers do not move, so that nothing can be compared.
    """
    own = settings or FusionSettings()
    scale, kept, history = _scale(motion, own), np.arange(len(motion.places)), []
    while True:
        distances = _distances(motion, kept, scale, own)
        history.append(Round(kept, distances))
        apart = distances > own.threshold
        if apart.all():
            apart = _without_mixed(kept, distances)
        if apart.all():
            return _fusion(motion, kept, history)
        kept = np.r_[0, kept[1:-1][apart], kept[-1]]


def fuse_to(
    motion: ShapeMotion, segments: int, settings: FusionSettings | None = None
) -> list[Fusion]:
    """The closest pair of a round at a time, down to so many segments; every result on the way.

    A robot without sharp ends of segments, whose curvature changes steadily, has no gap between the
    distances for a threshold. Closest pairs give one result for every number of segments, of which
    a person chooses by the error of the shape.

    Args:
        motion: the robot's shapes.
        segments: least number wanted.
        settings: how strains are compared; the threshold plays no part.

    Raises:
        UserError: the number is not allowed, or as `fuse` says.
    """
    own, count = settings or FusionSettings(), len(motion.places) - 1
    if not 1 <= segments <= count:
        raise UserError(f"segments {segments}: must be from 1 to {count}, the marker's intervals")
    scale, kept = _scale(motion, own), np.arange(count + 1)
    found, history = [], []
    while True:
        distances = _distances(motion, kept, scale, own)
        history.append(Round(kept, distances))
        found.append(_fusion(motion, kept, history))
        if len(kept) - 1 <= segments:
            return found
        kept = np.delete(kept, 1 + int(np.argmin(distances)))


def sweep(
    motion: ShapeMotion, thresholds: Sequence[float], settings: FusionSettings | None = None
) -> list[Fusion]:
    """The fusion at each threshold, for a Pareto front of segments and error of the shape."""
    own = settings or FusionSettings()
    return [
        fuse(motion, FusionSettings(float(each), own.scale, own.denoise)) for each in thresholds
    ]


def _without_mixed(kept: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """(S - 1,) which ends stay where every pair is apart.

    A segment's end between two markers leaves an interval with the strains of both sides. Where it
    stays alone between two longer segments, it goes to the one that it is closer to.
    """
    stays, spans = np.ones(len(distances), bool), np.diff(kept)
    for i in range(1, len(spans) - 1):
        if spans[i] == 1 and min(spans[i - 1], spans[i + 1]) > 1 and stays[i - 1]:
            stays[i - 1 + int(distances[i] < distances[i - 1])] = False
    return stays


def _fusion(motion: ShapeMotion, kept: np.ndarray, history: Sequence[Round]) -> Fusion:
    strains = strains_between(motion.poses[:, :, kept], motion.places[kept])
    return Fusion(kept, np.diff(motion.places[kept]), strains, tuple(history))


def _scale(motion: ShapeMotion, settings: FusionSettings) -> np.ndarray:
    """(3,) what differences of each kind of strain are divided by."""
    if settings.scale == "constants":
        return np.array(CONSTANTS)
    strains = strains_between(motion.poses, motion.places)
    if settings.denoise:
        strains = Smoothing(settings.denoise)(strains, motion.period)
    kinds = strains.reshape(-1, len(motion.places) - 1, 3)
    ends = (0.0, 100.0) if settings.scale == "minmax" else (1.0, 99.0)
    low, high = np.percentile(kinds, ends, axis=(0, 1))
    ranges = high - low
    if not ranges.max() > 0.0:
        raise UserError("motion: no marker moves; record the robot while it is driven")
    # a kind of strain that never changes tells nothing apart
    return np.where(ranges > 0.0, ranges, np.inf)


def _distances(
    motion: ShapeMotion, kept: np.ndarray, scale: np.ndarray, settings: FusionSettings
) -> np.ndarray:
    """(S - 1,) Eq. (3); with `denoise` the root mean square without the noise's share."""
    strains = strains_between(motion.poses[:, :, kept], motion.places[kept])
    kinds = strains.reshape(*strains.shape[:2], len(kept) - 1, 3) / scale
    change = np.diff(kinds, axis=2)
    if not settings.denoise or len(kept) == 2:
        return np.linalg.norm(change, axis=-1).mean(axis=(0, 1))
    smoothing = Smoothing(settings.denoise)
    smooth, share = smoothing(change, motion.period), smoothing.centre_weight
    variance = ((change - smooth) ** 2).sum(axis=-1).mean(axis=(0, 1)) / (1.0 - share)
    square = (smooth**2).sum(axis=-1).mean(axis=(0, 1)) - share * variance
    return np.sqrt(np.maximum(square, 0.0))

"""From the motion of a shape to equations of motion, in one call."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.basis import Basis, Rows, acceleration_rows, weak_rows
from softcr_papers.valadas2024.learning.fusion import Fusion, FusionSettings, fuse
from softcr_papers.valadas2024.learning.motion import ShapeMotion
from softcr_papers.valadas2024.learning.regression import Regression, SolverSettings, regress
from softcr_papers.valadas2024.learning.shape_fit import PoseNoise, fit_strains, refine_lengths
from softcr_papers.valadas2024.learning.smoothing import Smoothing
from softcr_papers.valadas2024.learning.sparsification import Sparsified, Stiffest, sparsify
from softcr_papers.valadas2024.strain.arm import StrainArm, identified_arm


@dataclass(frozen=True)
class LearnSettings:
    """How a motion is learned from.

    Attributes:
        fusion: of markers to segments.
        refined: whether ends of segments may lie between markers.
        noise: of the markers.
        all_markers: whether strains are those that fit all markers, or those of the segments' ends.
        smoothing: of the strains.
        differences: whether rates and accelerations of Eq. (7) are central differences of smoothed
            strains, as in the authors' public code, or derivatives of the smoothing's polynomial.
        weak: whether the regression is that of windows, or of accelerations as in Eq. (7).
        half_width, stride: of the windows [frames].
        filter_torques: whether torques of Eq. (7) pass the strains' filter, and the ends of
            trajectories are left out.
        gravity: (2,) across and along the straight robot [m/s^2].
        weight_known: whether weight is mass times gravity.
        solver: of the least squares.
        limits: largest stiffnesses; None: all strains are kept.
    """

    fusion: FusionSettings = field(default_factory=FusionSettings)
    refined: bool = True
    noise: PoseNoise = field(default_factory=PoseNoise)
    all_markers: bool = True
    smoothing: Smoothing = field(default_factory=Smoothing)
    differences: bool = False
    weak: bool = True
    half_width: int = 20
    stride: int = 4
    filter_torques: bool = True
    gravity: Sequence[float] = (0.0, 9.81)
    weight_known: bool = True
    solver: SolverSettings = field(default_factory=SolverSettings)
    limits: Stiffest | None = field(default_factory=Stiffest)


@dataclass(frozen=True, eq=False)
class Learned:
    """What was found.

    Attributes:
        fusion: of the markers; None where the segments were known.
        lengths: (S,) of the segments [m].
        strains: (R, T, 3 S) of every frame; strains that were dropped are 0.
        sparsified: the regressions and what was dropped.
        settings: how it was found.
    """

    fusion: Fusion | None
    lengths: np.ndarray
    strains: np.ndarray
    sparsified: Sparsified
    settings: LearnSettings

    @property
    def regression(self) -> Regression:
        """The last one."""
        return self.sparsified.regression

    def arm(self, name: str, largest_torque: Sequence[float], description: str = "") -> StrainArm:
        """The robot file, of which `LagrangianModel` is the model.

        Args:
            name: of the robot.
            largest_torque: (3,) on bending [N m], shear and axial strain [N].
            description: one line for people.
        """
        numbers = self.regression.numbers
        return identified_arm(name, numbers, self.settings.gravity, largest_torque, description)


def learn(motion: ShapeMotion, settings: LearnSettings | None = None) -> Learned:
    """Segments, strains, equations of motion and strains that matter.

    Raises:
        UserError: the motion does not suffice; the line says what to record.
    """
    own = settings or LearnSettings()
    fusion = fuse(motion, own.fusion)
    lengths = refine_lengths(motion, fusion.lengths, own.noise) if own.refined else fusion.lengths
    return learn_dynamics(motion, fusion, lengths, own)


def learn_dynamics(
    motion: ShapeMotion, fusion: Fusion | None, lengths: np.ndarray, settings: LearnSettings
) -> Learned:
    """The same with segments that are known.

    Args:
        motion: shapes and torques.
        fusion: of the markers; None where it plays no part, with strains that fit all markers.
        lengths: (S,) of the segments [m].
        settings: how the motion is learned from.

    Raises:
        UserError: see `learn`.
    """
    if motion.torques.shape[-1] != 3 * len(lengths):
        raise UserError(
            f"torques of {motion.torques.shape[-1] // 3} segments, but the shapes have "
            f"{len(lengths)}: choose another threshold of the fusion"
        )
    strains = [np.empty(0)]

    def regression_of(active: np.ndarray) -> Regression:
        strains[0] = _strains(motion, fusion, lengths, active, settings)
        return regression_of_strains(motion, lengths, strains[0], active, settings)

    found = sparsify(regression_of, lengths, settings.limits)
    return Learned(fusion, np.asarray(lengths), strains[0], found, settings)


def regression_of_strains(
    motion: ShapeMotion,
    lengths: np.ndarray,
    strains: np.ndarray,
    active: np.ndarray,
    settings: LearnSettings,
) -> Regression:
    """The regression of strains (R, T, 3 S) that are known, of which `active` (m,) are kept."""
    size = math.hypot(*settings.gravity)
    down = np.array(settings.gravity) / size if size > 0.0 else np.array([0.0, 1.0])
    known = size if settings.weight_known else None
    basis = Basis(np.asarray(lengths, float), down, known, np.asarray(active))
    return regress(basis, rows_of(basis, motion, strains, settings), settings.solver)


def _strains(
    motion: ShapeMotion,
    fusion: Fusion | None,
    lengths: np.ndarray,
    active: np.ndarray,
    settings: LearnSettings,
) -> np.ndarray:
    if settings.all_markers:
        return fit_strains(motion, lengths, active, settings.noise).strains
    if fusion is None or not np.allclose(lengths, fusion.lengths, atol=1e-12):
        raise UserError(
            "strains of the segments' ends need ends at markers: choose all_markers, or segments "
            "that are not refined"
        )
    kept = np.zeros(3 * len(lengths))
    kept[active] = 1.0
    return fusion.strains * kept


def derivatives(
    strains: np.ndarray, period: float, settings: LearnSettings
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Smoothed strains, rates and accelerations (R, T, 3 S) of strains every period [s]."""
    smoothing = settings.smoothing
    smooth = smoothing(strains, period)
    if not settings.differences:
        return smooth, smoothing(strains, period, 1), smoothing(strains, period, 2)
    rates = np.gradient(smooth, period, axis=1)
    return smooth, rates, np.gradient(rates, period, axis=1)


def rows_of(
    basis: Basis, motion: ShapeMotion, strains: np.ndarray, settings: LearnSettings
) -> Rows:
    """The equations of a basis, of strains (R, T, 3 S) that are smoothed here."""
    period = motion.period
    smooth, rates, accelerations = derivatives(strains, period, settings)
    if settings.weak:
        return weak_rows(
            basis, smooth, rates, motion.torques, period, settings.half_width, settings.stride
        )
    if not settings.filter_torques:
        return acceleration_rows(basis, smooth, rates, accelerations, motion.torques)
    torques = settings.smoothing(
        0.5 * (motion.torques + np.roll(motion.torques, 1, axis=1)), period
    )
    inner = slice(settings.half_width, -settings.half_width)
    chosen = [each[:, inner] for each in (smooth, rates, accelerations, torques)]
    return acceleration_rows(basis, *chosen)

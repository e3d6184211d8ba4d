"""Table I of Valadas et al. (2024): how many segments there are, and how well they have the shape.

The paper's method is "segment ends": strains of the markers at the ends of the segments. Beside it
strains that fit all markers, and ends of segments moved between markers. Errors are those of all
markers but the base's against the TRUE poses, over all frames.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from softcr_learning.strain.fusion import Fusion, FusionSettings, fuse, fuse_to
from softcr_learning.strain.images import opencv
from softcr_learning.strain.motion import ShapeMotion
from softcr_learning.strain.shape_fit import PoseNoise, fit_strains, refine_lengths, shape_errors
from softcr_models.errors import UserError
from softcr_models.strain.affine_curvature import affine_poses
from softcr_studies.study import Cell, Metric, Must, Published, Result, Study, StudySettings
from softcr_studies.valadas2024.robots import CASES, RobotCase
from softcr_studies.valadas2024.shapes import EXACT, IMAGES, NOISY, photographed

AFFINE_LENGTH, CURVATURE = 0.15, 30.0
"""Of case 6 [m]; its curvatures at base and tip are drawn from +- this [rad/m], which is ours."""

ENDS, ALL, REFINED = "segment ends", "all markers", "refined ends"


@dataclass(frozen=True)
class Affine:
    """Case 6: a robot whose curvature is affine, in 500 random shapes."""

    name: str = "6: 1S PAC"
    noise: tuple[float, float] = (1e-4, float(np.deg2rad(0.5)))
    shapes: int = 500


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(3, ge=1, le=100, description="draws of torques, shapes and noise")
    every: int = Field(5, ge=1, le=50, description="frames from image to image")


def run(cell: Cell) -> Result:
    """Errors of each way to find strains, by their names in the table."""
    if cell.method == IMAGES:
        try:
            opencv()
        except UserError as error:
            return {"skipped": str(error)}
    true = _truth(cell)
    motion, seen = _seen(cell, true)
    fusion = _fusion(cell, motion)
    noise = PoseNoise(*cell.case.noise) if cell.method == NOISY else PoseNoise()
    found: dict[str, Any] = {
        "segments": fusion.segments,
        "frames lost": len(true.frames[:: _every(cell)]) - len(motion.frames),
    }
    refined = refine_lengths(motion, fusion.lengths, noise)
    strains = {
        ENDS: (fusion.lengths, fusion.strains),
        ALL: (fusion.lengths, fit_strains(motion, fusion.lengths, noise=noise).strains),
        REFINED: (refined, fit_strains(motion, refined, noise=noise).strains),
    }
    truth = true.chosen(seen)
    for name, (lengths, each) in strains.items():
        position, angle = shape_errors(truth, lengths, each.reshape(1, -1, each.shape[-1]))
        found[f"position, {name}"], found[f"angle, {name}"] = 1e3 * position, angle
    if isinstance(cell.case, RobotCase) and fusion.segments == len(cell.case.arm.lengths):
        off = np.abs(np.cumsum(refined - cell.case.arm.lengths))
        found["ends, refined, off by"] = 1e3 * float(off.max())
    return found | {"note": _lengths(fusion, refined), "distances": fusion.history[0].distances}


def _truth(cell: Cell) -> ShapeMotion:
    if isinstance(cell.case, RobotCase):
        return cell.case.training(cell.stream("plant")).motion
    ends = cell.random("plant").uniform(-CURVATURE, CURVATURE, (cell.case.shapes, 2))
    places = np.linspace(0.0, AFFINE_LENGTH, 21)
    poses = affine_poses(np.c_[ends[:, 0], ends[:, 1] - ends[:, 0]], AFFINE_LENGTH, places)
    return ShapeMotion(poses[None], places, np.zeros((1, len(poses), 3)), 1e-3)


def _every(cell: Cell) -> int:
    images_of_a_motion = cell.method == IMAGES and isinstance(cell.case, RobotCase)
    return cell.settings.every if images_of_a_motion else 1


def _seen(cell: Cell, true: ShapeMotion) -> tuple[ShapeMotion, np.ndarray]:
    """What the camera tells, and which frames (F,) of all it is of."""
    if cell.method == IMAGES:
        return photographed(true, _every(cell))
    frames = np.arange(len(true.frames))
    if cell.method == NOISY:
        position, angle = cell.case.noise
        return true.with_noise(position, angle, cell.random("camera")), frames
    return true, frames


def _fusion(cell: Cell, motion: ShapeMotion) -> Fusion:
    if isinstance(cell.case, Affine):
        return fuse_to(motion, 3)[-1]
    if cell.method == NOISY:
        return fuse(motion, FusionSettings(scale="constants", denoise=15))
    return fuse(motion)


def _lengths(fusion: Fusion, refined: np.ndarray) -> str:
    """What the table's reader has to know beside the errors."""
    ends, moved = (np.round(1e3 * each, 2).tolist() for each in (fusion.lengths, refined))
    return f"segments {ends} mm, refined {moved} mm (first seed)"


_UNITS: Mapping[str, str] = {
    "segments": "-", "frames lost": "-",
    **{f"{kind}, {name}": unit for name in (ENDS, ALL, REFINED)
       for kind, unit in (("position", "mm"), ("angle", "rad"))},
    "ends, refined, off by": "mm",
}  # fmt: skip
_PAPER = {
    "1": (0.082, 6.38e-3),
    "2": (0.240, 1.15e-2),
    "3": (0.210, 9.67e-3),
    "6": (0.746, 8.92e-2),
}
_ASKED = {"1": (0.02, 0.006), "2": (0.10, 0.01), "3": (0.13, 0.02), "6": (0.25, 0.1)}
_CASES = (*CASES[:3], Affine())

STUDY = Study(
    name="valadas2024/fusion",
    source="Valadas et al. (2024), Table I and Fig. 3",
    summary="how few segments of constant strain have a robot's shapes, from poses and images",
    run=run,
    cases=_CASES,
    methods=lambda case: (EXACT, IMAGES) if isinstance(case, Affine) else (EXACT, NOISY, IMAGES),
    settings=Settings,
    metrics=tuple(Metric(name, unit, name) for name, unit in _UNITS.items()),
    published=tuple(
        Published(f"{kind}, {ENDS}", value, "simulation", case.name, IMAGES)
        for case in _CASES
        for kind, value in zip(("position", "angle"), _PAPER[case.name[0]], strict=True)
    ),
    musts=(
        Must("position, segment ends", 1e-9, None, CASES[0].name, EXACT),
        *(
            Must(f"position, {ALL}", _ASKED[case.name[0]][0], None, case.name, IMAGES)
            for case in _CASES
        ),
        *(
            Must(f"position, {REFINED}", *_ASKED[case.name[0]], case.name, IMAGES)
            for case in _CASES
        ),
    ),
    exact="Robot and segments share the kinematics of constant strain, but for case 6; images are "
    "rendered by the same rectangles that are looked for, without blur, light or a lens.",
    about={
        "range of strains": "from the 1st to the 99th percentile; with noise constants, and the "
        "noise's share taken off. With the range of Eq. (4) all segments of cases 2 and 3 become "
        "one",
        "case 6": "the closest pair at a time, down to three segments; curvatures are ours",
    },
)

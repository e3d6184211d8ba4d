"""Table I of Valadas et al. (2024): how many segments there are, and how well they have the shape.

The paper's method is "segment ends": strains of the markers at the ends of the segments. "All
markers" are strains that fit all of them, of segments whose ends are the markers nearest to where
the shapes want them, "refined ends" with ends between markers, too. Where curvature changes
steadily, as in case 6, all neighbours are as far from each other, and the noise of the images
decides which of them the paper's method fuses. Errors are those of all markers but the base's
against the TRUE poses, over all frames.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.fusion import Fusion, FusionSettings, fuse, fuse_to
from softcr_papers.valadas2024.learning.images import opencv
from softcr_papers.valadas2024.learning.motion import ShapeMotion
from softcr_papers.valadas2024.learning.shape_fit import (
    PoseNoise,
    fit_strains,
    nearest_markers,
    refine_lengths,
    shape_errors,
)
from softcr_papers.valadas2024.strain.affine_curvature import affine_poses
from softcr_papers.valadas2024.studies.robots import CASES, RobotCase
from softcr_papers.valadas2024.studies.shapes import EXACT, IMAGES, NOISY, photographed
from softcr_runtime.console.panels import leave_room, panels
from softcr_studies.frame.results import Results
from softcr_studies.frame.study import Cell, Metric, Must, Published, Result, Study, StudySettings

AFFINE_LENGTH, CURVATURE = 0.15, 30.0
"""Of case 6 [m]; its curvatures at base and tip are drawn from +- this [rad/m], which is ours."""

ENDS, ALL, REFINED = "segment ends", "all markers", "refined ends"

PARETO = np.array(
    [[8, 0.0813, np.nan], [6, 0.112, 0.0196], [5, 0.137, 0.0249], [4, 0.556, 0.0722],
     [3, 0.746, 0.0892], [2, 3.87, 0.213]]
)  # fmt: skip
"""Fig. 3d by the authors' public data: segments, errors of case 6 [mm], [rad]. The angle of eight
segments is printed there as 0.00086, a twentieth of that of six, and left out."""


@dataclass(frozen=True)
class Affine:
    """Case 6: a robot whose curvature is affine, in 500 random shapes."""

    name: str = "6: 1S PAC"
    noise: tuple[float, float] = (1e-4, float(np.deg2rad(0.5)))
    shapes: int = 500


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(10, ge=1, le=100, description="draws of torques, shapes and noise")
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
    fusions = _fusions(cell, motion)
    fusion = fusions[0]
    noise = PoseNoise(*cell.case.noise) if cell.method == NOISY else PoseNoise()
    found: dict[str, Any] = {
        "segments": fusion.segments,
        "frames lost": len(true.frames[:: _every(cell)]) - len(motion.frames),
    }
    refined = refine_lengths(motion, fusion.lengths, noise)
    nearest = nearest_markers(motion, refined)
    strains = {
        ENDS: (fusion.lengths, fusion.strains),
        ALL: (nearest, fit_strains(motion, nearest, noise=noise).strains),
        REFINED: (refined, fit_strains(motion, refined, noise=noise).strains),
    }
    truth = true.chosen(seen)
    for name, (lengths, each) in strains.items():
        position, angle = shape_errors(truth, lengths, each.reshape(1, -1, each.shape[-1]))
        found[f"position, {name}"], found[f"angle, {name}"] = 1e3 * position, angle
    if isinstance(cell.case, RobotCase) and fusion.segments == len(cell.case.arm.lengths):
        off = np.abs(np.cumsum(refined - cell.case.arm.lengths))
        found["ends, refined, off by"] = 1e3 * float(off.max())
    if isinstance(cell.case, Affine):
        found["pareto"] = _pareto(truth, fusions[1:])
    return found | {
        "note": _lengths(fusion, nearest, refined),
        "distances": fusion.history[0].distances,
        "places": motion.places,
    }


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


def _fusions(cell: Cell, motion: ShapeMotion) -> list[Fusion]:
    """The one that is meant; behind it, of case 6, those of every number of segments."""
    if isinstance(cell.case, Affine):
        # shear and stretch are 0: their range would be the noise of the images
        *more, three, two = fuse_to(motion, 2, FusionSettings(scale="constants"))
        return [three, *more, three, two]
    if cell.method == NOISY:
        return [fuse(motion, FusionSettings(scale="constants", denoise=15))]
    return [fuse(motion)]


def _pareto(truth: ShapeMotion, fusions: list[Fusion]) -> np.ndarray:
    """(F, 3) segments and errors [mm], [rad] of the paper's method, as `PARETO`."""
    rows = []
    for each in fusions:
        strains = each.strains.reshape(1, -1, 3 * each.segments)
        position, angle = shape_errors(truth, each.lengths, strains)
        rows.append((each.segments, 1e3 * position, angle))
    return np.array(rows)


def _lengths(fusion: Fusion, nearest: np.ndarray, refined: np.ndarray) -> str:
    """What the table's reader has to know beside the errors."""
    ends, near, moved = (
        np.round(1e3 * each, 2).tolist() for each in (fusion.lengths, nearest, refined)
    )
    others = "" if ends == near else f"at the markers nearest to the refined ends {near} mm, "
    return f"segments {ends} mm, {others}refined {moved} mm (first seed)"


def draw(results: Results, directory: Path) -> None:
    """Fig. 3: distances between neighbours, and case 6 by its number of segments."""
    with panels(
        directory / "figure_3_distances.png",
        [f"case {case.name}\ndistance [-]" for case in _CASES],
        x="place along the unloaded backbone [mm]", sharex=False,
    ) as axes:  # fmt: skip
        for panel, case in zip(axes, _CASES, strict=True):
            methods = (EXACT, IMAGES) if isinstance(case, Affine) else (EXACT, NOISY, IMAGES)
            for marker, method in zip("osx", methods, strict=False):
                found = results.first(case.name, method)
                if "distances" in found:
                    places = 1e3 * found["places"][1:-1]
                    panel.plot(places, found["distances"], marker + "-", label=method, alpha=0.7)
            panel.set_ylim(bottom=0.0)
            if isinstance(case, RobotCase):
                panel.axhline(FusionSettings().threshold, color="0.5", linestyle="--")
                for end in 1e3 * np.cumsum(case.arm.lengths)[:-1]:
                    panel.axvline(end, color="0.5", linestyle=":")
        leave_room(axes)
    labels = "mean error of markers [mm]", "mean error of angles [rad]"
    with panels(
        directory / "figure_3d_pareto.png", labels, x="number of segments [-]", height=2.5
    ) as axes:
        for column, panel in enumerate(axes, 1):
            for marker, method in zip("ox", (EXACT, IMAGES), strict=True):
                found = results.first(_CASES[-1].name, method)
                if "pareto" in found:
                    chosen = found["pareto"][found["pareto"][:, 0] <= 10.0]
                    panel.semilogy(chosen[:, 0], chosen[:, column], marker + "-", label=method)
            panel.semilogy(PARETO[:, 0], PARETO[:, column], "k^--", label="paper")


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
_CASES: tuple[RobotCase | Affine, ...] = (*CASES[:3], Affine())

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
        "case 6": "the closest pair at a time, down to three segments, constants for ranges; "
        "curvatures are ours",
        "lines in the figure of distances": "the threshold, and the true ends of segments",
    },
    draw=draw,
)

"""From images to equations of motion: the whole way of Valadas et al. (2024), end to end.

Every frame of the eight training trajectories is rendered, its marks are found again, segments are
fused, strains fitted, equations of motion regressed, and 7 s of another motion predicted. The
paper's own dynamic rows of case 2 learn from true strains of a robot whose segments end where its
fusion puts them. "Markers' ends" has segments that end at markers, as the paper's fusion leaves
them; "refined ends" moves the ends to where the shapes want them.
"""

import time
from dataclasses import replace

import numpy as np
from pydantic import Field
from scipy.interpolate import PchipInterpolator

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.fusion import fuse
from softcr_papers.valadas2024.learning.images import opencv
from softcr_papers.valadas2024.learning.learn import LearnSettings, learn_dynamics
from softcr_papers.valadas2024.learning.motion import ShapeMotion
from softcr_papers.valadas2024.learning.shape_fit import PoseNoise, refine_lengths
from softcr_papers.valadas2024.learning.simulated import tip_errors
from softcr_papers.valadas2024.studies.robots import CASES, HOLD, RobotCase
from softcr_papers.valadas2024.studies.shapes import found_poses
from softcr_studies.frame.study import Cell, Metric, Must, Result, Study, StudySettings


def fill_gaps(poses: np.ndarray, longest: int = 5) -> np.ndarray:
    """(R, T, N, 3) poses with frames that are NaN filled from those around them.

    Args:
        poses: (R, T, N, 3); a frame that was lost is NaN throughout.
        longest: number of frames in a row that may be lost.

    Raises:
        UserError: more frames in a row are lost, or the first or last frame of a trajectory.
    """
    filled = np.array(poses, float)
    for number, trajectory in enumerate(filled):
        lost = ~np.isfinite(trajectory).all(axis=(1, 2))
        if not lost.any():
            continue
        if lost[0] or lost[-1]:
            raise UserError(f"trajectory {number}: its first or last frame is lost; leave it out")
        run = 0
        for frame, gone in enumerate(lost):
            run = run + 1 if gone else 0
            if run > longest:
                raise UserError(
                    f"trajectory {number}: more than {longest} frames in a row are lost before "
                    f"frame {frame}; record again, with marks that stay visible"
                )
        t = np.arange(len(trajectory))
        trajectory[lost] = PchipInterpolator(t[~lost], trajectory[~lost])(t[lost])
    return filled


ENDS, REFINED = "markers' ends", "refined ends"
_NOISE = PoseNoise(3e-6, 5e-4)  # what detection leaves, in the study valadas2024/fusion


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(5, ge=1, le=100, description="draws of torques and starts")


def run(cell: Cell) -> Result:
    """Errors of the tip in the test."""
    try:
        opencv()
    except UserError as error:
        return {"skipped": str(error)}
    case: RobotCase = cell.case
    true = case.training(cell.stream("plant")).motion
    poses, _, detection = found_poses(true)
    seen, lost = _without_holes(true, poses)
    begun = time.process_time()
    fusion = fuse(seen)
    lengths = fusion.lengths
    if cell.method == REFINED:
        lengths = refine_lengths(seen, lengths, _NOISE)
    found = learn_dynamics(seen, fusion, lengths, LearnSettings(noise=_NOISE, limits=case.limits))
    learning = time.process_time() - begun
    torques, strains = case.test(cell)
    tip = tip_errors(found.regression.numbers, strains[0], torques, HOLD, strains, case.arm.lengths)
    written = np.round(1e3 * lengths, 2).tolist()
    return {
        "tip": 1e3 * tip[0],
        "angle": tip[1],
        "frames lost": lost,
        "strains dropped": len(found.sparsified.removed),
        "images to poses": detection,
        "poses to model": learning,
        "images to model": detection + learning,
        "note": f"segments {written} mm (first seed)",
    }


def _without_holes(true: ShapeMotion, poses: np.ndarray) -> tuple[ShapeMotion, int]:
    """The motion from the first frame to the last that were found in all trajectories."""
    shaped = poses.reshape(true.poses.shape)
    well = np.isfinite(shaped).all(axis=(2, 3))
    everywhere = np.flatnonzero(well.all(axis=0))
    part = slice(everywhere[0], everywhere[-1] + 1)
    filled = fill_gaps(shaped[:, part])
    return replace(true, poses=filled, torques=true.torques[:, part]), int((~well).sum())


STUDY = Study(
    name="valadas2024/images",
    source="Valadas et al. (2024), Sections III and IV",
    summary="equations of motion learned from rendered images, end to end",
    run=run,
    cases=CASES[:2],
    methods=lambda case: (REFINED,) if case is CASES[0] else (ENDS, REFINED),
    settings=Settings,
    metrics=(
        Metric("tip", "mm", "tip"),
        Metric("angle", "rad", "angle"),
        Metric("frames lost", "-", "frames lost"),
        Metric("strains dropped", "-", "strains dropped"),
        *(
            Metric(name, "s", name, timing=True)
            for name in ("images to poses", "poses to model", "images to model")
        ),
    ),
    musts=(
        Must("tip", 1.5, 1.0, CASES[1].name, ENDS),
        Must("tip", 0.1, 0.03, CASES[1].name, REFINED),
        Must("images to model", 60.0, 20.0),
    ),
    exact="Robot and model share the equations of constant strain; images are rendered without "
    "blur, light or a lens. Nothing else is known of the robot but its length and gravity.",
)

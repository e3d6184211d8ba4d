"""What cameras see of the paper's robots: exact poses, noisy ones, and those found in images."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.camera import Camera, Marks
from softcr_papers.valadas2024.learning.images import detect, render
from softcr_papers.valadas2024.learning.motion import ShapeMotion

EXACT, NOISY, IMAGES = "exact poses", "noisy poses", "images"


def photographed(
    motion: ShapeMotion, every: int = 1, **camera: Any
) -> tuple[ShapeMotion, np.ndarray]:
    """Poses found in rendered images of every so many frames.

    Args:
        motion: the truth.
        every: frames from image to image.
        camera: see `Camera.of_robot`.

    Returns:
        A motion of the frames in which all marks were seen, one after the other as one trajectory,
        which is fit for shapes and not for dynamics; and (F,) which of all frames they are.
    """
    poses, kept, _ = found_poses(motion, every, **camera)
    seen = np.flatnonzero(np.isfinite(poses).all(axis=(1, 2)))
    chosen = kept[seen]
    return replace(motion.chosen(chosen), poses=poses[None, seen]), chosen


def found_poses(
    motion: ShapeMotion, every: int = 1, **camera: Any
) -> tuple[np.ndarray, np.ndarray, float]:
    """Poses (F, N, 3) in every so many frames, NaN where marks were not all seen; which (F,); the
    processor's time to find them in the images [s]."""
    eye, marks = Camera.of_robot(motion.length, **camera), Marks.of_robot(motion.length)
    chosen = np.arange(0, len(motion.frames), every)
    poses = np.full((len(chosen), *motion.frames.shape[1:]), np.nan)
    seconds = 0.0
    for row, frame in enumerate(chosen):
        image = render(motion.frames[frame], eye, marks)
        begun = time.process_time()
        try:
            poses[row] = detect(image, eye, marks)
        except UserError:  # a mark is hidden where the robot lies over itself
            continue
        finally:
            seconds += time.process_time() - begun
        poses[row, 0] = 0.0  # the base is mounted, and its pose known
    return poses, chosen, seconds

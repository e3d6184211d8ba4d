"""Shapes from images: marks are drawn, found again, and put in the order of the backbone.

As Valadas et al. (2024), Section IV-A3: binarise, outlines, one rectangle for each cross-section.
What differs: centre and direction are moments of the grey values, which see parts of a pixel, and
marks are put in order by where the next one is expected from the last step and its turn, so that a
robot that is rolled up is followed. OpenCV is optional: `pip install 'softcr[images]'`.
"""

import math
from types import ModuleType

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.camera import Camera, Marks

_BRIGHT, _DARK, _THRESHOLD = 255, 0, 127
_SUBPIXEL = 8  # bits of a corner's place
_FARTHEST = 0.75  # a mark is at most this far from where it is expected, over a step [-]


def opencv() -> ModuleType:
    """The module cv2.

    Raises:
        UserError: it is not installed.
    """
    try:
        import cv2
    except ImportError:
        raise UserError("images: need OpenCV: pip install 'softcr[images]'") from None
    return cv2


def render(poses: np.ndarray, camera: Camera, marks: Marks) -> np.ndarray:
    """(height, width) uint8 image of a robot's marks.

    Args:
        poses: (N, 3) of the cross-sections [m, m, rad].
        camera: who looks.
        marks: their size.
    """
    cv2 = opencv()
    image = np.full((camera.height, camera.width), _BRIGHT, np.uint8)
    c, s = np.cos(poses[:, 2]), np.sin(poses[:, 2])
    turns = np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)
    corners = poses[:, None, :2] + np.einsum("nij,kj->nki", turns, marks.corners)
    for corner in np.round(camera.pixels(corners) * 2**_SUBPIXEL).astype(np.int32):
        cv2.fillConvexPoly(image, corner, _DARK, cv2.LINE_AA, _SUBPIXEL)
    return image


def detect(image: np.ndarray, camera: Camera, marks: Marks) -> np.ndarray:
    """(N, 3) poses of the cross-sections [m, m, rad], angles continuous along the backbone.

    Args:
        image: (height, width) uint8.
        camera: who looked.
        marks: what is to be found; the first is at the base and upright.

    Raises:
        UserError: a mark is hidden, as where the backbone crosses itself, or out of the image.
    """
    cv2 = opencv()
    if image.dtype != np.uint8 or image.shape != (camera.height, camera.width):
        raise UserError(
            f"image of {image.dtype} and shape {image.shape}: must be of uint8 and shape "
            f"({camera.height}, {camera.width})"
        )
    image, corner = _with_marks(image, camera, marks)
    _, binary = cv2.threshold(image, _THRESHOLD, _BRIGHT, cv2.THRESH_BINARY_INV)
    outlines, _ = cv2.findContours(binary, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    nominal = marks.across * marks.along * camera.scale**2
    found = []
    for outline in outlines:
        seen = _seen(cv2, image, outline)
        if 0.6 * nominal < seen[0] < 1.5 * nominal:
            found.append(seen[1:])
    if len(found) != len(marks.places):
        raise UserError(
            f"image: {len(found)} of {len(marks.places)} marks are seen; the backbone crosses "
            "itself, or a mark is hidden or out of the image"
        )
    places = np.array(found)
    centres = camera.points(places[:, :2] + corner)
    # the image's rows go down, so its angles are the negative ones
    return _in_order(centres, -places[:, 2], np.diff(marks.places))


def _with_marks(image: np.ndarray, camera: Camera, marks: Marks) -> tuple[np.ndarray, np.ndarray]:
    """The part of an image that has all marks, and its first column and row (2,).

    Marks fill a small part of it, and outlines are sought in that part alone. A circle as wide as a
    mark is long holds a point of every grid that is half as wide: no mark is between its points.
    """
    pitch = max(1, int(0.5 * marks.along * camera.scale))
    margin = pitch + math.ceil(math.hypot(marks.across, marks.along) * camera.scale) + 4
    dark = image[::pitch, ::pitch] <= _THRESHOLD
    if not dark.any():
        return image, np.zeros(2)
    rows, columns = (pitch * np.flatnonzero(dark.any(axis=axis)) for axis in (1, 0))
    top, left = max(rows[0] - margin, 0), max(columns[0] - margin, 0)
    part = image[top : rows[-1] + margin + 1, left : columns[-1] + margin + 1]
    return part, np.array([left, top])


def _seen(cv2: ModuleType, image: np.ndarray, outline: np.ndarray) -> tuple[float, ...]:
    """Area [pixels], centre [pixels] and direction [rad] of a mark, by moments of grey values."""
    left, top, width, height = cv2.boundingRect(outline)
    left, top = max(left - 2, 0), max(top - 2, 0)
    part = image[top : top + height + 4, left : left + width + 4]
    inside = np.zeros(part.shape, np.uint8)
    cv2.drawContours(inside, [outline], -1, 1, cv2.FILLED, offset=(-left, -top))
    inside = cv2.dilate(inside, np.ones((3, 3), np.uint8))  # pixels that are dark in part
    grey = (_BRIGHT - part).astype(np.float32) * inside
    m = cv2.moments(grey)
    if not m["m00"] > 0.0:
        return 0.0, 0.0, 0.0, 0.0
    turn = 0.5 * np.arctan2(2.0 * m["mu11"], m["mu20"] - m["mu02"])
    return m["m00"] / _BRIGHT, left + m["m10"] / m["m00"], top + m["m01"] / m["m00"], turn


def _in_order(centres: np.ndarray, turns: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """(N, 3) poses from the base on; directions (N,) are known but for half turns."""
    left = list(range(len(centres)))
    first = int(np.argmin(np.linalg.norm(centres, axis=1)))
    left.remove(first)
    theta, last_turn = _nearest_half_turn(turns[first], 0.0), 0.0
    poses = [np.r_[centres[first], theta]]
    step = gaps[0] * np.array([-np.sin(theta), np.cos(theta)])
    for number, gap in enumerate(gaps):
        c, s = np.cos(last_turn), np.sin(last_turn)
        expected = poses[-1][:2] + np.array([c * step[0] - s * step[1], s * step[0] + c * step[1]])
        distances = np.linalg.norm(centres[left] - expected, axis=1)
        best = left[int(np.argmin(distances))]
        if distances.min() > _FARTHEST * gap:
            raise UserError(
                f"image: mark {number + 1} is not where the marks before it lead to; the backbone "
                "crosses itself, or moves from mark to mark too much: use more marks"
            )
        left.remove(best)
        turned = _nearest_half_turn(turns[best], theta + last_turn)
        step, last_turn, theta = centres[best] - poses[-1][:2], turned - theta, turned
        poses.append(np.r_[centres[best], theta])
    return np.array(poses)


def _nearest_half_turn(turn: float, expected: float) -> float:
    return turn + np.pi * round((expected - turn) / np.pi)

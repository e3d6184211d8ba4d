"""Beyond the paper: shapes from images that a lens distorts, taken by a camera that stands askew.

The paper's renders have neither. Here a pinhole with 2 % of barrel distortion, or turned by 1
degree about the middle of its image, sees the marks of case 2. Its images are read as if it were
ideal, or after a calibration from thirteen images of a chessboard, of which the first lies in the
robot's plane. All images have grain.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.camera import Camera, Marks
from softcr_papers.valadas2024.learning.images import detect, opencv, render
from softcr_papers.valadas2024.learning.lens import (
    Board,
    LensCamera,
    calibrated,
    detect_through,
    moved,
    render_board,
)
from softcr_papers.valadas2024.studies.robots import CASES
from softcr_studies.frame.study import Cell, Metric, Must, Result, Study, StudySettings

DISTANCE, GRAIN = 0.5, 3.0  # of the camera from the plane [m]; of a pixel, of 255
_VIEWS, _TURN, _AWAY = 12, 0.5, 0.1  # of the board beside the first; how far it is turned, moved


@dataclass(frozen=True)
class View:
    """A case.

    Attributes:
        name: in the table.
        distortion: by how much the middle of an edge lies nearer to the image's middle [-].
        turn: of the camera, about an axis in the plane [rad].
    """

    name: str
    distortion: float = 0.0
    turn: float = 0.0


_DEGREE = float(np.deg2rad(1.0))
VIEWS = (
    View("ideal camera"), View("2 % radial distortion", distortion=0.02),
    View("1 degree of tilt", turn=_DEGREE), View("both", 0.02, _DEGREE),
)  # fmt: skip
IDEAL, CALIBRATED = "as if ideal", "calibrated"
POSITION, ANGLE = "position, mean of all marks", "angle, mean of all marks"


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(10, ge=1, le=100, description="draws of motions, tilts, boards and grain")
    frames: int = Field(10, ge=2, le=4000, description="number of frames, evenly spaced")


def run(cell: Cell) -> Result:
    """Errors of marks against the base's, since an ideal camera takes its place for known."""
    try:
        opencv()
    except UserError as error:
        return {"skipped": str(error)}
    robot, random = CASES[1], cell.random("camera")
    ideal, marks = Camera.of_robot(robot.arm.length), Marks.of_robot(robot.arm.length)
    camera = lens_camera(ideal, cell.case, random.uniform(0.0, 2.0 * np.pi))
    found = calibrated(_boards(camera, random), ideal, Board())
    poses = robot.training(cell.stream("plant")).motion.frames
    chosen = poses[np.linspace(0, len(poses) - 1, cell.settings.frames).astype(int)]
    errors = []
    for frame in chosen:
        image = _grainy(render(frame, camera, marks), random)
        try:
            if cell.method == IDEAL:
                seen = detect(image, ideal, marks)
            else:
                seen = detect_through(image, found, marks)
        except UserError:
            continue
        errors.append(seen - frame - (seen - frame)[0] * [1.0, 1.0, 0.0])
    apart = np.array(errors)
    return {
        POSITION: 1e3 * np.linalg.norm(apart[..., :2], axis=-1).mean(),
        ANGLE: 1e3 * np.abs(apart[..., 2]).mean(), "frames lost": len(chosen) - len(errors),
    }  # fmt: skip


def lens_camera(ideal: Camera, view: View, axis: float) -> LensCamera:
    """The camera of a case, which sees the plane about as an ideal one does.

    Args:
        ideal: its size, scale and base.
        view: the case.
        axis: of its turn, an angle in the plane [rad].
    """
    cv2, middle = opencv(), 0.5 * np.array([ideal.width, ideal.height])
    focal = ideal.scale * DISTANCE
    edge = 0.5 * ideal.width / focal
    distortion = np.array([-view.distortion / edge**2, 0.0, 0.0, 0.0, 0.0])
    turn = cv2.Rodrigues(view.turn * np.array([np.cos(axis), np.sin(axis), 0.0]))[0]
    rotation = turn @ np.diag([1.0, -1.0, -1.0])  # the image's rows go down
    aim = np.append(ideal.points(middle), 0.0)
    return LensCamera(
        ideal.width, ideal.height, ideal.scale, ideal.base,
        np.array([[focal, 0.0, middle[0]], [0.0, focal, middle[1]], [0.0, 0.0, 1.0]]), distortion,
        cv2.Rodrigues(rotation)[0].ravel(), np.array([0.0, 0.0, DISTANCE]) - rotation @ aim,
    )  # fmt: skip


def _boards(camera: LensCamera, random: np.random.Generator) -> list[np.ndarray]:
    """Images of a board: in the robot's plane, then held before the camera."""
    board = Board()
    middle = 0.5 * board.corners[-1]
    views = [camera]
    for _ in range(_VIEWS):
        turn = _TURN * random.uniform(-1.0, 1.0, 3)
        move = _AWAY * random.uniform(-1.0, 1.0, 3) * [1.0, 1.0, 0.5] - middle
        views.append(moved(camera, turn, np.add(move, [0.0, 0.06, 0.0])))
    return [_grainy(render_board(view, board), random) for view in views]


def _grainy(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
    noise = GRAIN * random.standard_normal(image.shape, dtype=np.float32)
    return np.clip(np.round(image + noise), 0, 255).astype(np.uint8)


STUDY = Study(
    name="valadas2024/lens",
    source="",
    summary="marks found through a lens, by a camera that stands askew",
    run=run,
    cases=VIEWS,
    methods=(IDEAL, CALIBRATED),
    settings=Settings,
    metrics=(
        Metric(POSITION, "mm", POSITION),
        Metric(ANGLE, "mrad", ANGLE),
        Metric("frames lost", "-", "frames lost"),
    ),
    musts=tuple(Must(POSITION, 0.05, 0.02, view.name, CALIBRATED) for view in VIEWS),
    exact="Images are rendered: the lens is one that OpenCV's model has exactly, edges are sharp, "
    "and light is even. Calibration knows the board's squares, that all is rigid, and that the "
    "board's first view lies in the robot's plane with a corner at its base; it does not know the "
    "camera. Errors are of case 2, 170 mm long, in images of 2860 pixels. Marks' positions are "
    "compared from the base's mark on, since a camera that is taken for ideal has the base where "
    "it sees it. Frames are lost where the robot crosses itself.",
    about={"camera_m": DISTANCE, "grain_of_255": GRAIN, "board_images": 1 + _VIEWS},
    quick={"frames": 3},
)  # fmt: skip

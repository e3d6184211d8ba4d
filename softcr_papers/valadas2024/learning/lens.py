"""A camera with a lens, which looks at the robot's plane askew, and how it is calibrated.

The lens is OpenCV's: a pinhole with radial and tangential distortion (Brown, Photogrammetric
Engineering 37 (1971) 855). Calibration is Zhang's (IEEE Transactions on Pattern Analysis and
Machine Intelligence 22 (2000) 1330), from views of a chessboard, none turned by more than a
right angle, of which the first lies in the robot's plane: its first inner corner at the robot's
base, its rows along x, its columns along y.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.camera import Camera, Marks
from softcr_papers.valadas2024.learning.images import detect, opencv

_NUDGE = 2.0  # along a mark, to see which way it runs in the plane [pixels]
_FEWEST = 5  # views of a board
_SMALLER, _WINDOW = 4, 12  # of the search for corners; half width of their refinement [pixels]


@dataclass(frozen=True, eq=False)
class LensCamera(Camera):
    """A camera whose pixels are those of a lens; `scale` and `base` are as if it had none.

    Attributes:
        matrix: (3, 3) of the pinhole [pixels].
        distortion: (5,) k1, k2, p1, p2, k3 [-].
        rotation, translation: (3,) rotation vector and place [m] of the robot's plane before the
            camera, whose z axis looks.
    """

    matrix: np.ndarray = field(default_factory=lambda: np.eye(3))
    distortion: np.ndarray = field(default_factory=lambda: np.zeros(5))
    rotation: np.ndarray = field(default_factory=lambda: np.zeros(3))
    translation: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def pixels(self, points: np.ndarray) -> np.ndarray:
        """(..., 2) columns and rows of points (..., 2) of the plane [m]."""
        flat = np.reshape(points, (-1, 2))
        found = self.project(np.column_stack([flat, np.zeros(len(flat))]))
        return found.reshape(np.shape(points))

    def project(self, points: np.ndarray) -> np.ndarray:
        """(N, 2) columns and rows of points (N, 3), z = 0 in the robot's plane [m]."""
        numbers = self.rotation, self.translation, self.matrix, self.distortion
        pixels: np.ndarray = opencv().projectPoints(np.asarray(points, float), *numbers)[0][:, 0]
        return pixels

    def points(self, pixels: np.ndarray) -> np.ndarray:
        """(..., 2) points of the plane [m] at pixels (..., 2): where their rays meet it."""
        cv2, flat = opencv(), np.reshape(np.asarray(pixels, float), (-1, 1, 2))
        ends = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 50, 1e-12)
        straight = cv2.undistortPoints(flat, self.matrix, self.distortion, criteria=ends)[:, 0]
        turn = cv2.Rodrigues(self.rotation)[0]
        # of the plane's points, with z = 0, to the pinhole's image
        plane = np.column_stack([turn[:, 0], turn[:, 1], self.translation])
        met = np.linalg.solve(plane, np.column_stack([straight, np.ones(len(straight))]).T)
        found: np.ndarray = (met[:2] / met[2]).T.reshape(np.shape(pixels))
        return found


@dataclass(frozen=True)
class Board:
    """A chessboard.

    Attributes:
        columns, rows: of its inner corners.
        square: side of a square [m].
    """

    columns: int = 14
    rows: int = 11
    square: float = 0.012

    @property
    def corners(self) -> np.ndarray:
        """(columns rows, 3) inner corners, the first at 0, row after row [m]."""
        x, y = np.meshgrid(np.arange(self.columns), np.arange(self.rows))
        return self.square * np.column_stack([x.ravel(), y.ravel(), 0.0 * x.ravel()])


def calibrated(images: Sequence[np.ndarray], camera: Camera, board: Board) -> LensCamera:
    """The camera that took images (height, width) uint8 of a board, the first in the robot's plane.

    Args:
        images: of the board, at different angles.
        camera: size of the images, and scale and base roughly.
        board: which.

    Raises:
        UserError: the board is not seen in the first image, or in too few.
    """
    cv2 = opencv()
    seen = [found for image in images if (found := _corners(image, board)) is not None]
    if _corners(images[0], board) is None or len(seen) < _FEWEST:
        raise UserError(
            f"calibration: the board is seen in {len(seen)} of {len(images)} images; it must be "
            f"whole in the first one, and in {_FEWEST} or more"
        )
    places = [board.corners.astype(np.float32)] * len(seen)
    size = camera.width, camera.height
    _, matrix, distortion, turns, moves = cv2.calibrateCamera(
        places, seen, size, None, None, flags=cv2.CALIB_FIX_K3
    )
    return LensCamera(
        camera.width, camera.height, camera.scale, camera.base, matrix, distortion.ravel()[:5],
        turns[0].ravel(), moves[0].ravel(),
    )  # fmt: skip


def _corners(image: np.ndarray, board: Board) -> np.ndarray | None:
    """(columns rows, 1, 2) inner corners [pixels], None where not all are seen.

    They are sought in a quarter of the image's size, and refined in all of it.
    """
    cv2, pattern = opencv(), (board.columns, board.rows)
    small = cv2.resize(image, None, fx=1 / _SMALLER, fy=1 / _SMALLER, interpolation=cv2.INTER_AREA)
    found, corners = cv2.findChessboardCorners(small, pattern)
    if not found:
        return None
    rough = (corners * _SMALLER + 0.5 * (_SMALLER - 1)).astype(np.float32)
    ends = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 50, 1e-4)
    fine = cv2.cornerSubPix(image, rough, (_WINDOW, _WINDOW), (-1, -1), ends)
    grid = fine.reshape(board.rows, board.columns, 2)
    # a chessboard looks the same from all sides: columns go to the right, rows up
    if grid[0, -1, 0] < grid[0, 0, 0]:
        grid = grid[:, ::-1]
    if grid[-1, 0, 1] > grid[0, 0, 1]:
        grid = grid[::-1]
    return np.ascontiguousarray(grid.reshape(-1, 1, 2))


def detect_through(image: np.ndarray, camera: LensCamera, marks: Marks) -> np.ndarray:
    """(N, 3) poses of the marks [m, m, rad], as `detect`, with directions in the robot's plane."""
    poses = detect(image, camera, marks)
    turn, pixels = poses[:, 2], camera.pixels(poses[:, :2])
    # `detect` has directions in the image, whose rows go down
    along = _NUDGE * np.column_stack([np.cos(turn), -np.sin(turn)])
    run = camera.points(pixels + along) - camera.points(pixels - along)
    off = np.arctan2(run[:, 1], run[:, 0]) - turn
    return np.column_stack([poses[:, :2], turn + (off + np.pi) % (2.0 * np.pi) - np.pi])


def render_board(camera: LensCamera, board: Board) -> np.ndarray:
    """(height, width) uint8 image of a board in the plane of a camera, for tests of calibration."""
    cv2 = opencv()
    image = np.full((camera.height, camera.width), 255, np.uint8)
    for row in range(-1, board.rows):
        for column in range(-1, board.columns):
            if (row + column) % 2 == 0:
                square = np.add([[0, 0], [1, 0], [1, 1], [0, 1]], [column, row])
                corners = camera.pixels(board.square * square)
                pixels = np.round(corners * 2**8).astype(np.int32)
                cv2.fillConvexPoly(image, pixels, 0, cv2.LINE_AA, 8)
    return image


def moved(camera: LensCamera, turn: np.ndarray, move: np.ndarray) -> LensCamera:
    """The same lens before a plane that is turned and moved by rotation vectors and places (3,) in
    the frame of the robot's plane."""
    cv2 = opencv()
    own, other = cv2.Rodrigues(camera.rotation)[0], cv2.Rodrigues(np.asarray(turn, float))[0]
    return replace(
        camera,
        rotation=cv2.Rodrigues(own @ other)[0].ravel(),
        translation=camera.translation + own @ np.asarray(move, float),
    )

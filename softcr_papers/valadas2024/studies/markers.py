"""Motions of three markers of case 2: the truth, errors, and artefacts of published figures.

Three artefacts are in the published errors of networks, found in the authors' public data: the
test begins at scrambled poses, each interval of 10 ms goes on from the state after 9 ms, and the
LNN was trained on other markers than it is judged by.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcr_papers.valadas2024.strain.kinematics import StrainKinematics
from softcr_papers.valadas2024.studies.robots import CASES, HOLD
from softcr_studies.frame.cell import Cell

CASE = CASES[1]
MARKERS, LNN_MARKERS = (8, 14, 20), (10, 15, 20)
"""Of 21; those of Table III, and those the published LNN was trained on."""

FRAMES = round(HOLD / 1e-3)
"""Milliseconds for which a torque is held."""

_FAR = 100.0  # robot lengths from the base: from there on a motion diverges


@dataclass(frozen=True, eq=False)
class Truth:
    """A motion of the robot from rest.

    Attributes:
        strains: (n,) at the start.
        torques: (T, n) of each millisecond.
        poses: (1 + T / every, 9) of the three markers.
        every: milliseconds from pose to pose.
    """

    strains: np.ndarray
    torques: np.ndarray
    poses: np.ndarray
    every: int


Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Pose (9,) at the start and torques (T, n) of each millisecond -> poses (T + 1, 9)."""


def training_truth(seed: int) -> Truth:
    """The first training trajectory."""
    data = CASE.training(seed)
    poses = data.motion.poses[0][:, list(MARKERS)]
    torques = data.motion.torques[0, :-1]
    return Truth(data.strains[0, 0], torques, poses.reshape(len(poses), -1), 1)


def test_truth(cell: Cell) -> Truth:
    """The test of 7 s, from the straight robot."""
    torques, strains = CASE.test(cell)
    poses = StrainKinematics(CASE.arm.lengths).poses(strains, marker_places()[list(MARKERS)])
    held = np.repeat(torques, FRAMES, axis=0)
    return Truth(strains[0], held, poses.reshape(len(poses), -1), FRAMES)


def nine_of_ten(predict: Predict, begin: np.ndarray, torques: np.ndarray) -> np.ndarray:
    """(T + 1, 9) poses with the artefact of time: in each tenth millisecond nothing moves."""
    frames = np.arange(len(torques) + 1)
    acting = torques[frames[1:] % FRAMES != 0]
    return predict(begin, acting)[frames - frames // FRAMES]


def straight_pose(markers: tuple[int, ...] = MARKERS) -> np.ndarray:
    """(3 N,) poses of markers of the straight robot [m, m, rad]."""
    poses = np.zeros((len(markers), 3))
    poses[:, 1] = marker_places()[list(markers)]
    return poses.ravel()


def scrambled_pose(markers: tuple[int, ...] = MARKERS) -> np.ndarray:
    """(3 N,) the artefact of the pose: all x, all y, all angles, read marker by marker."""
    poses = straight_pose(tuple(range(len(marker_places())))).reshape(-1, 3)
    return poses.T.reshape(-1, 3)[list(markers)].ravel()


def marker_places() -> np.ndarray:
    """(21,) of all markers [m]."""
    return np.linspace(0.0, CASE.arm.lengths.sum(), 21)


def marker_errors(name: str, truth: Truth, found: np.ndarray) -> dict[str, object]:
    """Errors of position [mm] and angle [rad], Eq. (9), or when the motion diverges [s].

    Args:
        name: what the errors are called by.
        truth: the motion.
        found: (T + 1, 9) poses of each millisecond.
    """
    far = np.linalg.norm(found.reshape(-1, len(MARKERS), 3)[..., :2], axis=2).max(axis=1)
    gone = ~(far <= _FAR * CASE.arm.lengths.sum())
    result: dict[str, object] = {f"{name} diverges": 100.0 * float(gone.any())}
    if gone.any():
        return result | {f"{name} until it diverges": 1e-3 * float(np.argmax(gone))}
    error = _error(truth, found)
    return result | {
        f"{name} position": float(error[0].mean()),
        f"{name} angle": float(error[1].mean()),
    }


def position_error(truth: Truth, found: np.ndarray) -> np.ndarray:
    """(1 + T / every,) mean distance of the markers from where they are [mm]."""
    mean: np.ndarray = _error(truth, found)[0].mean(axis=1)
    return mean


def _error(truth: Truth, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(1 + T / every, 3) of each marker's position [mm] and angle [rad]."""
    off = (found[:: truth.every] - truth.poses).reshape(-1, len(MARKERS), 3)
    return 1e3 * np.linalg.norm(off[..., :2], axis=2), np.abs(off[..., 2])

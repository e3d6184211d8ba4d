"""Motions of shapes in bags, as a run of a planar strain robot leaves them."""

from pathlib import Path

import numpy as np
from pydantic import ValidationError
from scipy.spatial.transform import Rotation

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.motion import ShapeMotion
from softcr_papers.valadas2024.strain.arm import StrainArm
from softcr_papers.valadas2024.strain.kinematics import STRAINS, planar_poses
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import BagSignals, Signal, read_signals

POSES, TORQUES = "mocap/body/poses", "torque/state"
_OUT_OF_PLANE = 0.05  # of the length: markers that are so far out belong to another robot [-]


def bag_motion(path: Path, length: float | None) -> ShapeMotion:
    """The motion that a run recorded: poses of its markers, torques that acted.

    The base is the first marker, at rest in its own frame; the others are evenly spaced up to the
    tip. A torque that was read at a frame acted until it, from the frame before.

    Args:
        path: of a bag, or of a run's directory with its bag in it.
        length: of the unloaded robot [m]; None: what the run's robot file says.

    Raises:
        UserError: the bag cannot be read, lacks a topic, or is of another robot.
    """
    signals = read_signals(Bag(path), (POSES, TORQUES))
    positions, quaternions = (signals.signal(POSES, name) for name in ("positions", "quaternions"))
    acted = signals.signal(TORQUES, "torque")
    for topic, found in ((POSES, positions), (TORQUES, acted)):
        if not len(found):
            raise UserError(
                f"{path}: holds nothing of {topic}; record a run of a robot of type strain"
            )
    known = _length(path, signals) if length is None else length
    stamps, seen, read = np.intersect1d(
        positions.stamps, acted.stamps, assume_unique=True, return_indices=True
    )
    transforms = np.concatenate(
        [
            Rotation.from_quat(quaternions.values[seen].reshape(-1, 4)).as_matrix(),
            positions.values[seen].reshape(-1, 3, 1),
        ],
        axis=2,
    ).reshape(*positions.values[seen].shape[:2], 3, 4)
    if np.abs(transforms[..., 1, 3]).max(initial=0.0) > _OUT_OF_PLANE * known:
        raise UserError(f"{path}: markers leave the plane of x and z of the robot's base")
    base = np.broadcast_to(np.eye(4)[:3], (len(transforms), 1, 3, 4))
    poses = planar_poses(np.concatenate([base, transforms], axis=1))
    places = np.linspace(0.0, known, poses.shape[1])
    torques = _torques(path, acted)[read]
    try:
        return ShapeMotion.of_times(
            1e-9 * (stamps - stamps[0]), poses, places, np.concatenate([torques[1:], torques[-1:]])
        )
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def is_bag(path: Path) -> bool:
    """Whether a path is a directory, or a file of a bag, rather than a table."""
    return path.is_dir() or path.suffix in (".mcap", ".db3")


def _length(path: Path, signals: BagSignals) -> float:
    try:
        return StrainArm.model_validate(signals.robot).length
    except ValidationError:
        raise UserError(
            f"{path}: no node told a robot of type strain; give the robot's --length"
        ) from None


def _torques(path: Path, acted: Signal) -> np.ndarray:
    """(T, 3 S) torques of all strains; of those that the robot has none of, 0."""
    columns = {}
    for column, name in enumerate(acted.columns):
        kind, _, segment = name.rpartition("_")
        if kind not in STRAINS or not segment.isdigit() or not 1 <= int(segment) <= 8:
            raise UserError(f"{path}: {TORQUES} is of {name}, which is no strain's name")
        columns[3 * (int(segment) - 1) + STRAINS.index(kind)] = acted.values[:, column]
    found = np.zeros((len(acted), 3 * (max(columns) // 3 + 1)))
    for place, values in columns.items():
        found[:, place] = values
    return found

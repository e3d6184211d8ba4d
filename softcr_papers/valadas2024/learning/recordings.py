"""Motions of shapes in CSV files and bags."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from softcr_models.errors import UserError
from softcr_models.files.csv_files import read_columns
from softcr_papers.valadas2024.learning.bag_recordings import bag_motion, is_bag
from softcr_papers.valadas2024.learning.motion import ShapeMotion
from softcr_papers.valadas2024.strain.kinematics import STRAINS

_POSE = ("x", "y", "theta")
_UNITS = {
    "time": "s", r"[xy]_\d+": "m", r"theta_\d+": "rad", rf"torque_{STRAINS[0]}_\d+": "N m",
    rf"torque_(?:{STRAINS[1]}|{STRAINS[2]})_\d+": "N",
}  # fmt: skip


DEFAULT_LENGTH = 0.1
"""Of a robot in CSV files where none is given [m]."""


def read_motion(paths: Sequence[Path], length: float | None = None) -> ShapeMotion:
    """The motion of a robot in files and bags, of which each is a trajectory.

    A bag, or the directory of a run, is read as `bag_motion` says. A CSV file has a line of column
    names and a line per frame, in SI units: time; x_1, y_1, theta_1 ... of the markers from the
    base to the tip, evenly spaced, in the frame of the base, whose y axis is along the straight
    robot; torque_bending_1, torque_shear_1, torque_axial_1 ... of each segment, held until the next
    frame; a torque that is not there is 0. Angles need not be counted on beyond half a turn.
    Trajectories must have as many frames as each other: longer ones are cut.

    Args:
        paths: of the files.
        length: of the unloaded robot from the first marker to the last [m]; None: what a bag's
            robot has, and `DEFAULT_LENGTH`.

    Raises:
        UserError: a file cannot be read or lacks a column, or the motion cannot be learned from.
    """
    if length is not None and not 0.0 < length < np.inf:
        raise UserError(f"length {length} m: must be finite and above 0")
    if not paths:
        raise UserError("no recordings are given; give one CSV file or bag, or more")
    motions = [
        bag_motion(path, length) if is_bag(path) else _trajectory(path, length or DEFAULT_LENGTH)
        for path in paths
    ]
    first = motions[0]
    for path, each in zip(paths, motions, strict=True):
        same = each.poses.shape[2:] == first.poses.shape[2:] and each.length == first.length
        if not (same and each.torques.shape[2] == first.torques.shape[2]):
            raise UserError(f"{path}: has other markers, torques or another length than {paths[0]}")
        if abs(each.period - first.period) > 0.01 * first.period:
            raise UserError(
                f"{path}: a frame each {each.period:g} s, but {first.period:g} s in {paths[0]}; "
                "resample"
            )
    frames = min(each.poses.shape[1] for each in motions)
    return replace(
        first,
        poses=np.concatenate([each.poses[:, :frames] for each in motions]),
        torques=np.concatenate([each.torques[:, :frames] for each in motions]),
    )


def _unit_of(name: str) -> str | None:
    """The unit of a column; None for another's."""
    return next((unit for kind, unit in _UNITS.items() if re.fullmatch(kind, name)), None)


def _trajectory(path: Path, length: float) -> ShapeMotion:
    columns = read_columns(path, _unit_of)
    markers = 0
    while f"x_{markers + 1}" in columns:
        markers += 1
    names = [f"{kind}_{marker + 1}" for marker in range(markers) for kind in _POSE]
    segments = max(
        (int(name.rpartition("_")[2]) for name in columns
         if name.startswith("torque_") and _unit_of(name)), default=0,
    )  # fmt: skip
    if segments > 8:
        raise UserError(f"{path}: torques of segment {segments}: must be of 8 segments at most")
    if missing := [name for name in ("time", "x_1", *names) if name not in columns]:
        raise UserError(f"{path}: column {missing[0]} is missing; it has {', '.join(columns)}")
    if not segments:
        raise UserError(
            f"{path}: column torque_bending_1 is missing; without torques no equations of motion "
            "are found"
        )
    frames = len(columns["time"])
    poses = np.stack([columns[name] for name in names], axis=1).reshape(frames, markers, 3)
    poses[..., 2] = np.unwrap(poses[..., 2], axis=1)
    torques = np.zeros((frames, 3 * segments))
    for place in range(3 * segments):
        name = f"torque_{STRAINS[place % 3]}_{place // 3 + 1}"
        torques[:, place] = columns.get(name, 0.0)
    try:
        places = np.linspace(0.0, length, markers)
        return ShapeMotion.of_times(columns["time"], poses, places, torques)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None

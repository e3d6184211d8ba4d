"""Recordings of a soft arm in the form of Bruder et al., IEEE T-RO 37, 2021.

An .npz file with, for every trial i = 0, 1, ...: t{i} (N,) increasing times [s], u{i} (N, m)
commands [V], each held until the next, y{i} (N, p) tip position [cm].
"""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softcr_control.koopman import Trial
from softcr_models.errors import UserError

MM_PER_CM = 10.0


@dataclass(frozen=True, eq=False)
class Recording:
    """One trial on a uniform grid: commands [V], tip [mm].

    Attributes:
        name: file and number.
        trial: outputs (T, p) [mm], inputs (T, m) [V].
    """

    name: str
    trial: Trial

    @property
    def motion(self) -> float:
        """Diagonal of the smallest box round the tip's path [mm]."""
        return float(np.linalg.norm(np.ptp(self.trial.outputs, axis=0)))


def load_recordings(path: Path, period: float) -> list[Recording]:
    """All trials of a file on a grid of `period` [s]: tips interpolated linearly, commands held.

    Raises:
        UserError: no such file, not of the form above, or not finite.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; recordings of a soft arm (.npz) are needed")
    try:
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: np.asarray(content[name], float) for name in content.files}
    except (OSError, ValueError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"{path}: cannot be read as recordings (.npz): {problem}") from None
    count = sum(f"t{number}" in arrays for number in range(len(arrays)))
    if not count or "t0" not in arrays:
        raise UserError(f"{path}: holds {sorted(arrays)}; arrays t0, u0, y0, ... are needed")
    return [_resampled(path, arrays, number, period) for number in range(count)]


def split(recordings: Sequence[Recording]) -> tuple[list[Recording], list[Recording]]:
    """Those to train on, and every fourth (numbers 4, 8, 12, ... from 0), held out.

    Raises:
        UserError: fewer than five.
    """
    held_out = list(recordings[4::4])
    if not held_out:
        raise UserError(
            f"{len(recordings)} trials: at least 5 are needed to hold every fourth out; "
            "or name files with --score"
        )
    return [one for one in recordings if one not in held_out], held_out


def _resampled(path: Path, arrays: dict[str, np.ndarray], number: int, period: float) -> Recording:
    name = f"{path.stem} {number}"
    missing = [letter for letter in "tuy" if f"{letter}{number}" not in arrays]
    if missing:
        raise UserError(f"{path}: trial {number}: {missing[0]}{number} is missing")
    times, inputs, outputs = (arrays[f"{letter}{number}"] for letter in "tuy")
    times = times.ravel()
    if inputs.ndim != 2 or outputs.ndim != 2 or not len(times) == len(inputs) == len(outputs) > 1:
        raise UserError(
            f"{path}: trial {number}: t {times.shape}, u {inputs.shape}, y {outputs.shape}: "
            "allowed are (N,), (N, m), (N, p) with N > 1"
        )
    if not (np.isfinite(times).all() and np.isfinite(inputs).all() and np.isfinite(outputs).all()):
        raise UserError(f"{path}: trial {number}: holds numbers that are not finite")
    if (np.diff(times) <= 0.0).any():
        row = int((np.diff(times) <= 0.0).argmax()) + 1
        raise UserError(f"{path}: trial {number}: time of row {row} is not above the one before")
    grid = np.arange(times[0], times[-1], period)
    tips = np.stack([np.interp(grid, times, column) for column in outputs.T], axis=1)
    held = inputs[np.searchsorted(times, grid, side="right") - 1]
    return Recording(name, Trial(MM_PER_CM * tips, held))

"""The shipped recordings at their full rate, from copies of their authors' repositories.

`python -m softcr_studies.recordings.full_rate FROM TO` looks anywhere below FROM for the files of
StanfordASL/trunk-stack and of ASU-RISE-Lab/4-chamber-softarm-control, and writes into TO arrays and
column maps of those that are there, for `--data` and `--map` of the studies `recordings/asl-trunk`
and `recordings/asu-two-segments`. The recording of the tentacle is shipped whole.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from softcr_models.errors import UserError
from softcr_models.files.config import config_directory

_TRUNK = "servo_motor_archive"
_TRUNK_FILES = {
    "a_0g": "observations_controlled_1.csv",
    "a_300g": "observations_controlled_1_300g.csv",
    "c_0g": "observations_controlled_11.csv",
}
_TRUNK_RATE = 100.0  # [Hz]
_FITTED = 10000  # samples of the trials of 150 s; the rest is another trial
_OUTLIER, _AROUND = 4e-3, 9  # from the median of so many samples [m], [-]
_ASU = "2023"
_ASU_FILES = {
    **{f"apr4_{k}": Path(f"apr 4/data_collect_{k}.txt") for k in (1, 2, 4, 5, 6, 7)},
    "mar7_1": Path("mar 7/data_collect_1.txt"),
}
_ASU_RATE = 60.0  # [Hz]
_ASU_COLUMNS = 38
_LONGEST = 10  # samples on the even grid, of one in the file
_PRESSURES = [4, 5, 6, 10, 11, 12]  # columns after the time [psi]
_BASE, _PLATES = slice(17, 20), (slice(24, 27), slice(31, 34))  # positions [m], z up
_PSI = 6894.76  # [Pa]


@dataclass(frozen=True)
class Recording:
    """One shipped recording.

    Attributes:
        name: of its arrays; its column map is below the same name.
        folder: of its authors that holds the files.
        files: below that folder, by trial.
        rate: of the samples [Hz].
        read: makes arrays by name of a trial's name and file.
    """

    name: str
    folder: str
    files: Mapping[str, str | Path]
    rate: float
    read: Callable[[str, Path], dict[str, np.ndarray]]


def trunk_trial(name: str, file: Path) -> dict[str, np.ndarray]:
    """`NAME_y` (T, 9) positions of three discs [m] and `NAME_q` (T, 6) angles of motors [deg],
    outliers replaced by the median around them (Hampel filter).

    Raises:
        UserError: the file has not these columns.
    """
    table = pd.read_csv(file)
    places = [f"{axis}{disc}" for disc in (1, 2, 3) for axis in "xyz"]
    angles = [f"phi{motor}" for motor in range(1, 7)]
    if missing := [each for each in (*places, *angles) if each not in table]:
        raise UserError(f"{file}: columns {', '.join(missing)} are missing")
    positions = table[places].astype(float)
    median = positions.rolling(_AROUND, center=True, min_periods=1).median()
    positions = positions.where((positions - median).abs() <= _OUTLIER, median)
    found = {f"{name}_y": positions.to_numpy(), f"{name}_q": table[angles].to_numpy(float)}
    if len(table) <= _FITTED:
        return found
    rest = {key.replace(name, f"{name}_end"): value[_FITTED:] for key, value in found.items()}
    return {key: value[:_FITTED] for key, value in found.items()} | rest


def asu_trial(name: str, file: Path) -> dict[str, np.ndarray]:
    """`NAME_p` (T, 6) gauge pressures [Pa] and `NAME_y` (T, 6) positions of two plates from the
    base plate, x, y, z down [m], on an even grid.

    Raises:
        UserError: the file is no table of 38 columns whose time ascends.
    """
    rows = pd.read_csv(file, header=None).to_numpy(float)
    if rows.shape[1] != _ASU_COLUMNS or (np.diff(rows[:, 0]) <= 0.0).any():
        raise UserError(f"{file}: must be {_ASU_COLUMNS} columns, the first an ascending time")
    times = rows[:, 0] - rows[0, 0]
    if times[-1] * _ASU_RATE > _LONGEST * len(rows):
        raise UserError(f"{file}: lasts {times[-1]:g} s with {len(rows)} samples: its time jumps")
    grid = np.arange(int(times[-1] * _ASU_RATE) + 1) / _ASU_RATE
    even = np.stack([np.interp(grid, times, column) for column in rows.T], axis=1)
    base = np.median(even[:, _BASE], axis=0)
    plates = [(even[:, plate] - base) * (1.0, -1.0, -1.0) for plate in _PLATES]
    return {f"{name}_p": _PSI * even[:, _PRESSURES], f"{name}_y": np.hstack(plates)}


RECORDINGS = (
    Recording("asl_trunk", _TRUNK, _TRUNK_FILES, _TRUNK_RATE, trunk_trial),
    Recording("asu_motions", _ASU, _ASU_FILES, _ASU_RATE, asu_trial),
)


def write(source: Path, target: Path) -> list[Path]:
    """Arrays and column maps of the recordings that are there, and their paths.

    Args:
        source: somewhere below which copies of the authors' repositories are.
        target: directory for the files.

    Raises:
        UserError: none is there, one lacks a file, or a file cannot be read.
    """
    written = []
    for each in RECORDINGS:
        first = next(iter(each.files.values()))
        place = next((p for p in sorted(source.rglob(each.folder)) if (p / first).is_file()),
                     None)  # fmt: skip
        if place is None:
            continue
        arrays: dict[str, np.ndarray] = {}
        for name, file in each.files.items():
            try:
                arrays |= each.read(name, place / file)
            except (OSError, ValueError) as error:
                raise UserError(f"{place / file}: cannot be read: {error}") from None
        target.mkdir(parents=True, exist_ok=True)
        data = target / f"{each.name}.npz"
        small = {key: value.astype(np.float32) for key, value in arrays.items()}
        np.savez_compressed(data, allow_pickle=False, rate=np.float32(each.rate), **small)
        shipped = (config_directory() / "recordings" / f"{each.name}_map.yaml").read_text()
        known = target / f"{each.name}_map.yaml"
        known.write_text(re.sub(r"rate: [\d.]+", f"rate: {each.rate:g}", shipped))
        written += [data, known]
    if not written:
        looked = ", ".join(
            f"{each.folder}/{next(iter(each.files.values()))}" for each in RECORDINGS
        )
        raise UserError(f"{source}: has no recording of the authors; looked below it for {looked}")
    return written


def main(arguments: list[str]) -> int:
    """The command; returns the exit code."""
    if len(arguments) != 2 or not all(arguments):  # as make has it without FROM=...
        print("usage: python -m softcr_studies.recordings.full_rate FROM TO", file=sys.stderr)
        return 2
    try:
        for path in write(Path(arguments[0]), Path(arguments[1])):
            print(path)
    except (UserError, OSError) as error:
        print(f"softcr: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

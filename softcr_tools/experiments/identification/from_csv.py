"""Recordings as CSV files: a line of column names, then a line per sample. SI units.

    pressure_1 ... pressure_m    measured gauge pressures, chambers in the robot file's order [Pa]
    tip_x, tip_y, tip_z          tip in the base frame [m]
    force_x, force_y, force_z    what the force-torque sensor below the base reads [N]
    moment_x, moment_y, moment_z likewise [N m]
    time                         [s]; without it every line is a configuration at rest
    command_1 ... command_m      pressures asked for, each until the next line [Pa]; for the lag

The order of the columns is free, others are not read.
"""

import csv
import math
from pathlib import Path

import numpy as np

from softcr_models.errors import UserError
from softcr_models.identification import Recording
from softcr_models.robot import Robot
from softcr_tools.experiments.identification.samples import Signals
from softcr_tools.report_run import Series

TIP = ("tip_x", "tip_y", "tip_z")
WRENCH = ("force_x", "force_y", "force_z", "moment_x", "moment_y", "moment_z")


def read_csv(path: Path, robot: Robot) -> Signals | Recording:
    """A recording over time, or configurations at rest.

    Raises:
        UserError: the file cannot be read, lacks a column, or holds what is not a number.
    """
    names, table = _table(path)
    chambers = range(1, len(robot.chambers) + 1)
    pressures = tuple(f"pressure_{number}" for number in chambers)
    commands = tuple(f"command_{number}" for number in chambers)
    missing = [name for name in (*pressures, *TIP, *WRENCH) if name not in names]
    if missing:
        raise UserError(
            f"{path}: column {', '.join(missing)} is missing; it has {', '.join(names)}"
        )

    def columns(wanted: tuple[str, ...]) -> np.ndarray:
        return table[:, [names.index(name) for name in wanted]]

    if "time" not in names:
        return Recording(columns(pressures), columns(TIP), columns(WRENCH))
    times = table[:, names.index("time")]
    if len(times) < 2 or (np.diff(times) <= 0.0).any():
        raise UserError(f"{path}: column time must grow from line to line, over two lines at least")
    stamps = np.round(1e9 * times).astype(np.int64)
    asked = [name for name in commands if name in names]
    if asked and len(asked) < len(commands):
        raise UserError(f"{path}: of the columns {', '.join(commands)} only {', '.join(asked)}")
    held = Series(stamps, columns(commands)) if asked else None
    return Signals(
        str(path),
        Series(stamps, columns(pressures)),
        Series(stamps, columns(TIP)),
        Series(stamps, columns(WRENCH)),
        held,
    )


def _table(path: Path) -> tuple[list[str], np.ndarray]:
    """Names of the columns, and the numbers (T, columns); cells of unread columns may be any."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if any(cell.strip() for cell in line)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: cannot be read: {reason}") from None
    if len(lines) < 2:
        raise UserError(f"{path}: needs a line of column names and a line per sample")
    names = [cell.strip() for cell in lines[0]]
    if len(set(names)) < len(names):
        raise UserError(f"{path}: a column name stands twice in {', '.join(names)}")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(names):
            raise UserError(f"{path}, line {number}: {len(line)} cells, must be {len(names)}")
        pairs = zip(names, line, strict=True)
        rows.append([_number(path, number, name, cell) for name, cell in pairs])
    return names, np.array(rows)


def _number(path: Path, line: int, name: str, cell: str) -> float:
    known = name in (*TIP, *WRENCH, "time") or name.startswith(("pressure_", "command_"))
    if not known:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{path}, line {line}: {name} = {cell.strip()!r}: must be a finite number")
    return value

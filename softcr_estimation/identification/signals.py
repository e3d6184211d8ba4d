"""What was recorded of a rod, as signals over time: topics of a bag, columns of a CSV file."""

import csv
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_models.identification import Recording
from softcr_models.robot import Robot
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import Signal
from softcr_runtime.messages import (
    MessageError,
    from_stamp,
    pose_from_message,
    pressures_from_message,
    wrench_from_message,
)

PRESSURES, TIP, WRENCH = "pressure/state", "mocap/tip/pose", "force_torque/wrench"
COMMANDS = ("pressure/sent", "pressure/command")  # behind safety and limiter, if that is recorded
TIP_COLUMNS = ("tip_x", "tip_y", "tip_z")
WRENCH_COLUMNS = ("force_x", "force_y", "force_z", "moment_x", "moment_y", "moment_z")


@dataclass(frozen=True, eq=False)
class Signals:
    """What sensors said, each at its own stamps.

    Attributes:
        source: where from, for the eyes of a person.
        pressures: (T, m) [Pa].
        tips: (T, 3) [m], base frame.
        wrenches: (T, 6) of the force-torque sensor [N], [N m].
        commands: (T, m) pressures asked for, each until the next [Pa]; None: not recorded.
    """

    source: str
    pressures: Signal
    tips: Signal
    wrenches: Signal
    commands: Signal | None


def read_topic(bag: Bag, topic: str, decode: Callable[[Any, str], np.ndarray]) -> Signal:
    """The readable messages of a topic by stamp, of one stamp the first; empty without any."""
    found: dict[int, np.ndarray] = {}
    for message in bag.messages(topic) if bag.find(topic) else ():
        with suppress(MessageError, ValueError):
            content = message.decode()
            found.setdefault(from_stamp(content, topic), decode(content, topic))
    stamps = sorted(found)
    return Signal(np.array(stamps, np.int64), np.array([found[stamp] for stamp in stamps]))


def pressures_of(robot: Robot) -> Callable[[Any, str], np.ndarray]:
    """Decodes pressures in the order of the robot's chambers [Pa]."""
    return lambda message, topic: pressures_from_message(message, robot.chamber_names, topic)


def read_bag(path: Path, robot: Robot) -> Signals:
    """What the sensors of a bag said.

    Raises:
        UserError: there is no readable bag, a topic is missing, or it is of another robot.
    """
    bag = Bag(path)
    needed = {
        PRESSURES: pressures_of(robot),
        TIP: lambda message, topic: pose_from_message(message, topic)[:3, 3],
        WRENCH: wrench_from_message,
    }
    if missing := [topic for topic in needed if bag.find(topic) is None]:
        held = ", ".join(sorted(bag.topics))
        raise UserError(
            f"bag {bag.path}: no message on topic {', '.join(missing)}; it holds {held}"
        )
    theirs = _chambers(bag)
    if theirs and sorted(theirs) != sorted(robot.chamber_names):
        ours = ", ".join(robot.chamber_names)
        raise UserError(
            f"bag {bag.path}: chambers {', '.join(theirs)}, but {robot.name} has {ours}"
        )
    series = [read_topic(bag, topic, decode) for topic, decode in needed.items()]
    for topic, each in zip(needed, series, strict=True):
        if len(each) < 2:
            raise UserError(f"bag {bag.path}: topic {topic}: fewer than two readable messages")
    topic = next(filter(bag.find, COMMANDS), COMMANDS[0])
    commands = read_topic(bag, topic, needed[PRESSURES])
    pressures, tips, wrenches = series
    asked = commands if len(commands) else None
    return Signals(f"bag {bag.path}", pressures, tips, wrenches, asked)


def _chambers(bag: Bag) -> list[str]:
    """Their names in the first readable message; empty without one."""
    for message in bag.messages(PRESSURES):
        with suppress(ValueError):
            return list(message.decode().name)
    return []


def read_csv(path: Path, robot: Robot) -> Signals | Recording:
    """A recording over time, or configurations at rest.

    The file has a line of column names and a line per sample, in SI units: pressure_1 ...
    pressure_m measured gauge pressures, chambers in the robot file's order [Pa]; tip_x, tip_y,
    tip_z in the base frame [m]; force_x, force_y, force_z what the force-torque sensor below the
    base reads [N]; moment_x, moment_y, moment_z likewise [N m]; time [s], without which every line
    is a configuration at rest; command_1 ... command_m pressures asked for, each until the next
    line [Pa], for the pressure lag. The order of the columns is free, others are not read.

    Raises:
        UserError: the file cannot be read, lacks a column, or holds what is not a number.
    """
    chambers = range(1, len(robot.chambers) + 1)
    pressures, commands = ([f"{kind}_{number}" for number in chambers]
                           for kind in ("pressure", "command"))  # fmt: skip
    needed = (*pressures, *TIP_COLUMNS, *WRENCH_COLUMNS)
    table = _table(path, {*needed, *commands, "time"})
    if missing := [name for name in needed if name not in table]:
        raise UserError(
            f"{path}: column {', '.join(missing)} is missing; it has {', '.join(table)}"
        )

    def columns(names: Sequence[str]) -> np.ndarray:
        return np.stack([table[name] for name in names], axis=1)

    if "time" not in table:
        return Recording(columns(pressures), columns(TIP_COLUMNS), columns(WRENCH_COLUMNS))
    times = table["time"]
    if len(times) < 2 or (np.diff(times) <= 0.0).any():
        raise UserError(f"{path}: column time must grow from line to line, over two lines at least")
    asked = [name for name in commands if name in table]
    if asked and asked != commands:
        raise UserError(f"{path}: of the columns {', '.join(commands)} only {', '.join(asked)}")
    stamps = np.round(1e9 * times).astype(np.int64)
    return Signals(
        str(path),
        Signal(stamps, columns(pressures)),
        Signal(stamps, columns(TIP_COLUMNS)),
        Signal(stamps, columns(WRENCH_COLUMNS)),
        Signal(stamps, columns(asked)) if asked else None,
    )


def _table(path: Path, known: set[str]) -> dict[str, np.ndarray]:
    """Columns by name; those that are not known hold NaN."""
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
    values = np.full((len(lines) - 1, len(names)), np.nan)
    for row, line in enumerate(lines[1:]):
        where = f"{path}, line {row + 2}"
        if len(line) != len(names):
            raise UserError(f"{where}: {len(line)} cells, must be {len(names)}")
        for column, (name, cell) in enumerate(zip(names, line, strict=True)):
            if name in known:
                values[row, column] = _number(cell, f"{where}: {name}")
    return dict(zip(names, values.T, strict=True))


def _number(cell: str, what: str) -> float:
    with suppress(ValueError):
        if math.isfinite(value := float(cell)):
            return value
    raise UserError(f"{what} = {cell.strip()!r}: must be a finite number")

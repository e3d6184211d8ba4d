"""What was recorded of a rod, as signals over time: topics of a bag, columns of a CSV file."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softcr_models.csv_files import read_columns
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

INPUTS, TIP, WRENCH = "pressure/state", "mocap/tip/pose", "force_torque/wrench"
COMMANDS = ("pressure/sent", "pressure/command")  # behind safety and limiter, if that is recorded
TIP_COLUMNS = ("tip_x", "tip_y", "tip_z")
WRENCH_COLUMNS = ("force_x", "force_y", "force_z", "moment_x", "moment_y", "moment_z")


@dataclass(frozen=True, eq=False)
class Signals:
    """What sensors said, each at its own stamps.

    Attributes:
        source: where from, for the eyes of a person.
        inputs: (T, m) gauge pressures [Pa], tensions [N].
        tips: (T, 3) [m], base frame.
        wrenches: (T, 6) of the force-torque sensor [N], [N m].
        commands: (T, m) inputs asked for, each until the next [Pa, N]; None: not recorded.
    """

    source: str
    inputs: Signal
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


def inputs_of(robot: Robot) -> Callable[[Any, str], np.ndarray]:
    """Decodes pressures and tensions in the order of the robot's actuators [Pa, N]."""
    return lambda message, topic: pressures_from_message(message, robot.actuator_names, topic)


def read_bag(path: Path, robot: Robot) -> Signals:
    """What the sensors of a bag said.

    Raises:
        UserError: there is no readable bag, a topic is missing, or it is of another robot.
    """
    bag = Bag(path)
    needed = {
        INPUTS: inputs_of(robot),
        TIP: lambda message, topic: pose_from_message(message, topic)[:3, 3],
        WRENCH: wrench_from_message,
    }
    if missing := [topic for topic in needed if bag.find(topic) is None]:
        held = ", ".join(sorted(bag.topics))
        raise UserError(
            f"bag {bag.path}: no message on topic {', '.join(missing)}; it holds {held}"
        )
    theirs = _actuators(bag)
    if theirs and sorted(theirs) != sorted(robot.actuator_names):
        ours = ", ".join(robot.actuator_names)
        raise UserError(
            f"bag {bag.path}: actuators {', '.join(theirs)}, but {robot.name} has {ours}"
        )
    series = [read_topic(bag, topic, decode) for topic, decode in needed.items()]
    for topic, each in zip(needed, series, strict=True):
        if len(each) < 2:
            raise UserError(f"bag {bag.path}: topic {topic}: fewer than two readable messages")
    topic = next(filter(bag.find, COMMANDS), COMMANDS[0])
    commands = read_topic(bag, topic, needed[INPUTS])
    inputs, tips, wrenches = series
    asked = commands if len(commands) else None
    return Signals(f"bag {bag.path}", inputs, tips, wrenches, asked)


def _actuators(bag: Bag) -> list[str]:
    """Their names in the first readable message; empty without one."""
    for message in bag.messages(INPUTS):
        with suppress(ValueError):
            return list(message.decode().name)
    return []


def read_csv(path: Path, robot: Robot) -> Signals | Recording:
    """A recording over time, or configurations at rest.

    The file has a line of column names and a line per sample, in SI units: pressure_1 ...
    pressure_m measured gauge pressures, actuators in the robot file's order [Pa], tension_1 ...
    tension_m [N] where they are tendons; tip_x, tip_y, tip_z in the base frame [m]; force_x,
    force_y, force_z what the force-torque sensor below the base reads [N]; moment_x, moment_y,
    moment_z likewise [N m]; time [s], without which every line is a configuration at rest;
    command_1 ... command_m inputs asked for, each until the next line [Pa, N], for the lag. The
    order of the columns is free, others are not read.

    Raises:
        UserError: the file cannot be read, lacks a column, or holds what is not a number.
    """
    kinds = ["tension" if each.type == "tendon" else "pressure" for each in robot.actuators]
    inputs = [f"{kind}_{place + 1}" for place, kind in enumerate(kinds)]
    commands = [f"command_{place + 1}" for place in range(len(kinds))]
    needed = (*inputs, *TIP_COLUMNS, *WRENCH_COLUMNS)
    table = read_columns(path, {*needed, *commands, "time"}.__contains__)
    if missing := [name for name in needed if name not in table]:
        raise UserError(
            f"{path}: column {', '.join(missing)} is missing; it has {', '.join(table)}"
        )

    def columns(names: Sequence[str]) -> np.ndarray:
        return np.stack([table[name] for name in names], axis=1)

    if "time" not in table:
        return Recording(columns(inputs), columns(TIP_COLUMNS), columns(WRENCH_COLUMNS))
    times = table["time"]
    if len(times) < 2 or (np.diff(times) <= 0.0).any():
        raise UserError(f"{path}: column time must grow from line to line, over two lines at least")
    asked = [name for name in commands if name in table]
    if asked and asked != commands:
        raise UserError(f"{path}: of the columns {', '.join(commands)} only {', '.join(asked)}")
    stamps = np.round(1e9 * times).astype(np.int64)
    return Signals(
        str(path),
        Signal(stamps, columns(inputs)),
        Signal(stamps, columns(TIP_COLUMNS)),
        Signal(stamps, columns(WRENCH_COLUMNS)),
        Signal(stamps, columns(asked)) if asked else None,
    )

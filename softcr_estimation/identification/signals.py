"""What was recorded of a rod, as signals over time: topics of a bag, columns of a CSV file."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_models.errors import UserError
from softcr_models.files.csv_files import read_columns
from softcr_models.identification.measured_groups import (
    BASE_FORCE,
    BASE_MOMENT,
    POSITION,
    TIP_ORIENTATION,
    TIP_POSITION,
    groups_of,
)
from softcr_models.identification.rod_identification import Recording
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import pose_sensors
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import Signal
from softcr_runtime.wire.body_messages import pose_values_from_message
from softcr_runtime.wire.messages import (
    MessageError,
    from_stamp,
    pose_from_message,
    pressures_from_message,
    wrench_from_message,
)

INPUTS = "pressure/state"
COMMANDS = ("pressure/sent", "pressure/command")  # behind safety and limiter, if that is recorded
TIP, BODY, WRENCH = "mocap/tip/pose", "mocap/body/poses", "force_torque/wrench"
TOPICS = {
    TIP: (TIP_POSITION, TIP_ORIENTATION), BODY: (), WRENCH: (BASE_FORCE, BASE_MOMENT)
}  # fmt: skip
"""Topics of outputs, and the groups in each; those of the body's poses are the robot's."""
QUATERNION_COLUMNS = ("tip_qx", "tip_qy", "tip_qz", "tip_qw")
SLOWEST = 0.5  # between two samples: a motion is not to be seen in fewer [s]


@dataclass(frozen=True, eq=False)
class Signals:
    """What sensors said, each at its own stamps.

    Attributes:
        source: where from, for the eyes of a person.
        inputs: (T, m) gauge pressures [Pa], tensions [N].
        outputs: (T, 3) by name of group, those that were recorded [their units].
        commands: (T, m) inputs asked for, each until the next [Pa, N]; None: not recorded.
    """

    source: str
    inputs: Signal
    outputs: Mapping[str, Signal]
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
    heard = [topic for topic in TOPICS if bag.find(topic) and (topic != BODY or body_groups(robot))]
    missing = ([] if bag.find(INPUTS) else [INPUTS]) + ([] if heard else [" or ".join(TOPICS)])
    if missing:
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
    outputs: dict[str, Signal] = {}
    for topic in heard:
        names = TOPICS[topic] or body_groups(robot)
        series = _enough(bag, topic, _outputs_of(robot, topic))
        parts = np.split(series.values, len(names), axis=1)
        outputs |= {n: Signal(series.stamps, part) for n, part in zip(names, parts, strict=True)}
    topic = next(filter(bag.find, COMMANDS), COMMANDS[0])
    commands = read_topic(bag, topic, inputs_of(robot))
    asked = commands if len(commands) else None
    return Signals(f"bag {bag.path}", _enough(bag, INPUTS, inputs_of(robot)), outputs, asked)


def body_groups(robot: Robot) -> tuple[str, ...]:
    """Names of the groups of the robot's sensors of poses along its body."""
    return tuple(f"{name}{POSITION}" for name in pose_sensors(robot))


def _enough(bag: Bag, topic: str, decode: Callable[[Any, str], np.ndarray]) -> Signal:
    series = read_topic(bag, topic, decode)
    if len(series) < 2:
        raise UserError(f"bag {bag.path}: topic {topic}: fewer than two readable messages")
    return series


def _outputs_of(robot: Robot, topic: str) -> Callable[[Any, str], np.ndarray]:
    """Decodes the groups of a topic, one behind the other."""
    sensors = len(body_groups(robot))

    def of_tip(message: Any, topic: str) -> np.ndarray:
        pose = pose_from_message(message, topic)
        turned = Rotation.from_matrix(pose[:3, :3]).as_rotvec()
        return np.concatenate((pose[:3, 3], turned))

    def of_body(message: Any, topic: str) -> np.ndarray:
        poses = pose_values_from_message(message, topic, sensors)
        return np.concatenate([pose.position for pose in poses])

    return {TIP: of_tip, BODY: of_body, WRENCH: wrench_from_message}[topic]


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
    tension_m [N] where they are tendons, and of the outputs those that were measured: tip_x, tip_y,
    tip_z in the base frame [m]; NAME_x, NAME_y, NAME_z likewise, of a sensor of poses along the
    body [m]; force_x, force_y, force_z what the force-torque sensor below the base reads [N];
    moment_x, moment_y, moment_z likewise [N m]; tip_qx, tip_qy, tip_qz, tip_qw or tip_roll,
    tip_pitch, tip_yaw about the fixed axes [rad] how the tip is turned. Further time [s], without
    which every line is a configuration at rest; command_1 ... command_m inputs asked for, each
    until the next line, for the lag. A name may have another unit behind it, as in `tip_x
    [mm]`. The order of the columns is free, others are not read,
    and a cell is empty where nothing was measured.

    Raises:
        UserError: the file cannot be read, lacks a column, or holds what is not a number.
    """
    inputs = [f"{quantity}_{place + 1}" for place, quantity in enumerate(robot.quantities)]
    commands = [f"command_{place + 1}" for place in range(len(inputs))]
    triples = {each.name: each.columns for each in groups_of(robot)}
    units: dict[str, str] = {name: each.unit for each in groups_of(robot) for name in each.columns}
    units |= {"time": "s", **dict.fromkeys(QUATERNION_COLUMNS, "-")}
    for unit, *names in zip(robot.input_units, inputs, commands, strict=True):
        units |= dict.fromkeys(names, unit)
    table = read_columns(path, units.get, gaps=True)
    recorded = {name: columns for name, columns in triples.items() if {*columns} & {*table}}
    needed = [*inputs, *sum(recorded.values(), ())]
    if {*QUATERNION_COLUMNS} & {*table}:
        needed += QUATERNION_COLUMNS
    if not any(each.fitted and each.name in recorded for each in groups_of(robot)):
        needed += triples[TIP_POSITION]
    if missing := [name for name in needed if name not in table]:
        raise UserError(
            f"{path}: column {', '.join(missing)} is missing; it has {', '.join(table)}"
        )
    acting = _columns(table, inputs)
    outputs = {name: _columns(table, columns) for name, columns in recorded.items()}
    if QUATERNION_COLUMNS[0] in table:
        outputs[TIP_ORIENTATION] = _turned(path, _columns(table, QUATERNION_COLUMNS))
    elif TIP_ORIENTATION in outputs:
        outputs[TIP_ORIENTATION] = _of_angles(path, outputs[TIP_ORIENTATION])
    if "time" not in table:
        return Recording(acting, outputs).rows(np.isfinite(acting).all(axis=1))
    stamps = _stamps(path, table["time"])
    asked = [name for name in commands if name in table]
    if asked and asked != commands:
        raise UserError(f"{path}: of the columns {', '.join(commands)} only {', '.join(asked)}")

    def signal(what: str, values: np.ndarray) -> Signal:
        heard = np.isfinite(values).all(axis=1)
        if heard.sum() < 2:
            raise UserError(f"{path}: {what}: fewer than two lines hold it")
        return Signal(stamps[heard], values[heard])

    return Signals(
        str(path),
        signal("inputs", acting),
        {name: signal(name, values) for name, values in outputs.items()},
        signal("commands", _columns(table, commands)) if asked else None,
    )


def _columns(table: Mapping[str, np.ndarray], names: Sequence[str]) -> np.ndarray:
    """(T, width); a row in which one number is missing is NaN."""
    values = np.stack([table[name] for name in names], axis=1)
    values[~np.isfinite(values).all(axis=1)] = np.nan
    return values


def _stamps(path: Path, times: np.ndarray) -> np.ndarray:
    """(T,) [ns] of times [s]."""
    if len(times) < 2 or not (np.diff(times) > 0.0).all():
        raise UserError(f"{path}: column time must grow from line to line, over two lines at least")
    period = float(np.median(np.diff(times)))
    if period > SLOWEST:
        units = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
        likely = next((unit for unit, size in units.items() if size * period <= 0.1), "")
        hint = f"; the times seem to be in {likely}" if likely else ""
        raise UserError(
            f"{path}: column time: {period:g} s between lines, must be {SLOWEST} s at most{hint}"
        )
    return np.round(1e9 * (times - times[0])).astype(np.int64)


def _turned(path: Path, quaternions: np.ndarray) -> np.ndarray:
    """(T, 3) rotation vectors of quaternions (T, 4), x y z w."""
    known = np.isfinite(quaternions).all(axis=1)
    lengths = np.linalg.norm(quaternions[known], axis=1)
    if (np.abs(lengths - 1.0) > 0.05).any():
        worst = lengths[np.argmax(np.abs(lengths - 1.0))]
        raise UserError(f"{path}: tip_qx ... tip_qw: a quaternion of length {worst:g}, must be 1")
    vectors = np.full((len(quaternions), 3), np.nan)
    vectors[known] = Rotation.from_quat(quaternions[known]).as_rotvec()
    return vectors


def _of_angles(path: Path, angles: np.ndarray) -> np.ndarray:
    """(T, 3) rotation vectors of roll, pitch, yaw (T, 3) about the fixed axes [rad]."""
    known = np.isfinite(angles).all(axis=1)
    largest = np.abs(angles[known]).max(initial=0.0)
    if largest > 2.0 * np.pi:
        raise UserError(
            f"{path}: tip_roll, tip_pitch, tip_yaw: {largest:g} rad, must be within 2 pi; the "
            "angles seem to be in degrees"
        )
    vectors = np.full(angles.shape, np.nan)
    vectors[known] = Rotation.from_euler("xyz", angles[known]).as_rotvec()
    return vectors

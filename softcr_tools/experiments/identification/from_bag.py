"""Recordings as bags: pressures, tip poses, wrenches and, for the lag, pressure commands."""

from contextlib import suppress
from pathlib import Path

import numpy as np

from softcr_models.errors import UserError
from softcr_models.robot import Robot
from softcr_runtime.bags.reading import Bag
from softcr_runtime.messages import MessageError, from_stamp, pressures_from_message
from softcr_tools.experiments.identification.samples import Signals
from softcr_tools.report_run import Series, read_run

NEEDED = ("pressure/state", "mocap/tip/pose", "force_torque/wrench")
COMMANDS = ("pressure/sent", "pressure/command")  # behind safety and limiter, if that is recorded


def read_bag(path: Path, robot: Robot) -> Signals:
    """What the sensors of a bag said.

    Raises:
        UserError: there is no readable bag, a topic is missing, or it is of another robot.
    """
    bag = Bag(path)
    missing = [topic for topic in NEEDED if bag.find(topic) is None]
    if missing:
        held = ", ".join(sorted(bag.topics))
        raise UserError(
            f"bag {bag.path}: no message on topic {', '.join(missing)}; it holds {held}"
        )
    run = read_run(bag)
    if sorted(run.chambers) != sorted(robot.chamber_names):
        theirs, ours = ", ".join(run.chambers), ", ".join(robot.chamber_names)
        raise UserError(f"bag {bag.path}: chambers {theirs}, but {robot.name} has {ours}")
    order = [run.chambers.index(name) for name in robot.chamber_names]
    pressures = Series(run.measured_pressures.stamps, run.measured_pressures.values[:, order])
    for topic, series in zip(NEEDED, (pressures, run.measured_tip, run.wrench), strict=True):
        if len(series) < 2:
            raise UserError(f"bag {bag.path}: topic {topic}: fewer than two readable messages")
    commands = next((topic for topic in COMMANDS if bag.find(topic)), None)
    asked = None if commands is None else _commands(bag, commands, robot)
    return Signals(f"bag {bag.path}", pressures, run.measured_tip, run.wrench, asked)


def _commands(bag: Bag, topic: str, robot: Robot) -> Series | None:
    """By stamp; None where none can be read."""
    found: dict[int, np.ndarray] = {}
    for message in bag.messages(topic):
        with suppress(MessageError, ValueError):
            content = message.decode()
            values = pressures_from_message(content, robot.chamber_names, topic)
            found[from_stamp(content, topic)] = values
    if not found:
        return None
    stamps = sorted(found)
    return Series(np.array(stamps), np.array([found[stamp] for stamp in stamps]))

"""Which parameters a motion tells, and what is confounded: Fisher information of tip and inputs.

Motions are references of other studies, or recorded runs; see `information`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from softcr_control.reference import signals
from softcr_control.reference.settings import ReferenceSettings
from softcr_estimation.identification import information
from softcr_estimation.identification.information import LAG, Motion
from softcr_estimation.identification.signals import inputs_of, read_topic
from softcr_estimation.identification.stretches import PERIOD, held_commands
from softcr_models import Robot, load_robot
from softcr_models.chain.elements import elements_of
from softcr_models.chain.pressure import PRESSURE_OFFSET, chamber_names
from softcr_models.errors import UserError
from softcr_models.rod.description import rod_inputs
from softcr_runtime.bags.reading import Bag
from softcr_studies.frame.study import Cell, Result, Results, Row, Study, StudySettings

PLANNED = {
    "to 1.5 Hz, 12 s": ReferenceSettings(duration=12.0),
    "to 0.2 Hz, 30 s": ReferenceSettings(frequencies=(0.05, 0.12, 0.2), fade_in=2.0, duration=30.0),
    "setpoint (45, 25, 15) kPa, 6 s": ReferenceSettings(kind="setpoint"),
}
"""The references of other studies, from rest at their beginning."""


class Settings(StudySettings):
    """Of whom, and which motions."""

    robot: str = Field("licher2025", min_length=1, description="name or YAML file of a robot")
    bag: str = Field(
        "", description="recorded runs with pressures and commands, separated by commas, in place "
        "of the planned motions",
    )  # fmt: skip


def planned(robot: Robot, settings: ReferenceSettings) -> Motion:
    """A reference and the commands that make it."""
    inputs = rod_inputs(robot)
    readings = settings.input_samples(PERIOD, inputs)
    if settings.kind == "setpoint":
        held = np.tile(readings, (len(signals.time_grid(6.0, PERIOD)), 1))
        return Motion(held, held)
    if inputs.lag is None:
        return Motion(readings, readings)
    commands = inputs.lag.commands_along(readings, PERIOD)
    return Motion(readings, np.concatenate([commands, commands[-1:]]))


def recorded(path: Path, robot: Robot) -> Motion:
    """Pressures of a bag, and what was played.

    Raises:
        UserError: it cannot be read, or holds too few of either.
    """
    bag = Bag(path)
    read, sent = (read_topic(bag, f"pressure/{each}", inputs_of(robot))
                  for each in ("state", "sent"))  # fmt: skip
    if len(read) < 3 or not len(sent):
        raise UserError(
            f"{path}: {len(read)} pressures and {len(sent)} commands of {robot.name}; allowed are "
            "3 and 1 or more"
        )
    times = np.arange(read.stamps[0], read.stamps[-1], 1e9 * PERIOD)
    readings = np.stack([np.interp(times, read.stamps, column) for column in read.values.T], axis=1)
    # for each tick what was played in the middle of it
    commands = held_commands(sent, times, -round(0.5e9 * PERIOD))
    return Motion(readings, np.where(np.isnan(commands), readings, commands))


def cases(settings: Settings) -> Sequence[str]:
    """The planned motions, or the bags."""
    bags = [word for word in map(str.strip, settings.bag.split(",")) if word]
    return [str(Path(bag).absolute()) for bag in bags] or list(PLANNED)


def run(cell: Cell) -> Result:
    """Deviations of every number, and its part in the combination that shows least."""
    robot = load_robot(cell.settings.robot)
    reference = PLANNED.get(cell.case)
    motion = recorded(Path(cell.case), robot) if reference is None else planned(robot, reference)
    told = information.tip_information(robot, motion.readings)
    parts, least, lag = [told], told.least, rod_inputs(robot).lag
    if lag is not None:
        parts.append(information.lag_information(lag, motion, information.offset_units(robot)))
        least = np.concatenate([least, np.full(len(LAG), np.nan)])
    return {
        "names": [name for part in parts for name in part.names],
        "alone": np.concatenate([part.alone for part in parts]),
        "together": np.concatenate([part.together for part in parts]),
        "least": least,
        "not_excited": sum(len(part.not_excited) for part in parts),
    }


def rows(results: Results) -> Iterable[Row]:
    """Deviations of every number in its own unit."""
    for cell in results.cells:
        found, case = results[cell], Path(cell.case_name).name
        robot = load_robot(cell.settings.robot)
        units = _offset_units(robot) | _chain_units(robot)
        numbers = zip(*(found[key] for key in ("names", "alone", "together", "least")), strict=True)
        for name, alone, together, part in numbers:
            factor, unit = units.get(str(name), (100.0, "%"))
            figures = [("deviation, others known", factor * alone, unit),
                       ("deviation, none known", factor * together, unit)]  # fmt: skip
            figures += [("part of what shows least", part, "")] if abs(part) > 0.2 else []
            for quantity, value, of in figures:
                yield Row(case, str(name), quantity, float(value), 0.0, of, 1)
        quantity = f"numbers not known to {100 * information.TOLD:g} %"
        yield Row(case, "all numbers", quantity, float(found["not_excited"]), 0.0, "", 1)


def _offset_units(robot: Robot) -> dict[str, tuple[float, str]]:
    """By name of an offset: its unit of information in the unit that is told, and that unit."""
    names = chamber_names(PRESSURE_OFFSET, len(robot.actuators))
    units = information.offset_units(robot).tolist()
    each = zip(names, units, robot.input_units, strict=True)
    return {name: (1e-3 * unit, "kPa") if si == "Pa" else (unit, si) for name, unit, si in each}


_SHOWN = {"-": (1.0, "-"), "rad": (180.0 / np.pi, "deg"), "m": (1e3, "mm")}


def _chain_units(robot: Robot) -> dict[str, tuple[float, str]]:
    """By name of a chain's number likewise."""
    if robot.pressure_chain is None:
        return {}
    elements = elements_of(robot.pressure_chain, len(robot.actuators))
    numbers = [each for _, part in elements for each in part]
    return {
        each.name: (information.chain_unit(each) * _SHOWN[each.unit][0], _SHOWN[each.unit][1])
        for each in numbers
    }


STUDY = Study(
    name="robustness/observability",
    source="",
    summary="which parameters a motion tells, recorded or planned",
    run=run,
    cases=cases,
    methods=("Fisher information",),
    settings=Settings,
    further_rows=rows,
    seeded=False,
    exact="Nothing is simulated but the rod itself, so these are the least deviations that any "
    "filter can reach: the model has no error, the rod begins at rest, and nothing drifts. The tip "
    "is read with the noise that the filter reckons with, pressures with 0.1 kPa for the lag, "
    "tensions with a thousandth of their highest. Parts of a combination are in units of each "
    "number, of offsets in 10 kPa or a tenth of the highest tension. A robot with a pressure_chain "
    "has the chain's numbers, too, in weights of 5, angles of 0.5 rad and offsets of 25 mm; those "
    "that the motion does not tell are the rows of an infinite deviation.",
    about={"intervals": information.INTERVALS, "period_s": round(PERIOD, 6)},
)

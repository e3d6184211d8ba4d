"""Which parameters a motion tells: Fisher information of tip and pressures, and what is confounded.

The tip of the exact rod is differentiated by each number the filter estimates beside the state:
with S(t) (3, P) along the motion and tip noise sigma, F = sum S^T S / sigma^2. 1 / sqrt(F_ii) is
what an unbiased filter could know of a number if all others were known, sqrt((F^-1)_ii) if none
were (Cramer and Rao); the eigenvector of the least eigenvalue is the combination that shows least.
The pressure lag needs no rod: it follows from commands and readings.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import Field

from softcr_control import signals
from softcr_control.reference_settings import ReferenceSettings
from softcr_estimation import EstimatorSettings
from softcr_estimation.identification.signals import pressures_of, read_topic
from softcr_models import CosseratRod, Robot, load_robot
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.pressure import PRESSURE_GAIN, PRESSURE_OFFSET, PressureLag, chamber_names
from softcr_models.rod.description import rod_inputs
from softcr_runtime.bags.reading import Bag
from softcr_studies.study import Cell, Result, Results, Row, Study, StudySettings

PERIOD = 1 / 70
INTERVALS = 5
TOLD = 0.01
"""A number known as well as this (of itself; offsets: of 10 kPa) counts as excited."""
_OFFSET_UNIT = 1e4  # [Pa]
_STEP = 1e-4  # of a number's unit, for differences
_PRESSURE_NOISE = 100.0  # of a reading [Pa]
_LAG = ("lag_pole", "lag_ratio")
_NOTHING, _TINY = 1e-12, np.finfo(float).tiny  # of the largest information: rounding
_METHOD = "Fisher information"
PLANNED = {
    "to 1.5 Hz, 12 s": ReferenceSettings(duration=12.0),
    "to 0.2 Hz, 30 s": ReferenceSettings(frequencies=(0.05, 0.12, 0.2), fade_in=2.0, duration=30.0),
    "setpoint (45, 25, 15) kPa, 6 s": ReferenceSettings(kind="setpoint"),
}
"""The references of other studies, from rest at their beginning."""


class Settings(StudySettings):
    """Of whom, and which motions."""

    robot: str = Field("licher2025", min_length=1, description="name or YAML file")
    bag: str = Field(
        "", description="recorded runs with pressures and commands, separated by commas, in place "
        "of the planned motions",
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Motion:
    """What was done.

    Attributes:
        readings: (T, m) pressures, a tick apart [Pa].
        commands: (T, m) [Pa]; row k is held from reading k to k + 1.
    """

    readings: np.ndarray
    commands: np.ndarray


@dataclass(frozen=True, eq=False)
class Information:
    """What a motion tells.

    Attributes:
        names: (P,) of the numbers.
        matrix: (P, P) Fisher information, each number in units of itself, offsets of 10 kPa.
    """

    names: tuple[str, ...]
    matrix: np.ndarray

    @property
    def alone(self) -> np.ndarray:
        """(P,) least deviations if all others were known; inf: it does not show at all."""
        diagonal = self.matrix.diagonal()
        shown = diagonal > _NOTHING * max(diagonal.max(), _TINY)
        return np.where(shown, 1.0 / np.sqrt(np.where(shown, diagonal, 1.0)), np.inf)

    @property
    def together(self) -> np.ndarray:
        """(P,) least deviations if all are unknown; inf where two are not told apart at all."""
        values, vectors = np.linalg.eigh(self.matrix)
        kept = values > _NOTHING * max(values[-1], _TINY)
        deviations: np.ndarray = np.sqrt((vectors[:, kept] ** 2 / values[kept]).sum(axis=1))
        deviations[(np.abs(vectors[:, ~kept]) > 1e-3).any(axis=1)] = np.inf
        return deviations

    @property
    def not_excited(self) -> tuple[str, ...]:
        """Names of what is not known to TOLD from this motion alone."""
        pairs = zip(self.names, self.together, strict=True)
        return tuple(name for name, deviation in pairs if not deviation <= TOLD)

    @property
    def least(self) -> np.ndarray:
        """(P,) the combination that shows least, of length 1, its largest part positive.

        NaN where several show nothing at all: none of them is the least.
        """
        values, vectors = np.linalg.eigh(self.matrix)
        if (values <= _NOTHING * max(values[-1], _TINY)).sum() > 1:
            return np.full(len(values), np.nan)
        direction: np.ndarray = vectors[:, 0]
        return direction * np.sign(direction[np.argmax(np.abs(direction))])


def planned(robot: Robot, settings: ReferenceSettings) -> Motion:
    """A reference and the commands that make it."""
    inputs = rod_inputs(robot)
    readings = settings.input_samples(PERIOD, inputs)
    if settings.kind == "setpoint":
        held = np.tile(readings, (len(signals.time_grid(6.0, PERIOD)), 1))
        return Motion(held, held)
    commands = robot.pressure_lag.commands_along(readings, PERIOD)
    return Motion(readings, np.concatenate([commands, commands[-1:]]))


def recorded(path: Path, robot: Robot) -> Motion:
    """Pressures and commands of a bag.

    Raises:
        UserError: it cannot be read, or holds too few of either.
    """
    bag = Bag(path)
    read, sent = (
        read_topic(bag, topic, pressures_of(robot))
        for topic in ("pressure/state", "pressure/command")
    )
    if len(read) < 3 or not len(sent):
        raise UserError(
            f"{path}: {len(read)} pressures and {len(sent)} commands of {robot.name}; allowed are "
            "3 and 1 or more"
        )
    times = np.arange(read.stamps[0], read.stamps[-1], 1e9 * PERIOD)
    readings = np.stack([np.interp(times, read.stamps, column) for column in read.values.T], axis=1)
    # a command is answered in the next tick
    newest = np.searchsorted(sent.stamps, times - 0.5e9 * PERIOD, side="right") - 1
    commands = np.where((newest >= 0)[:, None], sent.values[np.maximum(newest, 0)], readings)
    return Motion(readings, commands)


def tip_information(robot: Robot, readings: np.ndarray) -> Information:
    """Of the rod's parameters, and of gains and offsets of the pressure sensors.

    Args:
        robot: as its file has it.
        readings: (T, m) [Pa] PERIOD apart; the rod rests under the first.
    """
    prediction = RodPrediction(CosseratRod(robot, INTERVALS), single_precision=False)
    chambers = prediction.input_size
    gains = chamber_names(PRESSURE_GAIN, chambers)
    offsets = chamber_names(PRESSURE_OFFSET, chambers)
    names = (*prediction.parameter_names, *gains, *offsets)
    # a lane each, and the unchanged one last
    changes = _STEP * np.eye(len(names) + 1, len(names))
    rod = len(prediction.parameter_names)
    parameters = prediction.nominal_parameters * (1.0 + changes[:, :rod])
    gain, offset = 1.0 + changes[:, rod : rod + chambers], changes[:, rod + chambers :]

    def seen(row: int) -> np.ndarray:
        return gain * readings[row] + _OFFSET_UNIT * offset

    lanes = zip(seen(0), parameters, strict=True)
    states = np.array([prediction.equilibrium(*lane) for lane in lanes])
    matrix = np.zeros((len(names), len(names)))
    for row in range(1, len(readings)):
        states = prediction.step(states, seen(row - 1), seen(row), parameters, PERIOD)
        tips = prediction.tip_poses(states, parameters)[:, :, 3]
        slopes = (tips[:-1] - tips[-1]) / _STEP
        matrix += slopes @ slopes.T
    return Information(names, matrix / EstimatorSettings().tip_position_noise ** 2)


def lag_information(lag: PressureLag, motion: Motion) -> Information:
    """Of pole and steady ratio of the lag, one tick ahead from noisy readings."""
    before, command = motion.readings[:-1].ravel(), motion.commands[:-1].ravel()
    decay, ratio = np.exp(-lag.pole * PERIOD), lag.gain / lag.pole
    by_pole = lag.pole * PERIOD * decay * (ratio * command - before)
    slopes = np.stack([by_pole, (1.0 - decay) * ratio * command])
    return Information(_LAG, slopes @ slopes.T / (_PRESSURE_NOISE**2 * (1.0 + decay**2)))


def cases(settings: Settings) -> Sequence[str]:
    """The planned motions, or the bags."""
    bags = [word for word in map(str.strip, settings.bag.split(",")) if word]
    return [str(Path(bag).absolute()) for bag in bags] or list(PLANNED)


def run(cell: Cell) -> Result:
    """Deviations of every number, and its part in the combination that shows least."""
    robot = load_robot(cell.settings.robot)
    reference = PLANNED.get(cell.case)
    motion = recorded(Path(cell.case), robot) if reference is None else planned(robot, reference)
    parts = tip_information(robot, motion.readings), lag_information(robot.pressure_lag, motion)
    least = np.concatenate([parts[0].least, np.full(len(_LAG), np.nan)])
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
        numbers = zip(*(found[key] for key in ("names", "alone", "together", "least")), strict=True)
        for name, alone, together, part in numbers:
            of_offset = str(name).startswith(PRESSURE_OFFSET)
            factor, unit = (1e-3 * _OFFSET_UNIT, "kPa") if of_offset else (100.0, "%")
            figures = [("deviation, others known", factor * alone, unit),
                       ("deviation, none known", factor * together, unit)]  # fmt: skip
            figures += [("part of what shows least", part, "")] if abs(part) > 0.2 else []
            for quantity, value, of in figures:
                yield Row(case, str(name), quantity, float(value), 0.0, of, 1)
        quantity = f"numbers not known to {100 * TOLD:g} %"
        yield Row(case, "all numbers", quantity, float(found["not_excited"]), 0.0, "", 1)


STUDY = Study(
    name="robustness/observability",
    source="",
    summary="which parameters a motion tells, recorded or planned",
    run=run,
    cases=cases,
    methods=(_METHOD,),
    settings=Settings,
    further_rows=rows,
    seeded=False,
    exact="Nothing is simulated but the rod itself, so these are the least deviations that any "
    "filter can reach: the model has no error, the rod begins at rest, and nothing drifts. The tip "
    "is read with the noise that the filter reckons with, pressures with 0.1 kPa for the lag. "
    "Parts of a combination are in units of each number, of offsets in 10 kPa.",
    about={"intervals": INTERVALS, "period_s": round(PERIOD, 6)},
)

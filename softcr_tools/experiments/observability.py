"""Which parameters a motion tells: Fisher information of tip and pressures, and what is confounded.

The tip of the exact rod is differentiated by each number the filter estimates beside the state:
with S(t) (3, P) along the motion and tip noise sigma, F = sum S^T S / sigma^2. 1 / sqrt(F_ii) is
what an unbiased filter could know of a number if all others were known, sqrt((F^-1)_ii) if none
were (Cramer and Rao); the least eigenvalue's vector is the combination that shows least. The
pressure lag needs no rod: it follows from commands and readings.

The bound is an optimist: no error of the model, the beginning at rest, no drift.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from softcr_control import signals
from softcr_control.reference_settings import ReferenceSettings
from softcr_estimation import EstimatorSettings
from softcr_models import CosseratRod, Robot, load_robot
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.pressure import PRESSURE_GAIN, PRESSURE_OFFSET, PressureLag, chamber_names
from softcr_models.rod.description import rod_inputs
from softcr_runtime.bags.reading import Bag
from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_studies.machine import describe_machine
from softcr_tools.experiments.results import TABLE_WIDTH, Row, print_table, write_table
from softcr_tools.report_run import read_run

PERIOD = 1 / 70
INTERVALS = 5
TOLD = 0.01
"""A number known as well as this (of itself; offsets: of 10 kPa) counts as excited."""
_OFFSET_UNIT = 1e4  # [Pa]
_STEP = 1e-4  # of a number's unit, for differences
_PRESSURE_NOISE = 100.0  # of a reading [Pa]
_LAG = ("lag_pole", "lag_ratio")
_NOTHING, _TINY = 1e-12, np.finfo(float).tiny  # of the largest information: rounding


@dataclass(frozen=True, eq=False)
class Motion:
    """What was done.

    Attributes:
        name: of it.
        readings: (T, m) pressures, a tick apart [Pa].
        commands: (T, m) [Pa]; row k is held from reading k to k + 1.
    """

    name: str
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
    def least(self) -> str:
        """The combination that shows least, in words: its larger parts."""
        direction = np.linalg.eigh(self.matrix)[1][:, 0]
        order = np.argsort(-np.abs(direction))
        direction = direction * np.sign(direction[order[0]])
        parts = [f"{direction[i]:+.2f} {self.names[i]}" for i in order if abs(direction[i]) > 0.2]
        return " ".join(parts)


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment observability`; returns the exit code.

    Raises:
        UserError: an unknown robot, a bag that cannot be read or holds no pressures, or results
            that cannot be written.
    """
    given = _parser().parse_args(arguments)
    robot = load_robot(given.robot)
    motions = [recorded(path) for path in given.bag] or planned(robot)
    found = {motion.name: _both(robot, motion) for motion in motions}
    rows = [row for name, parts in found.items() for part in parts for row in rows_of(name, part)]
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    print_table(console, f"softcr experiment observability, {robot.name}", rows)
    told = {name: _in_words(*parts) for name, parts in found.items()}
    for name, words in told.items():
        say(console, f"{name}: {words}")
    directory = new_run_directory(given.results / "experiments" / "observability")
    about = {"experiment": "observability", "robot": robot.name, "machine": describe_machine()}
    write_table(directory, about | told, rows)
    point_latest_to(directory)
    say(console, f"results: {directory}")
    return 0


def planned(robot: Robot) -> list[Motion]:
    """Motions of the experiments: to 1.5 Hz, to 0.2 Hz, and held at a setpoint, from rest there."""
    slow = ReferenceSettings(frequencies=(0.05, 0.12, 0.2), fade_in=2.0, duration=30.0)
    chosen = {
        "to 1.5 Hz, 12 s": ReferenceSettings(duration=12.0),
        "to 0.2 Hz, 30 s": slow,
    }
    inputs = rod_inputs(robot)
    motions = []
    for name, settings in chosen.items():
        readings = settings.input_samples(PERIOD, inputs)
        commands = robot.pressure_lag.commands_along(readings, PERIOD)
        motions.append(Motion(name, readings, np.concatenate([commands, commands[-1:]])))
    still = ReferenceSettings(kind="setpoint").input_samples(PERIOD, inputs)
    held = np.tile(still, (len(signals.time_grid(6.0, PERIOD)), 1))
    return [*motions, Motion("setpoint (45, 25, 15) kPa, 6 s", held, held)]


def recorded(path: Path) -> Motion:
    """Pressures and commands of a bag.

    Raises:
        UserError: it cannot be read, or holds too few of either.
    """
    run = read_run(Bag(path))
    read, sent = run.measured_pressures, run.commanded_pressures
    if len(read) < 3 or not len(sent):
        raise UserError(
            f"{path}: {len(read)} pressures and {len(sent)} commands; allowed are 3 and 1 or more"
        )
    times = np.arange(read.stamps[0], read.stamps[-1], 1e9 * PERIOD)
    readings = np.stack([np.interp(times, read.stamps, column) for column in read.values.T], axis=1)
    # a command is answered in the next tick
    newest = np.searchsorted(sent.stamps, times - 0.5e9 * PERIOD, side="right") - 1
    commands = np.where((newest >= 0)[:, None], sent.values[np.maximum(newest, 0)], readings)
    return Motion(path.name, readings, commands)


def tip_information(robot: Robot, readings: np.ndarray) -> Information:
    """Of the rod's parameters, and of gains and offsets of the pressure sensors.

    Args:
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


def _both(robot: Robot, motion: Motion) -> tuple[Information, Information]:
    tip = tip_information(robot, motion.readings)
    return tip, lag_information(robot.pressure_lag, motion)


def rows_of(motion: str, information: Information) -> list[Row]:
    """Two rows per number, in its own unit."""
    rows = []
    both = (("others known", information.alone), ("none known", information.together))
    for index, name in enumerate(information.names):
        of_offset = name.startswith(PRESSURE_OFFSET)
        factor, unit = (1e-3 * _OFFSET_UNIT, "kPa") if of_offset else (100.0, "%")
        for quantity, deviations in both:
            value = factor * float(deviations[index])
            rows.append(Row(motion, name, f"deviation, {quantity}", None, value, 0.0, unit, 1))
    return rows


def _in_words(rod: Information, lag: Information) -> str:
    missing = ", ".join((*rod.not_excited, *lag.not_excited)) or "nothing"
    return f"not excited: {missing}; shows least: {rod.least}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr experiment observability",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--bag", type=Path, action="append", default=[], metavar="BAG",
        help="of a run with pressures and commands; again for more (default: three motions)",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=1, help="of no effect: nothing is random here")
    parser.add_argument("--robot", default="licher2025", help="name or YAML file")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), help="directory (default: results)"
    )
    return parser

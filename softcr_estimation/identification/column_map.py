"""Which column of somebody's recording is what: a YAML file, and what it makes of tables.

For example:

    time: {column: t, unit: s}
    inputs:                      # in the order of the robot's actuators
      - {column: u_1, unit: V, gain: 1.0e4}     # 1 V is 1e4 Pa
      - {column: torque, unit: N m, spool_radius: 0.0325}
    positions:
      tip: {columns: [y_1, y_2], unit: cm}
    frame: {axes: [x, z]}        # of the robot's base, along which the columns count
    payload: {a_300g: 0.3}       # [kg] by file or trial
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator
from scipy.spatial.transform import Rotation

from softcr_estimation.identification.mistakes import check_sizes
from softcr_estimation.identification.recorded_tables import Table, read_tables
from softcr_estimation.identification.signals import Signals
from softcr_models.errors import UserError, did_you_mean
from softcr_models.files.csv_files import UNITS
from softcr_models.files.number_types import Finite, NonNegative, Positive
from softcr_models.files.yaml_files import read_mapping, validated
from softcr_models.identification.measured_groups import POSITION, TIP_ORIENTATION, groups_of
from softcr_models.identification.rod_identification import Recording
from softcr_models.robots.parts import Data
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import rod_inputs
from softcr_runtime.bags.signals import Signal

FEWEST = 8
"""Samples of a trial over time: fewer tell nothing of a motion."""
_LONGEST_JUMP = 3600.0  # of a clock between two rows of a trial [s]
_LEAST_INPUT, _LEAST_PLACE = 3e-3, 3e-3
"""Of a robot's limit, of its length: what stays below is in another unit [-]."""
_SPOOLED = {"N": UNITS["N m"], "rad": UNITS["m"]}
"""SI unit of an input -> units that a spool's radius makes of it."""
_PIXEL = "px"

Axis = Literal["x", "y", "z", "-x", "-y", "-z"]


class Time(Data):
    """When each row was recorded: a column, or so many rows a second."""

    column: str = Field(default="", description="column of times")
    unit: Literal["s", "ms", "us", "ns"] = Field(default="s", description="its unit")
    rate: Positive | None = Field(default=None, description="rows per second [Hz]")

    @model_validator(mode="after")
    def _one(self) -> "Time":
        if bool(self.column) == (self.rate is not None):
            raise ValueError("time: either a column or a rate")
        return self


class Input(Data):
    """What one actuator was told or read."""

    column: str = Field(description="its column")
    unit: str = Field(
        description="Pa, kPa, MPa, bar, mbar, psi of a chamber; N, mN, or N m, N mm of a tendon's "
        "spool; rad, deg of a motor, or m, mm, cm that it winds; V"
    )
    gain: Finite = Field(
        default=1.0, description="of the actuator for one of the unit; of 1 V in SI, as in Pa/V"
    )
    zero: Finite = Field(default=0.0, description="reading without actuation [unit]")
    spool_radius: Positive | None = Field(default=None, description="radius of its spool [m]")


class Position(Data):
    """Where a sensor was seen."""

    columns: Annotated[tuple[str, ...], Field(min_length=2, max_length=3)] = Field(
        description="columns of three coordinates, or of the two in a camera's plane"
    )
    unit: Literal["m", "mm", "cm", "px"] = Field(description="unit of the columns")
    scale: Positive | None = Field(default=None, description="of a pixel [m]")
    quaternion: tuple[str, ...] = Field(
        default=(), description="columns x, y, z, w of its orientation; of the tip alone"
    )

    @model_validator(mode="after")
    def _scaled(self) -> "Position":
        if (self.unit == _PIXEL) != (self.scale is not None):
            raise ValueError("scale: the size of a pixel [m], with the unit px and only with it")
        if len(self.quaternion) not in (0, 4):
            raise ValueError("quaternion: four columns, x, y, z, w")
        return self


class Frame(Data):
    """The frame of positions, as well as it is known: a fit finds the rest."""

    axes: Annotated[tuple[Axis, ...], Field(min_length=2, max_length=3)] = Field(
        default=("x", "y", "z"),
        description="axes of the robot's base frame along which the columns of a position count",
    )
    origin: tuple[Finite, ...] = Field(
        default=(), description="place of the robot's base in the recording [m]"
    )

    @model_validator(mode="after")
    def _different(self) -> "Frame":
        if len({axis[-1] for axis in self.axes}) < len(self.axes):
            raise ValueError(f"axes: {', '.join(self.axes)}: an axis stands twice")
        if self.origin and len(self.origin) != len(self.axes):
            raise ValueError(f"origin: must have {len(self.axes)} numbers, as many as axes")
        return self

    @property
    def turn(self) -> np.ndarray:
        """(3, n) from columns to the base frame."""
        turn = np.zeros((3, len(self.axes)))
        for column, axis in enumerate(self.axes):
            turn["xyz".index(axis[-1]), column] = -1.0 if axis[0] == "-" else 1.0
        return turn


class ColumnMap(Data):
    """See the module."""

    time: Time | None = Field(default=None, description="when rows were recorded; absent: at rest")
    trial: str = Field(default="", description="column that names the trial of a row")
    inputs: Annotated[tuple[Input, ...], Field(min_length=1)] = Field(
        description="inputs in the order of the robot's actuators"
    )
    positions: Annotated[dict[str, Position], Field(min_length=1)] = Field(
        description="positions by sensor: tip, or the name of one of type pose"
    )
    frame: Frame = Field(default=Frame(), description="frame of the positions")
    payload: NonNegative | dict[str, NonNegative] = Field(
        default=0.0, description="mass carried at the tip, of all or by file or trial [kg]"
    )

    @model_validator(mode="after")
    def _used_once(self) -> "ColumnMap":
        every = [each.column for each in self.inputs]
        every += [name for each in self.positions.values() for name in each.columns]
        every += [name for each in self.positions.values() for name in each.quaternion]
        every += [self.time.column] if self.time and self.time.column else []
        if twice := sorted({name for name in every if every.count(name) > 1}):
            raise ValueError(f"column {', '.join(twice)}: used twice")
        for name, each in self.positions.items():
            if len(each.columns) != len(self.frame.axes):
                raise ValueError(
                    f"positions.{name}.columns: {len(each.columns)}, but frame.axes has "
                    f"{len(self.frame.axes)}"
                )
        return self


@dataclass(frozen=True, eq=False)
class Trial:
    """One recording of a robot.

    Attributes:
        name: of the file or trial.
        path: of the file.
        content: over time, or configurations at rest; coordinates that no camera saw are NaN.
        payload: at the tip [kg].
    """

    name: str
    path: Path
    content: Signals | Recording
    payload: float = 0.0


def load_map(path: Path) -> ColumnMap:
    """The map of a YAML file.

    Raises:
        UserError: it cannot be read, or a field is wrong.
    """
    return validated(ColumnMap, read_mapping(path, "column map"), path)


def read_trials(paths: Iterable[Path], known: ColumnMap, robot: Robot) -> list[Trial]:
    """All trials of files, in SI units and as near to the robot's base frame as the map tells.

    Raises:
        UserError: a file cannot be read, the map is not of such files or of such a robot, or what
            is recorded cannot be.
    """
    _check_robot(known, robot)
    found: list[Trial] = []
    payloads = known.payload if isinstance(known.payload, dict) else {}
    used: set[str] = set()
    for path in paths:
        for own, table in read_tables(path, known.trial).items():
            name, carried = own, known.payload
            if isinstance(carried, dict):
                keys = [key for key in (name, path.stem, path.name) if key in carried]
                carried = carried[keys[0]] if keys else 0.0
                used |= {*keys}
            if any(each.name == name for each in found):
                name = f"{path.stem}/{name}"
            found.append(Trial(name, path, _content(table, known, robot), carried))
    if absent := [key for key in payloads if key not in used]:
        names = [each.name for each in found]
        near = did_you_mean(absent[0], names)
        raise UserError(f"payload of {absent[0]}: no such file or trial; {near}there are "
                        f"{', '.join(names)}")  # fmt: skip
    return found


def _check_robot(known: ColumnMap, robot: Robot) -> None:
    if len(known.inputs) != len(robot.actuators):
        names = ", ".join(robot.actuator_names)
        raise UserError(
            f"column map: {len(known.inputs)} inputs, but {robot.name} has {len(robot.actuators)} "
            f"actuators: {names}"
        )
    sensors = [each.output for each in groups_of(robot) if each.unit == "m"]
    for name in known.positions:
        if name not in sensors:
            raise UserError(
                f"column map: positions.{name}: {robot.name} has no such sensor; it has "
                f"{', '.join(sensors)}; a sensor of type pose in the robot file adds one"
            )
    for each, unit, actuator in zip(known.inputs, robot.input_units, robot.actuators, strict=True):
        _factor(each, unit, actuator.name)


def _factor(known: Input, unit: str, actuator: str) -> float:
    """From a reading to the SI unit in which an actuator acts."""
    if known.unit == "V":
        if known.gain == 1.0:
            raise UserError(f"column map: input {known.column}: V needs a gain [{unit}/V]")
        return known.gain
    if known.unit in UNITS[unit]:
        return known.gain * UNITS[unit][known.unit]
    spooled = _SPOOLED.get(unit, {})
    if known.unit in spooled:
        if known.spool_radius is None:
            raise UserError(
                f"column map: input {known.column}: {known.unit} needs spool_radius [m]"
            )
        return known.gain * spooled[known.unit] / known.spool_radius
    allowed = ", ".join([*UNITS[unit], *spooled, "V"])
    raise UserError(
        f"column map: input {known.column}: unit {known.unit!r} is not allowed for actuator "
        f"{actuator}: must be one of {allowed}"
    )


def _content(table: Table, known: ColumnMap, robot: Robot) -> Signals | Recording:
    groups = {each.output: each for each in groups_of(robot) if each.unit == "m"}
    reader = _Reader(table, known)
    factors = [
        _factor(each, unit, actuator.name)
        for each, unit, actuator in zip(
            known.inputs, robot.input_units, robot.actuators, strict=True
        )
    ]
    zeros = np.array([each.zero for each in known.inputs])
    for each in known.inputs:
        reader.require_unit(each.column, each.unit)
    inputs = reader.signal("inputs", [each.column for each in known.inputs])
    inputs = replace(inputs, values=factors * (inputs.values - zeros))
    outputs: dict[str, Signal] = {}
    for name, position in known.positions.items():
        for column in position.columns:
            reader.require_unit(column, position.unit)
        told = reader.signal(f"position of {name}", position.columns, needed=False)
        if not len(told):
            continue
        size = position.scale or UNITS["m"][position.unit]
        origin = np.array(known.frame.origin or (0.0,) * len(position.columns))
        values = (size * told.values - origin) @ known.frame.turn.T
        values[:, ~known.frame.turn.any(axis=1)] = np.nan
        outputs[f"{name}{POSITION}"] = replace(told, values=values)
        assert name in groups
        if position.quaternion and name == groups["tip"].output:
            outputs[TIP_ORIENTATION] = reader.turned(position.quaternion, known.frame)
    if not outputs:
        raise UserError(f"{table.source}: no position was recorded: all cells are empty")
    check_sizes(
        table.source, robot, inputs.values, {name: each.values for name, each in outputs.items()}
    )
    _check_small(table.source, robot, inputs.values, outputs)
    if reader.timed:
        return Signals(table.source, inputs, outputs, None)
    rows = inputs.stamps
    count = int(max(each.stamps.max(initial=0) for each in (inputs, *outputs.values()))) + 1
    return Recording(
        inputs.values,
        {name: _at_rows(each, count)[rows] for name, each in outputs.items()},
    )


def _check_small(
    source: str, robot: Robot, inputs: np.ndarray, outputs: Mapping[str, Signal]
) -> None:
    """Refuse what is a thousand times too small, as `check_sizes` does what is too large."""
    limits = rod_inputs(robot)
    highest, most = float(np.abs(inputs).max()), float(np.max(limits.high))
    if 0.0 < highest < _LEAST_INPUT * most:
        raise UserError(
            f"{source}: inputs reach {highest:.3g}, but the robot's limit is {most:.3g} in SI: the "
            "units of the column map are too small, or a gain is"
        )
    for name, signal in outputs.items():
        values = signal.values
        if name == TIP_ORIENTATION or not values.size:
            continue
        far = float(np.sqrt(np.nansum(values**2, axis=1)).max())
        if far < _LEAST_PLACE * robot.length:
            raise UserError(
                f"{source}: {name} is nowhere farther than {far:.2g} m from the base, but the "
                f"robot is {robot.length:.3g} m long: the unit in the column map is too small"
            )


def _at_rows(signal: Signal, count: int) -> np.ndarray:
    """(count, 3) of a signal whose stamps are rows."""
    values = np.full((count, signal.values.shape[1]), np.nan)
    values[signal.stamps] = signal.values
    return values


class _Reader:
    """Columns of one table, checked.

    Attributes:
        timed: whether its rows have times.
    """

    def __init__(self, table: Table, known: ColumnMap) -> None:
        self._table = table
        self.timed = bool(table.own) or known.time is not None
        self._stamps = np.arange(max(map(len, table.columns.values()), default=0))
        if known.time is None or table.own:
            return
        if known.time.rate is not None:
            self._stamps = np.round(1e9 / known.time.rate * self._stamps).astype(np.int64)
            self._require_rows(len(self._stamps))
            return
        times = self._numbers(known.time.column) * UNITS["s"][known.time.unit]
        self._require_rows(len(times))
        if not np.isfinite(times).all():
            row = int((~np.isfinite(times)).argmax())
            raise UserError(
                f"{table.source}: column {known.time.column}: sample {row + 1} is empty"
            )
        steps = np.diff(times)
        if (steps <= 0.0).any() or (steps > _LONGEST_JUMP).any():
            row = int(((steps <= 0.0) | (steps > _LONGEST_JUMP)).argmax())
            raise UserError(
                f"{table.source}: column {known.time.column}: the clock jumps from {times[row]:g} "
                f"to {times[row + 1]:g} s at sample {row + 2}"
            )
        period = float(np.median(steps))
        if not 1e-4 <= period <= 0.5:
            likely = [unit for unit, size in UNITS["s"].items()
                      if 1e-3 <= period / UNITS["s"][known.time.unit] * size <= 0.2]  # fmt: skip
            hint = f"; the times seem to be in {likely[0]}" if likely else ""
            raise UserError(
                f"{table.source}: column {known.time.column}: {period:g} s between samples, must "
                f"be from 0.0001 to 0.5 s{hint}"
            )
        self._stamps = np.round(1e9 * (times - times[0])).astype(np.int64)

    def signal(self, what: str, names: Sequence[str], needed: bool = True) -> Signal:
        """Rows in which all of some columns hold a number.

        Raises:
            UserError: a column is missing, or holds no number though it is needed.
        """
        parts = [self._table.own[name] for name in names if name in self._table.own]
        if parts:
            stamps = parts[0].stamps
            values = np.stack([_sampled(each, stamps) for each in parts], axis=1)
            missing = [name for name in names if name not in self._table.own]
            if missing:
                self._numbers(missing[0])
        else:
            stamps = self._stamps
            values = np.stack([self._numbers(name) for name in names], axis=1)
        heard = np.isfinite(values).all(axis=1)
        fewest = FEWEST if self.timed else 1
        if heard.sum() < fewest and (needed or heard.any()):
            raise UserError(
                f"{self._table.source}: {what}, columns {', '.join(names)}: {heard.sum()} samples "
                f"hold a number, at least {fewest} are needed"
            )
        return Signal(stamps[heard], values[heard])

    def require_unit(self, name: str, unit: str) -> None:
        """Refuses a column of which the file tells another unit than the map."""
        told = self._table.units.get(name, unit)
        if told.replace(" ", "") != unit.replace(" ", ""):
            raise UserError(
                f"{self._table.source}: column {name}: is in {told}, but the column map says {unit}"
            )

    def turned(self, names: Sequence[str], frame: Frame) -> Signal:
        """Rotation vectors of quaternions in the base frame."""
        told = self.signal("orientation", names)
        lengths = np.linalg.norm(told.values, axis=1)
        if (np.abs(lengths - 1.0) > 0.05).any():
            wrong = lengths[np.argmax(np.abs(lengths - 1.0))]
            raise UserError(
                f"{self._table.source}: {', '.join(names)}: a quaternion of length {wrong:g}, "
                "must be 1"
            )
        if frame.turn.shape != (3, 3) or not math.isclose(np.linalg.det(frame.turn), 1.0):
            raise UserError("column map: quaternion: needs three axes of a right-handed frame")
        turned = Rotation.from_matrix(frame.turn) * Rotation.from_quat(told.values)
        return replace(told, values=turned.as_rotvec())

    def _require_rows(self, count: int) -> None:
        if count < FEWEST:
            raise UserError(f"{self._table.source}: {count} samples, at least {FEWEST} are needed")

    def _numbers(self, name: str) -> np.ndarray:
        if name in self._table.columns:
            return np.asarray(self._table.columns[name], float)
        if name in self._table.texts:
            cell = next((each for each in self._table.texts[name] if each), "")
            raise UserError(f"{self._table.source}: column {name}: {cell!r} is no number")
        near = did_you_mean(name, self._table.names)
        raise UserError(
            f"{self._table.source}: column {name} is missing; {near}it has "
            f"{', '.join(self._table.names)}"
        )


def _sampled(signal: Signal, stamps: np.ndarray) -> np.ndarray:
    """(K,) of a column at the stamps of another: those it shares, else linear."""
    if np.array_equal(signal.stamps, stamps) or len(signal) < 2:
        return np.asarray(signal.values, float)
    return signal.sampled(stamps, 0.2)

"""Mistakes of wiring and mounting that an emulated bench may have, as data.

Three things lie between a command and the chamber that bends, and one between a chamber and its
reading; each may be exchanged:

    output of chamber i -> valve valves[i] -> its hose -> chamber hoses[valve]
    input of chamber i  <- sensor on the hose of valve sensors[i]

Hoses are exchanged behind the sensors: a sensor tells of its valve's hose. The cameras' world, the
tip's rigid body and the force-torque sensor may be turned, shifted or mirrored.
"""

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pinocchio as pin
from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.emulation.chambers import SENSOR_NOISE, ChamberErrors
from softcr_hardware.ethercat.terminals import Station
from softcr_hardware.optitrack.calibration import MocapCalibration, Placement
from softcr_models.errors import UserError
from softcr_models.files.number_types import Finite, NonNegative, Triple
from softcr_models.files.yaml_files import read_mapping, validated
from softcr_simulation.plant import SimulatedPlant

Circle = tuple[str, ...]
"""Names of chambers whose parts are exchanged: the first has the second's, the last the first's."""

Axis = Literal["", "x", "y", "z"]


class BenchMistakes(BaseModel):
    """What is wrong with a bench; nothing by default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    swapped_sensors: tuple[Circle, ...] = ()
    swapped_valves: tuple[Circle, ...] = ()
    swapped_hoses: tuple[Circle, ...] = ()
    reversed_valves: tuple[str, ...] = Field(
        default=(), description="chambers whose valves fill when they should exhaust"
    )
    sensor_factors: dict[str, Finite] = Field(
        default_factory=dict, description="reading divided by pressure; below 0: a wrong sign"
    )
    sensor_offsets: dict[str, Finite] = Field(
        default_factory=dict, description="error of the sensor's output at zero pressure [V]"
    )
    leaks: dict[str, NonNegative] = Field(
        default_factory=dict, description="leak of a valve's hose to the atmosphere [1/s]"
    )
    base_turn: Triple = Field(
        default=(0, 0, 0), description="rotation of the base, as a rotation vector [deg]"
    )
    base_shift: Triple = Field(
        default=(0, 0, 0), description="displacement of the base, in its own frame [m]"
    )
    body_turn: Triple = Field(
        default=(0, 0, 0), description="rotation of the tip body's axes, as a rotation vector [deg]"
    )
    body_shift: Triple = Field(
        default=(0, 0, 0), description="displacement of the tip body's pivot [m]"
    )
    mirrored_positions: Axis = Field(
        default="", description="axis of the world whose sign is wrong"
    )
    mirrored_axes: Axis = Field(
        default="", description="axis of all orientations whose sign is wrong"
    )
    force_torque_turn: Triple = Field(
        default=(0, 0, 0), description="rotation of the sensor's axes [deg]"
    )
    keeps_last_output: bool = Field(
        default=False,
        description="the terminal keeps its last voltage when frames stop",
    )

    @model_validator(mode="after")
    def _named_once(self) -> "BenchMistakes":
        for field in ("swapped_sensors", "swapped_valves", "swapped_hoses"):
            names = [name for circle in getattr(self, field) for name in circle]
            if len(set(names)) != len(names) or any(
                len(circle) < 2 for circle in getattr(self, field)
            ):
                raise ValueError(f"{field}: circles of two or more chambers, each named once")
        return self

    def exchanged(self, field: str, names: tuple[str, ...]) -> np.ndarray:
        """(m,) whose part each chamber has, from 0, of `swapped_sensors` and the like.

        Raises:
            UserError: a chamber is unknown.
        """
        order = np.arange(len(names))
        for circle in getattr(self, field):
            for name, other in zip(circle, (*circle[1:], circle[0]), strict=True):
                order[_index(name, names)] = _index(other, names)
        return order

    def numbers(self, field: str, names: tuple[str, ...], default: float) -> np.ndarray:
        """(m,) numbers of `sensor_factors` and the like.

        Raises:
            UserError: a chamber is unknown.
        """
        found = np.full(len(names), default)
        for name, number in getattr(self, field).items():
            found[_index(name, names)] = number
        return found

    def calibration(self, file: MocapCalibration) -> MocapCalibration:
        """What base and body really are, where the file has no mistake."""
        return MocapCalibration(
            base_in_world=Placement.of(
                file.base_in_world.pose @ _moved(self.base_turn, self.base_shift)
            ),
            tip_in_body=Placement.of(
                _moved(self.body_turn, self.body_shift) @ file.tip_in_body.pose
            ),
        )

    def streamed(self, body: np.ndarray) -> np.ndarray:
        """What the cameras' stream says of a (4, 4) body in the world."""
        seen = np.array(body)
        if self.mirrored_positions:
            seen["xyz".index(self.mirrored_positions), 3] *= -1.0
        if self.mirrored_axes:
            mirror = np.ones(3)
            mirror["xyz".index(self.mirrored_axes)] = -1.0
            seen[:3, :3] = mirror[:, None] * seen[:3, :3] * mirror
        return seen

    def felt(self, wrench: np.ndarray) -> np.ndarray:
        """(6,) what the force-torque sensor says of a wrench in the frame it should have."""
        turn = _moved(self.force_torque_turn, (0, 0, 0))[:3, :3].T
        return np.concatenate([turn @ wrench[:3], turn @ wrench[3:]])


class MistakenActuator(EmulatedActuator):
    """Valves, hoses, chambers and sensors, connected as the mistakes say.

    `pressures` are those of the valves' hoses, in their order; `advance` returns what sensors with
    the file's zero and slope would have to read for the same voltages.
    """

    def __init__(
        self,
        station: Station,
        plant: SimulatedPlant | None = None,
        errors: ChamberErrors | None = None,
        mistakes: BenchMistakes | None = None,
        sensor_noise: float = SENSOR_NOISE,
    ):
        """Vented; see EmulatedActuator.

        Raises:
            UserError: a mistake names a chamber that the station does not have.
        """
        mistakes = mistakes or BenchMistakes()
        names = tuple(chamber.name for chamber in station.chambers)
        self._valve_of = mistakes.exchanged("swapped_valves", names)
        self._hose_of = mistakes.exchanged("swapped_sensors", names)
        self.chamber_of = mistakes.exchanged("swapped_hoses", names)
        self._factors = mistakes.numbers("sensor_factors", names, 1.0)
        slopes = np.array([chamber.sensor.pascal_per_volt for chamber in station.chambers])
        self._offsets = mistakes.numbers("sensor_offsets", names, 0.0) * slopes
        self._reversed = np.array([name in mistakes.reversed_valves for name in names])
        for name in mistakes.reversed_valves:
            _index(name, names)
        self._closed = station.flow_valve.closed
        hoses = None if plant is None else _Hoses(plant, self.chamber_of)
        super().__init__(station, hoses, errors, sensor_noise)  # type: ignore[arg-type]  # a plant with hoses
        self.chambers["leak"] += mistakes.numbers("leaks", names, 0.0)

    def valve_of(self, channel: int) -> int:
        """Which valve an output drives, both from 0."""
        return int(self._valve_of[channel])

    def sensor_on(self, hose: int) -> int:
        """Which input tells of the hose of a valve, both from 0."""
        return int(np.flatnonzero(self._hose_of == hose)[0])

    def advance(self, time: float, volts: np.ndarray) -> np.ndarray:
        """See EmulatedActuator; commands and readings (m,) as they are wired."""
        at_valves = np.empty(len(volts))
        at_valves[self._valve_of] = volts
        at_valves[self._reversed] = 2.0 * self._closed - at_valves[self._reversed]
        hoses = super().advance(time, at_valves)
        return hoses[self._hose_of] * self._factors + self._offsets


class _Hoses:
    """A plant whose chambers are blown up through exchanged hoses."""

    def __init__(self, plant: SimulatedPlant, chamber_of: np.ndarray) -> None:
        self._plant = plant
        self._hose_to = np.argsort(chamber_of)  # which hose leads to each chamber

    def impose(self, begin: float, end: float, times: np.ndarray, pressures: np.ndarray) -> None:
        self._plant.impose(begin, end, times, pressures[:, self._hose_to])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plant, name)


def load_mistakes(path: str | Path) -> BenchMistakes:
    """Mistakes of a YAML file.

    Raises:
        UserError: one line with the file, the field and what is allowed.
    """
    return validated(BenchMistakes, read_mapping(Path(path), "mistakes"), path)


def mistakes_named(named: str, names: tuple[str, ...]) -> BenchMistakes:
    """Those of a seed, of a YAML file, or none for an empty text.

    Args:
        named: digits, a path, or nothing.
        names: of the chambers.

    Raises:
        UserError: the file cannot be used.
    """
    if named.isdigit():
        return some_mistakes(int(named), names)
    return load_mistakes(named) if named else BenchMistakes()


def some_mistakes(seed: int, names: tuple[str, ...], count: int = 6) -> BenchMistakes:
    """Mistakes for practice: so many kinds, of which no two hide each other.

    Args:
        seed: of the choice.
        names: of the chambers, two or more.
        count: of kinds, at most 8.
    """
    random = np.random.default_rng(seed)

    def pair() -> tuple[Circle]:
        return ((*random.choice(names, 2, replace=False).tolist(),),)

    def quarter() -> float:
        return float(random.choice([-90.0, 90.0, 180.0]))

    one = str(random.choice(names))
    other = str(random.choice([name for name in names if name != one]))
    kinds: dict[str, Any] = {
        "swapped_sensors": pair(),
        "swapped_valves": pair(),
        "swapped_hoses": pair(),
        "reversed_valves": (one,),
        "sensor_factors": {other: float(random.choice([-1.0, 0.625, 1.6]))},
        "base_turn": (0.0, 0.0, quarter()),
        "body_turn": (0.0, 0.0, quarter()),
        "force_torque_turn": (0.0, 0.0, quarter()),
    }
    chosen = random.choice(list(kinds), min(count, len(kinds)), replace=False)
    return BenchMistakes(**{kind: kinds[kind] for kind in kinds if kind in chosen})


def _index(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise UserError(f"mistakes: chamber {name!r}: unknown; known are {', '.join(names)}")
    return names.index(name)


def _moved(turn: tuple[float, ...], shift: tuple[float, ...]) -> np.ndarray:
    """(4, 4) pose of a rotation vector [deg] and a position [m]."""
    rotation = pin.exp3(math.pi / 180.0 * np.array(turn, dtype=float))
    return np.array(pin.SE3(rotation, np.array(shift, dtype=float)).homogeneous)

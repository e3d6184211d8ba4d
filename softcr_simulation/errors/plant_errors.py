"""How a simulated plant differs from its robot file: `PlantErrors`, files of `config/plant_errors`.

Every field has a unit, a range, a value that is no error (its default) and a spread: the interval
from which `PlantErrors.draw` takes it. What is given for each actuator is a number for all of them,
or a list that is repeated from its beginning.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from softcr_models.errors import UserError
from softcr_models.files.number_types import Finite
from softcr_models.files.yaml_files import available, load_yaml
from softcr_models.robots.parts import Data, TendonLengthSensor
from softcr_models.robots.robot import Robot

FOLDER = "plant_errors"
SAME_STRUCTURE = "same_structure"
"""Name of the preset of a plant that shares its equations with the model."""

CURVATURE = 15.0
"""Curvature at which `stiffness_curvature` says what the bending compliance is [1/m]."""

CYCLES = 5.0
"""Of the inputs through their whole range and back: after as many, 95 % of `mullins_softening` are
over [-]."""

PLAYS = 10
"""How many plays make the smooth loop."""

Group = Literal["body", "actuation", "pressure", "sensors", "calibration", "events"]
"""What a field is about. `calibration` is what no sensor of the loop tells; `events` happen at
times."""

DRAWN: tuple[Group, ...] = ("body", "actuation", "pressure", "sensors")


class About(NamedTuple):
    """What is declared of a field beside its default.

    Attributes:
        unit: SI; "-" without.
        low, high: what is allowed.
        spread: lowest and highest value of random draws; None: it is not drawn.
        group: what it is about.
        each: "input" for one number for each actuator, "entry" for a list of any length.
    """

    unit: str
    low: float
    high: float
    spread: tuple[float, float] | None
    group: Group
    each: Literal["", "input", "entry"] = ""


def _field(default: Any, about: About, what: str) -> Any:
    told = f"{what} [{about.unit}]"
    return Field(default, description=told, json_schema_extra={"about": about._asdict()})


def _listed(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else (value,)


Numbers = Annotated[
    tuple[Finite, ...], Field(min_length=1, max_length=32), BeforeValidator(_listed)
]
"""A number, or a list of them."""

Entries = Annotated[tuple[Finite, ...], Field(max_length=4), BeforeValidator(_listed)]
Pair = Annotated[tuple[Finite, ...], Field(min_length=2, max_length=2)]
Triple = Annotated[tuple[Finite, ...], Field(min_length=3, max_length=3)]
_ZEROS = (0.0, 0.0, 0.0)


class PlantErrors(Data):
    """Errors of a plant's structure and numbers; the default is a plant without any."""

    # the body
    length_factor: Finite = _field(
        1.0,
        About("-", 0.8, 1.25, (0.985, 1.015), "body"),
        "length of all segments, relative to the file",
    )
    bending_factor: Finite = _field(
        1.0, About("-", 0.2, 5.0, (0.9, 1.1), "body"), "bending compliance, relative to the file"
    )
    dilatation_factor: Finite = _field(
        1.0,
        About("-", 0.2, 5.0, (0.85, 1.15), "body"),
        "dilatation compliance, relative to the file",
    )
    damping_factor: Finite = _field(
        1.0, About("-", 0.1, 10.0, (0.75, 1.3), "body"), "relaxation times, relative to the file"
    )
    tip_mass_factor: Finite = _field(
        1.0, About("-", 0.0, 5.0, (0.9, 1.2), "body"), "mass at the tip, relative to the file"
    )
    tip_mass_fraction: Finite | None = _field(
        None,
        About("-", 0.01, 1.0, (0.05, 0.25), "body"),
        "fraction of the last segment over which the tip mass is spread; the file's when absent",
    )
    base_tilt: Pair = _field(
        (0.0, 0.0),
        About("rad", -0.3, 0.3, (-0.026, 0.026), "body"),
        "roll and pitch of the base relative to the file's orientation; poses are still given in "
        "the base frame, so only the direction of gravity changes",
    )
    stiffness_curvature: Finite = _field(
        0.0,
        About("-", -0.5, 0.5, (-0.15, 0.15), "body"),
        f"relative change of the bending compliance at a curvature of {CURVATURE:g}/m, growing "
        "with the square of the curvature; below 0 the body stiffens",
    )
    mullins_softening: Finite = _field(
        0.0,
        About("-", 0.0, 0.5, (0.0, 0.1), "body"),
        "relative reduction of the compliance at first; the body softens over the first "
        f"{CYCLES:g} cycles of the inputs through their range, as 1 - exp(-3 cycles / {CYCLES:g})",
    )

    # from pressures to wrenches
    chamber_angle_error: Numbers = _field(
        (0.0,),
        About("rad", -0.5, 0.5, (-0.035, 0.035), "actuation", "input"),
        "error of the angle of each chamber or tendon",
    )
    lever_factor: Numbers = _field(
        (1.0,),
        About("-", 0.5, 1.5, (0.97, 1.03), "actuation", "input"),
        "lever arm of each chamber or tendon, relative to the file",
    )
    play_half_width: Numbers = _field(
        (0.0,),
        About("Pa", 0.0, 2e4, (0.0, 600.0), "actuation", "input"),
        "half width of play (hysteresis): the acting pressure follows that in the chamber only if "
        "they differ by more than this",
    )
    hysteresis_share: Finite = _field(
        0.0,
        About("-", 0.0, 0.95, (0.0, 0.12), "actuation"),
        f"hysteresis as a smooth loop: fraction of the pressure that {PLAYS} plays carry",
    )
    hysteresis_radius_min: Finite = _field(
        200.0,
        About("Pa", 1.0, 1e5, (100.0, 300.0), "actuation"),
        "half width of the narrowest of these plays",
    )
    hysteresis_radius_max: Finite = _field(
        4000.0,
        About("Pa", 1.0, 1e5, (2000.0, 6000.0), "actuation"),
        "half width of the widest of these plays",
    )
    creep_share: Entries = _field(
        (),
        About("-", 0.0, 0.9, (0.0, 0.08), "actuation", "entry"),
        "fractions of the pressure that act with a delay; at rest all of it acts",
    )
    creep_time: Entries = _field(
        (),
        About("s", 0.01, 1e4, (0.5, 5.0), "actuation", "entry"),
        "time constant of each of these fractions",
    )

    # from commands to pressures, and to readings
    lag_pole_factor: Finite = _field(
        1.0, About("-", 0.2, 5.0, (0.85, 1.15), "pressure"), "pole of the lag, relative to the file"
    )
    vent_pole_factor: Finite = _field(
        1.0,
        About("-", 0.2, 5.0, (0.75, 1.0), "pressure"),
        "pole of the lag for falling pressures, relative to that for rising ones",
    )
    valve_dead_band: Finite = _field(
        0.0,
        About("Pa", 0.0, 5e3, (0.0, 400.0), "pressure"),
        "difference between a pressure and its target below which the valve stays shut",
    )
    hose_pole: Finite | None = _field(
        None,
        About("1/s", 5.0, 5e3, (60.0, 200.0), "pressure"),
        "pole with which the pressure in the chamber follows that at the valve and its sensor; "
        "when absent, it follows at once",
    )
    pressure_noise: Finite | None = _field(
        None,
        About("Pa", 0.0, 1e4, (0.0, 100.0), "pressure"),
        "standard deviation of each reading; that of the file when absent",
    )
    pressure_bias: Numbers = _field(
        (0.0,),
        About("Pa", -2e4, 2e4, (-300.0, 300.0), "pressure", "input"),
        "bias of each reading; the valves make the reading follow the command",
    )
    pressure_gain: Numbers = _field(
        (1.0,),
        About("-", 0.5, 2.0, (0.99, 1.01), "pressure", "input"),
        "gain of each reading, before the bias",
    )
    tension_noise: Finite | None = _field(
        None,
        About("N", 0.0, 10.0, None, "pressure"),
        "standard deviation of each reading of a tension; that of the file when absent",
    )

    # what sees the tip, and what else is measured
    tip_noise: Finite | None = _field(
        None,
        About("m", 0.0, 0.05, (1e-4, 3e-4), "sensors"),
        "standard deviation of each measured coordinate; that of the file when absent",
    )
    tendon_length_noise: Finite | None = _field(
        None,
        About("m", 0.0, 0.05, None, "sensors"),
        "standard deviation of each tendon's measured length; that of the file when absent",
    )
    force_noise: Finite | None = _field(
        None,
        About("N", 0.0, 5.0, None, "sensors"),
        "standard deviation of the measured base force; that of the file when absent",
    )
    moment_noise: Finite | None = _field(
        None,
        About("N m", 0.0, 1.0, None, "sensors"),
        "standard deviation of the measured base moment; that of the file when absent",
    )
    dropout: Finite = _field(
        0.0,
        About("-", 0.0, 1.0, (0.0, 0.02), "sensors"),
        "probability that a pose of the tip is lost",
    )
    outlier_share: Finite = _field(
        0.0, About("-", 0.0, 1.0, (0.0, 0.002), "sensors"), "probability that a pose is wrong"
    )
    outlier_size: Finite = _field(
        0.005,
        About("m", 0.0, 10.0, (0.002, 0.008), "sensors"),
        "distance of a wrong pose from the right one, in any direction",
    )
    marker_offset: Triple = _field(
        _ZEROS,
        About("m", -0.05, 0.05, (-5e-4, 5e-4), "calibration"),
        "position of the markers relative to the tip, in the tip's frame",
    )
    registration_offset: Triple = _field(
        _ZEROS,
        About("m", -0.1, 0.1, (-5e-4, 5e-4), "calibration"),
        "displacement of the frame in which poses are given, relative to the base",
    )
    registration_rotation: Triple = _field(
        _ZEROS,
        About("rad", -0.3, 0.3, (-0.005, 0.005), "calibration"),
        "rotation of that frame, as a rotation vector",
    )

    # what happens
    payload_mass: Finite = _field(
        0.0,
        About("kg", -2.0, 10.0, (0.0, 0.05), "events"),
        "mass picked up at the outer face of the tip cap (in a plant with the model's equations at "
        "the centre of mass of the robot's payload, if it has one); below 0: lost from the tip's "
        "own mass",
    )
    payload_picked_up: Finite = _field(
        0.0,
        About("s", 0.0, 1e6, (2.0, 4.0), "events"),
        "time of picking up, since the plant's start",
    )
    payload_dropped: Finite | None = _field(
        None, About("s", 0.0, 1e6, None, "events"), "time of dropping; never when absent"
    )
    tip_force: Triple = _field(
        _ZEROS,
        About("N", -20.0, 20.0, (-0.1, 0.1), "events"),
        "force of a hose or a cable on the tip, in the world frame",
    )
    tip_force_from: Finite = _field(
        0.0,
        About("s", 0.0, 1e6, (0.0, 3.0), "events"),
        "beginning of this force, since the plant's start",
    )
    tip_force_until: Finite | None = _field(
        None, About("s", 0.0, 1e6, None, "events"), "end of this force; never when absent"
    )

    @field_validator("*", mode="after")
    @classmethod
    def _is_in_range(cls, value: Any, info: ValidationInfo) -> Any:
        about = about_field(str(info.field_name))
        for number in value if isinstance(value, tuple) else (value,):
            if number is not None and not about.low <= number <= about.high:
                unit = "" if about.unit == "-" else f" {about.unit}"
                raise ValueError(f"must be from {about.low:g} to {about.high:g}{unit}")
        return value

    @model_validator(mode="after")
    def _makes_sense(self) -> "PlantErrors":
        if any(self.play_half_width) and self.hysteresis_share:
            raise ValueError(
                f"play_half_width {list(self.play_half_width)} and hysteresis_share "
                f"{self.hysteresis_share:g}: a chamber has one kind of hysteresis, one of them "
                "must be 0"
            )
        if self.hysteresis_radius_max < self.hysteresis_radius_min:
            raise ValueError(
                f"hysteresis_radius_max {self.hysteresis_radius_max:g} is below "
                f"hysteresis_radius_min {self.hysteresis_radius_min:g}"
            )
        if len(self.creep_share) != len(self.creep_time):
            raise ValueError(
                f"creep_share has {len(self.creep_share)} numbers and creep_time "
                f"{len(self.creep_time)}: they are pairs"
            )
        if sum(self.creep_share) > 0.95:
            raise ValueError(f"creep_share adds up to {sum(self.creep_share):g}: at most 0.95")
        for name, other in DETAILS.items():
            if name in self.changed() and not np.any(getattr(self, other)):
                raise ValueError(
                    f"{name} {getattr(self, name):g}: {other} is 0, it would be without effect"
                )
        self._require_order("payload_picked_up", "payload_dropped")
        self._require_order("tip_force_from", "tip_force_until")
        return self

    def _require_order(self, begin: str, end: str) -> None:
        first, last = getattr(self, begin), getattr(self, end)
        if last is not None and last <= first:
            raise ValueError(f"{end} {last:g} must be after {begin} {first:g}")

    def of_inputs(self, name: str, robot: Robot) -> np.ndarray:
        """(m,) a field that is given for each actuator.

        Raises:
            UserError: its list does not fit the robot's actuators.
        """
        given = getattr(self, name)
        count = len(robot.actuators)
        if count % len(given):
            raise UserError(
                f"plant errors: {name}: {len(given)} numbers are not allowed: robot {robot.name} "
                f"has {count} actuators; one number stands for all, a shorter list is repeated"
            )
        return np.tile(np.array(given, float), count // len(given))

    def changed(self) -> dict[str, Any]:
        """Fields that differ from those of a plant without errors, and their values."""
        return {
            name: value
            for name, declared in type(self).model_fields.items()
            if (value := getattr(self, name)) != declared.default
        }

    def changed_in_words(self) -> dict[str, Any]:
        """As `changed`, for diagnostics and reports: tuples are lists."""
        told = self.changed().items()
        return {name: list(each) if isinstance(each, tuple) else each for name, each in told}

    @classmethod
    def noiseless(cls, **others: Any) -> "PlantErrors":
        """Errors by name, of sensors without noise where none of them is one."""
        return cls(**(dict.fromkeys(_NOISES, 0.0) | others))

    @classmethod
    def draw(
        cls,
        random: np.random.Generator,
        robot: Robot,
        groups: Sequence[Group] = DRAWN,
    ) -> "PlantErrors":
        """Errors of a random plant: every field of some groups evenly from its spread.

        Hysteresis is play for one half of the plants and a smooth loop for the other; creep has one
        part. Fields that say nothing to the robot stay at no error, but take their random numbers
        all the same.
        """
        drawn: dict[str, Any] = {}
        for name, declared in cls.model_fields.items():
            about = about_field(name)
            if about.spread is None or about.group not in groups:
                continue
            count = 1
            if about.each == "input":
                count = len(robot.actuators)
            elif isinstance(declared.default, tuple):
                count = max(1, len(declared.default))
            values = tuple(random.uniform(*about.spread, count).tolist())
            drawn[name] = values if isinstance(declared.default, tuple) else values[0]
        if "actuation" in groups:
            is_play = random.random() < 0.5
            smooth = [name for name in drawn if name.startswith("hysteresis")]
            for name in smooth if is_play else ["play_half_width"]:
                del drawn[name]
        meaningless = meaningless_fields(robot)
        return cls(**{name: each for name, each in drawn.items() if name not in meaningless})


def about_field(name: str) -> About:
    """What is declared of a field."""
    extra: Any = PlantErrors.model_fields[name].json_schema_extra
    return About(**extra["about"])


DETAILS = {
    "hysteresis_radius_min": "hysteresis_share", "hysteresis_radius_max": "hysteresis_share",
    "outlier_size": "outlier_share",
    "payload_picked_up": "payload_mass", "payload_dropped": "payload_mass",
    "tip_force_from": "tip_force", "tip_force_until": "tip_force",
}  # fmt: skip
"""Fields that say more about another one, which must not be 0."""

_NOISES = tuple(name for name in PlantErrors.model_fields if name.endswith("_noise"))

MODEL_ERRORS = frozenset(_NOISES) | {
    "length_factor", "bending_factor", "dilatation_factor", "damping_factor", "tip_mass_factor",
    "tip_mass_fraction", "base_tilt", "chamber_angle_error", "lever_factor", "lag_pole_factor",
    "pressure_bias", "pressure_gain", "dropout", "payload_mass",
}  # fmt: skip
"""Errors that a plant with the equations of a model can have, see `SimulatedPlant`."""

_OF_PRESSURES = {
    name
    for name in PlantErrors.model_fields
    if about_field(name).group == "pressure" or about_field(name).unit == "Pa"
} - {"tension_noise"} | {"hysteresis_share", "creep_share", "creep_time"}


def meaningless_fields(robot: Robot) -> dict[str, str]:
    """Fields that say nothing to a robot, and why."""
    found: dict[str, str] = {}
    if robot.tendons:
        found |= dict.fromkeys(_OF_PRESSURES, "is of chambers, and the robot has tendons")
        if robot.chambers:
            del found["pressure_noise"]  # every reading has the noise of its own kind
    if "tension" not in robot.quantities:
        found["tension_noise"] = "the robot has no tensions"
    if not any(isinstance(each, TendonLengthSensor) for each in robot.sensors):
        found["tendon_length_noise"] = "the robot has no sensor of its tendons' lengths"
    if not robot.tip_mass:
        found["tip_mass_fraction"] = "the robot's tip_mass is 0"
        if robot.payload is None:
            found["tip_mass_factor"] = "the robot has no mass at its tip"
    return found


def require_meaning(errors: PlantErrors, robot: Robot) -> None:
    """Refuse errors that a robot cannot have. A sensor that it has not may be without noise.

    Raises:
        UserError: one line with the field, the robot and the reason.
    """
    meaningless = meaningless_fields(robot)
    for name, value in errors.changed().items():
        if name in meaningless and not (name in _NOISES and value == 0.0):
            raise UserError(
                f"plant errors: {name}: is not allowed for robot {robot.name}: {meaningless[name]}"
            )
        if about_field(name).each == "input":
            errors.of_inputs(name, robot)


def load_plant_errors(name_or_path: str | Path) -> PlantErrors:
    """The errors of `config/plant_errors/NAME.yaml`, or of the YAML file at a path.

    Raises:
        UserError: one line with the file, the field, the value found and what is allowed.
    """
    return load_yaml(name_or_path, FOLDER, PlantErrors, "plant errors")


def available_plant_errors() -> list[str]:
    """Names that `load_plant_errors` knows."""
    return available(FOLDER)

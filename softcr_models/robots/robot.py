"""Robots as data: a validated, immutable description of one soft continuum robot."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, overload

import numpy as np
import yaml
from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic.fields import FieldInfo

from softcr_models.chain.pressure import PressureLag
from softcr_models.errors import UserError
from softcr_models.files.checked import checked
from softcr_models.files.number_types import (
    FileName,
    Fraction,
    Gravity,
    Mass,
    RollPitchYaw,
    WidthOrNone,
)
from softcr_models.files.yaml_files import available, is_path, read_mapping, validated, yaml_path
from softcr_models.plugins import load_class
from softcr_models.robots import rules as robot_rules
from softcr_models.robots.kinds import KINDS, UNREADABLE, ShownInput
from softcr_models.robots.medium import Medium
from softcr_models.robots.parts import (
    AngleLimits,
    BaseWrenchSensor,
    Chamber,
    Data,
    Limits,
    PoseSensor,
    PressureLimits,
    RodActuator,
    RodSensor,
    TendonLengthSensor,
    TensionLimits,
    TipPoseSensor,
)
from softcr_models.robots.pressure_chain import PressureChain
from softcr_models.robots.segment_arrays import SegmentArrays
from softcr_models.robots.segments import MAX_SEGMENTS, Payload, Segment
from softcr_models.robots.short_form import (
    SEGMENT_FIELDS,
    short_form,
    with_segments,
    with_short_paths,
)

__all__ = [
    "BENDING",
    "Chamber",
    "PressureLimits",
    "Robot",
    "available_robots",
    "kind_of",
    "load_robot",
    "robot_of",
]

BENDING = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0])
"""(6,) which entries of C's diagonal are the bending compliance."""

_FOLDER = "robots"

BUILDS_ON = "builds_on"
"""In a robot file, the name of another one: this file has all its fields but those that it gives
itself. A field that it gives is meant whole: a list of actuators replaces the other's list."""

_MOST_BELOW = 4  # files that build on each other
_Part = TypeVar("_Part")


class Robot(SegmentArrays, Data):
    """One soft continuum robot: segments in series, actuators and sensors. SI units.

    The frames: `base` is the force-torque sensor's frame (CS)_fts of eq. (29) of Licher et al.
    2025, z along the straight rod; the rod starts `sensor_to_base_cap + base_cap_length` above it;
    `tip` is the outer face of the tip cap. docs/howto/robot.md says how to write a file.

    What follows from segments and actuators is in `SegmentArrays`.
    """

    optional: ClassVar = {
        "given_pressure_limits": "pressure_limits",
        "given_pressure_lag": "pressure_lag",
        "payload": "payload",
        "medium": "medium",
        "given_tension_limits": "tension_limits",
        "tension_lag": "tension_lag",
        "given_angle_limits": "angle_limits",
        "angle_lag": "angle_lag",
        "pressure_chain": "pressure_chain",
    }
    defaults: ClassVar = {
        "tendon_model": "constant",
        "estimated_payload": False,
        "curvature_stiffness": 0.0,
        "neo_hookean": 0.0,
    }
    sees_tip: ClassVar = True
    in_world: ClassVar = False
    also_written: ClassVar[dict[str, FieldInfo]] = SEGMENT_FIELDS

    type: Literal["rod"]
    name: FileName = Field(description="name of the robot")
    description: str = Field(default="", description="description in one line")
    segments: Annotated[tuple[Segment, ...], Field(min_length=1, max_length=MAX_SEGMENTS)] = Field(
        description="the segments, base to tip; a robot with one segment may have its fields at "
        "the top level of the file instead"
    )
    tip_mass: Mass = Field(description="mass of tip cap and markers, m_EE [kg]")
    tip_mass_fraction: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        description="fraction of the last segment's length, at the tip, over which tip_mass is "
        "spread [-]"
    )
    estimated_payload: bool = Field(
        default=False,
        description="whether filters estimate a payload at the tip cap's outer face, a point mass "
        "that may be picked up and dropped; only for the exact rod without connectors, "
        "payload or medium, and with no tendons but straight ones",
    )
    curvature_stiffness: Annotated[float, Field(ge=-1.0, le=1.0)] = Field(
        default=0.0,
        description="relative change of the bending compliance at a curvature of 15/m, with the "
        "square of the curvature; below 0 the rod stiffens [-]",
    )
    neo_hookean: Annotated[float, Field(ge=0.0, le=2.0)] = Field(
        default=0.0,
        description="how much of an incompressible neo-Hookean material's change of stiffness with "
        "the stretch the rod has: 1 all, 0 none; tendons that compress a rod then stiffen it [-]",
    )
    actuators: Annotated[tuple[RodActuator, ...], Field(min_length=1)] = Field(
        description="the actuators; their order is that of every vector of inputs"
    )
    sensors: tuple[RodSensor, ...] = Field(
        default=robot_rules.SENSORS,
        description="the sensors: one base_wrench, one tip_pose, one pressure if there are "
        "chambers, at most one tension and one tendon_length if there are tendons, one angle if "
        "there are motors, any number of pose; their noises are those of simulated sensors and "
        "what a filter assumes",
    )
    sensor_to_base_cap: WidthOrNone = Field(
        description="distance from the force-torque sensor to the base cap, l_fts [m]"
    )
    base_cap_length: WidthOrNone = Field(
        description="length of the rigid cap below the rod, l_cap [m]"
    )
    tip_cap_length: WidthOrNone = Field(
        description="length of the rigid cap above the rod, l_cap [m]"
    )
    base_orientation: RollPitchYaw = Field(
        description="roll, pitch, yaw of the base in the world [rad]; (pi, 0, 0) hangs"
    )
    gravity: Gravity = Field(description="gravity along the world's -z [m/s^2]")
    gravity_subintervals: Annotated[int, Field(ge=1, le=32)] = Field(
        description="sub-intervals n_sub of Algorithm 1 per interval [-]"
    )
    gravity_strain_point: Fraction = Field(
        description="position in a sub-interval at which the strain is taken: 1 end (Algorithm 1), "
        "0.5 middle [-]"
    )
    given_pressure_limits: PressureLimits | None = Field(
        default=None,
        alias="pressure_limits",
        description="limits of pressure commands; required with chambers",
    )
    given_pressure_lag: PressureLag | None = Field(
        default=None,
        alias="pressure_lag",
        description="lag from a command to the chamber's pressure; required with chambers",
    )
    payload: Payload | None = Field(default=None, description="rigid body at the tip")
    medium: Medium | None = Field(
        default=None, description="fluid around the robot, with its buoyancy and drag; none when "
        "absent",
    )  # fmt: skip
    tendon_model: Literal["constant", "exact"] = Field(
        default="constant",
        description="direction of a tendon's pull: constant, as on the straight rod, or exact, as "
        "on the deformed one",
    )
    given_tension_limits: TensionLimits | None = Field(
        default=None,
        alias="tension_limits",
        description="limits of tension commands; required with tendons of the type tendon",
    )
    tension_lag: PressureLag | None = Field(
        default=None,
        description="lag from a command to the tendon's tension, like that of pressures; when "
        "absent, the tension follows at once",
    )
    given_angle_limits: AngleLimits | None = Field(
        default=None,
        alias="angle_limits",
        description="limits of commanded motor angles; required with motors",
    )
    angle_lag: PressureLag | None = Field(
        default=None,
        description="lag from a command to the motor's angle, like that of pressures; when absent, "
        "the angle follows at once",
    )
    pressure_chain: PressureChain | None = Field(
        default=None,
        description="hysteresis, hoses and creep between a pressure's reading and the rod, which "
        "the filter identifies; none when absent",
    )

    @model_validator(mode="wrap")
    @classmethod
    def _of_any_form(cls, content: Any, handler: ModelWrapValidatorHandler["Robot"]) -> "Robot":
        if not isinstance(content, dict):
            return handler(content)
        short = "segments" not in content
        content = robot_rules.with_sensors(with_segments(content))
        try:
            return handler(content)
        except ValidationError as error:
            if short:
                raise with_short_paths(error) from None
            raise

    @model_validator(mode="after")
    def _consistent(self) -> "Robot":
        robot_rules.check_segments(self)
        robot_rules.check_actuators(self)
        robot_rules.check_sensors(self)
        robot_rules.check_limits(self)
        robot_rules.check_pressure_chain(self)
        return self

    @model_serializer(mode="wrap")
    def _as_in_files(
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        return short_form(handler(self), self.optional, self.defaults, info.exclude)

    @property
    def pressure_limits(self) -> PressureLimits:
        """What the valves may be asked for; UserError for a robot without chambers."""
        return self._present(self.given_pressure_limits, "pressure_limits", "chambers")

    @property
    def pressure_lag(self) -> PressureLag:
        """From a command to a chamber's pressure; UserError for a robot without chambers."""
        return self._present(self.given_pressure_lag, "pressure_lag", "chambers")

    @property
    def stiffens(self) -> bool:
        """Whether its bending stiffness changes with the curvature, or may."""
        chain = self.pressure_chain
        own = self.curvature_stiffness or self.neo_hookean
        return bool(own) or (chain is not None and chain.curvature_stiffness)

    @property
    def tension_limits(self) -> TensionLimits:
        """What the tendons' drives may be asked for; UserError for a robot without tendons."""
        return self._present(self.given_tension_limits, "tension_limits", "tendons")

    @property
    def input_limits(self) -> tuple[Limits, ...]:
        """(m,) what each actuator may be asked for."""
        given = {
            "pressure": self.given_pressure_limits,
            "tension": self.given_tension_limits,
            "angle": self.given_angle_limits,
        }
        found = tuple(given[each] for each in self.quantities)
        return tuple(each for each in found if each is not None)

    @property
    def input_lags(self) -> dict[str, PressureLag | None]:
        """The lag of each quantity that drives the robot, in the order of the actuators."""
        lags = {
            "pressure": self.given_pressure_lag,
            "tension": self.tension_lag,
            "angle": self.angle_lag,
        }
        return {each: lags[each] for each in self.quantities}

    @property
    def radius(self) -> float:
        """Of the first segment [m]."""
        return 0.5 * self.outer_diameter

    @property
    def bodies_seen(self) -> tuple[str, ...]:
        """Outputs of its models that are the poses of rigid bodies along the rod."""
        return tuple(each.name for each in self.sensors if isinstance(each, PoseSensor))

    @property
    def output_noises(self) -> dict[str, tuple[float, ...]]:
        """Output of its models -> standard deviations of the sensor that measures it: of a pose
        that of each coordinate [m], of the base wrench force [N] and moment [N m]."""
        found: dict[str, tuple[float, ...]] = {}
        for each in self.sensors:
            if isinstance(each, BaseWrenchSensor):
                found["base_wrench"] = each.force_noise, each.moment_noise
            elif isinstance(each, TipPoseSensor):
                found["tip"] = (each.noise,)
            elif isinstance(each, TendonLengthSensor):
                found["tendon_lengths"] = (each.noise,)
            elif isinstance(each, PoseSensor):
                found[each.name] = (each.noise,)
        return found

    @property
    def shown_inputs(self) -> tuple[ShownInput, ...]:
        """(m,) pressures in kPa, tensions in N, angles in rad, in the order of the actuators."""
        found = []
        for each, limits in zip(self.actuators, self.input_limits, strict=True):
            scale, unit = (1e-3, "kPa") if each.unit == "Pa" else (1.0, each.unit)
            shown = each.name, each.quantity, scale, unit
            found.append(ShownInput(*shown, limits.minimum, limits.maximum))
        return tuple(found)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Sets of kernels that its models call."""
        return ("rod", "chain") if self.pressure_chain is not None else ("rod",)

    def tip_solver(self) -> None:
        """None: the steady states of its model."""

    def centre_line(self, state: object, parameters: object, points: int) -> None:
        """None: what tells a rod's state tells the poses along it, too."""

    def _present(self, part: _Part | None, field: str, actuators: str) -> _Part:
        if part is None:
            raise UserError(f"robot {self.name}: has no {actuators}, hence no {field}")
        return part

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal; what was computed of them does not count."""
        if not isinstance(other, Robot):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in Robot.model_fields)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in Robot.model_fields))

    def replace(self, **changes: Any) -> "Robot":
        """A copy with some fields changed, validated again.

        Raises:
            UserError: a bad field, or one of the segments of a robot of several; with its name.
        """
        where = f"robot {self.name}"
        content = self.model_dump()
        if "segments" in changes:
            content = {n: v for n, v in content.items() if n not in SEGMENT_FIELDS}
        elif "segments" in content:
            for name in changes.keys() & SEGMENT_FIELDS.keys():
                raise UserError(
                    f"{where}: {name}: belongs to each of its segments "
                    f"{', '.join(self.segment_names)}; replace segments instead"
                )
        return validated(Robot, {**content, **changes}, where)

    def scaled(
        self, *, bending: float = 1.0, damping: float = 1.0, tip_mass: float = 1.0
    ) -> "Robot":
        """A copy with numbers of all segments multiplied.

        Args:
            bending: factor of the bending compliances.
            damping: factor of the relaxation times.
            tip_mass: factor of `tip_mass`, and of the payload's mass and inertia.

        Raises:
            UserError: a factor that makes a number that is not allowed.
        """
        changes: dict[str, Any] = {"tip_mass": tip_mass * self.tip_mass}
        if self.payload is not None:
            heavier = [tip_mass * each for each in self.payload.inertia]
            mass = tip_mass * self.payload.mass
            changes["payload"] = self.payload.model_dump() | {"mass": mass, "inertia": heavier}
        segments = [each.scaled(bending, damping) for each in self.segments]
        return self.replace(segments=segments, **changes)

    def require_one_segment_of_chambers(self, what: str) -> None:
        """For what knows no other robots.

        Raises:
            UserError: this one has several segments, a payload, a medium or tendons; with `what` in
                the line.
        """
        found = [f"{len(self.segments)} segments"] if len(self.segments) > 1 else []
        found += ["a payload"] if self.payload is not None else []
        found += ["a medium"] if self.medium is not None else []
        found += ["tendons"] if self.tendons else []
        if found:
            raise UserError(
                f"robot {self.name}: {what} is for one segment with chambers; this robot has "
                f"{', '.join(found)}"
            )


@overload
def load_robot(name_or_path: str | Path) -> Robot: ...


@overload
def load_robot(name_or_path: str | Path, kinds: tuple[str, ...] | None) -> Any: ...


def load_robot(name_or_path: str | Path, kinds: tuple[str, ...] | None = ("rod",)) -> Any:
    """The robot of `config/robots/NAME.yaml`, or of the YAML file at a path.

    Args:
        name_or_path: which.
        kinds: what is allowed, names of `KINDS`; another kind is refused. None: every kind.

    Returns:
        A Robot for the type `rod`, for another one the class that its kind names.

    Raises:
        UserError: a line for each field that is missing, misspelt or wrong, with the file, the
            field, the value found and what is allowed.
    """
    path, content, kind = _read(name_or_path)
    if kinds is not None and kind not in kinds:
        known = ", ".join(available_robots(kinds)) or "none"
        wanted = " or ".join(KINDS[each].words for each in kinds)
        raise UserError(
            f"robot {str(name_or_path)!r}: is {KINDS[kind].words}, must be {wanted}; known are "
            f"{known}"
        )
    robot = validated(load_class(KINDS[kind].robot, "robot"), content, path, _FOLDER)
    if isinstance(robot, Robot) and (line := robot_rules.pressed_to_nothing(robot)):
        warnings.warn(f"{path}: {line}", stacklevel=2)
    return robot


def robot_of(content: Mapping[str, Any]) -> Any:
    """The robot of a robot file's content, as nodes and bags tell it; None where it is none of a
    kind that is known here."""
    kind = KINDS.get(str(content.get("type")))
    try:
        return None if kind is None else checked(load_class(kind.robot, "robot"), content)
    except (ValidationError, UserError):
        return None


def available_robots(kinds: tuple[str, ...] | None = ("rod",)) -> list[str]:
    """Names that `load_robot` knows, of robots of some kinds; None: of every kind.

    Raises:
        UserError: a file of config/robots cannot be read.
    """
    return [name for name in available(_FOLDER) if kinds is None or kind_of(name) in kinds]


def kind_of(name_or_path: str | Path) -> str:
    """What kind of robot a name or a file means: its `type`, a name of `KINDS`.

    Raises:
        UserError: no robot has this name, or its file cannot be read or has no known type.
    """
    return _read(name_or_path)[2]


def file_below(path: Path, content: bytes) -> str:
    """The file that a robot file of this path and content builds on; empty where it is no robot
    file, or builds on no other or on a robot of config/robots."""
    if path.suffix not in (".yaml", ".yml"):
        return ""
    try:
        told = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError):  # said where the file is used
        return ""
    other = told.get(BUILDS_ON) if isinstance(told, dict) else None
    return other if isinstance(other, str) and is_path(other) else ""


def content_alone(path: Path) -> dict[str, Any]:
    """The content of a robot file with that of the files it builds on, robots of config/robots
    excepted: what says the same where these files are not.

    Raises:
        UserError: a file cannot be read.
    """
    return _whole_file(path, shipped=False)[1]


def _whole_file(
    name_or_path: str | Path, above: int = 0, shipped: bool = True
) -> tuple[Path, dict[str, Any]]:
    """Path and content of a robot file; what it leaves out it has from the file it builds on.

    With `shipped` False it still builds on a robot of config/robots, if it does.
    """
    path = yaml_path(name_or_path, _FOLDER, "robot")
    content = read_mapping(path, "robot")
    if BUILDS_ON not in content:
        return path, content
    other = content[BUILDS_ON]
    if not shipped and isinstance(other, str) and not is_path(other):
        return path, content
    del content[BUILDS_ON]
    if not isinstance(other, str) or not other:
        raise UserError(
            f"{path}: {BUILDS_ON}: {other!r} is not allowed: must be the name of a robot, or a "
            "file beside this one"
        )
    if above == _MOST_BELOW:
        raise UserError(
            f"{path}: {BUILDS_ON}: {other!r} is not allowed: more than {_MOST_BELOW} files build "
            "on each other, or one on itself"
        )
    place = path.parent / other if is_path(other) else other
    return path, _whole_file(place, above + 1, shipped)[1] | content


def _read(name_or_path: str | Path) -> tuple[Path, dict[str, Any], str]:
    """Path, content and kind of a robot file."""
    path, content = _whole_file(name_or_path)
    allowed = ", ".join(KINDS)
    if "type" not in content:
        raise UserError(f"{path}: type: missing; this field is required; allowed are {allowed}")
    kind = content["type"]
    if isinstance(kind, str) and kind in KINDS:
        return path, content, kind
    if isinstance(kind, str) and kind in UNREADABLE:
        raise UserError(f"{path}: type: {kind!r} cannot be used: {UNREADABLE[kind]}")
    raise UserError(f"{path}: type: {kind!r} is not allowed: must be one of {allowed}")

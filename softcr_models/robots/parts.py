"""Parts of robots as data: actuators, sensors, limits. SI units."""

import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from softcr_models.files.number_types import (
    Angle,
    Area,
    Finite,
    Fraction,
    LengthNoise,
    Name,
    NonNegative,
    Offset,
    Positive,
    Width,
    WidthOrNone,
    within,
)


class Data(BaseModel):
    """Immutable; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SparseData(Data):
    """Data that writes its optional fields only where they were given.

    Attributes:
        optional: of a subclass: fields that are left out where they are None, and their names in a
            file.
    """

    optional: ClassVar[dict[str, str]] = {}

    @model_serializer(mode="wrap")
    def _without_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return sparse(handler(self), self.optional)


def sparse(content: dict[str, Any], optional: dict[str, str]) -> dict[str, Any]:
    """Dumped fields under their names in a file, without optional ones that are None."""
    known = {*optional, *optional.values()}
    return {
        optional.get(name, name): value
        for name, value in content.items()
        if value is not None or name not in known
    }


class Chamber(SparseData):
    """One pressure chamber, parallel to the centre line of the rod."""

    optional: ClassVar = {"from_segment": "from", "to_segment": "to"}
    quantity: ClassVar = "pressure"
    unit: ClassVar = "Pa"
    tendons: ClassVar = ()
    springs: ClassVar = ()

    type: Literal["chamber"]
    name: Name = Field(description="name, different from that of every other actuator")
    angle: Angle = Field(description="angle of its centre about z from the x axis [rad]")
    area: Area = Field(description="cross-sectional area the pressure acts on [m^2]")
    lever_arm: WidthOrNone = Field(description="distance of its centre from the centre line [m]")
    from_segment: Name | None = Field(
        default=None, alias="from", description="segment in which it begins; the first when absent"
    )
    to_segment: Name | None = Field(
        default=None, alias="to", description="segment in which it ends; the last when absent"
    )


class Straight(Data):
    """A tendon parallel to the centre line."""

    kind: Literal["straight"] = Field(description="kind of the routing")


class Helical(Data):
    """A tendon that winds around the centre line."""

    kind: Literal["helical"] = Field(description="kind of the routing")
    pitch: Finite = Field(
        description="length of one turn along the segments; below 0 it turns clockwise, seen from "
        "the tip [m]"
    )

    @model_validator(mode="after")
    def _turns(self) -> "Helical":
        if self.pitch == 0.0:
            raise ValueError("pitch must not be 0")
        return self


class Tapered(Data):
    """A tendon whose distance from the centre line changes evenly from the base to its end."""

    kind: Literal["tapered"] = Field(description="kind of the routing")
    end_lever_arm: WidthOrNone = Field(description="distance from the centre line at its end [m]")


def _named(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Routing = Annotated[
    Straight | Helical | Tapered, Field(discriminator="kind"), BeforeValidator(_named)
]


class Tendon(SparseData):
    """Where a tendon runs, without friction, from the base to the end of a segment."""

    optional: ClassVar = {"to_segment": "to"}

    type: str
    name: Name = Field(description="name, different from that of every other actuator")
    angle: Angle = Field(
        description="angle of its position about z from the x axis of each segment, at the base "
        "[rad]"
    )
    lever_arm: WidthOrNone = Field(description="distance from the centre line, at the base [m]")
    to_segment: Name | None = Field(
        default=None, alias="to", description="segment at whose end it is fixed; the last when "
        "absent",
    )  # fmt: skip
    routing: Routing = Field(
        default=Straight(kind="straight"),
        description="straight, or a mapping: kind helical with a pitch, tapered with end_lever_arm",
    )

    @property
    def tendons(self) -> "tuple[Tendon, ...]":
        """The tendons that this actuator pulls."""
        return (self,)


class RodTendon(Tendon):
    """A tendon that is driven by its tension."""

    quantity: ClassVar = "tension"
    unit: ClassVar = "N"
    springs: ClassVar = ((0.0, 0.0, 0.0, 0.0),)

    type: Literal["tendon"]


class Motor(Tendon):
    """A motor that winds an elastic tendon on a spool by its angle, and may let out another one.

    The tension follows from how far motor and rod stretch the tendon (Camarillo et al., IEEE T-RO
    24 (2008) 1262); a slack tendon has none.
    """

    quantity: ClassVar = "angle"
    unit: ClassVar = "rad"

    type: Literal["motor"]
    opposite: bool = Field(
        default=False,
        description="whether it lets out a second tendon, opposite to the first, as far as it "
        "winds the first",
    )
    spool_radius: Width = Field(description="length wound per angle [m/rad]")
    stiffness: Positive = Field(
        description="tension of a tendon per stretch, springs in series included [N/m]"
    )
    pretension: Positive = Field(
        description="tension of each tendon on the straight rod at the angle 0 [N]"
    )

    @property
    def tendons(self) -> tuple[Tendon, ...]:
        """The tendon that it winds at angles above 0, then the opposite one, if there is one."""
        if not self.opposite:
            return (self,)
        turned = {"name": f"{self.name}_opposite", "angle": self.angle + math.pi}
        return self, self.model_copy(update=turned)

    @property
    def springs(self) -> tuple[tuple[float, float, float, float], ...]:
        """Of each of its tendons the row of `softcr_models.rod.section.Fittings.springs`."""
        width = SLACK * self.pretension
        start = self.pretension - 0.25 * width * width / self.pretension
        return tuple(
            (sign * self.spool_radius, self.stiffness, start, width * width)
            for sign in (1.0, -1.0)[: len(self.tendons)]
        )


SLACK = 0.1
"""Times the pretension: width of the smooth transition from a tendon that pulls to a slack one."""


class PressureSensor(Data):
    """Gauge pressure of every chamber."""

    type: Literal["pressure"]
    noise: NonNegative = Field(description="standard deviation of a reading [Pa]")


class BaseWrenchSensor(Data):
    """The force-torque sensor below the base; its frame is the robot's base frame."""

    type: Literal["base_wrench"]
    force_noise: NonNegative = Field(description="standard deviation of a force [N]")
    moment_noise: NonNegative = Field(description="standard deviation of a moment [N m]")


class TipPoseSensor(Data):
    """Pose of the tip, seen by cameras."""

    type: Literal["tip_pose"]
    noise: LengthNoise = Field(description="standard deviation of each coordinate [m]")


class TensionSensor(Data):
    """Tension of every tendon."""

    type: Literal["tension"]
    noise: NonNegative = Field(description="standard deviation of a reading [N]")


class AngleSensor(Data):
    """Angle of every motor: encoders."""

    type: Literal["angle"]
    noise: NonNegative = Field(description="standard deviation of a reading [rad]")


class TendonLengthSensor(Data):
    """Length of every tendon from the base to its end: encoders of the spools."""

    type: Literal["tendon_length"]
    noise: LengthNoise = Field(description="standard deviation of a reading [m]")


class PoseSensor(SparseData):
    """Pose of a point of the body, seen by cameras; the tip has a sensor of its own."""

    optional: ClassVar = {"segment": "segment"}

    type: Literal["pose"]
    name: Name = Field(description="name, different from that of every other sensor")
    segment: Name | None = Field(
        default=None, description="segment on which it sits; the last when absent"
    )
    at: Fraction = Field(default=1.0, description="position along the segment; 1 is its end [-]")
    offset: Offset = Field(
        default=(0.0, 0.0, 0.0),
        description="offset from the centre line, in the section's frame [m]",
    )
    noise: LengthNoise = Field(description="standard deviation of each coordinate [m]")


RodActuator = Annotated[Chamber | RodTendon | Motor, Field(discriminator="type")]
"""What can move a rod."""

RodSensor = Annotated[
    PressureSensor
    | TensionSensor
    | AngleSensor
    | TendonLengthSensor
    | BaseWrenchSensor
    | TipPoseSensor
    | PoseSensor,
    Field(discriminator="type"),
]
"""What can be measured of a rod."""


_LEAST_PRESSURE = 500.0  # [Pa]
_PRESSURE = within(-1.1e5, 1e8, "Pa")


class PressureLimits(Data):
    """What the valves may be asked for."""

    minimum: Finite = Field(description="lowest gauge pressure [Pa]")
    maximum: Annotated[Finite, _PRESSURE] = Field(description="highest gauge pressure [Pa]")
    maximum_rate: Positive = Field(description="largest change of a command per second [Pa/s]")

    @model_validator(mode="after")
    def _ordered(self) -> "PressureLimits":
        _check_order(self.minimum, self.maximum)
        largest = max(abs(self.minimum), abs(self.maximum))
        if largest < _LEAST_PRESSURE:
            raise ValueError(
                f"minimum {self.minimum:g} and maximum {self.maximum:g} Pa are within "
                f"{_LEAST_PRESSURE:g} Pa, which valves do not resolve; {largest:g} kPa would be "
                f"{1e3 * largest:g} Pa"
            )
        return self


class TensionLimits(Data):
    """What the tendons' drives may be asked for. A tendon cannot push."""

    minimum: NonNegative = Field(description="lowest tension [N]")
    maximum: Positive = Field(description="highest tension [N]")
    maximum_rate: Positive = Field(description="largest change of a command per second [N/s]")

    @model_validator(mode="after")
    def _ordered(self) -> "TensionLimits":
        _check_order(self.minimum, self.maximum)
        return self


class AngleLimits(Data):
    """What the motors may be asked for."""

    minimum: Finite = Field(description="lowest angle of a motor [rad]")
    maximum: Finite = Field(description="highest angle of a motor [rad]")
    maximum_rate: Positive = Field(description="largest change of a command per second [rad/s]")

    @model_validator(mode="after")
    def _ordered(self) -> "AngleLimits":
        _check_order(self.minimum, self.maximum)
        return self


Limits = PressureLimits | TensionLimits | AngleLimits


def _check_order(minimum: float, maximum: float) -> None:
    if minimum >= maximum:
        raise ValueError(f"minimum {minimum} must be below maximum {maximum}")


_Sensor = TypeVar("_Sensor", bound=BaseModel)


def sensor_of(sensors: Sequence[BaseModel], kind: type[_Sensor]) -> _Sensor:
    """The sensor of a class; raises LookupError when there is none."""
    for sensor in sensors:
        if isinstance(sensor, kind):
            return sensor
    raise LookupError(f"no {kind.__name__}")


def check_names(names: Sequence[str]) -> None:
    """Raise ValueError when two actuators have the same name."""
    if len(set(names)) != len(names):
        raise ValueError(f"actuators: names must differ, found {list(names)}")

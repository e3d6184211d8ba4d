"""Parts of robots as data: actuators, sensors, limits. SI units."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_models.number_types import Finite, Name, NonNegative, Positive


class Data(BaseModel):
    """Immutable; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Chamber(Data):
    """One pressure chamber, parallel to the centre line of the rod."""

    type: Literal["chamber"]
    name: Name = Field(description="unlike every other actuator's")
    angle: Finite = Field(description="angle of its centre about z from the x axis [rad]")
    area: Positive = Field(description="cross-sectional area the pressure acts on [m^2]")
    lever_arm: NonNegative = Field(description="distance of its centre from the centre line [m]")


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
    noise: NonNegative = Field(description="standard deviation of each coordinate [m]")


RodActuator = Chamber
"""What can move a rod; a union discriminated by `type` as soon as there is a second one."""

RodSensor = Annotated[
    PressureSensor | BaseWrenchSensor | TipPoseSensor, Field(discriminator="type")
]
"""What can be measured of a rod."""


class PressureLimits(Data):
    """What the valves may be asked for."""

    minimum: Finite = Field(description="lowest gauge pressure [Pa]")
    maximum: Finite = Field(description="highest gauge pressure [Pa]")
    maximum_rate: Positive = Field(description="largest change of a command per second [Pa/s]")

    @model_validator(mode="after")
    def _ordered(self) -> "PressureLimits":
        if self.minimum >= self.maximum:
            raise ValueError(f"minimum {self.minimum} must be below maximum {self.maximum}")
        return self


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

"""How noisy the sensors of a simulated plant are."""

from dataclasses import dataclass

from softcr_models.robots.parts import (
    AngleSensor,
    BaseWrenchSensor,
    PressureSensor,
    TendonLengthSensor,
    TensionSensor,
    TipPoseSensor,
    sensor_of,
)
from softcr_models.robots.robot import Robot
from softcr_simulation.errors.plant_errors import PlantErrors


@dataclass(frozen=True)
class Noises:
    """Standard deviations of what sensors add to the truth.

    Attributes:
        tip: of each coordinate of the tip [m].
        pressure: of each pressure [Pa].
        tension: of each tension [N].
        angle: of each motor's angle [rad].
        tendon_length: of each tendon's length [m].
        force, moment: of the base wrench [N], [N m].
    """

    tip: float
    pressure: float
    tension: float
    angle: float
    tendon_length: float
    force: float
    moment: float

    @classmethod
    def of(cls, robot: Robot, errors: PlantErrors) -> "Noises":
        """What the errors say, otherwise what the robot's file says; 0 of a sensor it has not."""
        wrench = sensor_of(robot.sensors, BaseWrenchSensor)

        def of_file(
            kind: type[PressureSensor | TensionSensor | AngleSensor | TendonLengthSensor],
        ) -> float:
            return next((each.noise for each in robot.sensors if isinstance(each, kind)), 0.0)

        def chosen(told: float | None, otherwise: float) -> float:
            return otherwise if told is None else told

        return cls(
            tip=chosen(errors.tip_noise, sensor_of(robot.sensors, TipPoseSensor).noise),
            pressure=chosen(errors.pressure_noise, of_file(PressureSensor)),
            tension=chosen(errors.tension_noise, of_file(TensionSensor)),
            angle=of_file(AngleSensor),
            tendon_length=chosen(errors.tendon_length_noise, of_file(TendonLengthSensor)),
            force=chosen(errors.force_noise, wrench.force_noise),
            moment=chosen(errors.moment_noise, wrench.moment_noise),
        )

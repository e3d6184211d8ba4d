"""How inputs are shown to persons: pressures in kPa, tensions in N, torques on strains in mN m."""

from dataclasses import dataclass

from softcr_models.robots.robot import Robot
from softcr_models.rod.description import rod_inputs
from softcr_models.strain.arm import StrainArm


@dataclass(frozen=True)
class ShownInput:
    """One actuator.

    Attributes:
        name: of the actuator.
        kind: "chamber" or "tendon"; "torque" on a bending strain, "force" on another one.
        scale: from SI to `unit` [-].
        unit: that it is shown in.
        low, high: its limits [SI].
    """

    name: str
    kind: str
    scale: float
    unit: str
    low: float
    high: float


def shown_inputs(robot: Robot | StrainArm) -> tuple[ShownInput, ...]:
    """(m,) a robot's actuators in the order of its inputs."""
    if isinstance(robot, StrainArm):
        return _torques(robot)
    inputs = rod_inputs(robot)
    units = {"chamber": (1e-3, "kPa"), "tendon": (1.0, "N")}
    limits = zip(inputs.low.tolist(), inputs.high.tolist(), strict=True)
    return tuple(
        ShownInput(each.name, each.type, *units[each.type], low, high)
        for each, (low, high) in zip(robot.actuators, limits, strict=True)
    )


def _torques(robot: StrainArm) -> tuple[ShownInput, ...]:
    numbers, shown = (
        robot.numbers,
        (("torque", 1e3, "mN m"), ("force", 1.0, "N"), ("force", 1.0, "N")),
    )
    largest = robot.largest_torque
    return tuple(
        ShownInput(name, *shown[index % 3], -largest[index % 3], largest[index % 3])
        for name, index in zip(numbers.names, numbers.active.tolist(), strict=True)
    )

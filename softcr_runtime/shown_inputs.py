"""How a rod's inputs are shown to persons: pressures in kPa, tensions in N."""

from dataclasses import dataclass

from softcr_models.robot import Robot
from softcr_models.rod.description import rod_inputs


@dataclass(frozen=True)
class ShownInput:
    """One actuator.

    Attributes:
        name: of the actuator.
        kind: "chamber" or "tendon".
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


def shown_inputs(robot: Robot) -> tuple[ShownInput, ...]:
    """(m,) a robot's actuators in the order of its inputs."""
    inputs = rod_inputs(robot)
    units = {"chamber": (1e-3, "kPa"), "tendon": (1.0, "N")}
    limits = zip(inputs.low.tolist(), inputs.high.tolist(), strict=True)
    return tuple(
        ShownInput(each.name, each.type, *units[each.type], low, high)
        for each, (low, high) in zip(robot.actuators, limits, strict=True)
    )

"""What stands beside a network's weights: everything needed to use, judge and repeat it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from softcr_models.robot import Robot
from softcr_models.surrogate.ddpinn import Architecture, Inputs

# Fields of a robot that a network is not bound to: names, the rigid parts outside the rod, what
# acts before the chambers, what only measures, and what it is told (`Inputs`). The actuators stand
# apart, as chambers.
_FREE_FIELDS = {
    "type",
    "actuators",
    "sensors",
    "name",
    "description",
    "bending_compliance",
    "tip_mass",
    "relaxation_times",
    "pressure_limits",
    "pressure_lag",
    "sensor_to_base_cap",
    "base_cap_length",
    "tip_cap_length",
}


class Card(BaseModel):
    """The training card, kept as JSON beside the weights.

    Attributes:
        robot: name of the robot.
        rod: the robot's fields that the network is bound to.
        relaxation_times: (6,) D_tau [s] at a damping factor of one.
        intervals: n of the rod it stands for.
        architecture, inputs: structure of the network.
        training: settings it was trained with, seeds included.
        hardware: processor or GPU, threads and library versions.
        seconds: of data and of training.
        iterations: done.
        validation: figures at the end of training, by name.
        start: card of the network it was begun from, if any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    robot: str
    rod: dict[str, Any]
    relaxation_times: list[float]
    intervals: int = Field(ge=1)
    architecture: Architecture
    inputs: Inputs
    training: dict[str, Any]
    hardware: dict[str, str]
    seconds: dict[str, float]
    iterations: int
    validation: dict[str, float]
    start: "Card | None" = None


def rod_fields(robot: Robot) -> dict[str, Any]:
    """The fields of a robot that a network is bound to, as JSON has them."""
    chambers = [chamber.model_dump(mode="json", exclude={"type"}) for chamber in robot.chambers]
    return robot.model_dump(mode="json", exclude=_FREE_FIELDS) | {"chambers": chambers}


def differing_field(card: Card, robot: Robot) -> str | None:
    """Name of a field in which a robot differs from the one a network was trained for."""
    ours = rod_fields(robot)
    for name in sorted({*card.rod, *ours}):
        if card.rod.get(name) != ours.get(name):
            return name
    ratio = [a / b for a, b in zip(robot.relaxation_times, card.relaxation_times, strict=True)]
    if max(ratio) - min(ratio) > 1e-9 * max(ratio):
        return "relaxation_times"
    return None

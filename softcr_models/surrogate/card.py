"""What stands beside a network's weights: everything needed to use, judge and repeat it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from softcr_models.robots.robot import Robot
from softcr_models.robots.segments import MAX_SEGMENTS, Segment
from softcr_models.surrogate.architecture import Architecture
from softcr_models.surrogate.ddpinn import Inputs

# Fields of a robot that a network is not bound to: names, the rigid parts outside the rod, what
# acts before the actuators, what only measures, and what it is told (`Inputs`). Segments and
# actuators stand apart.
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
    "tension_limits",
    "tension_lag",
    "angle_limits",
    "angle_lag",
    "segments",
    "sensor_to_base_cap",
    "base_cap_length",
    "tip_cap_length",
}


class Card(BaseModel):
    """The training card, kept as JSON beside the weights.

    Attributes:
        robot: name of the robot.
        rod: the robot's fields that the network is bound to.
        relaxation_times: (6 K,) D_tau of its segments [s] at a damping factor of one.
        intervals: n of the rod it stands for, of each segment on average.
        segments: K.
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
    segments: int = Field(default=1, ge=1, le=MAX_SEGMENTS)
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
    written = robot.model_dump(mode="json")
    fields = {name: value for name, value in written.items() if name not in _FREE_FIELDS}
    fields["chambers"] = chambers
    if robot.tendons:
        fields["actuators"] = written["actuators"]
    if "segments" in written or isinstance(robot.segments[0].bending_compliance, tuple):
        fields["segments"] = [_bound(each, robot.bending_compliance) for each in robot.segments]
    return fields


def relaxation_times_of(robot: Robot) -> list[float]:
    """(6 K,) D_tau of a robot's segments [s]."""
    times: list[float] = robot.segment_relaxation_times.ravel().tolist()
    return times


def _bound(segment: Segment, bending_compliance: float) -> dict[str, Any]:
    """What a network is bound to of a segment, of whose bending compliances only the proportion to
    the first segment's counts."""
    told = {"name", "bending_compliance", "relaxation_times"}
    shares = [f"{each / bending_compliance:.9g}" for each in segment.bending_compliances]
    return segment.model_dump(mode="json", exclude=told) | {"bending_share": shares}


def differing_field(card: Card, robot: Robot) -> str | None:
    """Name of a field in which a robot differs from the one a network was trained for."""
    ours = rod_fields(robot)
    for name in sorted({*card.rod, *ours}):
        if card.rod.get(name) != ours.get(name):
            return name
    named = dict(zip(card.inputs.parameter_names, card.inputs.high, strict=True))
    if robot.tip_mass > 0.0 and named.get("tip_mass") == 0.0:  # the network is not told any
        return "tip_mass"
    times = relaxation_times_of(robot)
    ratio = [a / b for a, b in zip(times, card.relaxation_times, strict=True)]
    if max(ratio) - min(ratio) > 1e-9 * max(ratio):
        return "relaxation_times"
    return None

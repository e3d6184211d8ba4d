"""Which topics carry a robot's commands and sensors: they follow from how it is driven."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RobotTopics:
    """Topics of one kind of robot.

    Attributes:
        command: what its actuators shall do.
        state: what its actuators read; the lead of the control chain.
        poses: what its cameras see.
        plant: what a simulated plant of it speaks on.
    """

    command: str
    state: str
    poses: str
    plant: tuple[str, ...]


_PRESSURE = RobotTopics(
    "pressure/command",
    "pressure/state",
    "mocap/tip/pose",
    ("mocap/tip/pose", "pressure/state", "simulation/truth/tip/pose"),
)
_TENDON = RobotTopics(
    "tendon/command",
    "tendon/state",
    "mocap/arm/poses",
    ("tendon/state", "simulation/truth/tip/pose", "mocap/arm/poses"),
)


def robot_topics(robot: Any) -> RobotTopics:
    """The topics of a robot that pressure, or that tendons, drive."""
    return _TENDON if hasattr(robot, "racks") else _PRESSURE

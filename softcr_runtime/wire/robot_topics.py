"""Which topics carry a robot's commands and sensors: they follow from how it is driven."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_models.rod_model.rod_model import RodModel


@dataclass(frozen=True)
class RobotTopics:
    """Topics of one kind of robot.

    Attributes:
        plan: what its actuators shall do, and when.
        command: what they shall do now, one command at a time.
        sent: what they were really asked for.
        state: what its actuators read; the lead of the control chain.
        poses: what its cameras see.
        plant: what a simulated plant of it speaks on.
    """

    plan: str
    command: str
    sent: str
    state: str
    poses: str
    plant: tuple[str, ...]


_PRESSURE = RobotTopics(
    "pressure/plan",
    "pressure/command",
    "pressure/sent",
    "pressure/state",
    "mocap/tip/pose",
    ("mocap/tip/pose", "pressure/state", "simulation/truth/tip/pose"),
)
_TENDON = RobotTopics(
    "tendon/plan",
    "tendon/command",
    "tendon/sent",
    "tendon/state",
    "mocap/arm/poses",
    ("tendon/state", "simulation/truth/tip/pose", "mocap/arm/poses"),
)


_TORQUE = RobotTopics(
    "torque/plan",
    "torque/command",
    "torque/sent",
    "torque/state",
    "mocap/body/poses",
    (
        "torque/state", "simulation/truth/tip/pose", "simulation/truth/strains", "mocap/body/poses",
    ),
)  # fmt: skip


def states_topic(model: Any) -> str:
    """Where the estimated states of a model are told: those of rods as points that viewers draw."""
    return "estimate/rod" if isinstance(model, RodModel) else "estimate/state"


def reference_topic(model: Any) -> str:
    """Where a controller that predicts with a model is told what it shall follow."""
    return "reference/rod" if isinstance(model, RodModel) else "reference/output"


def inputs_of(value: Any) -> np.ndarray:
    """(m,) inputs of a sample of the actuators; tendons tell their forces beside their lengths."""
    return value[0] if isinstance(value, tuple) else value


def robot_topics(robot: Any) -> RobotTopics:
    """The topics of a robot that pressures, tendons, or torques on its strains drive."""
    if hasattr(robot, "markers"):
        return _TORQUE
    return _TENDON if hasattr(robot, "racks") else _PRESSURE

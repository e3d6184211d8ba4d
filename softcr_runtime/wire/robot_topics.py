"""Which topics carry a robot's commands and sensors: they follow from how it is driven."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_models.plugins import load_class
from softcr_models.robots.kinds import KINDS, AnyRobot
from softcr_runtime.wire.topics import Topic, topics_of


@dataclass(frozen=True)
class RobotTopics:
    """Topics of a robot.

    Attributes:
        plan: what its actuators shall do, and when.
        command: what they shall do now, one command at a time.
        sent: what they were really asked for.
        reference: what moves its nominal model along the reference.
        state: what its actuators read; the lead of the control chain.
        poses: what its cameras see.
    """

    plan: str
    command: str
    sent: str
    reference: str
    state: str
    poses: str

    @property
    def plant(self) -> tuple[str, ...]:
        """What a simulated plant of it speaks on, at least."""
        return self.poses, self.state, "simulation/truth/tip/pose"


def states_topic(model: Any) -> str:
    """Where the estimated states of a model are told: those of rods as points that viewers draw."""
    return "estimate/rod" if _is_of_rod(model) else "estimate/state"


def reference_topic(model: Any) -> str:
    """Where a controller that predicts with a model is told what it shall follow."""
    return "reference/rod" if _is_of_rod(model) else "reference/output"


def _is_of_rod(model: Any) -> bool:
    from softcr_models.rod_model.rod_model import RodModel  # brings kernels with it

    return isinstance(model, RodModel)


def inputs_of(value: Any) -> np.ndarray:
    """(m,) inputs of a sample of the actuators; tendons tell their forces beside their lengths."""
    return value[0] if isinstance(value, tuple) else value


def robot_topics(robot: AnyRobot) -> RobotTopics:
    """The topics of a robot."""
    return _topics(KINDS[robot.type].quantity, robot.sees_tip)


def topics_of_robot(robot: AnyRobot) -> dict[str, Topic]:
    """The topics that a robot may have, by name: those of its kind, without those of cameras and
    encoders that its file does not name."""
    absent = {"mocap/tip/pose"} if not robot.sees_tip else set()
    if robot.sees_tip and not robot.bodies_seen:
        absent.add("mocap/body/poses")
    if "tendon_lengths" not in getattr(robot, "output_noises", {}):
        absent.add("tendon/lengths")
    return {name: topic for name, topic in topics_of(robot.type).items() if name not in absent}


def topics_of_kind(kind: str) -> RobotTopics:
    """The topics of every robot of a kind, a name of `KINDS`."""
    return _topics(KINDS[kind].quantity, load_class(KINDS[kind].robot, "robot").sees_tip)


def _topics(quantity: str, sees_tip: bool) -> RobotTopics:
    plan, command, sent, reference, state = (
        f"{quantity}/{each}" for each in ("plan", "command", "sent", "reference", "state")
    )
    poses = "mocap/tip/pose" if sees_tip else "mocap/body/poses"
    return RobotTopics(plan, command, sent, reference, state, poses)

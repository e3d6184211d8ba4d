"""What the simulator runs: a plant of either kind with its topics, behind one interface."""

from typing import Any, Protocol

import numpy as np

from softcr_hardware.arm_plant import ArmMeasurement, ArmPlant
from softcr_hardware.plant import SimulatedPlant
from softcr_hardware.plant_messages import PLANT_TOPICS, plant_messages
from softcr_models.robot import Robot
from softcr_runtime.arm_messages import (
    arm_cloud_message,
    poses_to_message,
    tendons_from_message,
    tendons_to_message,
)
from softcr_runtime.messages import pose_to_message, pressures_from_message


class SimulatedMachine(Protocol):
    """A plant that follows commands of one topic and speaks on others.

    Attributes:
        command_topic: what it follows.
        topics: what it speaks on.
        without_commands: what it does when commands stop, in words.
    """

    command_topic: str
    topics: tuple[str, ...]
    without_commands: str

    def decoded(self, message: Any) -> np.ndarray:
        """The values of a command; raises MessageError."""
        ...

    def reset(self) -> None:
        """Begin anew, at rest."""
        ...

    def follow(self, command: np.ndarray) -> None:
        """From now on follow a command."""
        ...

    def idle(self) -> None:
        """Commands have stopped: do what is safe."""
        ...

    def advance(self, duration: float) -> None:
        """Let `duration` [s] pass."""
        ...

    def messages(self, stamp: int) -> dict[str, Any]:
        """What the sensors say at `stamp` [ns], and the truth, by topic."""
        ...

    def description(self) -> dict[str, Any]:
        """What the diagnostics tell of the plant."""
        ...


class SimulatedRod:
    """The pneumatic rod; without commands its chambers vent."""

    command_topic = "pressure/command"
    topics: tuple[str, ...] = PLANT_TOPICS
    without_commands = "chambers vented"

    def __init__(self, robot: Robot, plant: SimulatedPlant) -> None:
        """A plant made of a robot file's rod, with its own parameters."""
        self._robot, self._plant = robot, plant
        self.reset, self.follow, self.idle = plant.reset, plant.follow, plant.vent
        self.advance = plant.advance

    def decoded(self, message: Any) -> np.ndarray:
        """(m,) pressures [Pa]; raises MessageError."""
        return pressures_from_message(message, self._robot.chamber_names, self.command_topic)

    def messages(self, stamp: int) -> dict[str, Any]:
        """See `plant_messages`."""
        plant = self._plant
        return plant_messages(plant.rod, plant.measure(stamp), self._robot.chamber_names)

    def description(self) -> dict[str, Any]:
        """How the plant differs from the robot file."""
        mismatch, rod, sensors = self._plant.mismatch, self._plant.rod, self._plant.sensors
        return {
            "plant_mismatch": {
                "bending_compliance": round(mismatch.bending_compliance_factor - 1.0, 12),
                "tip_mass": round(mismatch.tip_mass_factor - 1.0, 12),
                "damping": round(mismatch.damping_factor - 1.0, 12),
                "intervals": rod.intervals,
                "tip_noise_mm": 1e3 * sensors.tip_noise,
                "pressure_noise_pa": sensors.pressure_noise,
                "mocap_latency_cycles": sensors.mocap_latency,
            },
            "true_parameters": {
                "bending_compliance": rod.robot.bending_compliance,
                "tip_mass": rod.robot.tip_mass,
                "damping_factor": mismatch.damping_factor,
            },
            "intervals": rod.intervals,
            "robot": self._robot.model_dump(mode="json"),
        }


class SimulatedArm:
    """The tendon-driven arm; without commands its motors hold the lengths they were asked for."""

    command_topic = "tendon/command"
    topics: tuple[str, ...] = (
        "mocap/arm/poses", "tendon/state", "simulation/truth/tip/pose", "simulation/truth/arm",
    )  # fmt: skip
    without_commands = "tendons held"

    def __init__(self, plant: ArmPlant, noise: float) -> None:
        """A plant whose measured positions have a noise [m]."""
        self._plant, self._noise = plant, noise
        self.reset, self.follow, self.advance = plant.reset, plant.follow, plant.advance

    def decoded(self, message: Any) -> np.ndarray:
        """(a,) tendon lengths [m]; raises MessageError."""
        return tendons_from_message(message, self.command_topic, self._plant.arm.tendon_names)

    def idle(self) -> None:
        """The motors hold by themselves."""

    def messages(self, stamp: int) -> dict[str, Any]:
        """What cameras and motors say, and the truth."""
        return arm_plant_messages(self._plant, self._plant.measure(stamp))

    def description(self) -> dict[str, Any]:
        """What the arm carries and how well it is seen."""
        return {
            "payload": self._plant.dynamics.payload,
            "tip_noise_mm": 1e3 * self._noise,
            "robot": self._plant.arm.model_dump(mode="json"),
        }


def arm_plant_messages(plant: ArmPlant, measured: ArmMeasurement) -> dict[str, Any]:
    """Messages by topic: poses in the frame of the arm's base with the world's axes."""
    stamp, arm = measured.stamp, plant.arm
    return {
        "tendon/state": tendons_to_message(
            measured.lengths, arm.tendon_names, stamp, measured.forces
        ),
        "simulation/truth/tip/pose": pose_to_message(measured.true_tip_pose, stamp, "world"),
        "simulation/truth/arm": arm_cloud_message(measured.q, arm.rest_lengths, stamp),
        "mocap/arm/poses": poses_to_message(measured.poses, stamp),
    }

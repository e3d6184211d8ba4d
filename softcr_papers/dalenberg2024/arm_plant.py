"""A simulated tendon-driven arm: what the simulator puts in the place of motors and cameras."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from pydantic import BaseModel, ConfigDict, Field

from softcr_papers.constant_curvature.kinematics import coverage_of
from softcr_papers.dalenberg2024.arm import Arm
from softcr_papers.dalenberg2024.arm_dynamics import ArmDynamics, TendonGains
from softcr_papers.dalenberg2024.arm_model import section_layout
from softcr_runtime.blocks.values import Pose, StateEstimate
from softcr_runtime.wire.robot_topics import robot_topics
from softcr_runtime.wire.topics import TRUTH
from softcr_simulation.plant import passes

_SETTLING = 3.0
"""The arm has sagged under its weight and payload before anybody looks [s]."""

_STEP = 2e-3
"""Longest step of the integration [s]; with twice of it a motion is 0.3 % off."""


@dataclass(frozen=True, eq=False)
class ArmMeasurement:
    """One sample of all sensors, with the truth behind it.

    Attributes:
        stamp: time of the sample [ns].
        poses: (r, 4, 4) measured poses of the racks, base to tip [m]; in the frame of the arm's
            base with the world's axes, as everything here.
        lengths: (a,) changes of tendon length against the zero state [m].
        forces: (a,) of the tendons [N], negative where they pull.
        q: (3 n,) true coordinates of the arm's bodies [m].
        true_tip_pose: (4, 4) of the arm's end [m].
    """

    stamp: int
    poses: np.ndarray
    lengths: np.ndarray
    forces: np.ndarray
    q: np.ndarray
    true_tip_pose: np.ndarray


class ArmPlant:
    """Bodies of constant curvature with a payload, tendon motors and cameras (Dalenberg, IV-C).

    The motors hold positions: each tendon follows the length that was asked for last, by the
    thesis's PID loops (see `TendonGains`), whether commands come or not.

    Attributes:
        arm: the data.
        command: (a,) lengths that the motors follow [m].
        dynamics: the equations of motion.
    """

    def __init__(
        self,
        arm: Arm,
        payload: float = 0.0,
        noise: float = 0.0,
        seed: int = 0,
        gains: TendonGains | None = None,
    ) -> None:
        """
        Args:
            arm: the data.
            payload: point mass at the tip [kg].
            noise: standard deviation of each coordinate of a measured position [m]. Orientations
                are off as if it were that of markers at the arm's surface: noise / radius [rad].
            seed: of the noise.
            gains: of the tendons' loops; None: in configuration space.

        Raises:
            UserError: a negative payload.
        """
        self.arm, self._noise, self._seed = arm, noise, seed
        self.dynamics = ArmDynamics(arm, payload)
        self._racks = coverage_of(np.array(arm.racks), arm.rest_lengths)
        self._gains = gains or TendonGains(space="configuration")
        self.reset()

    def reset(self) -> None:
        """Hanging still, with its tendons held at the zero state; the noise is seeded again."""
        self._random = np.random.default_rng(self._seed)
        self._state = self.dynamics.rest()
        self.command = np.zeros(len(self.arm.actuator_names))
        self.advance(_SETTLING)

    def follow(self, command: np.ndarray) -> None:
        """From now on the motors follow these lengths (a,) [m]."""
        self.command = np.array(command, float)

    def advance(self, duration: float) -> None:
        """Let `duration` [s] pass.

        Raises:
            ArithmeticError: the arm's motion left what numbers can hold.
            ValueError: time cannot pass so.
        """
        if not passes(duration):
            return
        try:
            self._forces = self.dynamics.advance(
                self._state, self.command, duration, self._gains, _STEP
            )
        except np.linalg.LinAlgError:
            raise ArithmeticError(
                f"the arm diverged at tendon lengths {self.command.tolist()} m"
            ) from None

    def sensed(self, stamp: int) -> ArmMeasurement:
        """Read all sensors at `stamp` [ns]."""
        q, lengths = self._state.q, self.arm.rest_lengths
        chain = self.dynamics.chain
        seen = chain.pose(q, lengths, self._racks)
        for pose in seen:
            pose[:3, 3] += self._noise * self._random.standard_normal(3)
            turn = self._noise / self.arm.radius * self._random.standard_normal(3)
            pose[:3, :3] = pose[:3, :3] @ pin.exp3(turn)
        return ArmMeasurement(
            stamp=stamp,
            poses=seen,
            lengths=self.dynamics.actuation.T @ q,
            forces=self._forces.copy(),
            q=q.copy(),
            true_tip_pose=chain.pose(q, lengths),
        )


class ArmPlantSettings(BaseModel):
    """What an arm carries, and how well it is seen."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    payload: float = Field(
        0.0, ge=0.0, le=10.0, description="mass at the arm's tip", json_schema_extra={"unit": "kg"}
    )
    tip_noise: float = Field(
        -1.0,
        ge=-1.0,
        le=0.05,
        description="standard deviation of measured positions; below 0: that of the robot file",
        json_schema_extra={"unit": "m"},
    )


class TendonArmPlant(ArmPlant):
    """The arm as a `Plant`; without commands its motors hold the lengths they were asked for."""

    Settings = ArmPlantSettings
    without_commands = "tendons held"

    def __init__(
        self,
        robot: Arm,
        settings: ArmPlantSettings,
        seed: int = 0,
        gains: TendonGains | None = None,
    ) -> None:
        """Arguments as RodPlant.

        Args:
            gains: of the tendons' loops; None: those of ArmPlant.
        """
        told = settings.tip_noise
        noise = told if told >= 0.0 else robot.sensors[0].noise
        super().__init__(robot, settings.payload, noise, seed, gains)
        lengths = robot.rest_lengths
        self._lengths = {f"rest_length_{k}": each for k, each in enumerate(lengths.tolist(), 1)}
        self._layout = section_layout(len(lengths))
        topics = robot_topics(robot)
        self._actuators, self._cameras = topics.state, topics.poses
        self.topics = (*topics.plant, TRUTH)

    def idle(self) -> None:
        """The motors hold by themselves."""

    def measure(self, stamp: int) -> dict[str, Any]:
        measured = self.sensed(stamp)
        # poses last: they are what the controller waits for
        return {
            self._actuators: (measured.lengths, measured.forces),
            "simulation/truth/tip/pose": Pose.of(measured.true_tip_pose),
            TRUTH: StateEstimate(measured.q, self._lengths, layout=self._layout),
            self._cameras: tuple(Pose.of(pose) for pose in measured.poses),
        }

    def describe(self) -> dict[str, Any]:
        """What the arm carries and how well it is seen."""
        return {
            "payload": self.dynamics.payload,
            "tip_noise_mm": 1e3 * self._noise,
            "robot": self.arm.model_dump(mode="json"),
            "in_words": self._in_words(),
        }

    def _in_words(self) -> dict[str, list[str]]:
        """What is as the controller's model has it, and what differs."""
        arm, payload, noise = self.arm, self.dynamics.payload, 1e3 * self._noise
        bodies, sections = len(arm.bodies), len(arm.racks)
        lines = (
            (bodies != sections, f"{bodies} bodies, the controller's model {sections} sections"),
            (payload > 0.0, f"payload {payload:g} kg, unknown to the controller"
             if payload > 0.0 else "no payload"),
            (noise > 0.0, f"tip noise {noise:g} mm" if noise > 0.0 else "no tip noise"),
        )  # fmt: skip
        bends = "bodies that bend with constant curvature, as the model's sections do"
        exact = [bends, "tendon lengths are read without noise"]
        exact += [line for differs, line in lines if not differs]
        return {"exact": exact, "differs": [line for differs, line in lines if differs]}

"""A planar strain robot as a plant: torques in, what cameras see of its markers out.

It is never the controller's model: it is made anew of the robot's own file, its numbers are off by
the factors that its settings tell, its masses stand at more points of the backbone, and its steps
are a tenth of those that filter and controllers predict with.
"""

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_papers.valadas2024.strain.arm import StrainArm
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics
from softcr_papers.valadas2024.strain.integration import Integration, rodas
from softcr_papers.valadas2024.strain.kinematics import transforms
from softcr_papers.valadas2024.strain.strain_model import strain_layout
from softcr_runtime.blocks.values import Pose, StateEstimate
from softcr_runtime.wire.robot_topics import robot_topics
from softcr_runtime.wire.topics import TRUTH
from softcr_simulation.plant import passes

_QUADRATURE = 16  # points per segment; the models have 10
_STEP = 5e-4  # of RODAS, order 4 and L-stable; bending is 4e-4 rad/m off where torques jump [s]


def _factor(what: str, default: float) -> Any:
    return Field(
        default, ge=0.2, le=5.0, description=f"{what} of the plant, relative to the robot file"
    )


class StrainPlantSettings(BaseModel):
    """How the plant differs from its file, and how well it is seen."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    stiffness_factor: float = _factor("stiffness of all strains", 1.05)
    damping_factor: float = _factor("damping of all strains", 0.9)
    mass_factor: float = _factor("mass, moments of inertia and weight", 1.05)
    tip_noise: float = Field(
        -1.0,
        ge=-1.0,
        le=0.05,
        description="standard deviation of measured positions; below 0: that of the robot file",
        json_schema_extra={"unit": "m"},
    )
    angle_noise: float = Field(
        -1.0,
        ge=-1.0,
        le=1.0,
        description="standard deviation of measured angles; below 0: that of the robot file",
        json_schema_extra={"unit": "rad"},
    )


class StrainPlant:
    """The robot under torques, each of which is held until the next; see `Plant`."""

    Settings = StrainPlantSettings
    without_commands = "no torque acts"

    def __init__(self, robot: StrainArm, settings: StrainPlantSettings, seed: int = 0) -> None:
        """
        Args:
            robot: as its file has it.
            settings: of the plant.
            seed: of the cameras' noise.
        """
        self._robot, self._settings, self._seed = robot, settings, seed
        self._dynamics = StrainDynamics(robot.numbers, _QUADRATURE)
        self._factors = np.array(
            [[settings.stiffness_factor, settings.damping_factor, settings.mass_factor]]
        )
        self._how = Integration(fixed_step=_STEP)
        self._largest = np.array(robot.largest_torque)[robot.numbers.active % 3]
        told = settings.tip_noise, settings.angle_noise
        self._noise = [
            given if given >= 0.0 else own
            for given, own in zip(told, robot.marker_noise, strict=True)
        ]
        self._layout = strain_layout(self._dynamics)
        topics = robot_topics(robot)
        self._actuators, self._cameras = topics.state, topics.poses
        self.topics = (*topics.plant, TRUTH)
        self.reset()

    def reset(self) -> None:
        """See Plant; straight and still."""
        self._random = np.random.default_rng(self._seed)
        self._torques = self._acted = np.zeros(self._dynamics.numbers.size)
        self._state = np.zeros(2 * len(self._torques))

    def follow(self, command: np.ndarray) -> None:
        """See Plant; (m,) torques [N m, N], within the largest."""
        self._torques = np.clip(command, -self._largest, self._largest)

    def idle(self) -> None:
        """See Plant; the torques are gone, and the robot swings until it stands still."""
        self._torques = np.zeros_like(self._torques)

    def advance(self, duration: float) -> None:
        """See Plant.

        Raises:
            ArithmeticError: the state became NaN or infinite.
            ValueError: time cannot pass so.
        """
        if not passes(duration):
            return
        self._acted = self._torques
        levels = np.stack([self._torques, self._torques])[None]
        self._state = rodas(
            self._dynamics, self._state[None], levels, self._factors, duration, self._how
        )[0, 0]
        if not np.isfinite(self._state).all():
            raise ArithmeticError(f"the plant diverged at torques {self._torques.tolist()} N m, N")

    def measure(self, stamp: int) -> dict[str, Any]:
        """See Plant; poses come last, for they are what an estimator waits for.

        The torques that are told are those that acted until now.
        """
        numbers = self._dynamics.numbers
        q, _ = np.split(self._state, 2)
        poses = self._dynamics.kinematics.poses(numbers.full(q), self._robot.marker_places)
        position, angle = self._noise
        noise = self._random.standard_normal(poses.shape) * [position, position, angle]
        return {
            self._actuators: self._acted.copy(),
            "simulation/truth/tip/pose": Pose.of(transforms(poses[-1])),
            TRUTH: StateEstimate(self._state.copy(), {}, layout=self._layout),
            self._cameras: tuple(Pose.of(each) for each in transforms(poses + noise)),
        }

    def describe(self) -> dict[str, Any]:
        """How the plant differs from the robot file."""
        settings = self._settings
        names = ("stiffness_factor", "damping_factor", "mass_factor")
        factors = {name: getattr(settings, name) for name in names}
        return {
            "plant_mismatch": {
                **{n.removesuffix("_factor"): round(v - 1.0, 12) for n, v in factors.items()},
                "tip_noise_mm": 1e3 * self._noise[0],
                "angle_noise_rad": self._noise[1],
            },
            "true_parameters": factors,
            "in_words": {
                "exact": [
                    "segments of constant strain; geometry, gravity and material of the robot file",
                    "torques act at once, and are measured without noise",
                ]
            },
            "robot": self._robot.model_dump(mode="json"),
        }

"""A plant in one file: a point mass on a spring, pushed sideways by chambers around it.

    softcr up simulation --plant examples/spring_plant.py:SpringPlant \\
        --estimator examples/constant_velocity.py:ConstantVelocity \\
        --controller examples/joint_pid.py:JointPid --reference tip_circle

The tip, at rest in the height of the robot's length, is moved by  m r'' = -k r - d r' + B p,  where
B p is the sum of the chambers' pushes. Pressures follow commands through a first-order lag.
"""

import numpy as np
from pydantic import BaseModel, Field
from scipy.linalg import expm


class SpringSettings(BaseModel):
    """A rubber finger, roughly; --plant.stiffness 80 makes it another one."""

    mass: float = Field(
        0.05, gt=0.0, le=10.0, description="at the tip", json_schema_extra={"unit": "kg"}
    )
    stiffness: float = Field(
        18.0, gt=0.0, le=1e4, description="of the spring", json_schema_extra={"unit": "N/m"}
    )
    damping: float = Field(
        1.0, ge=0.0, le=1e3, description="of its motion", json_schema_extra={"unit": "N s/m"}
    )
    push: float = Field(
        6e-5, gt=0.0, le=1e-2, description="of a chamber at the tip",
        json_schema_extra={"unit": "N/Pa"},
    )  # fmt: skip
    lag: float = Field(
        0.05, gt=0.0, le=10.0, description="time constant of the pressures",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip
    tip_noise: float = Field(
        2e-4,
        ge=0.0,
        le=0.05,
        description="standard deviation of measured positions",
        json_schema_extra={"unit": "m"},
    )


class SpringPlant:
    """Speaks on what every plant of a robot with chambers speaks on: pressures and tip."""

    Settings = SpringSettings
    without_commands = "chambers vented"

    def __init__(self, robot, settings: SpringSettings, seed: int) -> None:
        self.settings, self.seed, self.length = settings, seed, robot.length
        angles = np.array([chamber.angle for chamber in robot.chambers])
        self.chambers = len(angles)
        # (r, r', p, c)' = A (r, r', p, c) with commands c that are held: exact by one exponential
        directions = -np.stack([np.cos(angles), np.sin(angles)])  # (2, m)
        n = 4 + self.chambers
        self.rates = np.zeros((n + self.chambers, n + self.chambers))
        self.rates[0:2, 2:4] = np.eye(2)
        self.rates[2:4, 0:2] = -settings.stiffness / settings.mass * np.eye(2)
        self.rates[2:4, 2:4] = -settings.damping / settings.mass * np.eye(2)
        self.rates[2:4, 4:n] = settings.push / settings.mass * directions
        self.rates[4:n, 4:n] = -np.eye(self.chambers) / settings.lag
        self.rates[4:n, n:] = np.eye(self.chambers) / settings.lag
        self.reset()

    def reset(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.state = np.zeros(4 + self.chambers)
        self.command = np.zeros(self.chambers)

    def follow(self, command: np.ndarray) -> None:
        self.command = command

    def idle(self) -> np.ndarray:
        self.command = np.zeros(self.chambers)
        return self.command

    def advance(self, duration: float) -> None:
        held = np.concatenate([self.state, self.command])
        self.state = (expm(self.rates * duration) @ held)[: len(self.state)]

    def measure(self, stamp: int) -> dict[str, np.ndarray]:
        true = np.eye(4)
        true[:3, 3] = self.state[0], self.state[1], self.length
        seen = true.copy()
        seen[:3, 3] += self.settings.tip_noise * self.random.standard_normal(3)
        return {
            "pressure/state": self.state[4:].copy(),
            "mocap/tip/pose": seen,
            "simulation/truth/tip/pose": true,
        }

"""An estimator in one file: a Kalman filter to which the tip is a point that moves on as it moved.

    softcr up simulation --estimator examples/constant_velocity.py:ConstantVelocity \\
                         --controller examples/joint_pid.py:JointPid

It knows nothing of the robot and finds no state of a model, so it says `gives_state = False`, and
goes with controllers that need the tip alone.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, Field

from softcr_estimation.context import EstimationContext


class ConstantVelocitySettings(BaseModel):
    """Two noises, which together say how far to trust a measurement."""

    acceleration: float = Field(
        3.0, gt=0.0, le=1e3, description="of the tip, standard deviation",
        json_schema_extra={"unit": "m/s^2"},
    )  # fmt: skip
    tip_noise: float = Field(
        3e-4, gt=0.0, le=0.05, description="of a measured position, standard deviation",
        json_schema_extra={"unit": "m"},
    )  # fmt: skip


@dataclass(frozen=True)
class TipOnly:
    """What the block behind needs of an estimate."""

    tip_position: np.ndarray
    tip_position_covariance: np.ndarray


class ConstantVelocity:
    """Position and velocity of every axis, all three with one covariance (2, 2)."""

    Settings = ConstantVelocitySettings
    gives_state = False

    def __init__(self, context: EstimationContext, settings: ConstantVelocitySettings) -> None:
        self.acceleration = settings.acceleration**2
        self.noise = settings.tip_noise**2
        self.reset()

    def reset(self) -> None:
        self.stamp: float | None = None

    def update(self, inputs, measurements, stamp):
        """The tip at `stamp` [s]; None until it was seen for the first time."""
        seen = measurements["tip"][:3, 3] if "tip" in measurements else None
        if self.stamp is None:
            if seen is None:
                return None
            self.mean = np.stack([seen, np.zeros(3)])  # (2, 3) [m], [m/s]
            self.covariance = np.diag([self.noise, 1.0])
        else:
            dt = stamp - self.stamp
            step = np.array([[1.0, dt], [0.0, 1.0]])
            push = np.array([dt**2 / 2, dt])
            self.mean = step @ self.mean
            self.covariance = step @ self.covariance @ step.T
            self.covariance += self.acceleration * np.outer(push, push)
            if seen is not None:
                gain = self.covariance[:, 0] / (self.covariance[0, 0] + self.noise)
                self.mean = self.mean + np.outer(gain, seen - self.mean[0])
                self.covariance = self.covariance - np.outer(gain, self.covariance[0])
        self.stamp = stamp
        return TipOnly(self.mean[0].copy(), self.covariance[0, 0] * np.eye(3))

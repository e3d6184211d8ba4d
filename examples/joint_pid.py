"""A controller in one file: PID on the tip's bending, with the push that the goal itself needs.

    softcr up simulation --controller examples/joint_pid.py:JointPid --controller.kp 1e6

The joint coordinates are q = (x, y), how far the tip is bent sideways [m]. Chamber i stands at the
angle a_i around the rod and pushes the tip away from itself, so that a wanted push u = (u_x, u_y)
[Pa] becomes the pressures  p_i = mean - 2/m (u_x cos a_i + u_y sin a_i).
"""

import numpy as np
from pydantic import BaseModel, Field

from softcr_control.observation import ControlContext, Observation


class PidSettings(BaseModel):
    """Gains: each field is an option, a ROS parameter and a line of --help."""

    kp: float = Field(
        5e4, ge=0.0, le=1e8, description="push for a tip beside its goal",
        json_schema_extra={"unit": "Pa/m"},
    )  # fmt: skip
    ki: float = Field(
        1e5, ge=0.0, le=1e9, description="push that grows while it stays there",
        json_schema_extra={"unit": "Pa/(m s)"},
    )  # fmt: skip
    kd: float = Field(
        2e4, ge=0.0, le=1e7, description="push against a growing error",
        json_schema_extra={"unit": "Pa s/m"},
    )  # fmt: skip
    stiffness: float = Field(
        3e5, ge=0.0, le=1e8, description="push that holds the tip at its goal",
        json_schema_extra={"unit": "Pa/m"},
    )  # fmt: skip
    preview: int = Field(
        7, ge=0, le=8, description="periods by which that push goes ahead of the pressures' lag"
    )
    mean_pressure: float = Field(
        30e3, ge=0.0, le=1e6, description="of all chambers", json_schema_extra={"unit": "Pa"}
    )


class JointPid:
    """Needs the tip alone, so any estimator will do."""

    Settings = PidSettings
    needs_state = False

    def __init__(self, context: ControlContext, settings: PidSettings) -> None:
        self.settings, self.period, self.inputs = settings, context.period, context.model.inputs
        angles = np.array([chamber.angle for chamber in context.robot.chambers])
        self.pushes = -2 / len(angles) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        self.reset()

    def reset(self) -> None:
        self.integral, self.last = np.zeros(2), None

    def command(self, observation: Observation) -> np.ndarray:
        """(m,) pressures [Pa]; the block behind limits their range and their rate."""
        goals = observation.reference.tip_positions[:, :2]
        error = goals[0] - observation.tip[:2, 3]
        change = np.zeros(2) if self.last is None else (error - self.last) / self.period
        self.last = error
        told = self.settings
        push = told.stiffness * goals[told.preview]
        push += told.kp * error + told.ki * self.integral + told.kd * change
        pressures = told.mean_pressure + self.pushes @ push
        if (self.inputs.low < pressures).all() and (pressures < self.inputs.high).all():
            self.integral += error * self.period  # not while a valve stands at its limit
        return pressures

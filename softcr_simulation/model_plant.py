"""Any model as a plant: with parameters and a time step of its own, lag of the inputs, and sensors.

It is never the controller's object: it is made anew, integrates in finer steps, and differs by the
factors that its settings tell.
"""

import math
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_models.model import TIP, nominal_parameters
from softcr_models.models import make_model
from softcr_runtime.blocks.values import Pose
from softcr_runtime.wire.robot_topics import robot_topics
from softcr_simulation.plant import passes


class ModelPlantSettings(BaseModel):
    """Which model, how it differs, and how well it is seen."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    plant_model: str = Field(
        "rod",
        min_length=1,
        description="a registered model, package.module:Class, or path/file.py:Class",
    )
    parameter_factor: float = Field(
        1.05, ge=0.2, le=5.0, description="factor on the model's first parameter"
    )
    longest_step: float = Field(
        0.0025,
        gt=0.0,
        le=0.1,
        description="time step of the plant's integration",
        json_schema_extra={"unit": "s"},
    )
    tip_noise: float = Field(
        2e-4,
        ge=0.0,
        le=0.05,
        description="standard deviation of measured positions",
        json_schema_extra={"unit": "m"},
    )


class ModelPlant:
    """A robot that a model describes; see `Plant`."""

    Settings = ModelPlantSettings

    def __init__(self, robot: Any, settings: ModelPlantSettings, seed: int = 0) -> None:
        """
        Args:
            robot: as its file has it.
            settings: of the plant.
            seed: of the sensors' noise.

        Raises:
            UserError: there is no such model, or it is for another kind of robot.
        """
        self._settings, self._seed = settings, seed
        self._model = make_model(settings.plant_model, robot)
        self._parameters = nominal_parameters(self._model.parameters)
        self._parameters[0] *= settings.parameter_factor
        self._topics = robot_topics(robot)
        self._bodies = () if robot.sees_tip else robot.bodies_seen
        holds = self._model.inputs.quantity == "tendon_length"
        self.without_commands = "tendons held" if holds else "chambers vented"
        self._holds = holds
        self.reset()

    def reset(self) -> None:
        self._random = np.random.default_rng(self._seed)
        self._inputs = self._command = self._model.inputs.rest
        self._state = self._model.equilibrium(self._inputs, self._parameters)

    def follow(self, command: np.ndarray) -> None:
        """See Plant; within the model's limits."""
        inputs = self._model.inputs
        self._command = np.clip(command, inputs.low, inputs.high)

    def idle(self) -> None:
        if not self._holds:
            self._command = self._model.inputs.rest

    def advance(self, duration: float) -> None:
        """See Plant.

        Raises:
            ArithmeticError: the state became NaN or infinite.
            ValueError: time cannot pass so.
        """
        if not passes(duration):
            return
        steps = max(1, math.ceil(duration / self._settings.longest_step - 1e-9))
        piece, lag = duration / steps, self._model.inputs.lag
        begin = self._inputs
        for _ in range(steps):
            # without a lag the inputs go to the command along a ramp over the first step
            end = self._command if lag is None else lag.step(begin, self._command, piece)
            self._state = self._model.step(
                self._state[None], begin[None], end[None], self._parameters[None], piece
            )[0]
            begin = end
        self._inputs = begin
        if not np.isfinite(self._state).all():
            raise ArithmeticError(f"the plant diverged at inputs {self._inputs.tolist()}")

    def measure(self, stamp: int) -> dict[str, Any]:
        names = (TIP, *self._bodies)
        observed = self._model.observe(
            names, self._state[None], self._inputs[None], self._parameters[None]
        )
        poses = {name: values[0] for name, values in observed.items()}
        state = self._inputs.copy()
        values: dict[str, Any] = {"simulation/truth/tip/pose": Pose.of(poses[TIP])}
        if self._bodies:
            seen = tuple(self._seen(poses[name]) for name in self._bodies)
            forces = np.zeros(len(state))
            read = (state, forces) if self._holds else state
            return values | {self._topics.state: read, self._topics.poses: seen}
        return values | {self._topics.poses: self._seen(poses[TIP]), self._topics.state: state}

    def describe(self) -> dict[str, Any]:
        """How the plant differs from its model."""
        told = zip(self._model.parameters, self._parameters.tolist(), strict=True)
        return {
            "plant_model": self._settings.plant_model,
            "true_parameters": {parameter.name: value for parameter, value in told},
        }

    def _seen(self, pose: np.ndarray) -> Pose:
        noisy = pose.copy()
        noisy[:3, 3] += self._settings.tip_noise * self._random.standard_normal(3)
        return Pose.of(noisy)

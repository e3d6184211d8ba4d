"""What filters and controllers need of a model: the prediction protocol, and the rod behind it.

A surrogate is one more implementation of the same protocol.
"""

import math
from typing import Protocol

import numpy as np

from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.state import RodState


class PredictionModel(Protocol):
    """A model that advances many candidates in one call.

    Attributes:
        state_size, input_size: lengths of a state and of a pressure vector.
        parameter_names: what the columns of `parameters` mean.
        nominal_parameters: (P,).
        state_scale: (state_size,) typical magnitude of each state.
    """

    state_size: int
    input_size: int
    parameter_names: tuple[str, ...]
    nominal_parameters: np.ndarray
    state_scale: np.ndarray

    def step(
        self,
        states: np.ndarray,
        pressures_begin: np.ndarray,
        pressures_end: np.ndarray,
        parameters: np.ndarray,
        dt: float,
    ) -> np.ndarray:
        """States (B, state_size) after one step; pressures (B, m) [Pa], linear in between."""

    def rollout(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """(B, T, state_size) after each step from one state, pressures (B, T + 1, m) [Pa]."""

    def tip_positions(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(B, 3) [m] in the base frame, of states (B, state_size) and parameters (B, P)."""

    def tip_poses(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(B, 4, 4) in the base frame."""

    def equilibrium(self, pressures: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(state_size,) steady state at pressures (m,) [Pa] and parameters (P,)."""


class RodPrediction:
    """The exact rod as a prediction model.

    Candidates that leave the numbers are retried in finer steps; what is still not finite is NaN.

    Attributes:
        rod: the rod; its robot gives nominal parameters.
        substeps: sub-steps of the time integration per step of at most 15 ms; at n = 5 and 70 Hz
        two
            keep the tip within 0.1 mm over an MPC horizon (findings/fastrod.md section 2).
        single_precision: whether rollouts are float32 (tip within micrometres, half the time).
    """

    parameter_names: tuple[str, ...] = stepper.PARAMETERS

    def __init__(self, rod: CosseratRod, substeps: int = 2, single_precision: bool = True) -> None:
        self.rod = rod
        self.substeps = substeps
        self.single_precision = single_precision
        self.state_size = rod.state_size
        self.input_size = rod.input_size
        self.nominal_parameters = rod.nominal_parameters
        self.state_scale = _state_scale(rod)

    def step(
        self,
        states: np.ndarray,
        pressures_begin: np.ndarray,
        pressures_end: np.ndarray,
        parameters: np.ndarray,
        dt: float,
    ) -> np.ndarray:
        """See PredictionModel; float64."""
        pressures = np.stack((pressures_begin, pressures_end), axis=1)[:, None]
        return self._advance(states, pressures, parameters, dt, False)[:, -1]

    def rollout(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """See PredictionModel; float32 if `single_precision`."""
        batch = len(pressures)
        ends = np.stack((pressures[:, :-1], pressures[:, 1:]), axis=2)
        states = np.repeat(np.asarray(state)[None], batch, axis=0)
        repeated = np.repeat(np.asarray(parameters, float)[None], batch, axis=0)
        return self._advance(states, ends, repeated, dt, self.single_precision)

    def tip_positions(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See PredictionModel; of the states' float type."""
        tips = self._rod_tips(states, parameters)
        tips[:, :, 3] += self.rod.robot.tip_cap_length * tips[:, :, 2]
        tips[:, 2, 3] += self.rod.base_height
        return tips[:, :, 3]

    def tip_poses(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See PredictionModel; of the states' float type."""
        tips = self._rod_tips(states, parameters)
        poses = np.zeros((len(tips), 4, 4), tips.dtype)
        poses[:, :3] = tips
        poses[:, :3, 3] += self.rod.robot.tip_cap_length * tips[:, :, 2]
        poses[:, 2, 3] += self.rod.base_height
        poses[:, 3, 3] = 1.0
        return poses

    def equilibrium(self, pressures: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See PredictionModel."""
        return self.rod.equilibrium(pressures, parameters)

    def warm_up(self) -> None:
        """Compiles (or loads) every kernel a control loop may call, so that no tick does."""
        states = np.zeros((2, self.state_size))
        parameters = np.repeat(self.nominal_parameters[None], 2, axis=0)
        pressures = np.zeros((2, self.input_size))
        self.step(states, pressures, pressures, parameters, 0.01)
        self.step(states[:1], pressures[:1], pressures[:1], parameters[:1], 0.01)
        rolled = self.rollout(states[0], np.zeros((2, 2, self.input_size)), parameters[0], 0.01)
        self.tip_positions(states, parameters)
        self.tip_positions(rolled[:, -1], parameters)
        self.rod.equilibrium(pressures[0])
        self.rod.tip_pose(states[0])
        self.rod.base_wrench(states[0], pressures[0])

    def _advance(self, states, pressures, parameters, dt, single_precision):
        """Steps longer than one linearisation may serve are divided."""
        pieces = max(1, math.ceil(dt / 0.015 - 1e-9))
        if pieces > 1:
            begin, end = pressures[:, :, :1], pressures[:, :, 1:]
            marks = np.linspace(0.0, 1.0, pieces + 1)[:, None]
            levels = begin + marks * (end - begin)
            pressures = np.stack((levels[:, :, :-1], levels[:, :, 1:]), axis=3)
            pressures = pressures.reshape(len(states), -1, 2, self.input_size)
        states = stepper.rollout(
            np.ascontiguousarray(states, dtype=float),
            np.ascontiguousarray(pressures, dtype=float),
            np.ascontiguousarray(parameters, dtype=float),
            self.rod.body,
            self.rod.grid,
            dt / pieces,
            self.substeps,
            single_precision,
        )
        return states[:, pieces - 1 :: pieces]

    def _rod_tips(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        parameters = np.ascontiguousarray(parameters, dtype=float)
        return stepper.rod_tips(
            np.ascontiguousarray(states), parameters, self.rod.body, self.rod.grid
        )


def _state_scale(rod: CosseratRod) -> np.ndarray:
    """Typical magnitudes: half the pressure range in one chamber, one length per 0.1 s at the tip.

    Velocities grow along the rod; wrenches are those of the actuation, with weights as the least.
    """
    robot = rod.robot
    arc = np.linspace(0.0, 1.0, rod.intervals + 1)[1:]
    tip_speed = robot.length / 0.1
    velocities = np.empty((rod.intervals, 6))
    velocities[:, :3] = tip_speed * np.maximum(arc, 0.1)[:, None]
    velocities[:, 3:] = tip_speed / robot.length * np.maximum(arc, 0.1)[:, None]
    pressure = 0.5 * robot.pressure_limits.maximum
    actuation = pressure * np.abs(robot.actuation_matrix).max(axis=1)
    weight = robot.gravity * (robot.density * robot.cross_section_area * robot.length)
    weight += robot.gravity * robot.tip_mass
    least = np.array([weight, weight, weight, *(3 * (0.3 * weight * robot.length,))])
    wrench = np.maximum(actuation, least)
    wrenches = np.broadcast_to(wrench, (rod.intervals + 1, 6))
    return RodState.join(velocities, wrenches, wrench).array

"""What filters and controllers need of a model: the prediction protocol, and the rod behind it.

A surrogate is one more implementation of the same protocol.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from softcr_models.errors import UserError
from softcr_models.model import TIP
from softcr_models.rod import boundary, stepper
from softcr_models.rod.cosserat_rod import CosseratRod, linearisations
from softcr_models.rod.description import (
    BASE_WRENCH,
    SHAPE,
    rod_inputs,
    rod_layout,
    rod_outputs,
    rod_parameters,
)
from softcr_models.rod.stepper import Retries, Run


class PredictionModel(Protocol):
    """A model that advances many candidates in one call.

    Attributes:
        rod: that the states belong to; poses along it are the same for every model.
        state_size, input_size: lengths of a state and of a pressure vector.
        parameter_names: what the columns of `parameters` mean.
        nominal_parameters: (P,).
        state_scale: (state_size,) typical magnitude of each state.
    """

    rod: CosseratRod
    state_size: int
    input_size: int
    parameter_names: tuple[str, ...]
    nominal_parameters: np.ndarray
    state_scale: np.ndarray

    def warm_up(self) -> None:
        """Everything a control loop may call, once, so that no tick compiles or allocates first."""

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

    def rollout_tips(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """(B, T, 3, 4) tip poses, rotation beside position [m], of the states of `rollout`.

        A model may do this faster than `rollout` and `tip_poses` one after the other.
        """

    def tip_poses(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(B, 3, 4) tip poses in the base frame, rotation beside position [m].

        Of states (B, state_size) and parameters (B, P), or (1, P) for all.
        """

    def equilibrium(self, pressures: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(state_size,) steady state at pressures (m,) [Pa] and parameters (P,)."""


class RodPrediction:
    """The exact rod as a prediction model.

    Candidates whose result is not finite are retried in finer steps; what is still not finite is
    NaN. A candidate whose state, pressures or parameters are not finite comes out as NaN and does
    not disturb the others. `softcr_models.rod.boundary` says what else may be given: a wrong shape,
    type or sign, a step that is not above 0, or parameters of all candidates that are not finite
    raise its `ArgumentError`, a UserError.

    Attributes:
        rod: the rod; its robot gives nominal parameters.
        substeps: sub-steps of the time integration per linearisation; at n = 5 and 70 Hz two keep
            the tip within 0.1 mm over an MPC horizon of 8 ticks.
        single_precision: whether rollouts are float32 (tip within micrometres, half the time).
        retries: how many candidates were done again, since it was made.
    """

    parameter_names: tuple[str, ...] = stepper.PARAMETERS

    def __init__(self, rod: CosseratRod, substeps: int = 2, single_precision: bool = True) -> None:
        self.rod = rod
        self.substeps = substeps
        self.single_precision = single_precision
        self.retries = Retries()
        self.state = rod_layout(rod)
        self.inputs = rod_inputs(rod.robot)
        self.parameters = rod_parameters(rod)
        self.outputs = rod_outputs(rod)
        self.state_size = rod.state_size
        self.input_size = rod.input_size
        self.nominal_parameters = rod.nominal_parameters
        self.state_scale = self.state.scale

    def step(
        self,
        states: np.ndarray,
        pressures_begin: np.ndarray,
        pressures_end: np.ndarray,
        parameters: np.ndarray,
        dt: float,
    ) -> np.ndarray:
        """See PredictionModel; float64."""
        where = "RodPrediction.step"
        levels = boundary.ends_of_step(
            where, states, pressures_begin, pressures_end, self.input_size
        )
        return self._advance(stepper.rollout, where, states, levels, parameters, dt, False)[:, -1]

    def rollout(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """See PredictionModel; float32 if `single_precision`."""
        where, single = "RodPrediction.rollout", self.single_precision
        start, row = boundary.one_start(where, state, parameters, self.state_size)
        return self._advance(stepper.rollout, where, start, pressures, row, dt, single)

    def rollout_tips(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """See PredictionModel; float32 if `single_precision`."""
        where, single = "RodPrediction.rollout_tips", self.single_precision
        start, row = boundary.one_start(where, state, parameters, self.state_size)
        return self._advance(stepper.rollout_tips, where, start, pressures, row, dt, single)

    def tip_poses(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See PredictionModel; of the states' float type."""
        where = "RodPrediction.tip_poses"
        return stepper.tip_poses(states, parameters, self.rod.body, self.rod.grid, where)

    def observe(
        self,
        names: Sequence[str],
        states: np.ndarray,
        inputs: np.ndarray | None,
        parameters: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """See Model."""
        return {name: self._observed(name, states, inputs, parameters) for name in names}

    def _observed(
        self, name: str, states: np.ndarray, inputs: np.ndarray | None, parameters: np.ndarray
    ) -> np.ndarray:
        if name == TIP:
            return self.tip_poses(states, parameters)
        where = "RodPrediction.observe"
        states, parameters = boundary.states_and_parameters(
            where, states, parameters, self.state_size
        )
        rows = np.broadcast_to(parameters, (len(states), parameters.shape[1]))
        if name == SHAPE:
            each = zip(states, rows, strict=True)
            return np.stack([self.rod.node_poses(x, p)[:, :3, 3] for x, p in each])
        if name == BASE_WRENCH and inputs is not None:
            inputs = boundary.as_floats(where, "inputs", inputs)
            boundary.require_rows(where, "inputs", inputs.shape, len(states), self.input_size)
            acting = np.broadcast_to(inputs, (len(states), self.input_size))
            triples = zip(states, acting, rows, strict=True)
            return np.stack([self.rod.base_wrench(x, u, p) for x, u, p in triples])
        raise UserError(
            f"output {name!r}: unknown, or needs inputs; known are {list(self.outputs)}"
        )

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
        levels = np.zeros((2, 2, self.input_size))
        rolled = self.rollout(states[0], levels, parameters[0], 0.01)
        self.rollout_tips(states[0], levels, parameters[0], 0.01)
        self.tip_poses(states, parameters)
        self.tip_poses(rolled[:, -1], parameters)
        self.rod.equilibrium(pressures[0])
        self.rod.tip_pose(states[0])
        self.rod.base_wrench(states[0], pressures[0])

    def _advance(self, advance, where, states, pressures, parameters, dt, single_precision):
        """Steps longer than one linearisation may serve are divided; `advance` checks the rest."""
        dt = boundary.step_length(where, dt)
        pieces = linearisations(dt)
        if pieces > 1:
            states, pressures, parameters = boundary.candidates(
                where, states, pressures, parameters, self.state_size, self.input_size
            )
            marks = np.arange(pieces) / pieces
            begin, change = pressures[:, :-1, None], np.diff(pressures, axis=1)[:, :, None]
            divided = begin + marks[:, None] * change
            divided = divided.reshape(len(pressures), -1, self.input_size)
            pressures = np.concatenate((divided, pressures[:, -1:]), axis=1)
        run = Run(self.rod.body, self.rod.grid, dt / pieces, self.substeps)
        values = (states, pressures, parameters, run, single_precision, where, self.retries)
        return advance(*values)[:, pieces - 1 :: pieces]

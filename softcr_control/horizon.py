"""What predictive controllers share around their optimisation: delay, lag, parameters, memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_control.costs.rollout import Rollout
from softcr_control.references import Reference
from softcr_models.errors import UserError
from softcr_models.prediction import PredictionModel
from softcr_models.pressure import PressureLag

MAXIMUM_DELAY = 3  # ticks between an estimate and its answer that can be predicted over
PRESSURE_OFFSET = "pressure_offset_"

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Pressure = Annotated[float, Field(allow_inf_nan=False)]


class HorizonSettings(BaseModel):
    """Numbers that every predictive controller has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    horizon: int = Field(
        default=8, ge=2, le=400, description="optimised commands, N of (39) [ticks]"
    )
    period: Positive = Field(default=1 / 70, description="control period [s]")
    pressure_low: Pressure = Field(default=0.0, description="lowest gauge pressure [Pa]")
    pressure_high: Pressure = Field(default=1e5, description="highest gauge pressure [Pa]")
    max_rate: Positive = Field(
        default=2e6, description="largest change of a command per second [Pa/s]"
    )

    @model_validator(mode="after")
    def _box_is_open(self) -> "HorizonSettings":
        if self.pressure_low >= self.pressure_high:
            raise ValueError(
                f"pressure_low {self.pressure_low} must be below pressure_high {self.pressure_high}"
            )
        return self

    @property
    def input_range(self) -> float:
        """Highest minus lowest pressure [Pa]."""
        return self.pressure_high - self.pressure_low


@dataclass(frozen=True, eq=False)
class Problem:
    """What stays the same during one tick."""

    state: np.ndarray  # (nx,) at the beginning of the optimised commands
    free_pressures: np.ndarray  # ((N + 1) m,) [Pa] the model sees if all commands are zero
    previous_command: np.ndarray  # (m,) [Pa] active until then
    reference_states: np.ndarray  # (N, nx)
    reference_tip_positions: np.ndarray  # (N, 3) [m]
    parameters: np.ndarray  # (P,)
    control_error: float  # [m] distance of the tip from reference row 0


class Horizon:
    """N ticks ahead, and the last commands sent.

    Timing: a controller is called with the estimate at t_k; its answer becomes active `delay` ticks
    later, one where everything is done within a tick. Until then the plant follows the last `delay`
    answers, one tick each. With delay 1, states at t_{k+2}..t_{k+1+N} are compared with reference
    rows 2..N+1; a longer delay shifts all this by delay - 1.

    Args:
        prediction: the model.
        lag: from commands to chamber pressures, (32).
        settings: of the controller.
    """

    def __init__(
        self, prediction: PredictionModel, lag: PressureLag, settings: HorizonSettings
    ) -> None:
        self.ticks, self.period = settings.horizon, settings.period
        self._prediction, self._lag = prediction, lag
        self._low, self._high = settings.pressure_low, settings.pressure_high
        self._lag_response = self._response_of_lag()
        self.reset()

    @property
    def rows(self) -> int:
        """Reference rows that are enough at any delay, N + 1 + MAXIMUM_DELAY."""
        return self.ticks + 1 + MAXIMUM_DELAY

    def reset(self) -> None:
        """Forgets what was sent."""
        self._sent: list[np.ndarray] = []  # the last MAXIMUM_DELAY commands, newest last

    def remember(self, command: np.ndarray) -> None:
        """The command (m,) [Pa] that is sent in answer to the last `problem`."""
        self._sent = [*self._sent[1:], command]

    def problem(
        self,
        state: np.ndarray,
        bending_compliance: float | None,
        reference: Reference,
        measured_pressures: np.ndarray,
        parameters: Mapping[str, float],
        delay: int,
    ) -> Problem:
        """Predicts over the delay: state and pressures when the optimised commands begin.

        Args:
            state: (nx,) estimated state at t_k.
            bending_compliance: estimated [rad/(N m m)]; None for a model that has none.
            reference: N + 1 + delay rows from t_k on; of them row 0 and the last N are looked at.
            measured_pressures: (m,) chamber pressures at t_k [Pa].
            parameters: other ones of the model, by name; those not given are nominal. An entry
                `pressure_offset_I` [Pa] is added to measured and predicted pressure of chamber I =
                1..m.
            delay: ticks until the answer becomes active, 1 to MAXIMUM_DELAY.

        Raises:
            UserError: too few reference rows, a delay out of range, or an unknown parameter.
        """
        if not 1 <= delay <= MAXIMUM_DELAY:
            raise UserError(f"controller: delay {delay} is not allowed: 1 to {MAXIMUM_DELAY} ticks")
        needed = self.ticks + 1 + delay
        if len(reference.tip_positions) < needed:
            raise UserError(
                f"controller: reference has {len(reference.tip_positions)} rows, needs {needed}"
            )
        state, measured = np.asarray(state, float), np.asarray(measured_pressures, float)
        estimated = dict(parameters)
        if bending_compliance is not None:
            estimated["bending_compliance"] = bending_compliance
        values, offset = self._model_inputs(estimated)
        if not self._sent:
            known = np.where(np.isfinite(measured), measured, self._low)
            self._sent = [np.clip(known, self._low, self._high)] * MAXIMUM_DELAY
        pending = np.array(self._sent[-delay:])
        pressures = self._lag.trajectory(measured, pending[None], self.period)
        later = self._prediction.rollout(state, pressures + offset, values, self.period)[0, -1]
        no_commands = np.zeros((1, self.ticks, len(measured)))
        free = self._lag.trajectory(pressures[0, -1], no_commands, self.period) + offset
        tip = self._prediction.tip_poses(state[None], values[None])[0, :, 3]
        rows = slice(delay + 1, delay + 1 + self.ticks)
        return Problem(
            state=later.astype(float),
            free_pressures=free.ravel(),
            previous_command=self._sent[-1],
            reference_states=reference.states[rows],
            reference_tip_positions=reference.tip_positions[rows],
            parameters=values,
            control_error=float(np.linalg.norm(tip - reference.tip_positions[0])),
        )

    def rollout(self, commands: np.ndarray, problem: Problem) -> Rollout:
        """The futures of candidates with commands (B, N, m) [Pa]."""
        pressures = commands.reshape(len(commands), -1) @ self._lag_response
        pressures += problem.free_pressures
        return Rollout(
            initial_state=problem.state,
            pressures=pressures.reshape(len(commands), -1, commands.shape[2]),
            commands=commands,
            previous_command=problem.previous_command,
            reference_states=problem.reference_states,
            reference_tip_positions=problem.reference_tip_positions,
            prediction=self._prediction,
            parameters=problem.parameters,
            period=self.period,
        )

    def _response_of_lag(self) -> np.ndarray:
        """(N m, (N + 1) m): commands to pressures (40) without initial pressures, both flat.

        The lag is linear, so its answer to unit commands is its answer to all of them: one product
        per batch instead of N strided updates.
        """
        chambers = self._prediction.input_size
        units = np.eye(self.ticks * chambers).reshape(-1, self.ticks, chambers)
        pressures = self._lag.trajectory(np.zeros(chambers), units, self.period)
        return pressures.reshape(len(units), -1)

    def _model_inputs(self, given: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Model parameters (P,) and pressure offsets (m,) [Pa]."""
        model = self._prediction
        values = dict(zip(model.parameter_names, model.nominal_parameters, strict=True))
        offsets = {f"{PRESSURE_OFFSET}{i + 1}": 0.0 for i in range(model.input_size)}
        for name, value in given.items():
            group = values if name in values else offsets
            if name not in group:
                allowed = ", ".join([*values, *offsets])
                raise UserError(f"controller: parameter {name}: unknown; allowed are {allowed}")
            group[name] = value
        return np.array(list(values.values()), float), np.array(list(offsets.values()), float)

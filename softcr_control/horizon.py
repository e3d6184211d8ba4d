"""What predictive controllers share around their optimisation: delay, lag, parameters, memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_control.command_ramp import HELD, ramp_weights
from softcr_control.costs.rollout import Rollout
from softcr_control.lag_estimation import LagEstimator
from softcr_control.references import Reference
from softcr_models.errors import UserError
from softcr_models.prediction import PredictionModel
from softcr_models.pressure import PRESSURE_GAIN, PRESSURE_OFFSET, PressureLag, chamber_names

MAXIMUM_DELAY = 4  # ticks between an estimate and its answer that can be predicted over

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
    estimate_lag: bool = Field(
        default=True, description="whether the pressure lag is found from commands and readings"
    )
    ramped: bool = Field(
        default=False, description="whether valves approach a command along a ramp of one period"
    )

    tip_offset_gain: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="of the low-pass that learns where tips end beside their prediction; 0: none",
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

    present_state: np.ndarray  # (nx,) estimated
    approach: np.ndarray  # (delay + 1, m) [Pa] the model sees until the optimised commands begin
    free_pressures: np.ndarray  # ((N + 1) m,) [Pa] the model sees if all commands are zero
    pressure_response: np.ndarray  # (N m, (N + 1) m) what commands add to them [Pa/Pa]
    previous_command: np.ndarray  # (m,) [Pa] active until then
    reference_states: np.ndarray  # (N, nx)
    reference_tip_positions: np.ndarray  # (N, 3) [m] less the tip offsets that were learned
    parameters: np.ndarray  # (P,)
    present_reference_tip: np.ndarray  # (3,) [m]
    prediction: PredictionModel
    period: float  # of a tick [s]

    @cached_property
    def control_error(self) -> float:
        """Distance of the present tip from its reference [m]; not every controller asks."""
        poses = self.prediction.tip_poses(self.present_state[None], self.parameters[None])
        return float(np.linalg.norm(poses[0, :, 3] - self.present_reference_tip))

    @cached_property
    def state(self) -> np.ndarray:
        """(nx,) predicted for the beginning of the optimised commands."""
        pressures = self.approach[None]
        rolled = self.prediction.rollout(
            self.present_state, pressures, self.parameters, self.period
        )
        return rolled[0, -1].astype(float)


@dataclass(frozen=True, eq=False)
class _Past:
    """What was known at a tick."""

    time: float  # [s]
    state: np.ndarray  # (nx,) estimated
    tip: np.ndarray  # (3,) [m] of that state
    pressures: np.ndarray  # (m,) [Pa] as the model sees them


class Horizon:
    """N ticks ahead, and the last commands sent.

    Timing: a controller is called with the estimate at t_k; its answer becomes active `delay` ticks
    later, one where everything is done within a tick. Until then the plant follows the last `delay`
    answers, one tick each; where `ramped`, each is approached throughout its tick. With delay 1,
    states at t_{k+2}..t_{k+1+N} are compared with reference rows 2..N+1; a longer delay shifts all
    this by delay - 1.

    Args:
        prediction: the model.
        lag: from commands to chamber pressures, (32), as the robot file has it.
        settings: of the controller.
    """

    def __init__(
        self, prediction: PredictionModel, lag: PressureLag, settings: HorizonSettings
    ) -> None:
        self.ticks, self.period = settings.horizon, settings.period
        self._prediction = prediction
        self._lag = LagEstimator(lag, settings.period)
        self._learns = settings.estimate_lag
        self._ramp = ramp_weights(lag, settings.period) if settings.ramped else HELD
        self._offset_gain = settings.tip_offset_gain
        self._low, self._high = settings.pressure_low, settings.pressure_high
        self._ticks_after = np.arange(self.ticks + 1) - 1 - np.arange(self.ticks)[:, None]
        self._reached = self._ticks_after >= 0
        gains = chamber_names(PRESSURE_GAIN, prediction.input_size)
        offsets = chamber_names(PRESSURE_OFFSET, prediction.input_size)
        names = (*prediction.parameter_names, *gains, *offsets)
        self._places = {name: place for place, name in enumerate(names)}
        known = (prediction.nominal_parameters, np.ones(len(gains)), np.zeros(len(offsets)))
        self._nominal = np.concatenate(known)
        self.reset()

    @property
    def rows(self) -> int:
        """Reference rows that are enough at any delay, N + 1 + MAXIMUM_DELAY."""
        return self.ticks + 1 + MAXIMUM_DELAY

    @property
    def lag(self) -> PressureLag:
        """From commands to readings, as known now."""
        return self._lag.lag

    def reset(self) -> None:
        """Forgets what was sent and learned."""
        self._sent: list[np.ndarray] = []  # the last commands, newest last
        self._held: list[np.ndarray] = []  # the last MAXIMUM_DELAY + 1 that these amount to
        self._read: np.ndarray | None = None  # (m,) [Pa] a tick ago
        self._lag.reset()
        self._past: _Past | None = None  # a tick ago
        self._begun = np.empty((0, self._prediction.state_size))  # 1, 2, ... ticks ago: states now
        # [m] after 1, 2, ... ticks; beyond, the last is taken
        self._tip_offsets = np.zeros((self.ticks + 1, 3))

    def remember(self, command: np.ndarray) -> None:
        """The command (m,) [Pa] that is sent in answer to the last `problem`."""
        self._sent = [*self._sent[1:], command]
        self._held = [*self._held[1:], self._ramp @ self._sent]

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
            parameters: other ones of the model, by name; those not given are nominal. Measured and
                predicted pressure of chamber I = 1..m are multiplied by `pressure_gain_I`, then
                `pressure_offset_I` [Pa] is added.
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
        values, gain, offset = self._model_inputs(estimated)
        if not self._sent:
            known = np.where(np.isfinite(measured), measured, self._low)
            self._sent = [np.clip(known, self._low, self._high)] * len(self._ramp)
            self._held = [self._sent[-1]] * (MAXIMUM_DELAY + 1)
        if self._learns and self._read is not None:
            self._lag.observe(self._read, self._held[-1 - delay], measured)
        self._read = measured
        lag = self._lag.lag
        pending = np.array(self._held[-delay:])
        pressures = lag.trajectory(measured, pending[None], self.period)
        decays = np.exp(-lag.pole * self.period * np.arange(self.ticks + 1))
        of_held = self._response_to_held(decays, lag)
        free = decays[:, None] * pressures[0, -1]
        if len(self._ramp) > 1:  # the first of the commands is approached from the one before it
            free += self._ramp[0] * np.outer(of_held[0], self._sent[-1])
        free = gain * free + offset
        rows = slice(delay + 1, delay + 1 + self.ticks)
        wanted_tips = reference.tip_positions[rows]
        if self._offset_gain:
            tip = self._prediction.tip_poses(state[None], values[None])[0, :, 3]
            acting = gain * measured + offset
            self._learn_offset(_Past(reference.stamp, state, tip, acting), values)
            ahead = np.minimum(np.arange(delay, delay + self.ticks), self.ticks)
            wanted_tips = wanted_tips - self._tip_offsets[ahead]
        return Problem(
            present_state=state,
            approach=gain * pressures[0] + offset,
            free_pressures=free.ravel(),
            pressure_response=self._response(of_held, gain),
            previous_command=self._sent[-1],
            reference_states=reference.states[rows],
            reference_tip_positions=wanted_tips,
            parameters=values,
            present_reference_tip=reference.tip_positions[0],
            prediction=self._prediction,
            period=self.period,
        )

    def _learn_offset(self, present: _Past, parameters: np.ndarray) -> None:
        """Where the tip is beside where the model, begun 1, 2, ... ticks ago, puts it.

        One offset for every number of ticks ahead: added to predictions, they are free of the
        model's steady errors (offset-free MPC). All that were begun move on by one tick in one
        batch, under the pressures that were read meanwhile, so that only the model is judged.
        """
        past, self._past = self._past, present
        if past is None or abs(present.time - past.time - self.period) > 0.5 * self.period:
            self._begun = self._begun[:0]  # ticks are missing
            return
        begun = np.vstack((past.state, self._begun[: len(self._tip_offsets) - 1]))
        before, now = (np.tile(tick.pressures, (len(begun), 1)) for tick in (past, present))
        told = np.tile(parameters, (len(begun), 1))
        self._begun = self._prediction.step(begun, before, now, told, self.period)
        aside = present.tip - self._prediction.tip_poses(self._begun, told)[:, :, 3]
        if np.isfinite(aside).all():
            learned = self._tip_offsets[: len(aside)]
            learned += self._offset_gain * (aside - learned)

    def rollout(self, commands: np.ndarray, problem: Problem) -> Rollout:
        """The futures of candidates with commands (B, N, m) [Pa]."""
        pressures = commands.reshape(len(commands), -1) @ problem.pressure_response
        pressures += problem.free_pressures
        return Rollout(
            initial_state=problem.state,
            pressures=pressures.reshape(len(commands), -1, commands.shape[2]),
            commands=commands,
            previous_command=problem.previous_command,
            reference_states=problem.reference_states,
            reference_tip_positions=problem.reference_tip_positions,
            prediction=problem.prediction,
            parameters=problem.parameters,
            period=self.period,
        )

    def _response_to_held(self, decays: np.ndarray, lag: PressureLag) -> np.ndarray:
        """(N, N + 1): held commands of a chamber to its readings (40) without the initial one."""
        step = lag.gain / lag.pole * (1.0 - decays[1])
        return np.where(self._reached, step * decays[self._ticks_after], 0.0)

    def _response(self, of_held: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """(N m, (N + 1) m): commands to pressures without initial ones, both flat.

        The lag is linear: one product per batch instead of N strided updates.
        """
        of_one = self._ramp[-1] * of_held
        if len(self._ramp) > 1:
            of_one[:-1] += self._ramp[0] * of_held[1:]
        ticks, chambers = self.ticks, len(gain)
        response = np.zeros((ticks, chambers, ticks + 1, chambers))
        for chamber in range(chambers):
            response[:, chamber, :, chamber] = gain[chamber] * of_one
        return response.reshape(ticks * chambers, -1)

    def _model_inputs(
        self, given: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Model parameters (P,), pressure gains (m,) and offsets (m,) [Pa]."""
        values = self._nominal.copy()
        for name, value in given.items():
            if name not in self._places:
                allowed = ", ".join(self._places)
                raise UserError(f"controller: parameter {name}: unknown; allowed are {allowed}")
            values[self._places[name]] = value
        chambers = self._prediction.input_size
        return values[: -2 * chambers], values[-2 * chambers : -chambers], values[-chambers:]

"""What predictive controllers share around their optimisation: delay, lag, parameters, memory."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_control.command_ramp import HELD, ramp_weights
from softcr_control.costs.rollout import Rollout, tips_of
from softcr_control.costs.settings import CostSettings
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.estimated_parameters import Estimated, EstimatedParameters
from softcr_control.predictive.lag_estimation import LagEstimator
from softcr_control.predictive.tip_offsets import Moment, TipOffsets
from softcr_control.reference.references import Reference
from softcr_control.sent_commands import SentCommands
from softcr_models.chain.pressure import PressureLag
from softcr_models.chain.readings import Readings
from softcr_models.errors import UserError
from softcr_models.model import Model
from softcr_runtime.blocks.command_packets import CommandPacket

MAXIMUM_DELAY = 7  # ticks between an estimate and its answer that can be predicted over

BRIDGED = 20
"""Ticks by which a packet reaches beyond the optimised commands that are sent, where the inputs of
the motion are known: so long may a controller stop, and the robot goes on along the reference."""

HELD_TICKS = 4
"""For which each of these commands is held: held for two, ten in place of four took all nodes
together some 2 ms more of a processor in a tick. BRIDGED is a multiple of it."""

_MOVED_OVER = 0.3  # time constant of a mean over answers [s]
_LEARNED_OVER = 4  # ticks between readings from which a lag is learned

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class HorizonSettings(BaseModel):
    """Numbers that every predictive controller has; limits and lag are the model's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    horizon: int = Field(
        default=7, ge=2, le=400, description="number of optimised commands, N of (39) [ticks]"
    )
    estimate_lag: bool = Field(
        default=True,
        description="whether the lag of the inputs is estimated from commands and readings",
    )
    tip_offset_gain: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="gain of the low-pass filter that learns the offset between the tip and its "
        "prediction; 0: none",
    )
    costs: CostSettings = Field(default=CostSettings(), description="terms that are minimised")

    @classmethod
    def beside_horizon(cls, values: Mapping[str, Any], horizon: Any) -> dict[str, Any]:
        """What changes of settings, not yet validated, with another horizon [ticks]."""
        return {}


@dataclass(frozen=True, eq=False)
class InputTick:
    """How what the model feels follows commands in one tick: the lag, exactly.

    Attributes:
        decay: what is left of the inputs of a tick ago [-].
        response: (m,) what a command that is held over the tick adds [-].
        rest: (m,) what is added without a command [unit of the inputs].
        ramp: weights of the command before, if it counts, and of the tick's own in what is held.
    """

    decay: float
    response: np.ndarray
    rest: np.ndarray
    ramp: np.ndarray

    def after(self, felt: np.ndarray, before: np.ndarray, command: np.ndarray) -> np.ndarray:
        """(B, m) felt at the end of a tick, of inputs felt at its begin and the two commands."""
        held = self.ramp[-1] * command
        if len(self.ramp) > 1:
            held = held + self.ramp[0] * before
        return self.decay * felt + self.response * held + self.rest


@dataclass(frozen=True, eq=False)
class Problem:
    """What stays the same during one tick. Inputs are in the unit of the model's."""

    present_state: np.ndarray  # (nx,) estimated
    approach: np.ndarray  # (delay + 1, m) what the model feels until the optimised commands begin
    free_inputs: np.ndarray  # ((P + 1) m,) what the model feels if all commands are zero
    input_response: np.ndarray  # (N m, (P + 1) m) what commands add to that [-]
    input_tick: InputTick  # the same for one tick
    remembered: np.ndarray | None  # (k,) of the inputs' past when the optimised commands begin
    estimated: Estimated  # what is felt at a reading
    previous_command: np.ndarray  # (m,) active until then
    shift: int  # ticks by which these commands begin later than those of the last problem
    reference: Reference  # P rows; tips less the offsets that were learned
    parameters: np.ndarray  # (P,)
    present_reference_tip: np.ndarray  # (3,) [m]
    model: Model
    period: float  # of a tick [s]
    step: float  # from one predicted state to the next [s]

    @property
    def delay(self) -> int:
        """Ticks from the estimate to the first of the optimised commands."""
        return len(self.approach) - 1

    @cached_property
    def control_error(self) -> float:
        """Distance of the present tip from its reference [m]; not every controller asks."""
        poses = tips_of(self.model, self.present_state[None], self.parameters)
        return float(np.linalg.norm(poses[0, :, 3] - self.present_reference_tip))

    @cached_property
    def state(self) -> np.ndarray:
        """(nx,) predicted for the beginning of the optimised commands."""
        inputs = self.approach[None]
        rolled = self.model.rollout(self.present_state, inputs, self.parameters, self.period)
        return rolled[0, -1].astype(float)

    def rollout(self, commands: np.ndarray) -> Rollout:
        """The futures of candidates with commands (B, N, m), P states of each."""
        inputs = commands.reshape(len(commands), -1) @ self.input_response
        inputs += self.free_inputs
        return Rollout(
            initial_state=self.state,
            inputs=self._told(inputs.reshape(len(commands), -1, commands.shape[2])),
            commands=commands,
            previous_command=self.previous_command,
            reference=self.reference,
            model=self.model,
            parameters=self.parameters,
            period=self.step,
            delay=self.delay,
        )

    def _told(self, inputs: np.ndarray) -> np.ndarray | Readings:
        """(B, P + 1, m) as they are; of a model with a memory these are readings, from which it
        goes on."""
        if self.remembered is None:
            return inputs
        known = self.estimated
        return Readings(inputs, self.remembered, known.gain, known.offset)


class Horizon:
    """N ticks ahead, and the last packets of commands sent.

    Timing: a controller is called with the estimate at t_k; its answer becomes active `delay` ticks
    later, one where everything is done within a tick. Until then the plant plays what is due of the
    packets before it; where `ramped`, each command is approached throughout its tick. With delay 1,
    states at t_{k+2}..t_{k+1+N} are compared with reference rows 2..N+1; a longer delay shifts all
    this by delay - 1. Where the model's inputs have no lag, it feels at the end of a tick the
    command of that tick.

    Args:
        context: model, period, and whether commands are ramped.
        settings: of the controller.
        stride: ticks from one predicted state to the next, of which there are P = N / stride.
    """

    def __init__(self, context: ControlContext, settings: HorizonSettings, stride: int = 1) -> None:
        self.ticks, self.period, self._stride = settings.horizon, context.period, stride
        model, inputs = context.model, context.model.inputs
        self._model, self._inputs = model, inputs
        self._lag = None
        if inputs.lag:
            before = ramp_weights(inputs.lag, self.period)[0] if context.ramped else 0.0
            self._lag = LagEstimator(inputs.lag, self.period, inputs.range, float(before))
        self._learns = settings.estimate_lag
        self._sent = SentCommands(HELD, self.period)
        self._offsets = TipOffsets(model, self.period, self.ticks + 1, settings.tip_offset_gain)
        self._names = EstimatedParameters(model)
        self._grid = np.arange(self.ticks + 1)
        self._ticks_after = self._grid - 1 - self._grid[:-1, None]
        self._reached = self._ticks_after >= 0
        self.reset()

    @property
    def rows(self) -> int:
        """Reference rows that are enough at any delay, N + 1 + MAXIMUM_DELAY."""
        return self.ticks + 1 + MAXIMUM_DELAY

    @property
    def lag(self) -> PressureLag | None:
        """From commands to readings, as known now; None where there is none."""
        return self._lag.lag if self._lag else None

    @property
    def previous(self) -> np.ndarray:
        """(m,) the command that is played until the answer to the last observation is."""
        return self._sent.previous

    @property
    def shift(self) -> int:
        """Ticks by which the answer to the last observation counts later than the one before."""
        return self._sent.shift

    def reset(self) -> None:
        """Forgets what was sent and learned."""
        self._sent.reset()
        self._read: tuple[float, np.ndarray] | None = None  # stamp [s] and readings (m,) last seen
        self._remembered: np.ndarray | None = None
        self._moved: np.ndarray | None = None  # (m,) see `_moved_by`
        if self._lag:
            self._lag.reset()
        self._sent.ramp = self._ramp()
        self._offsets.reset()

    def take_over(self, packets: Sequence[CommandPacket]) -> None:
        """Another controller's last packets, the newest last."""
        self._sent.take_over(packets)

    def remember(self, commands: np.ndarray, observation: Observation | None = None) -> np.ndarray:
        """(K, m) what is sent in answer to the last observation, of the commands (N, m) that are
        optimised; with the observation, the first half of them.

        The others only count if the next answer is late, and are made without regard for what
        follows: a robot that comes back from an error would be thrown. Where the observation knows
        the inputs of the motion, commands come in their place, for BRIDGED ticks, that
        make the model feel these inputs through the lag. They are moved by what those that were
        optimised in the last third of a second differed from such commands on average, which holds
        what is estimated of the robot.
        """
        sent = commands
        if observation is not None:
            felt, begins = observation.reference.inputs, observation.delay
            sent = commands[: (len(commands) + 1) // 2]
            if felt is not None and len(felt) > begins + len(commands) + BRIDGED:
                sent = self._bridged(commands, felt[begins:])
        self._sent.answer(sent)
        return sent

    def observe(self, observation: Observation) -> None:
        """Learns lag and offsets from what is new, and when the answer to it will be due.

        Raises:
            UserError: too few reference rows, or a delay out of range.
        """
        self._check(observation)
        measured = np.asarray(observation.inputs, float)
        self._sent.observe(observation, self._inputs.low, self._inputs.high)
        if self._read is not None and self._learns and self._lag:
            since = (observation.stamp - self._read[0]) / self.period
            if 0.5 < since < _LEARNED_OVER + 0.5:
                begin, ticks = self._read[0], round(since)
                played = self._sent.played(begin - self.period, ticks + 1)
                self._lag.observe(self._read[1], played, measured)
                self._sent.ramp = self._ramp()
        self._remember_inputs(observation.stamp, measured)
        self._read = observation.stamp, measured
        if self._offsets.active:
            estimated = self._names.read(observation.parameters)
            self._offsets.learn(
                Moment(
                    observation.stamp,
                    np.asarray(observation.state, float),
                    estimated.felt(measured, self._remembered),
                    estimated.parameters,
                )
            )

    def problem(self, observation: Observation) -> Problem:
        """Predicts over the delay: state and inputs when the optimised commands begin.

        Of N + 1 + delay reference rows from t_k on, row 0 and, of the last N, those at predicted
        states are looked at. It changes
        nothing: `observe` comes before it.

        Raises:
            UserError: an unknown parameter.
        """
        estimated = self._names.read(observation.parameters)
        delay, reference = observation.delay, observation.reference
        previous = self._sent.previous
        approach = self._trajectory(np.asarray(observation.inputs, float), self._sent.pending)
        past = self._past(approach)
        decays, step = self._decays()
        of_held = np.where(self._reached, step * decays[self._ticks_after], 0.0)
        free = decays[:, None] * approach[-1]
        ramp = self._sent.ramp
        if len(ramp) > 1:  # the first of the commands is approached from the one before it
            free += ramp[0] * np.outer(of_held[0], previous)
        stride = self._stride
        rows = slice(delay + stride, delay + 1 + self.ticks, stride)
        offsets = None
        if self._offsets.active:
            offsets = self._offsets.ahead(delay, self.ticks)[stride - 1 :: stride]
        free = free[::stride]
        raw = past is not None  # gains and offsets come behind the memory, which follows readings
        gain = np.ones_like(estimated.gain) if raw else estimated.gain
        return Problem(
            present_state=np.asarray(observation.state, float),
            approach=estimated.felt(approach, past),
            free_inputs=(free if raw else estimated.felt(free)).ravel(),
            input_response=self._response(of_held, gain),
            input_tick=InputTick(
                float(decays[1]),
                step * estimated.gain,
                (1.0 - decays[1]) * estimated.offset,
                ramp,
            ),
            remembered=None if past is None else past[-1],
            estimated=estimated,
            previous_command=previous,
            shift=self._sent.shift,
            reference=reference.part(rows, offsets),
            parameters=estimated.parameters,
            present_reference_tip=reference.tip_positions[0],
            model=self._model,
            period=self.period,
            step=self.period * stride,
        )

    def _bridged(self, commands: np.ndarray, felt: np.ndarray) -> np.ndarray:
        """The first half of commands (N, m), followed by those for what is felt (N + K, m) from
        their begin on."""
        decays, step = self._decays()
        end = (len(commands) + 1) // 2
        commands, ramp, last = commands[:end], self._sent.ramp, commands[end - 1]
        before = ramp[0] if len(ramp) > 1 else 0.0
        held = ramp[-1] * commands + before * np.vstack((self._sent.previous, commands[:-1]))
        own = (felt[1 : end + 1] - decays[1] * felt[:end]) / step
        moved = self._moved_by((held - own).mean(axis=0))
        ends = felt[end : end + BRIDGED + 1 : HELD_TICKS]
        added = (ends[1:] - decays[1] ** HELD_TICKS * ends[:-1]) / step
        # of what is held in a tick, of all that is added
        shares = decays[1] ** np.arange(HELD_TICKS - 1, -1, -1)
        whole, approached, limits = shares.sum(), before * shares[0], self._inputs
        rows, most = (added + whole * moved) / (whole - approached), limits.rate * self.period
        for row in rows:
            if approached:
                row -= approached / (whole - approached) * last
            np.minimum(row, last + most, out=row)
            np.maximum(row, last - most, out=row)
            np.minimum(row, limits.high, out=row)
            np.maximum(row, limits.low, out=row)
            last = row
        return np.vstack((commands, np.repeat(rows, HELD_TICKS, axis=0)))

    def _moved_by(self, newest: np.ndarray) -> np.ndarray:
        """(m,) the mean of what was found in the last answers, of which `newest` is one."""
        passed = min(self._sent.shift, self.ticks) * self.period
        share = 1.0 if self._moved is None else -math.expm1(-passed / _MOVED_OVER)
        before = newest if self._moved is None else self._moved
        self._moved = before + share * (newest - before)
        return self._moved

    def _ramp(self) -> np.ndarray:
        """See `SentCommands.ramp`; as told, or as learned since."""
        before = self._lag.weight if self._lag else 0.0
        return np.array([before, 1.0 - before]) if before else HELD

    def _remember_inputs(self, stamp: float, measured: np.ndarray) -> None:
        """Go on with what the model feels of the readings' past, to these (m,)."""
        memory = self._inputs.memory
        if memory is None:
            return
        if self._remembered is None or self._read is None:
            self._remembered = memory.begin(np.nan_to_num(measured))
        elif np.isfinite(measured).all() and stamp > self._read[0]:
            last = np.where(np.isfinite(self._read[1]), self._read[1], measured)
            passed = np.stack((last, measured))[None]
            self._remembered = memory.along(self._remembered, passed, stamp - self._read[0])[0, 1]

    def _past(self, approach: np.ndarray) -> np.ndarray | None:
        """(T + 1, k) what is remembered along readings (T + 1, m), a tick apart; None without."""
        memory = self._inputs.memory
        if memory is None or self._remembered is None:
            return None
        return memory.along(self._remembered, approach[None], self.period)[0]

    def _check(self, observation: Observation) -> None:
        delay, rows = observation.delay, len(observation.reference.tip_positions)
        if not 1 <= delay <= MAXIMUM_DELAY:
            raise UserError(f"controller: delay {delay} is not allowed: 1 to {MAXIMUM_DELAY} ticks")
        if rows < self.ticks + 1 + delay:
            raise UserError(
                f"controller: reference has {rows} rows, needs {self.ticks + 1 + delay}"
            )

    def _trajectory(self, measured: np.ndarray, held: np.ndarray) -> np.ndarray:
        """(T + 1, m) readings from measured ones (m,) on, under held commands (T, m)."""
        if self._lag is None:
            return np.vstack((measured, held))
        return self._lag.lag.trajectory(measured, held[None], self.period)[0]

    def _decays(self) -> tuple[np.ndarray, float]:
        """(N + 1,) what is left of a reading after 0, 1, ... ticks, and what a held command adds in
        its tick."""
        if self._lag is None:
            return np.eye(1, self.ticks + 1)[0], 1.0
        lag = self._lag.lag
        decays = np.exp(-lag.pole * self.period * self._grid)
        return decays, lag.gain / lag.pole * (1.0 - decays[1])

    def _response(self, of_held: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """(N m, (P + 1) m): commands to inputs without initial ones, both flat.

        The lag is linear: one product per batch instead of N strided updates.
        """
        ramp = self._sent.ramp
        of_one = ramp[-1] * of_held
        if len(ramp) > 1:
            of_one[:-1] += ramp[0] * of_held[1:]
        of_one = of_one[:, :: self._stride]
        ticks, channels = self.ticks, len(gain)
        response = np.zeros((ticks, channels, of_one.shape[1], channels))
        for channel in range(channels):
            response[:, channel, :, channel] = gain[channel] * of_one
        return response.reshape(ticks * channels, -1)

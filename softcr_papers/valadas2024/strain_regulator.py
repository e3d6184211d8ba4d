"""The regulator of strains as a controller with a period, whose answers act a tick later.

`ShapeRegulator` is the law. This is what a running system adds to it: gains by the kind of strain,
and the model's prediction over the ticks until an answer acts, under the torques that were sent.
The integral that is kept is of strains that were estimated, never of predicted ones. Where the
estimator finds parameters of the model, the feed-forward and the prediction have them; the paper's
model stays as it was learned.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_control.command_ramp import HELD
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.horizon import MAXIMUM_DELAY
from softcr_control.sent_commands import SentCommands
from softcr_models.errors import UserError
from softcr_models.model import nominal_parameters, parameter_values
from softcr_papers.valadas2024.shape_regulator import RegulatorGains, ShapeRegulator
from softcr_papers.valadas2024.strain.strain_model import LagrangianModel
from softcr_runtime.blocks.command_packets import CommandPacket

_Gains = Annotated[
    tuple[Annotated[float, Field(ge=0.0, allow_inf_nan=False)], ...], Field(min_length=3)
]


def _gains(default: tuple[float, float, float], what: str, unit: str) -> Any:
    return Field(
        default,
        description=f"{what}: of bending, shear and axial strain, or one number for each strain",
        json_schema_extra={"unit": unit},
    )


class StrainRegulatorSettings(BaseModel):
    """Gains; the defaults are those of the authors' public simulation of two segments."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    proportional: _Gains = _gains((0.01, 0.5, 6.0), "K_p, torque per strain", "N m^2, N, N")
    integral: _Gains = _gains(
        (0.06, 3.0, 36.0), "K_i, torque per second at full error", "N m/s, N/s, N/s"
    )
    derivative: _Gains = _gains(
        (0.002, 0.1, 0.8), "K_d, torque per rate of strain", "N m^2 s, N s, N s"
    )
    saturation: _Gains = _gains(
        (40.0, 0.1, 0.2), "Upsilon, one over the error at which the integral saturates", "m, -, -"
    )


class StrainRegulator:
    """Holds strains that the reference tells, by Eqs. (11) and (12) of Valadas et al. (2024)."""

    Settings = StrainRegulatorSettings
    rows = 2 + MAXIMUM_DELAY

    def __init__(self, context: ControlContext, settings: StrainRegulatorSettings) -> None:
        """
        Args:
            context: with the model of the feed-forward.
            settings: gains.

        Raises:
            UserError: the model is of no strain robot, or gains of another number of strains.
        """
        model = context.model
        if not isinstance(model, LagrangianModel):
            raise UserError(
                "controller 'strain_regulator': needs the model strain, got "
                f"{type(model).__name__}; it is for robots of type strain"
            )
        self._model, self._period = model, context.period
        self._parameters = nominal_parameters(model.parameters)
        gains = _gains_of(settings, model)
        self._regulator = ShapeRegulator(model.dynamics, gains, model.inputs.high)
        self._sent = SentCommands(HELD, context.period)
        self.reset()

    def reset(self) -> None:
        """See Controller; the integral is 0."""
        self._regulator.reset()
        self._use(nominal_parameters(self._model.parameters))
        self._sent.reset()
        self._last: float | None = None

    def take_over(self, packets: Sequence[CommandPacket]) -> None:
        """Go on from the last packets of another controller."""
        self._sent.take_over(packets)

    def command(self, observation: Observation) -> np.ndarray:
        """(m,) torques [N m, N] for the tick that begins `delay` ticks from now.

        Raises:
            UserError: the reference gives no strains, or too few rows.
        """
        delay, size = observation.delay, self._model.inputs.size
        wanted = _wanted(observation, delay + 2)[:, :size]
        state = np.asarray(observation.state, float)
        inputs = self._model.inputs
        self._sent.observe(observation, inputs.low, inputs.high)
        regulator, h = self._regulator, self._period
        self._use(parameter_values(self._model.parameters, observation.parameters))
        elapsed = h if self._last is None else observation.stamp - self._last
        regulator.integrate(state[:size], wanted[0], min(max(elapsed, 0.0), MAXIMUM_DELAY * h))
        self._last = observation.stamp
        integral = regulator.integral
        for row, held in zip(wanted[1:-1], self._sent.pending, strict=True):
            state = self._model.step(
                state[None], held[None], held[None], self._parameters[None], h
            )[0]
            integral = integral + h * np.tanh(regulator.gains.saturation * (row - state[:size]))
        acts = h * max(self._sent.shift, 1)  # until the next answer, where not every tick has one
        torque = regulator.held_torque(state[:size], state[size:], wanted[-1], acts, integral)
        self._sent.answer(torque[None])
        return torque

    def _use(self, parameters: np.ndarray) -> None:
        """Go on with parameters (P,) of the model."""
        if not np.array_equal(parameters, self._parameters):
            self._parameters = parameters
            self._regulator.model = self._model.with_parameters(parameters)

    def describe(self) -> dict[str, Any]:
        """The integral, in seconds at full error."""
        return {"integral": self._regulator.integral.tolist()}


def _wanted(observation: Observation, rows: int) -> np.ndarray:
    """(rows, nx) states that the reference tells."""
    states = observation.reference.states
    if states is None or not np.isfinite(states[:rows]).all():
        raise UserError(
            "strain regulator: the reference gives no strains; choose one that does, such as "
            "strain_setpoints, strain_sines, setpoint or trajectory"
        )
    if len(states) < rows:
        raise UserError(f"strain regulator: reference has {len(states)} rows, needs {rows}")
    return states[:rows]


def _gains_of(settings: StrainRegulatorSettings, model: LagrangianModel) -> RegulatorGains:
    """Of each strain that the model keeps."""
    active, size = model.dynamics.numbers.active, model.inputs.size
    found = []
    for name in ("proportional", "integral", "derivative", "saturation"):
        given = np.array(getattr(settings, name))
        if len(given) not in (3, size):
            raise UserError(
                f"{name} {given.tolist()}: must be 3 gains, of bending, shear and axial strain, or "
                f"{size}, of {', '.join(model.inputs.names)}"
            )
        found.append(given if len(given) == size and size != 3 else given[active % 3])
    return RegulatorGains(*found)

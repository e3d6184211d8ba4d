"""A reference chosen by name and numbers."""

from typing import Annotated, Literal

import numpy as np
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from softcr_control.reference import signals
from softcr_control.reference.references import (
    SampledReference,
    from_file,
    input_trajectory,
    setpoint,
    tip_circle,
)
from softcr_control.reference.units import require_unit
from softcr_models.errors import UserError
from softcr_models.model import Inputs, Model

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]

_MEAN, _AMPLITUDE = 0.35, 0.2  # of the range of each input
_SETPOINT = (0.45, 0.25, 0.15)  # likewise, of three inputs; of others evenly from first to last


class ReferenceSettings(BaseModel):
    """What the robot should do.

    `setpoint`: the equilibrium at `inputs`. `circle`, `chirp_circle`: the direction of the inputs
    rotates at `frequency` (the chirp up to `last_frequency`). `trajectory`: a sum of sines in every
    input, like the reference of Experiment 4a. These are computed by the nominal model from inputs
    mean +- amplitude, faded in from rest. `tip_circle`: a circle of the tip, geometry only. `file`:
    see `from_file`. What is None depends on the range of the model's inputs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["setpoint", "circle", "chirp_circle", "trajectory", "tip_circle", "file"] = Field(
        default="trajectory", description="motion of the rod"
    )
    duration: Positive = Field(
        default=60.0, le=3600.0, description="time after which it stands still [s]"
    )
    fade_in: NonNegative = Field(default=1.0, description="time to reach the motion from rest [s]")
    mean: Finite | None = Field(
        default=None,
        description="mean of the inputs, in their unit ([Pa], [m], [N]); None: 35 % of their range",
    )
    amplitude: NonNegative | None = Field(
        default=None, description="largest deviation from the mean; None: 20 % of their range"
    )
    frequency: Positive = Field(
        default=0.5,
        le=20.0,
        description="frequency of the circle, and of the beginning of the chirp [Hz]",
    )
    last_frequency: Positive = Field(
        default=1.5, le=20.0, description="frequency of the end of the chirp [Hz]"
    )
    frequencies: tuple[Positive, ...] = Field(
        default=(0.5, 1.0, 1.5), min_length=1, description="frequency of the trajectory [Hz]"
    )
    inputs: tuple[Finite, ...] | None = Field(
        default=None,
        validation_alias=AliasChoices("inputs", "pressures"),
        description="inputs of the setpoint, in their unit; None: 45, 25 and 15 % of their range, "
        "or evenly from 45 to 15 % for another number of inputs",
    )
    radius: NonNegative = Field(default=0.05, description="radius of the tip circle [m]")
    height: Finite = Field(default=0.13, description="height z of the tip circle, base frame [m]")
    file: str = Field(default="", description="CSV or NPZ file")

    def source(self, model: Model, period: float) -> SampledReference:
        """The reference at the grid of the control period [s], computed by the nominal model.

        Raises:
            UserError: one line saying what does not fit.
        """
        if self.kind == "file":
            return from_file(model, self.file, period)
        if self.kind == "tip_circle":
            times = signals.time_grid(self.duration, period)
            centre = np.array([0.0, 0.0, self.height])
            return tip_circle(model, times, centre, self.radius, self.frequency, self.fade_in)
        samples = self.input_samples(period, model.inputs)
        if self.kind == "setpoint":
            return setpoint(model, samples[0], period)
        return input_trajectory(model, samples, period)

    def input_samples(self, period: float, inputs: Inputs) -> np.ndarray:
        """(T, m) inputs [their unit] at the grid of `period` [s] that make the motion.

        Raises:
            UserError: this kind of reference is not made of inputs, or of another number of them.
        """
        if self.kind in ("tip_circle", "file"):
            raise UserError(
                f"reference = {self.kind!r}: is not made of {inputs.quantity}s; setpoint, circle, "
                "chirp_circle and trajectory are"
            )
        for name, given in (
            ("mean", self.mean), ("amplitude", self.amplitude), ("inputs", self.inputs)
        ):  # fmt: skip
            if given is not None:
                reach = float(inputs.range.max())
                require_unit(f"reference: {name} = {given}", given, inputs.unit, reach)
        if self.kind == "setpoint":
            return self._held(inputs)[None]
        times = signals.time_grid(self.duration, period)
        return signals.soft_start(self._moving(times, inputs), inputs.rest, times, self.fade_in)

    def _held(self, inputs: Inputs) -> np.ndarray:
        if self.inputs is None:
            evenly = np.linspace(_SETPOINT[0], _SETPOINT[-1], inputs.size)
            shares = np.array(_SETPOINT) if inputs.size == len(_SETPOINT) else evenly
            return inputs.low + shares * inputs.range
        if len(self.inputs) != inputs.size:
            raise UserError(
                f"inputs {list(self.inputs)} {inputs.unit} of the setpoint: must be {inputs.size}"
            )
        return np.array(self.inputs)

    def _moving(self, times: np.ndarray, inputs: Inputs) -> np.ndarray:
        mean = inputs.low + _MEAN * inputs.range if self.mean is None else self.mean
        swing = _AMPLITUDE * inputs.range if self.amplitude is None else self.amplitude
        if self.kind == "trajectory":
            return signals.sines(times, inputs.size, mean, swing, self.frequencies)
        if self.kind == "circle":
            phase = signals.circle_phase(times, self.frequency)
        else:
            phase = signals.chirp_phase(times, self.frequency, self.last_frequency)
        return signals.rotating_inputs(phase, inputs.size, mean, swing)

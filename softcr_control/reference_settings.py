"""A reference chosen by name and numbers."""

from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_control import signals
from softcr_control.references import (
    SampledReference,
    from_file,
    pressure_trajectory,
    setpoint,
    tip_circle,
)
from softcr_models.errors import UserError
from softcr_models.prediction import PredictionModel

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class ReferenceSettings(BaseModel):
    """What the rod should do.

    `setpoint`: the equilibrium at `pressures`. `circle`, `chirp_circle`: the bending direction
    turns at `frequency` (the chirp up to `last_frequency`). `trajectory`: a sum of sines in every
    chamber, like the reference of Experiment 4a. These are computed by the nominal model from
    pressures mean +- amplitude, faded in from the vented rod. `tip_circle`: a circle of the tip,
    geometry only. `file`: see `from_file`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["setpoint", "circle", "chirp_circle", "trajectory", "tip_circle", "file"] = Field(
        default="trajectory", description="what the rod should do"
    )
    duration: Positive = Field(
        default=60.0, le=3600.0, description="time after which it stands still [s]"
    )
    fade_in: NonNegative = Field(
        default=1.0, description="time to reach the motion from the vented rod [s]"
    )
    mean: NonNegative = Field(default=35e3, description="mean chamber pressure [Pa]")
    amplitude: NonNegative = Field(default=20e3, description="largest deviation from the mean [Pa]")
    frequency: Positive = Field(
        default=0.5, le=20.0, description="of the circle; of the chirp's begin [Hz]"
    )
    last_frequency: Positive = Field(default=1.5, le=20.0, description="of the chirp's end [Hz]")
    frequencies: tuple[Positive, ...] = Field(
        default=(0.5, 1.0, 1.5), min_length=1, description="of the trajectory [Hz]"
    )
    pressures: tuple[Finite, ...] = Field(
        default=(45e3, 25e3, 15e3), description="of the setpoint [Pa]"
    )
    radius: NonNegative = Field(default=0.05, description="of the tip circle [m]")
    height: Finite = Field(default=0.13, description="z of the tip circle, base frame [m]")
    file: str = Field(default="", description="CSV or NPZ file")

    def source(self, prediction: PredictionModel, period: float) -> SampledReference:
        """The reference at the grid of the control period [s], computed by the nominal model.

        Raises:
            UserError: one line saying what does not fit.
        """
        if self.kind == "setpoint":
            return setpoint(prediction, np.array(self.pressures), period)
        if self.kind == "file":
            return from_file(prediction, self.file, period)
        times = signals.time_grid(self.duration, period)
        if self.kind == "tip_circle":
            centre = np.array([0.0, 0.0, self.height])
            return tip_circle(prediction, times, centre, self.radius, self.frequency, self.fade_in)
        return pressure_trajectory(
            prediction, self.pressure_samples(period, prediction.input_size), period
        )

    def pressure_samples(self, period: float, chambers: int) -> np.ndarray:
        """(T, m) pressures [Pa] at the grid of `period` [s] that make the motion.

        Raises:
            UserError: this kind of reference is not made of pressures, or of other chambers.
        """
        if self.kind in ("tip_circle", "file"):
            raise UserError(
                f"reference = {self.kind!r}: is not made of pressures; setpoint, circle, "
                "chirp_circle and trajectory are"
            )
        if self.kind == "setpoint":
            if len(self.pressures) != chambers:
                raise UserError(
                    f"pressures {list(self.pressures)} Pa of the setpoint: must be {chambers}"
                )
            return np.array([self.pressures])
        times = signals.time_grid(self.duration, period)
        faded: np.ndarray = signals.soft_start(
            self._pressures(times, chambers), np.zeros(chambers), times, self.fade_in
        )
        return faded

    def _pressures(self, times: np.ndarray, chambers: int) -> np.ndarray:
        if self.kind == "trajectory":
            return signals.sines(times, chambers, self.mean, self.amplitude, self.frequencies)
        if self.kind == "circle":
            phase = signals.circle_phase(times, self.frequency)
        else:
            phase = signals.chirp_phase(times, self.frequency, self.last_frequency)
        return signals.rotating_pressures(phase, chambers, self.mean, self.amplitude)

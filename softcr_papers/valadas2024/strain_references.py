"""What a planar strain robot shall do: shapes that are held one after the other, and sines.

The setpoints of two segments are those of the authors' public data (Valadas et al. 2024, Section
IV-E and Fig. 8, which prints none); of robots with fewer or more strains they are drawn, by the
node's seed, from the ranges of that data. Strains that a robot is too stiff for are made so small
that its torques can hold them. Shapes of your own come from a file of states, by the reference
`file`. States are strains and their rates; rates of setpoints are 0.
"""

from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_control.observation import ControlContext
from softcr_control.reference.references import Reference
from softcr_models.errors import UserError
from softcr_models.model import TIP, nominal_parameters
from softcr_papers.valadas2024.strain.strain_model import LagrangianModel

SETPOINTS = np.array(
    [
        [-16.73565, -0.00828, 0.07926, 9.5652, -0.04758, -0.09522],
        [36.36406, -0.04394, 0.04745, -5.49564, -0.01525, 0.07821],
        [-5.14673, -0.04384, -0.01893, 4.07206, 0.01766, -0.03848],
        [35.03315, -0.01107, 0.08416, -5.99825, 0.01653, 0.05979],
        [12.73426, 0.04994, -0.0316, 8.53274, 0.00763, -0.00193],
        [-31.15022, -0.0111, -0.00687, 4.43325, -0.01603, 0.04379],
        [30.79889, 0.01801, 0.01713, -5.05562, -0.01953, -0.02429],
    ]
)
"""(7, 6) of two segments [rad/m, -, -, ...]."""

_FIRST, _OTHERS = np.array([40.0, 0.05, 0.1]), np.array([10.0, 0.05, 0.1])
"""Largest setpoints of the first segment and of the others [rad/m, -, -]."""
LARGEST = np.concatenate([_FIRST, _OTHERS])
"""(6,) of two segments."""

_HELD_WITH = 0.8  # share of the largest torques; the rest is for motion and gravity


class StrainSetpointSettings(BaseModel):
    """For how long each shape."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    hold: float = Field(
        5.0, ge=0.1, le=600.0, description="time for each shape", json_schema_extra={"unit": "s"}
    )


class StrainSineSettings(BaseModel):
    """How far and how fast the strains swing."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    frequency: float = Field(
        0.5,
        gt=0.0,
        le=20.0,
        description="frequency of the first segment; each further segment is a third slower than "
        "the one before",
        json_schema_extra={"unit": "Hz"},
    )
    bending: float = Field(
        20.0, ge=0.0, le=200.0, description="amplitude", json_schema_extra={"unit": "rad/m"}
    )
    shear: float = Field(0.02, ge=0.0, le=1.0, description="amplitude")
    axial: float = Field(0.05, ge=0.0, le=1.0, description="amplitude")
    fade_in: Annotated[float, Field(ge=0.0, le=60.0)] = Field(
        1.0, description="time to reach the motion from rest", json_schema_extra={"unit": "s"}
    )


class StrainSetpoints:
    """Shapes that are held for some time each; the last one stays."""

    Settings = StrainSetpointSettings

    def __init__(self, context: ControlContext, settings: StrainSetpointSettings) -> None:
        """Raises UserError for another robot."""
        self._of, self._hold = _Strains(context, "strain_setpoints"), settings.hold
        shapes = _shapes(self._of.active, context.seed)
        self.shapes = np.clip(shapes, -self._of.largest, self._of.largest)

    def window(self, time: float, rows: int) -> Reference:
        times = time + self._of.period * np.arange(rows)
        # a row that rounding puts a nanosecond before a shape begins belongs to that shape
        number = np.floor(times / self._hold + 1e-9).astype(int)
        shapes = self.shapes[np.clip(number, 0, len(self.shapes) - 1)]
        return self._of.rows(time, shapes, np.zeros_like(shapes))


class StrainSines:
    """Every strain swings, the segments at different frequencies."""

    Settings = StrainSineSettings

    def __init__(self, context: ControlContext, settings: StrainSineSettings) -> None:
        """Raises UserError for another robot."""
        self._of, self._fade_in = _Strains(context, "strain_sines"), settings.fade_in
        segments, kinds = np.divmod(self._of.active, 3)
        sizes = np.array([settings.bending, settings.shear, settings.axial])[kinds]
        self._sizes = np.minimum(sizes, self._of.largest)
        self._speeds = 2.0 * np.pi * settings.frequency * (2.0 / 3.0) ** segments
        self._phases = 2.0 * np.pi / 3.0 * kinds  # the three strains of a segment follow each other

    def window(self, time: float, rows: int) -> Reference:
        times = (time + self._of.period * np.arange(rows))[:, None]
        part = np.clip(times / self._fade_in, 0.0, 1.0) if self._fade_in else np.ones_like(times)
        share, slope = part**2 * (3.0 - 2.0 * part), np.zeros_like(part)
        if self._fade_in:
            slope = 6.0 * part * (1.0 - part) / self._fade_in
        angle = self._speeds * times + self._phases
        swings, rates = np.sin(angle), self._speeds * np.cos(angle)
        return self._of.rows(
            time, self._sizes * share * swings, self._sizes * (share * rates + slope * swings)
        )


class _Strains:
    """Rows of strains and rates, with the tips that belong to them."""

    def __init__(self, context: ControlContext, name: str) -> None:
        model = context.model
        if not isinstance(model, LagrangianModel):
            raise UserError(
                f"reference {name!r}: is for robots of type strain, got {type(model).__name__}"
            )
        self._model, self.period = model, context.period
        self.active = model.dynamics.numbers.active
        stiffness = np.diag(model.dynamics.stiffness_matrix())
        self.largest = _HELD_WITH * model.inputs.high / stiffness  # (m,) strains
        self._nominal = nominal_parameters(model.parameters)[None]

    def rows(self, time: float, strains: np.ndarray, rates: np.ndarray) -> Reference:
        """Of strains and rates (rows, m)."""
        states = np.concatenate([strains, rates], axis=1)
        tips: Any = self._model.observe((TIP,), states, None, self._nominal)[TIP]
        return Reference(time, self.period, states, tips[:, :, 3].copy())


def _shapes(active: np.ndarray, seed: int) -> np.ndarray:
    """(7, m) setpoints of the strains kept."""
    if active.tolist() == list(range(SETPOINTS.shape[1])):
        return SETPOINTS
    segments, kinds = np.divmod(active, 3)
    largest = np.where(segments == 0, _FIRST[kinds], _OTHERS[kinds])
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (len(SETPOINTS), len(active))) * largest

"""Strains from the shape that cameras see: least squares over all markers, rates by a filter.

It needs the segments' lengths and no equations of motion, so that no error of masses, stiffness or
damping enters; what it gives is as noisy as the markers. Only a strain that the robot is so stiff
for that this noise hides it is what its measured torque holds at rest. The inverse kinematics of
the markers at the segments' ends, in closed form, is where each frame's fit begins (Valadas et al.
2024, Section III-A, has that alone). Rates are those of a polynomial through the last frames, at
its end.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_estimation.context import EstimationContext
from softcr_models.errors import UserError
from softcr_papers.valadas2024.strain.fitting import fitted_strains, strains_at_ends
from softcr_papers.valadas2024.strain.kinematics import planar_poses
from softcr_papers.valadas2024.strain.strain_model import LagrangianModel

_BASE = np.eye(4)[None, :3]
_HIDDEN = 0.1
"""A strain is hidden where the noise of a marker at the segment's end amounts to more than this
share of the largest torque."""


class ShapeSettings(BaseModel):
    """How markers count, and how rates are found."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    position_noise: float = Field(
        1e-4,
        gt=0.0,
        le=0.1,
        description="standard deviation of a marker's position",
        json_schema_extra={"unit": "m"},
    )
    angle_noise: float = Field(
        8.7e-3,
        gt=0.0,
        le=1.0,
        description="standard deviation of a marker's angle",
        json_schema_extra={"unit": "rad"},
    )
    window: int = Field(
        7,
        ge=2,
        le=100,
        description="number of frames from which rates are computed; with more they are smoother "
        "and later",
    )
    order: int = Field(2, ge=1, le=4, description="order of the polynomial through them")
    worst_fit: float = Field(
        10.0,
        gt=0.0,
        le=1e6,
        description="distance of the markers from the fitted shape, over the noise, beyond which a "
        "frame is ignored because markers were confused with each other",
    )


@dataclass(frozen=True, eq=False)
class ShapeEstimate:
    """What is known of a frame; see `Estimator`."""

    state: np.ndarray
    tip_position: np.ndarray
    tip_position_covariance: np.ndarray
    parameters: Mapping[str, float] = field(default_factory=dict)
    parameters_std: Mapping[str, float] = field(default_factory=dict)


class ShapeEstimator:
    """Finds strains and their rates from the poses of markers; see `Estimator`."""

    Settings = ShapeSettings

    def __init__(self, context: EstimationContext, settings: ShapeSettings) -> None:
        """Raises UserError where the model is of no strain robot."""
        model = context.model
        if not isinstance(model, LagrangianModel):
            raise UserError(
                f"estimator 'shape': needs the model strain, got {type(model).__name__}; it is for "
                "robots of type strain"
            )
        self._settings, self._numbers = settings, model.dynamics.numbers
        self._kinematics = model.dynamics.kinematics
        self._names = model.arm.bodies_seen
        self._places = np.r_[0.0, model.arm.marker_places]
        # markers of a learned file whose length is a little off lie on it all the same
        self._places *= self._kinematics.length / self._places[-1]
        self._weights = 1.0 / np.array(
            [settings.position_noise, settings.position_noise, settings.angle_noise]
        )
        self._held = self._of_stiffness(model)
        strains_at_ends(np.zeros((len(self._places), 3)), self._places, self._kinematics.lengths)
        self.reset()

    def _of_stiffness(self, model: LagrangianModel) -> np.ndarray:
        """(m,) strain per torque of strains that noise hides; 0 of the others."""
        active, settings = self._numbers.active, self._settings
        segments, kinds = np.divmod(active, 3)
        noise = np.where(kinds == 0, settings.angle_noise, settings.position_noise)
        torques = np.diag(model.dynamics.stiffness_matrix())
        hidden = torques * noise / self._kinematics.lengths[segments] > _HIDDEN * model.inputs.high
        return np.where(hidden, 1.0 / torques, 0.0)

    def reset(self) -> None:
        self._frames: deque[tuple[float, np.ndarray]] = deque(maxlen=self._settings.window)
        self._refused, self._last_fit = 0, 0.0

    def update(
        self, inputs: np.ndarray, measurements: Mapping[str, np.ndarray], stamp: float
    ) -> ShapeEstimate | None:
        """See Estimator; None of a frame without markers, or with a shape that is none."""
        if any(name not in measurements for name in self._names):
            return None
        seen = np.stack([measurements[name][:3] for name in self._names])
        poses = planar_poses(np.concatenate([_BASE, seen]))
        lengths = self._kinematics.lengths
        start = np.zeros(3 * len(lengths))
        found = strains_at_ends(poses, self._places, lengths)
        active, hidden = self._numbers.active, self._held > 0.0
        start[active] = np.where(hidden, self._held * inputs, found[active])
        strains, fit = fitted_strains(
            poses, self._places, lengths, active[~hidden], self._weights, start
        )
        self._last_fit = float(fit)
        if not fit <= self._settings.worst_fit:  # NaN is none, too
            self._refused += 1
            return None
        self._frames.append((stamp, strains[self._numbers.active]))
        state = np.concatenate(self._smoothed(stamp))
        tip = self._kinematics.tip(self._numbers.full(state[: self._numbers.size]))
        covariance = self._settings.position_noise**2 * np.eye(3)
        return ShapeEstimate(state, np.array([tip[0], 0.0, tip[1]]), covariance)

    def describe(self) -> dict[str, Any]:
        """Counts since `reset`, and how well the last frame's shape fits, over the noise."""
        return {"refused_frames": self._refused, "shape_fit": self._last_fit}

    def warnings(self) -> list[str]:
        """Signs that markers and robot do not belong together."""
        worst = self._settings.worst_fit
        if self._last_fit <= worst:
            return []
        return [f"markers are {self._last_fit:.3g} times their noise off any shape: not used"]

    def _smoothed(self, stamp: float) -> tuple[np.ndarray, np.ndarray]:
        """(m,) strains and rates now, of the polynomial through the last frames."""
        times = np.array([time for time, _ in self._frames]) - stamp
        strains = np.stack([each for _, each in self._frames])
        if len(times) < 2:
            return strains[-1], np.zeros_like(strains[-1])
        scale = -times[0]
        powers = np.vander(times / scale, min(self._settings.order, len(times) - 1) + 1, True)
        fit = np.linalg.pinv(powers)[:2] @ strains
        return fit[0], np.where(self._held > 0.0, 0.0, fit[1] / scale)

"""Where the tip of a tendon-driven arm should be, over time.

Every target but those of a file is the tip of a shape that the controller's own model can take
without elongation: all sections bend by the same angle in the same direction. So it is reachable,
whatever the arm's size.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_control.reference.references import tips_of_file
from softcr_models.errors import UserError
from softcr_papers.dalenberg2024.arm import Arm

_Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]

TipReferenceKind = Literal["setpoint", "trajectory", "tip_circle", "file"]

_GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))
"""From one setpoint's direction to the next: they never repeat [rad]."""

_PERIOD = 0.02
"""Between the rows of what moves [s]."""


class TipReferenceSettings(BaseModel):
    """What the tip should do.

    `setpoint`: one target. `trajectory`: a series of setpoints, each for `dwell`. `tip_circle`: a
    circle about the base's axis. `file`: a path with tips, see
    `softcr_control.reference.references.from_file`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: TipReferenceKind = Field(
        default="trajectory", description="one setpoint, a series of them, a circle or a file"
    )
    duration: _Positive = Field(
        default=60.0, le=3600.0, description="time after which it stands still [s]"
    )
    dwell: _Positive = Field(default=6.0, description="time at each setpoint [s]")
    bend: Annotated[float, Field(gt=0.0, le=1.5)] = Field(
        default=0.35, description="bending of each section, at setpoint and circle [rad]"
    )
    direction: Annotated[float, Field(allow_inf_nan=False)] = Field(
        default=0.5, description="direction of the first setpoint about z [rad]"
    )
    frequency: _Positive = Field(default=0.05, le=5.0, description="frequency of the circle [Hz]")
    file: str = Field(default="", description="CSV or NPZ file")


@dataclass(frozen=True, eq=False)
class TipReference:
    """Targets that hold, or points of a path.

    Attributes:
        times: (T,) rising, the first is 0 [s].
        tips: (T, 3) [m], in the frame of the arm's base with the world's axes.
        moving: whether the target moves from one row to the next, or jumps.
    """

    times: np.ndarray
    tips: np.ndarray
    moving: bool

    def at(self, time: float) -> np.ndarray:
        """(3,) target at a time [s]; before the first and after the last row that row holds."""
        if self.moving:
            return np.array([np.interp(time, self.times, axis) for axis in self.tips.T])
        row = np.searchsorted(self.times, time + 1e-9, side="right") - 1
        tip: np.ndarray = self.tips[max(int(row), 0)]
        return tip


def tip_reference(settings: TipReferenceSettings, arm: Arm) -> TipReference:
    """The reference of an arm.

    Raises:
        UserError: one line about the file, or a target beyond the arm's reach.
    """
    if settings.kind == "file":
        return _of_file(settings.file, arm)
    if settings.kind == "tip_circle":
        times = np.arange(0.0, settings.duration, _PERIOD)
        directions = settings.direction + 2.0 * np.pi * settings.frequency * times
        return TipReference(times, _tips(arm, np.full(len(times), settings.bend), directions), True)
    count = 1
    if settings.kind == "trajectory":
        count = int(np.ceil(settings.duration / settings.dwell - 1e-9))
    numbers = np.arange(count)
    # near and far in turn, so that the motions are of different lengths
    bends = settings.bend * (0.6 + 0.4 * (numbers % 3))
    if settings.kind == "setpoint":
        bends = np.array([settings.bend])
    tips = _tips(arm, bends, settings.direction + _GOLDEN_ANGLE * numbers)
    return TipReference(settings.dwell * numbers, tips, False)


def _tips(arm: Arm, bends: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """(T, 3) of the model bent by (T,) in each section, towards (T,) about z [m]."""
    straight = np.zeros_like(bends)
    sections = np.stack([bends * np.cos(directions), bends * np.sin(directions), straight], axis=-1)
    shapes = np.tile(sections, len(arm.racks))
    tips: np.ndarray = arm.model.position(shapes, arm.model_lengths)
    return tips


def _of_file(file: str, arm: Arm) -> TipReference:
    tips = tips_of_file(Path(file), _PERIOD)
    reach = 1.5 * arm.racks[-1]
    far = np.linalg.norm(tips, axis=1) > reach
    if far.any():
        row = int(far.argmax())
        raise UserError(
            f"{file}: tip {np.round(tips[row], 4).tolist()} m at {row * _PERIOD:g} s is beyond the "
            f"arm's reach, {reach:g} m with its tendons let out by half"
        )
    return TipReference(_PERIOD * np.arange(len(tips)), tips, True)

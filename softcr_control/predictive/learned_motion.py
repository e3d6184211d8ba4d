"""What repetitions of one motion have taught: by how much its tip's goal is shifted, over time, and
where the filter's parameters ended.

Iterative learning control: after each repetition the shift is moved against the error that the tip
still had (Bristow, Tharayil and Alleyne, IEEE Control Systems Magazine 26(3), 2006, eq. (5), with
an L filter of one number and a Q filter that smooths the error). It needs no model, and what
repeats from run to run, whatever causes it, fades; noise is passed on by gain and smoothing.
A filter that begins each run with the robot file's numbers and finds others on the way spoils each
run in another manner, which no shift takes back; so the next one begins where the last one ended.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from scipy.ndimage import gaussian_filter1d

from softcr_models.errors import UserError
from softcr_models.files.small_files import content_of
from softcr_runtime.bags.whole_files import write_whole

_Finite = Annotated[float, Field(allow_inf_nan=False)]


class LearnedMotion(BaseModel):
    """The content of a file of `softcr learn motion`.

    Attributes:
        robot: name of the robot that was taught.
        motion: settings that make the motion, by name.
        period: between rows [s].
        errors: of each repetition so far, the mean distance of the measured tip from its goal [m].
        shift: (T, 3) of the tip's goal from the motion's begin on [m], base frame; the last row
            holds.
        parameters: that the last repetition's filter ended with, by name [their units].
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    robot: str
    motion: dict[str, Any]
    period: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    errors: list[Annotated[float, Field(ge=0.0, allow_inf_nan=False)]]
    shift: Annotated[list[tuple[_Finite, _Finite, _Finite]], Field(min_length=1)]
    parameters: dict[str, _Finite] = {}

    @classmethod
    def load(cls, path: Path) -> "LearnedMotion":
        """Raises UserError where the file is not there, or is none of these."""
        try:
            return cls.model_validate_json(content_of(path), strict=True)
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "content"
            raise UserError(
                f"{path}: {where}: {first['msg']}; must be a file of `softcr learn motion`"
            ) from None

    def save(self, path: Path) -> None:
        """Raises UserError where it cannot be written."""
        write_whole(path, self.model_dump_json())

    def refuse_robot(self, path: Path, robot: str) -> None:
        """Raises UserError where it was learned of another robot."""
        if robot != self.robot:
            raise UserError(f"{path}: learned of robot {self.robot}, must be of {robot}")

    def refuse_others(self, path: Path, robot: str, motion: Mapping[str, Any]) -> None:
        """Raises UserError where it was learned of another robot or another motion."""
        self.refuse_robot(path, robot)
        for name in sorted({*self.motion, *motion}):
            mine, asked = self.motion.get(name), motion.get(name)
            if mine != asked:
                raise UserError(f"{path}: learned with {name} = {mine!r}, must be {asked!r}")

    def at(self, times: np.ndarray) -> np.ndarray:
        """(k, 3) shift [m] at times (k,) since the motion's begin [s], linear between rows."""
        rows = np.asarray(self.shift)
        grid = self.period * np.arange(len(rows))
        return np.stack([np.interp(times, grid, column) for column in rows.T], axis=1)


def shift_after(
    shift: np.ndarray, error: np.ndarray, gain: float = 0.7, width: float = 1.5
) -> np.ndarray:
    """(T, 3) shift for the next repetition [m].

    Args:
        shift: (T, 3) of this one [m].
        error: (T, 3) tip minus goal in this one [m], on the same grid.
        gain: share of the error that is answered.
        width: standard deviation of the window that smooths the error [rows]; 0: none. What is
            faster than the loop can follow must not be answered.
    """
    smooth = gaussian_filter1d(error, width, axis=0, mode="nearest") if width else error
    return np.asarray(shift - gain * smooth)

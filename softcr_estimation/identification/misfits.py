"""How well a robot's model explains recordings: a residual of every group, beside its noise."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from softcr_models.identification.measured_groups import Group, groups_of
from softcr_models.identification.rod_identification import Recording
from softcr_models.robots.robot import Robot

Where = Literal["rest", "motion"]

_SUSPICIOUS = 4.0, 0.1
_BAD = 20.0, 0.3
"""Times the noise, and of what is recorded: a residual above both is not one of this robot. Real
arms are left with 2 % of their length, ten times the noise of cameras (Licher et al. 2025)."""
_RESTING = 0.1  # of the robot's length: positions that move less are judged as if they moved so far


@dataclass(frozen=True)
class Misfit:
    """What is left of one group.

    Attributes:
        where: at rest or in motion.
        group: of three numbers.
        residual: root mean square of a number, predicted minus measured [unit of the group].
        size: root mean square of a number that was recorded [unit]; of positions about their mean.
    """

    where: Where
    group: Group
    residual: float
    size: float

    @property
    def times_noise(self) -> float:
        """The residual in standard deviations of the sensor's noise; inf where it has none."""
        return self.residual / self.group.noise if self.group.noise else np.inf

    @property
    def suspicious(self) -> bool:
        """Whether it is worth looking for a mistake in the recording."""
        return self._above(*_SUSPICIOUS)

    @property
    def bad(self) -> bool:
        """Whether the recording is not of this robot, or not what it seems."""
        return self._above(*_BAD)

    def _above(self, times: float, share: float) -> bool:
        fits = self.times_noise <= times or self.residual <= share * self.size
        return self.group.fitted and not fits


def misfits(
    where: Where, robot: Robot, recording: Recording, predicted: Mapping[str, np.ndarray]
) -> tuple[Misfit, ...]:
    """A misfit for each group of a recording, of what a model of the robot predicts of it."""
    judged = slice(recording.run_in, None)
    found = []
    for group in groups_of(robot):
        if group.name not in recording.outputs:
            continue
        measured = recording.outputs[group.name][judged]
        if not np.isfinite(measured).any():
            continue
        off = group.off(predicted[group.name][judged], measured)
        position = group.unit == "m"
        seen = np.isfinite(measured).any(axis=0)  # cameras may see two coordinates alone
        centre = np.zeros(3)
        if position:
            centre[seen] = np.nanmean(measured[:, seen], axis=0)
        size = max(rms(measured - centre), _RESTING * robot.length * position)
        # what diverges is infinitely far off
        lost = np.isfinite(measured).any(axis=1) & ~np.isfinite(off).any(axis=1)
        found.append(Misfit(where, group, np.inf if lost.any() else rms(off), size))
    return tuple(found)


def rms(values: np.ndarray) -> float:
    """Root of the mean square of what is known."""
    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if known.size else 0.0


def worst(found: Iterable[Misfit]) -> Misfit:
    """The misfit with the largest residual in units of noise."""
    return max(found, key=lambda each: each.times_noise)


SCALES = {"m": (1e3, "mm"), "rad": (180.0 / np.pi, "deg"), "N": (1.0, "N"), "N m": (1e3, "N mm")}
"""Of a unit to the one that people use, and that one's name."""


def in_words(group: Group, value: float) -> str:
    """A number of a group, in the unit that people use."""
    factor, unit = SCALES[group.unit]
    return f"{factor * value:.3g} {unit}"

"""Readings of a Net F/T in SI units, and which of them are believed."""

import math
from collections import Counter
from dataclasses import dataclass

import pynetft
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

NEWTONS = {
    pynetft.ForceUnit.NEWTON: 1.0,
    pynetft.ForceUnit.KILO_NEWTON: 1e3,
    pynetft.ForceUnit.POUND_FORCE: 4.4482216152605,
    pynetft.ForceUnit.KILO_POUND_FORCE: 4448.2216152605,
    pynetft.ForceUnit.KILOGRAM_FORCE: 9.80665,
}
"""Of the units a sensor may be calibrated in; exact by definition of pound and kilogram-force."""

NEWTON_METRES = {
    pynetft.TorqueUnit.NEWTON_METER: 1.0,
    pynetft.TorqueUnit.NEWTON_MILLIMETER: 1e-3,
    pynetft.TorqueUnit.KILO_NEWTON_METER: 1e3,
    pynetft.TorqueUnit.POUND_FORCE_INCH: 4.4482216152605 * 0.0254,
    pynetft.TorqueUnit.POUND_FORCE_FOOT: 4.4482216152605 * 0.3048,
    pynetft.TorqueUnit.KILOGRAM_FORCE_CENTIMETER: 9.80665 * 0.01,
}

_SECOND: JsonDict = {"unit": "s"}


@dataclass(frozen=True)
class Reading:
    """One record of the sensor.

    Attributes:
        time: when it came, on the monotonic clock [s]; the sensor tells no time.
        sequence: counts the sensor's own samples, 32 bits.
        counts: six, as they came.
        wrench: force [N] and moment [N m]; NaN in a unit we do not know.
        status: of the sensor, 0 for good.
    """

    time: float
    sequence: int
    counts: tuple[int, ...]
    wrench: tuple[float, ...]
    status: int


def reading(sample: pynetft.Sample) -> Reading:
    """A sample of pynetft, which has applied the sensor's own calibration, in SI units."""
    force_unit = NEWTONS.get(sample.force_unit, math.nan)
    moment_unit = NEWTON_METRES.get(sample.torque_unit, math.nan)
    force = (force_unit * value for value in sample.force)
    moment = (moment_unit * value for value in sample.torque)
    return Reading(
        sample.received_at_ns * 1e-9,
        sample.ft_sequence,
        sample.raw_wrench,
        (*force, *moment),
        sample.status,
    )


class WrenchLimits(BaseModel):
    """What a believable wrench is."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    force: float = Field(
        default=100.0,
        gt=0,
        le=1e6,
        description="rated range of the sensor, of each axis; beyond is overload",
        json_schema_extra={"unit": "N"},
    )
    moment: float = Field(
        default=10.0,
        gt=0,
        le=1e6,
        description="rated range of the sensor, of each axis; beyond is overload",
        json_schema_extra={"unit": "N m"},
    )
    oldest: float = Field(
        default=0.05, gt=0, le=10, description="age of a reading", json_schema_extra=_SECOND
    )
    frozen_after: float = Field(
        default=0.2,
        ge=0,
        le=10,
        description="the very same counts for so long; 0 for never",
        json_schema_extra=_SECOND,
    )


class WrenchJudge:
    """Believes a reading that is new, young, finite, in range and not the very same for long.

    Attributes:
        refused: readings that were not believed, by reason.
        trouble: why the newest was not; empty if it was.
    """

    def __init__(self, limits: WrenchLimits):
        """Nothing seen."""
        self._limits = limits
        self._range = (*[limits.force] * 3, *[limits.moment] * 3)
        self.refused: Counter[str] = Counter()
        self.trouble = ""
        self._newest = -math.inf
        self._counts: tuple[int, ...] = ()
        self._same_since = 0.0

    def believes(self, now: float, seen: Reading) -> bool:
        """Whether a reading may be used at `now` [s]; if not, `trouble` says why."""
        self.trouble = self._judged(now, seen)
        if self.trouble:
            self.refused[self.trouble] += 1
        return not self.trouble

    def _judged(self, now: float, seen: Reading) -> str:
        if not seen.time > self._newest:
            return "not newer"
        if not now - seen.time <= self._limits.oldest:
            return "too old"
        if seen.time > now + self._limits.oldest:  # it may come while we look at the clock
            return "stamp in the future"
        self._newest = seen.time
        if seen.counts != self._counts:
            self._counts, self._same_since = seen.counts, seen.time
        if 0.0 < self._limits.frozen_after <= seen.time - self._same_since:
            return "frozen"
        if not all(map(math.isfinite, seen.wrench)):
            return "not finite, or a unit that is not known"
        if any(abs(value) > most for value, most in zip(seen.wrench, self._range, strict=True)):
            return "overload"
        return ""

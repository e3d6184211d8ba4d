"""Readings of a Net F/T in SI units, and which of them are believed."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pynetft
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

SENSOR_RATE = 7000.0
"""At which a Net F/T counts its own samples [Hz]."""

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


@dataclass(frozen=True, eq=False)
class Readings:
    """Records of the sensor, the oldest first.

    Attributes:
        times: (n,) when each was measured, as far as known; else when it came [s].
        sequences: (n,) count of the sensor's own samples, 32 bits.
        counts: (n, 6) as they came.
        wrenches: (n, 6) force [N] and moment [N m]; NaN in a unit we do not know.
        statuses: (n,) of the sensor, 0 for good.
    """

    times: np.ndarray
    sequences: np.ndarray
    counts: np.ndarray
    wrenches: np.ndarray
    statuses: np.ndarray

    @classmethod
    def of(cls, samples: Sequence[pynetft.Sample]) -> "Readings":
        """Of samples of pynetft, which has applied the sensor's own calibration, in SI units."""
        forces = [NEWTONS.get(sample.force_unit, math.nan) for sample in samples]
        moments = [NEWTON_METRES.get(sample.torque_unit, math.nan) for sample in samples]
        wrenches = np.array([(*sample.force, *sample.torque) for sample in samples], dtype=float)
        return cls(
            1e-9 * np.array([sample.received_at_ns for sample in samples], dtype=float),
            np.array([sample.ft_sequence for sample in samples], dtype=np.int64),
            np.array([sample.raw_wrench for sample in samples], dtype=np.int64).reshape(-1, 6),
            wrenches.reshape(-1, 6) * np.repeat(np.array([forces, moments]).T, 3, axis=1),
            np.array([sample.status for sample in samples], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.times)

    def where(self, chosen: np.ndarray) -> "Readings":
        """Those of a mask (n,)."""
        return Readings(
            self.times[chosen],
            self.sequences[chosen],
            self.counts[chosen],
            self.wrenches[chosen],
            self.statuses[chosen],
        )


class WrenchLimits(BaseModel):
    """What a believable wrench is."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    force: float = Field(
        default=100.0,
        gt=0,
        le=1e6,
        description="rated range of the sensor for each axis; beyond it is an overload",
        json_schema_extra={"unit": "N"},
    )
    moment: float = Field(
        default=10.0,
        gt=0,
        le=1e6,
        description="rated range of the sensor for each axis; beyond it is an overload",
        json_schema_extra={"unit": "N m"},
    )
    oldest: float = Field(
        default=0.05, gt=0, le=10, description="largest age of a reading", json_schema_extra=_SECOND
    )
    frozen_after: float = Field(
        default=0.2,
        ge=0,
        le=10,
        description="time with identical counts after which readings count as frozen; 0: never",
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
        self._range = np.repeat([limits.force, limits.moment], 3)
        self.refused: Counter[str] = Counter()
        self.trouble = ""
        self._newest = self._same_since = -math.inf
        self._counts = np.full(6, 2**40)  # none of 32 bits

    def believes(self, now: float, seen: Readings) -> np.ndarray:
        """Which readings may be used at `now` [s], as a mask (n,); `trouble` says why not."""
        reasons = {
            "not newer": self._not_newer(now, seen.times),
            "too old": ~(now - seen.times <= self._limits.oldest),
            # it may come while we look at the clock
            "stamp in the future": seen.times > now + self._limits.oldest,
        }
        timely = ~np.any(list(reasons.values()), axis=0)
        reasons |= {
            "frozen": self._frozen(seen.times, seen.counts, timely),
            "not finite, or a unit that is not known": ~np.isfinite(seen.wrenches).all(axis=1),
            "overload": (np.abs(seen.wrenches) > self._range).any(axis=1),
        }
        believed = np.ones(len(seen), dtype=bool)
        for reason, broken in reasons.items():
            first = broken & believed  # a reading is refused for one reason
            believed &= ~broken
            if first.any():
                self.refused[reason] += int(first.sum())
            if len(seen) and first[-1]:
                self.trouble = reason
        if len(seen) and believed[-1]:
            self.trouble = ""
        return believed

    def _not_newer(self, now: float, times: np.ndarray) -> np.ndarray:
        """Also those whose time is no number; what is no time of ours is newer than nothing."""
        oldest = self._limits.oldest
        possible = (now - times <= oldest) & (times <= now + oldest)
        newest = np.maximum.accumulate(np.r_[self._newest, np.where(possible, times, -math.inf)])
        self._newest = newest[-1]
        return ~(times > newest[:-1])

    def _frozen(self, times: np.ndarray, counts: np.ndarray, timely: np.ndarray) -> np.ndarray:
        """Those that say the very same as all before them for too long."""
        frozen, lasting = np.zeros(len(times), dtype=bool), self._limits.frozen_after
        times, counts = times[timely], counts[timely]
        if not len(times):
            return frozen
        changed = (np.diff(counts, axis=0, prepend=self._counts[np.newaxis]) != 0).any(axis=1)
        since = np.where(changed, times, -math.inf)
        since[0] = max(since[0], self._same_since)
        since = np.maximum.accumulate(since)
        self._counts, self._same_since = counts[-1], since[-1]
        frozen[timely] = (lasting > 0.0) & (times - since >= lasting)
        return frozen

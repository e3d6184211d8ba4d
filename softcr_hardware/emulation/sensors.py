"""Emulated pressure sensors: honest but for noise, or lying as a person types it.

What is typed, with chambers by number from 1 or by name:

    CHAMBER FAULT      as `2 stuck`, `1 offset -1 kPa/s`, `3 slope 0.7 in 10 s`: see fault_shapes
    CHAMBER ok         the faults of that chamber are over; `ok` alone: all are
    swapped A B        the sensors of two chambers are exchanged
    supply FACTOR      of all chambers

Faults of a chamber come on top of each other; the same shape again takes the place of the first.
"""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from softcr_hardware.emulation.chambers import SENSOR_NOISE
from softcr_hardware.emulation.fault_shapes import GivenFault, given_fault, known_shapes
from softcr_hardware.emulation.virtual_channel import FROZEN, HELD, NO_HOLD, Course
from softcr_models.errors import UserError

_LONGEST_LAG_STEP = 1.0  # [s] between readings, beyond which a lag is over


@dataclass(frozen=True)
class _Begun:
    """A fault that goes on."""

    given: GivenFault
    began: float  # [s]


@dataclass(frozen=True)
class Moment:
    """What all faults of a chamber make of it at a moment: a Course of one point, joined."""

    slope: float = 1.0
    offset: float = 0.0
    step: float = 0.0
    hold: int = NO_HOLD
    lag: float = 0.0
    leak: float = 0.0
    stuck: float = math.nan
    supply: float = 1.0

    def joined(self, course: Course) -> "Moment":
        """With another fault on top."""
        told = {
            field.name: float(values[0])
            for field in fields(course)
            if (values := getattr(course, field.name)) is not None
        }
        return Moment(
            self.slope * told.get("slope", 1.0),
            self.offset + told.get("offset", 0.0),
            max(self.step, told.get("step", 0.0)),
            int(told.get("hold", NO_HOLD)) or self.hold,
            max(self.lag, told.get("lag", 0.0)),
            self.leak + told.get("leak", 0.0),
            told.get("stuck", self.stuck),
            self.supply * told.get("supply", 1.0),
        )


_HONEST = Moment()


class EmulatedSensors:
    """What sensors say of pressures. Faults may be typed from another thread.

    Attributes:
        names: of the chambers.
        noise: of each sensor, standard deviation [Pa].
        order: (m,) whose pressure each sensor reads.
        lying: whether any fault goes on.
    """

    def __init__(self, names: Sequence[str], noise: float = SENSOR_NOISE, seed: int = 0):
        """Honest.

        Args:
            names: of the chambers, (m,).
            noise: standard deviation [Pa].
            seed: of the noise.
        """
        self.names, self.noise = tuple(names), noise
        self.order = np.arange(len(names))
        self.lying = False
        self._random, self._others = np.random.default_rng(seed), np.random.default_rng((seed, 1))
        self._faults: dict[tuple[int, str], _Begun] = {}
        self._lock = threading.Lock()
        self._time: float | None = None
        self._shown = np.zeros(len(names))  # behind each sensor's line [Pa]
        self._last = np.zeros(len(names))  # pressure that a stuck one goes on with [Pa]
        self._reading = np.zeros(len(names))  # [Pa]
        self._all_new = np.ones(len(names), bool)

    def type(self, words: Sequence[str]) -> None:
        """Begin or end a fault; it begins with the next reading.

        Raises:
            UserError: no such chamber or fault.
        """
        typed, first = " ".join(words), words[0] if words else ""
        with self._lock:
            if list(words) == ["ok"]:
                self._faults.clear()
                self.order = np.arange(len(self.names))
            elif first == "swapped":
                if len(words) != 3:
                    raise UserError(f"fault {typed!r}: must be swapped CHAMBER CHAMBER")
                one, other = self._chamber(words[1]), self._chamber(words[2])
                self.order[[one, other]] = self.order[[other, one]]
            elif first == "supply":
                for chamber in range(len(self.names)):
                    self._begin(chamber, given_fault(words))
            elif len(words) > 1:
                chamber = self._chamber(first)
                if list(words[1:]) == ["ok"]:
                    gone = [key for key in self._faults if key[0] == chamber]
                    for key in gone:
                        del self._faults[key]
                else:
                    self._begin(chamber, given_fault(words[1:]))
            else:
                raise UserError(
                    f"fault {typed!r}: must be CHAMBER FAULT, swapped CHAMBER CHAMBER or ok; "
                    f"CHAMBER from 1 to {len(self.names)} or its name, FAULT {known_shapes()}"
                )
            exchanged = bool((self.order != np.arange(len(self.names))).any())
            self.lying = exchanged or bool(self._faults)

    def _begin(self, chamber: int, given: GivenFault) -> None:
        self._faults[chamber, given.shape.name] = _Begun(given, math.nan)

    def _chamber(self, word: str) -> int:
        if word in self.names:
            return self.names.index(word)
        if word.isdecimal() and 1 <= int(word) <= len(self.names):
            return int(word) - 1
        known = ", ".join(self.names)
        raise UserError(f"chamber {word!r}: must be from 1 to {len(self.names)}, or one of {known}")

    def honest(self, pressure: float) -> float:
        """What another sensor with the same noise says of a pressure [Pa]: a second one of a
        chamber, or the supply's gauge."""
        return pressure + self.noise * float(self._others.standard_normal())

    def moments(self, time: float) -> list[Moment]:
        """(m,) of every chamber at `time` [s]; a fault that was typed begins now."""
        found = [_HONEST] * len(self.names)
        if not self._faults:
            return found
        with self._lock:
            for key, fault in list(self._faults.items()):
                if math.isnan(fault.began):
                    self._faults[key] = fault = _Begun(fault.given, time)
                course = fault.given.course(np.array([max(time - fault.began, 0.0)]))
                found[key[0]] = found[key[0]].joined(course)
        return found

    def read(self, time: float, pressures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What they say at `time` [s].

        Args:
            time: not before the last.
            pressures: (m,) true ones [Pa].

        Returns:
            (m,) readings [Pa], and (m,) whether each converter made a new one; to be read only.
        """
        noise = self.noise * self._random.standard_normal(len(pressures))
        seen = pressures[self.order]
        if self._time is None:
            self._time, self._shown, self._last = time, seen.copy(), seen.copy()
            self._reading = seen + noise
        elapsed, self._time = time - self._time, time
        if not self._faults:  # nearly always: this is done once in each cycle of the bus
            self._shown, self._last, self._reading = seen, seen, seen + noise
            return self._reading, self._all_new
        renewed = self._all_new.copy()
        # those of before are not changed: who was given them may keep them
        self._shown, self._last = self._shown.copy(), self._last.copy()
        self._reading = self._reading.copy()
        for chamber, moment in enumerate(self.moments(time)):
            lagging = moment.lag > 0.0 and elapsed < _LONGEST_LAG_STEP
            share = -math.expm1(-elapsed / moment.lag) if lagging else 1.0
            self._shown[chamber] += share * (seen[chamber] - self._shown[chamber])
            if moment.hold == NO_HOLD:
                self._last[chamber] = self._shown[chamber]
            renewed[chamber] = moment.hold != FROZEN
            if moment.hold in (HELD, FROZEN):
                continue
            reading = moment.slope * self._last[chamber] + moment.offset + noise[chamber]
            if moment.step > 0.0:
                reading = moment.step * round(reading / moment.step)
            self._reading[chamber] = reading
        return self._reading, renewed

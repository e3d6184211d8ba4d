"""Checks of the pressure sensors: which of their samples are accepted.

Compiled, as the pressure loop: it is looked at a thousand times a second.
"""

import math

import numpy as np

from softcr_hardware.ethercat.process_data import ProcessData, Sample
from softcr_hardware.ethercat.terminals import Station
from softcr_models.room_kernels import compiled, one_compiles

_NOISE = 1000.0
"""A sample may lie this far beyond what the valves can do [Pa]."""
_SLOW = 5
"""A terminal that says the same in so many exchanges is slow; a time would count our own pauses."""
_LONG_GAP = 0.002
"""After a longer gap an unchanged toggle says nothing: it may have changed twice [s]."""
_REACH_TIME = 0.005
"""The valves' reach stops growing there [s]: else any garbage is within it sooner or later."""
_STUBBORN = 0.2
"""A value refused for so long as a jump is believed again: it is where the pressure is [s]."""

_REPEATED, _BROKEN, _JUMP, _BELIEVED, _STUBBORN_ONE = range(5)
"""What became of a sample; the last: believed although it jumps."""


class PressureSensors:
    """Believes a sample that its terminal calls good, that is new, and that the valves could reach.

    A fully open valve changes a pressure by `Flow` at most; from the last believed value a sample
    may be as far as that allows in the time since, 5 ms at most. A wrong offset that comes slowly,
    or stays within it, is seen only when the valves are enabled: chambers must then read empty.

    Attributes:
        pressures: (m,) believed last [Pa]; NaN before the first.
        shown: (m,) of the last sample, believed or not [Pa].
        refused: samples that were not believed, by reason.
    """

    def __init__(self, station: Station, data: ProcessData, averaged: int = 1):
        """Nothing seen yet; `mean` is that of the newest `averaged` samples."""
        chambers = len(station.chambers)
        self._data = data
        self._fastest = station.flow.supply * max(station.flow.fill_rate, station.flow.exhaust_rate)
        self.refused = {"broken": 0, "jump": 0}
        self._newest = np.empty((averaged, 1 + chambers))  # ring of moments [s] and pressures [Pa]
        self._told_volts = np.empty(chambers)
        self._told_toggles = np.empty(chambers, bool)
        nothing = np.zeros(chambers, bool)
        self.forget()
        with one_compiles():
            self.see(0.0, Sample(np.zeros(chambers), nothing, nothing))
            self.mean()
            furthest_pressures(self.pressures, self.pressures)
        self.forget()

    def forget(self) -> None:
        """Begin again, as after a loss of the bus."""
        self.pressures = self.shown = np.full(len(self._data.zero), math.nan)
        self._believed = -math.inf  # when
        self._seen = -math.inf
        self._repeated = 0  # exchanges without a new value
        self._jumping = math.inf  # since when
        self._count = 0  # of samples believed
        self._told_volts.fill(math.nan)

    def see(self, time: float, sample: Sample) -> bool:
        """A sample of the wire at `time` [s]; returns whether it was refused, or believed only
        because it stays where it is."""
        gap, self._seen = time - self._seen, time
        pressures = np.empty(len(self.pressures))
        found = _look(
            self._told_volts, self._told_toggles, self._newest, self._count,
            sample.volts, sample.toggles, sample.broken, self._data.zero, self._data.slope,
            self.pressures, time, _NOISE + self._fastest * min(time - self._believed, _REACH_TIME),
            gap <= _LONG_GAP, time - self._jumping < _STUBBORN or self._jumping > time, pressures,
        )  # fmt: skip
        self.shown = pressures
        if found == _REPEATED:
            self._repeated += 1
            return False
        self._repeated = 0
        if found == _BROKEN:
            self.refused["broken"] += 1
            return True
        if found != _BELIEVED:
            self.refused["jump"] += 1
            self._jumping = min(self._jumping, time)
            if found == _JUMP:
                return True
        self._jumping = math.inf
        self.pressures, self._believed = pressures, time
        self._count += 1
        return found == _STUBBORN_ONE

    def mean(self) -> tuple[float, np.ndarray]:
        """Of the newest believed samples: their mean time [s], and pressures (m,) [Pa].

        A mean that is stamped with its middle does not lag; it has less noise than a sample.
        """
        if self._count == 0:
            return -math.inf, self.pressures
        means = np.empty(len(self.pressures))
        return _mean(self._newest, self._count, means), means

    def age(self, time: float) -> float:
        """Of the last believed sample [s]."""
        return time - self._believed

    @property
    def slow(self) -> bool:
        """Whether the terminals bring new values less often than they are asked."""
        return self._repeated >= _SLOW


@compiled
def _look(
    told_volts: np.ndarray,
    told_toggles: np.ndarray,
    newest: np.ndarray,
    count: int,
    volts: np.ndarray,
    toggles: np.ndarray,
    broken: np.ndarray,
    zero: np.ndarray,
    slope: np.ndarray,
    before: np.ndarray,
    time: float,
    reach: float,
    soon: bool,
    patient: bool,
    pressures: np.ndarray,
) -> int:
    """What becomes of a sample.

    Args:
        told_volts, told_toggles: (m,) of the sample before; replaced.
        newest: (averaged, 1 + m) ring of what is believed, the place of number `count` is written.
        count: of samples believed.
        volts, toggles, broken: (m,) of the sample.
        zero, slope: (m,) of the sensors [V], [Pa/V].
        before: (m,) pressures believed last [Pa].
        time: of the sample [s].
        reach: how far the valves can have brought a pressure [Pa].
        soon: whether an unchanged toggle says that nothing is new.
        patient: whether a jump is refused still.
        pressures: (m,) of the sample, filled in [Pa].
    """
    # a terminal that runs free may toggle twice between two exchanges: values tell as well
    same, bad, jumps = soon, False, False
    for index in range(len(volts)):
        same = same and volts[index] == told_volts[index] and toggles[index] == told_toggles[index]
        told_volts[index], told_toggles[index] = volts[index], toggles[index]
        bad = bad or broken[index]
        pressures[index] = (volts[index] - zero[index]) * slope[index]
        moved = pressures[index] - before[index]
        jumps = jumps or moved > reach or moved < -reach  # NaN before the first: believed
    if same:
        return _REPEATED
    if bad:
        return _BROKEN
    if jumps and patient:
        return _JUMP
    row = newest[count % len(newest)]
    row[0] = time
    row[1:] = pressures
    return _STUBBORN_ONE if jumps else _BELIEVED


@compiled
def _mean(newest: np.ndarray, count: int, means: np.ndarray) -> float:
    """Mean time [s] of a ring into which `count` samples were written; fills in the mean pressures
    (m,) [Pa]."""
    known, time = min(count, len(newest)), 0.0
    means[:] = 0.0
    for number in range(count - known, count):  # oldest first
        row = newest[number % len(newest)]
        time += row[0]
        means += row[1:]
    means /= known
    return time / known


@compiled
def furthest_pressures(pressures: np.ndarray, wanted: np.ndarray) -> tuple[float, float]:
    """The highest of pressures (m,), and the largest distance from what was wanted (m,) [Pa];
    infinite where a pressure is not finite."""
    highest, error = -math.inf, 0.0
    for index in range(len(pressures)):
        if not math.isfinite(pressures[index]):
            return math.inf, math.inf
        highest = max(highest, pressures[index])
        error = max(error, abs(pressures[index] - wanted[index]))
    return highest, error

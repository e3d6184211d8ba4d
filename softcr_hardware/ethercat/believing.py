"""Which pressure samples are believed: the door that every value of a sensor comes through."""

import math
from collections import deque

import numpy as np

from softcr_hardware.ethercat.process_data import ProcessData, Sample
from softcr_hardware.ethercat.terminals import Station

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


class PressureSensors:
    """Believes a sample that its terminal calls good, that is new, and that the valves could reach.

    A fully open valve changes a pressure by `Flow` at most; from the last believed value a sample
    may be as far as that allows in the time since, 5 ms at most. A wrong offset that comes slowly,
    or stays within it, is seen only when the valves are enabled: chambers must then read empty.

    Attributes:
        pressures: (m,) believed last [Pa]; NaN before the first.
        refused: samples that were not believed, by reason.
    """

    def __init__(self, station: Station, data: ProcessData, averaged: int = 1):
        """Nothing seen yet; `mean` is that of the newest `averaged` samples."""
        chambers = len(station.chambers)
        self._moments: deque[float] = deque(maxlen=averaged)
        self._newest = [deque[float](maxlen=averaged) for _ in range(chambers)]
        self._data = data
        self._fastest = station.flow.supply * max(station.flow.fill_rate, station.flow.exhaust_rate)
        self.refused = {"broken": 0, "jump": 0}
        self.forget()

    def forget(self) -> None:
        """Begin again, as after a loss of the bus."""
        self.pressures = np.full(len(self._data.zero), math.nan)
        self._believed = -math.inf  # when
        self._seen = -math.inf
        self._repeated = 0  # exchanges without a new value
        self._jumping = math.inf  # since when
        self._told: tuple[list[bool], list[float]] = [], []
        for each in (self._moments, *self._newest):
            each.clear()

    def see(self, time: float, sample: Sample) -> None:
        """A sample of the wire at `time` [s]."""
        # a terminal that runs free may toggle twice between two exchanges: values tell as well
        told = sample.toggles.tolist(), sample.volts.tolist()
        same = told == self._told
        gap, self._seen, self._told = time - self._seen, time, told
        if same and gap <= _LONG_GAP:
            self._repeated += 1
            return
        self._repeated = 0
        if True in sample.broken.tolist():
            self.refused["broken"] += 1
            return
        pressures = self._data.pressures(sample.volts)
        reach = _NOISE + self._fastest * min(time - self._believed, _REACH_TIME)
        moved = (pressures - self.pressures).tolist()
        if max(moved) > reach or min(moved) < -reach:  # NaN before the first: believed
            self.refused["jump"] += 1
            self._jumping = min(self._jumping, time)
            if time - self._jumping < _STUBBORN:
                return
        self._jumping = math.inf
        self.pressures, self._believed = pressures, time
        self._moments.append(time)
        for readings, pressure in zip(self._newest, pressures.tolist(), strict=True):
            readings.append(pressure)

    def mean(self) -> tuple[float, np.ndarray]:
        """Of the newest believed samples: their mean time [s], and pressures (m,) [Pa].

        A mean that is stamped with its middle does not lag; it has less noise than a sample.
        """
        count = len(self._moments)
        if count == 0:
            return -math.inf, self.pressures
        means = np.array([sum(readings) / count for readings in self._newest])
        return sum(self._moments) / count, means

    def age(self, time: float) -> float:
        """Of the last believed sample [s]."""
        return time - self._believed

    @property
    def slow(self) -> bool:
        """Whether the terminals bring new values less often than they are asked."""
        return self._repeated >= _SLOW

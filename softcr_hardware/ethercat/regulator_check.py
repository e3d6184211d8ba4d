"""The arming test of pressure regulators: a command of 4 kPa to one at a time, and back.

As with flow valves all exhausts are open first, for 300 samples. Then the commanded chamber's own
sensor must read between half and one and a half of the command, no other one more than 1 kPa, and
its own no more than that once the command has gone back.
"""

import numpy as np

from softcr_hardware.ethercat.arming_check import RISE, ArmingTest, Phase
from softcr_hardware.ethercat.terminals import PressureRegulator, Station

_LAGS, _MORE = 8.0, 0.15  # a step has settled after so many lags, and so long [s]
_MEASURED = 0.1  # [s] at the end of a step
_LEAST, _MOST = 0.5, 1.5  # of the command, as read
_NOTHING = 1e3
"""A chamber that nobody commands reads less [Pa]."""


class RegulatorTest(ArmingTest):
    """`ArmingTest` of a station whose valves are pressure regulators."""

    def _prepare(self, station: Station) -> None:
        regulator = station.valve
        assert isinstance(regulator, PressureRegulator)
        share = RISE / regulator.range
        self._pressed = regulator.empty + share * (regulator.full - regulator.empty)
        self._step_time = _LAGS * regulator.lag + _MORE

    def _go_on(self, now: float) -> np.ndarray:
        time = now - self._began
        if time >= 2.0 * self._step_time:
            self._judge(now)
            return self._exhaust
        commands = self._exhaust.copy()
        if time < self._step_time:
            commands[self._channel] = self._pressed
        return commands

    def _judge(self, now: float) -> None:
        """What the sensors have read while commanded, and after."""
        held, after = (self._mean_until(steps * self._step_time) for steps in (1.0, 2.0))
        own, name = self._channel, self._names[self._channel]
        for index, other in enumerate(self._names):
            if index == own and not _LEAST * RISE <= held[index] <= _MOST * RISE:
                self.failure = (
                    f"{name}: reads {held[index] / 1e3:.1f} kPa of a command of {RISE / 1e3:.1f} "
                    f"kPa, must be {_LEAST * RISE / 1e3:.1f} to {_MOST * RISE / 1e3:.1f} kPa"
                )
            elif index != own and not abs(held[index]) <= _NOTHING:
                self.failure = (
                    f"{other}: reads {held[index] / 1e3:.1f} kPa while {name} is commanded: "
                    "regulators, hoses or sensors are swapped"
                )
            elif index == own and not abs(after[index]) <= _NOTHING:
                self.failure = (
                    f"{name}: reads {after[index] / 1e3:.1f} kPa after its command has gone back, "
                    f"must be at most {_NOTHING / 1e3:.1f} kPa"
                )
            if self.failure:
                return
        self._channel += 1
        self._begin(now)
        if self._channel == len(self._names):
            self._phase = Phase.REST

    def _mean_until(self, end: float) -> np.ndarray:
        """(m,) mean readings of the last moments before a time of the pulse [Pa]; NaN for none."""
        times = np.array(self._times)
        there = (times >= end - _MEASURED) & (times < end)
        if not there.any():
            return np.full(len(self._names), np.nan)
        return np.asarray(np.array(self._pressures)[there].mean(axis=0))

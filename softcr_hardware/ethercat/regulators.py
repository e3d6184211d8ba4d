"""Proportional pressure regulators: commands instead of a pressure loop, and a guard without flow.

A regulator has a loop of its own, so nothing here regulates on a sensor: a lying one moves no air.
Its chamber follows the command c with a first-order lag T. So that it follows the setpoint s as a
chamber behind flow valves does, with the pole k = `proportional` of the station file,

    dx/dt = k (s - x),    c = x + T dx/dt.

The sensors compare: each reading with where the regulator should have brought its chamber, by the
command that acted; beyond a bound for some time is a fault, as are a sensor that stands still, a
pressure above the limit, and two sensors that differ.
"""

import math
from typing import Any

import numpy as np

from softcr_hardware.ethercat.pressure_guard.detectors import (
    PressureFault,
    fault_of_reading,
    look_beyond,
)
from softcr_hardware.ethercat.pressure_guard.following import is_astray
from softcr_hardware.ethercat.pressure_guard.freshness import look_at_reading
from softcr_hardware.ethercat.pressure_guard.guard import PressureGuard
from softcr_hardware.ethercat.pressure_guard.records import CONSTANTS, Record
from softcr_hardware.ethercat.terminals import Flow, Gains, PressureRegulator
from softcr_models.errors import UserError
from softcr_models.room_kernels import compiled

_ASTRAY = int(PressureFault.ASTRAY)


class RegulatorLoop:
    """Commands of pressure regulators, in the place of a `PressureLoop`.

    Attributes:
        closed: kept for who asks; measured pressures are never used.
        constants: (1,) CONSTANTS of the regulators.
    """

    def __init__(
        self,
        gains: Gains,
        flow: Flow,
        regulator: PressureRegulator,
        chambers: int,
        maximum: float,
    ):
        """At rest.

        Raises:
            UserError: the regulators do not reach the highest command `maximum` [Pa].
        """
        if regulator.range < maximum:
            raise UserError(
                f"station: valve.range {regulator.range / 1e3:.0f} kPa is below the highest "
                f"command, {maximum / 1e3:.0f} kPa"
            )
        self.closed = True
        self.constants = np.zeros(1, CONSTANTS)
        self.constants["side"] = math.copysign(1.0, regulator.full - regulator.empty)
        self.constants["closed"] = regulator.empty
        self.constants["fill_span"] = abs(regulator.full - regulator.empty)
        self.constants["range"], self.constants["lag"] = regulator.range, regulator.lag
        self.constants["supply"] = flow.supply
        self._pole, self._lag, self._range = gains.proportional, regulator.lag, regulator.range
        self._vent = np.full(chambers, regulator.empty)
        self._expected = np.zeros(chambers)

    @property
    def vent_volts(self) -> np.ndarray:
        """(m,) commands of zero gauge pressure [V], or [mA]."""
        return self._vent.copy()

    @property
    def expected(self) -> np.ndarray:
        """(m,) where the loop's lag leads [Pa]."""
        return self._expected

    def reset(self, measured: np.ndarray) -> None:
        """Begin at pressures (m,) [Pa]."""
        self._expected = np.array(measured, dtype=float)

    def openings(self, setpoint: np.ndarray, measured: np.ndarray, dt: float) -> np.ndarray:
        """(m,) pressures to be commanded [Pa]; of a chamber whose sensor says nothing, 0.

        Args:
            setpoint: (m,) [Pa].
            measured: (m,) [Pa].
            dt: time since the last call [s].
        """
        rate = self._pole * (setpoint - self._expected)
        self._expected = self._expected + rate * dt
        wanted = np.clip(self._expected + self._lag * rate, 0.0, self._range)
        return np.where(np.isfinite(measured) & np.isfinite(wanted), wanted, 0.0)


class RegulatorGuard(PressureGuard):
    """Compares readings with commands; `PressureGuard` for the rest. `position` of a channel is the
    modelled pressure of its chamber [Pa]."""

    def forget(self) -> None:
        """Nothing was seen yet; the chambers are taken as empty."""
        super().forget()
        self.channels["position"] = 0.0

    def _look(self, *everything: Any) -> int:
        return int(_watch_all(*everything))

    def _command(self, *everything: Any) -> None:
        _all_commands(*everything)


@compiled
def commanded_pressure(constants: Record, command: float) -> float:
    """What a regulator aims at [Pa] with a command [V], or [mA]."""
    share = constants.side * (command - constants.closed) / constants.fill_span
    return float(min(max(share, 0.0) * constants.range, constants.supply))


@compiled
def watch_regulated(
    channel: Record,
    constants: Record,
    dt: float,
    acted: float,
    came: bool,
    volts: float,
    toggle: bool,
    pressure: float,
    second: float,
    gap: float,
) -> int:
    """Look at one chamber after an exchange; arguments and result as of `watch_channel`."""
    target = commanded_pressure(constants, acted)
    channel.position = target + (channel.position - target) * math.exp(-dt / constants.lag)
    if came and look_at_reading(channel, volts, toggle, gap):
        channel.pressure = pressure
        look_beyond(channel, constants, second, max(gap, dt))
    astray = is_astray(channel, constants, channel.position, dt)
    fault = fault_of_reading(channel, constants)
    if fault == 0 and astray:
        fault = _ASTRAY
    channel.fault = fault
    return fault


@compiled
def _watch_all(
    channels: np.ndarray,
    constants: np.ndarray,
    dt: float,
    acted: np.ndarray,
    came: bool,
    volts: np.ndarray,
    broken: np.ndarray,
    toggles: np.ndarray,
    pressures: np.ndarray,
    second: np.ndarray,
    expected: np.ndarray,
    gap: float,
) -> int:
    found = -1
    for index in range(len(channels)):
        fault = watch_regulated(
            channels[index], constants[0], dt, acted[index], came and not broken[index],
            volts[index], toggles[index], pressures[index], second[index], gap,
        )  # fmt: skip
        if fault != 0 and found < 0:
            found = index
    return found


@compiled
def _all_commands(
    channels: np.ndarray,
    constants: np.ndarray,
    pressures: np.ndarray,
    dt: float,
    commands: np.ndarray,
) -> None:
    for index in range(len(channels)):
        share = pressures[index] / constants[0].range
        reach = constants[0].side * min(max(share, 0.0), 1.0) * constants[0].fill_span
        commands[index] = constants[0].closed + reach

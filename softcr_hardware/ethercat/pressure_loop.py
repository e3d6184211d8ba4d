"""The inner loop: chamber pressures under proportional valves, 1 kHz, no hardware and no clock.

The loop thinks in rates of pressure. PID and feed-forward ask for a rate; the inverse of the
valve's flow gives the opening for it; the valve's map gives the voltage. With a flow model that is
right, the proportional gain is the pole of the closed loop, filling or emptying alike:

    rate = feed_forward * d(setpoint)/dt + proportional * (setpoint - p)
           + integral * int(x - p) - derivative * dp/dt
    opening = rate / (k * (end pressure - p)),   end pressure and k of the side that is asked for

x is the pressure that the first two terms alone would lead to. So the integral makes up for what
the flow model leaves, and only for that: an integral of setpoint - p would make the loop another
lag than the one that controllers count on.

Chamber by chamber and compiled: of three chambers a line of numpy costs several times as much, and
the fast cycle wakes a thousand times a second with cold caches.
"""

import functools
import math
from typing import Any

import numpy as np

from softcr_hardware.ethercat.pressure_guard.flow_model import opening_at, volts_at
from softcr_hardware.ethercat.pressure_guard.records import CONSTANTS, Record
from softcr_hardware.ethercat.terminals import Flow, Gains, ValveMap
from softcr_models.room_kernels import compiled, one_compiles

_LEAST_DROP = 0.05
"""Smallest pressure drop over an open valve, of the supply's pressure: the inverse stays finite."""

GAINS = np.dtype([(name, "f8") for name in Gains.model_fields])
"""The loop's numbers."""

LOOP = np.dtype(
    [
        ("integral", "f8"),  # [Pa/s]
        ("setpoint", "f8"),  # [Pa]
        ("measured", "f8"),  # [Pa]
        ("expected", "f8"),  # by the loop's own lag [Pa]
        ("derivative", "f8"),  # [Pa/s]
    ]
)
"""What the loop remembers of one chamber."""


def station_constants(valve: ValveMap, flow: Flow) -> Any:
    """(1,) CONSTANTS of a valve and its flow; thresholds are the guard's to fill in."""
    constants = np.zeros(1, CONSTANTS)
    constants["side"] = math.copysign(1.0, valve.fill - valve.closed)
    constants["closed"], constants["dead_band"] = valve.closed, valve.dead_band
    constants["fill_span"] = abs(valve.fill - valve.closed) - valve.dead_band
    constants["exhaust_span"] = abs(valve.exhaust - valve.closed) - valve.dead_band
    constants["lag"] = valve.lag
    constants["supply"] = flow.supply
    constants["fill_rate"], constants["exhaust_rate"] = flow.fill_rate, flow.exhaust_rate
    return constants


@functools.cache
def _map_of(valve: ValveMap) -> Any:
    return station_constants(valve, Flow(supply=1.0, fill_rate=1.0, exhaust_rate=1.0))


def valve_volts(valve: ValveMap, opening: float) -> float:
    """Command [V] for an opening from -1, full exhaust, over 0, closed, to 1, full supply.

    The closed range is jumped over; more than full opening saturates; NaN closes.
    """
    return float(_volts_of(_map_of(valve)[0], float(opening)))


def valve_opening(valve: ValveMap, volts: float) -> float:
    """The inverse of `valve_volts`: what a valve does at a command [V]."""
    return float(opening_at(_map_of(valve)[0], float(volts)))


def flow_rate(flow: Flow, opening: float, pressure: float) -> float:
    """Rate of pressure [Pa/s] of a chamber behind a valve: first order towards either end."""
    if opening > 0.0:
        return opening * flow.fill_rate * (flow.supply - pressure)
    return opening * flow.exhaust_rate * pressure


@compiled
def _volts_of(constants: Record, opening: float) -> float:
    if opening == 0.0 or math.isnan(opening):
        return float(constants.closed)
    return float(volts_at(constants, opening))


@compiled
def follow_setpoint(loop: Record, setpoint: float, dt: float) -> float:
    """The rate [Pa/s] of the setpoint; one that is not finite leaves it where it was."""
    if not math.isfinite(setpoint):
        return 0.0
    rate = (setpoint - loop.setpoint) / dt
    loop.setpoint = setpoint
    return float(rate)


@compiled
def opening_for(constants: Record, rate: float, pressure: float) -> float:
    """The opening that changes a pressure at a rate [Pa/s], as far as there is one."""
    if rate > 0.0:
        drop, factor = constants.supply - pressure, constants.fill_rate
    else:
        drop, factor = pressure, constants.exhaust_rate
    opening = rate / (factor * max(drop, _LEAST_DROP * constants.supply))
    return min(max(opening, -1.0), 1.0)


@compiled
def steered_opening(loop: Record, constants: Record, setpoint: float, dt: float) -> float:
    """By the flow model alone."""
    rate = follow_setpoint(loop, setpoint, dt)
    return float(opening_for(constants, rate, loop.setpoint))


@compiled
def regulated_opening(
    loop: Record, gains: Record, constants: Record, setpoint: float, measured: float, dt: float
) -> float:
    """By what is measured; 0 where nothing is."""
    rate = follow_setpoint(loop, setpoint, dt)
    seen = math.isfinite(measured)
    slope = (measured - loop.measured) / dt if seen else 0.0
    loop.derivative += (slope - loop.derivative) * (dt / (dt + gains.filter_time))
    if not seen:
        return 0.0
    loop.measured = measured
    asked = gains.feed_forward * rate
    loop.expected += (asked + gains.proportional * (loop.setpoint - loop.expected)) * dt
    asked += gains.proportional * (loop.setpoint - measured)
    missing = loop.expected - measured
    wanted = asked + loop.integral - gains.derivative * loop.derivative
    opening = opening_for(constants, wanted, measured)
    # anti-windup: no integration towards the side on which the valve is fully open already
    if abs(opening) < 1.0 or missing * opening < 0.0:
        most = gains.integral_limit
        loop.integral = min(max(loop.integral + gains.integral * missing * dt, -most), most)
    return float(opening)


@compiled
def reset_loop(loop: Record, measured: float) -> None:
    """Forget the past: integral, derivative and setpoint start at a pressure [Pa]."""
    loop.integral = loop.derivative = 0.0
    loop.setpoint = loop.measured = loop.expected = measured


@compiled
def _all_openings(
    loops: np.ndarray,
    gains: np.ndarray,
    constants: np.ndarray,
    setpoint: np.ndarray,
    measured: np.ndarray,
    dt: float,
    closed: bool,
    openings: np.ndarray,
) -> None:
    for index in range(len(loops)):
        loop, wanted = loops[index], setpoint[index]
        if closed:
            openings[index] = regulated_opening(
                loop, gains[0], constants[0], wanted, measured[index], dt
            )
        else:
            openings[index] = steered_opening(loop, constants[0], wanted, dt)


@compiled
def _all_volts(constants: np.ndarray, openings: np.ndarray) -> np.ndarray:
    volts = np.empty(len(openings))
    for index in range(len(openings)):
        volts[index] = _volts_of(constants[0], openings[index])
    return volts


class PressureLoop:
    """PID per chamber with anti-windup and feed-forward; or, without sensors, feed-forward alone.

    Attributes:
        closed: whether measured pressures are used; open loop follows the setpoint's rate.
        constants: (1,) CONSTANTS of valve and flow, as it uses them.
    """

    def __init__(self, gains: Gains, flow: Flow, valve: ValveMap, chambers: int):
        """At rest, closed loop."""
        self.closed = True
        self.constants = station_constants(valve, flow)
        self._loops = np.zeros(chambers, LOOP)
        self._gains = np.zeros(1, GAINS)
        for name in GAINS.names or ():
            self._gains[name] = getattr(gains, name)
        self._expected = self._loops["expected"]  # of the same memory
        self._unknown = np.full(chambers, math.nan)
        self._vent = np.full(chambers, valve.exhaust)
        with one_compiles():
            self.volts(np.zeros(chambers), np.zeros(chambers), 1.0)
        self.reset(np.zeros(chambers))

    @property
    def vent_volts(self) -> np.ndarray:
        """(m,) all exhausts open [V]; needs no model and no sensor."""
        return self._vent.copy()

    @property
    def expected(self) -> np.ndarray:
        """(m,) where the loop's own lag leads [Pa]; NaN in open loop, which knows of none."""
        return self._expected if self.closed else self._unknown

    def reset(self, measured: np.ndarray) -> None:
        """Forget the past: integral, derivative and setpoint start at pressures (m,) [Pa]."""
        for name in ("integral", "derivative"):
            self._loops[name] = 0.0
        for name in ("setpoint", "measured", "expected"):
            self._loops[name] = measured

    def openings(self, setpoint: np.ndarray, measured: np.ndarray, dt: float) -> np.ndarray:
        """Openings (m,) wanted of the next cycle, from -1 (exhaust) to 1 (supply).

        Args:
            setpoint: (m,) [Pa].
            measured: (m,) [Pa]; a chamber whose value is not finite is closed.
            dt: time since the last call [s], positive.
        """
        openings = np.empty(len(self._loops))
        _all_openings(
            self._loops, self._gains, self.constants, setpoint, measured, dt, self.closed, openings
        )
        return openings

    def volts(self, setpoint: np.ndarray, measured: np.ndarray, dt: float) -> np.ndarray:
        """The same as commands (m,) [V], nothing between loop and valves."""
        return np.asarray(_all_volts(self.constants, self.openings(setpoint, measured, dt)))

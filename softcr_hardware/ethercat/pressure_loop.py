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

Plain numbers, chamber by chamber: of three chambers a line of numpy costs several times as much,
and the fast cycle wakes a thousand times a second with cold caches.
"""

import math

import numpy as np

from softcr_hardware.ethercat.terminals import Flow, Gains, ValveMap

_LEAST_DROP = 0.05
"""Smallest pressure drop over an open valve, of the supply's pressure: the inverse stays finite."""


def valve_volts(valve: ValveMap, opening: float) -> float:
    """Command [V] for an opening from -1, full exhaust, over 0, closed, to 1, full supply.

    The closed range is jumped over; more than full opening saturates; NaN closes.
    """
    if opening == 0.0 or math.isnan(opening):
        return valve.closed
    side = (valve.exhaust if opening < 0.0 else valve.fill) - valve.closed
    dead = math.copysign(valve.dead_band, side)
    return valve.closed + dead + min(abs(opening), 1.0) * (side - dead)


def valve_opening(valve: ValveMap, volts: float) -> float:
    """The inverse of `valve_volts`: what a valve does at a command [V]."""
    above = math.copysign(1.0, valve.fill - valve.closed) * (volts - valve.closed)
    span = abs((valve.exhaust if above < 0.0 else valve.fill) - valve.closed)
    opened = (abs(above) - valve.dead_band) / (span - valve.dead_band)
    return math.copysign(min(max(opened, 0.0), 1.0), above)


def flow_rate(flow: Flow, opening: float, pressure: float) -> float:
    """Rate of pressure [Pa/s] of a chamber behind a valve: first order towards either end."""
    if opening > 0.0:
        return opening * flow.fill_rate * (flow.supply - pressure)
    return opening * flow.exhaust_rate * pressure


class PressureLoop:
    """PID per chamber with anti-windup and feed-forward; or, without sensors, feed-forward alone.

    Attributes:
        closed: whether measured pressures are used; open loop follows the setpoint's rate.
    """

    def __init__(self, gains: Gains, flow: Flow, valve: ValveMap, chambers: int):
        """At rest, closed loop."""
        self.closed = True
        self._chambers = [_ChamberLoop(gains, flow, valve) for _ in range(chambers)]
        self._vent = np.full(chambers, valve.exhaust)

    @property
    def vent_volts(self) -> np.ndarray:
        """(m,) all exhausts open [V]; needs no model and no sensor."""
        return self._vent.copy()

    def reset(self, measured: np.ndarray) -> None:
        """Forget the past: integral, derivative and setpoint start at pressures (m,) [Pa]."""
        for chamber, pressure in zip(self._chambers, measured.tolist(), strict=True):
            chamber.reset(pressure)

    def volts(self, setpoint: np.ndarray, measured: np.ndarray, dt: float) -> np.ndarray:
        """Commands (m,) [V] of the next cycle.

        Args:
            setpoint: (m,) [Pa].
            measured: (m,) [Pa]; a chamber whose value is not finite is closed.
            dt: time since the last call [s], positive.
        """
        each = zip(self._chambers, setpoint.tolist(), measured.tolist(), strict=True)
        if self.closed:
            return np.array([chamber.regulated(wanted, seen, dt) for chamber, wanted, seen in each])
        return np.array([chamber.steered(wanted, dt) for chamber, wanted, _ in each])


class _ChamberLoop:
    """One chamber of a PressureLoop; pressures [Pa] in, volts out."""

    def __init__(self, gains: Gains, flow: Flow, valve: ValveMap):
        self._gains = gains
        self._flow = flow
        self._valve = valve
        self.reset(0.0)

    def reset(self, measured: float) -> None:
        self._integral = 0.0  # [Pa/s]
        self._setpoint = self._measured = self._expected = measured
        self._derivative = 0.0  # [Pa/s]

    def steered(self, setpoint: float, dt: float) -> float:
        """By the flow model alone."""
        rate = self._follow(setpoint, dt)
        return valve_volts(self._valve, self._opening(rate, self._setpoint))

    def regulated(self, setpoint: float, measured: float, dt: float) -> float:
        """By what is measured, and closed where nothing is."""
        gains = self._gains
        rate = self._follow(setpoint, dt)
        seen = math.isfinite(measured)
        slope = (measured - self._measured) / dt if seen else 0.0
        self._derivative += (slope - self._derivative) * (dt / (dt + gains.filter_time))
        if not seen:
            return self._valve.closed
        self._measured = measured
        asked = gains.feed_forward * rate
        self._expected += (asked + gains.proportional * (self._setpoint - self._expected)) * dt
        asked += gains.proportional * (self._setpoint - measured)
        missing = self._expected - measured
        wanted = asked + self._integral - gains.derivative * self._derivative
        opening = self._opening(wanted, measured)
        # anti-windup: no integration towards the side on which the valve is fully open already
        if abs(opening) < 1.0 or missing * opening < 0.0:
            most = gains.integral_limit
            self._integral = min(max(self._integral + gains.integral * missing * dt, -most), most)
        return valve_volts(self._valve, opening)

    def _follow(self, setpoint: float, dt: float) -> float:
        """The rate [Pa/s] of the setpoint; one that is not finite leaves it where it was."""
        if not math.isfinite(setpoint):
            return 0.0
        rate = (setpoint - self._setpoint) / dt
        self._setpoint = setpoint
        return rate

    def _opening(self, rate: float, pressure: float) -> float:
        flow = self._flow
        if rate > 0.0:
            drop, factor = flow.supply - pressure, flow.fill_rate
        else:
            drop, factor = pressure, flow.exhaust_rate
        opening = rate / (factor * max(drop, _LEAST_DROP * flow.supply))
        return min(max(opening, -1.0), 1.0)

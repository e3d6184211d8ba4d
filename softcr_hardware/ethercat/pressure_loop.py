"""The inner loop: chamber pressures under proportional valves, 1 kHz, no hardware and no clock.

The loop thinks in rates of pressure. PID and feed-forward ask for a rate; the inverse of the
valve's flow gives the opening for it; the valve's map gives the voltage. With a flow model that is
right, the proportional gain is the pole of the closed loop, filling or emptying alike:

    rate = feed_forward * d(setpoint)/dt + proportional * e + integral * int(e) - derivative * dp/dt
    opening = rate / (k * (end pressure - p)),   end pressure and k of the side that is asked for
"""

import numpy as np

from softcr_hardware.ethercat.terminals import Flow, Gains, ValveMap

_LEAST_DROP = 0.05
"""Smallest pressure drop over an open valve, of the supply's pressure: the inverse stays finite."""


def valve_volts(valve: ValveMap, opening: np.ndarray) -> np.ndarray:
    """Command [V] for an opening from -1, full exhaust, over 0, closed, to 1, full supply.

    The closed range is jumped over; more than full opening saturates; NaN closes.
    """
    opening = np.clip(np.nan_to_num(opening), -1.0, 1.0)
    side = np.where(opening < 0.0, valve.exhaust - valve.closed, valve.fill - valve.closed)
    dead = np.sign(side) * valve.dead_band
    return valve.closed + np.where(opening == 0.0, 0.0, dead + np.abs(opening) * (side - dead))


def valve_opening(valve: ValveMap, volts: np.ndarray) -> np.ndarray:
    """The inverse of `valve_volts`: what a valve does at a command [V]."""
    above = (np.asarray(volts) - valve.closed) * np.sign(valve.fill - valve.closed)
    span = np.where(above < 0.0, abs(valve.exhaust - valve.closed), abs(valve.fill - valve.closed))
    opened = (np.abs(above) - valve.dead_band) / (span - valve.dead_band)
    return np.sign(above) * np.clip(opened, 0.0, 1.0)


def flow_rate(flow: Flow, opening: np.ndarray, pressures: np.ndarray) -> np.ndarray:
    """Rate of pressure [Pa/s] of chambers behind valves: first order towards either end."""
    filling = flow.fill_rate * (flow.supply - pressures)
    emptying = flow.exhaust_rate * pressures
    return opening * np.where(opening > 0.0, filling, emptying)


class PressureLoop:
    """PID per chamber with anti-windup and feed-forward; or, without sensors, feed-forward alone.

    Attributes:
        closed: whether measured pressures are used; open loop follows the setpoint's rate.
    """

    def __init__(self, gains: Gains, flow: Flow, valve: ValveMap, chambers: int):
        """At rest, closed loop."""
        self._gains = gains
        self._flow = flow
        self._valve = valve
        self._chambers = chambers
        self.closed = True
        self.reset(np.zeros(chambers))

    @property
    def vent_volts(self) -> np.ndarray:
        """(m,) all exhausts open [V]; needs no model and no sensor."""
        return np.full(self._chambers, self._valve.exhaust)

    def reset(self, measured: np.ndarray) -> None:
        """Forget the past: integral, derivative and setpoint start at pressures (m,) [Pa]."""
        self._integral = np.zeros(self._chambers)  # [Pa/s]
        self._setpoint = np.array(measured, dtype=float)
        self._measured = np.array(measured, dtype=float)
        self._derivative = np.zeros(self._chambers)  # [Pa/s]

    def volts(self, setpoint: np.ndarray, measured: np.ndarray, dt: float) -> np.ndarray:
        """Commands (m,) [V] of the next cycle.

        Args:
            setpoint: (m,) [Pa].
            measured: (m,) [Pa]; a chamber whose value is not finite is closed.
            dt: time since the last call [s], positive.
        """
        gains = self._gains
        rate = (setpoint - self._setpoint) / dt
        self._setpoint = np.array(setpoint, dtype=float)
        if not self.closed:
            return valve_volts(self._valve, self._opening(rate, self._setpoint))
        seen = np.isfinite(measured)
        measured = np.where(seen, measured, self._measured)
        slope = (measured - self._measured) / dt
        self._derivative += (slope - self._derivative) * (dt / (dt + gains.filter_time))
        self._measured = measured
        error = self._setpoint - measured
        wanted = (
            gains.feed_forward * rate
            + gains.proportional * error
            + self._integral
            - gains.derivative * self._derivative
        )
        opening = self._opening(wanted, measured)
        # anti-windup: no integration towards the side on which the valve is fully open already
        free = seen & ((np.abs(opening) < 1.0) | (error * opening < 0.0))
        self._integral += np.where(free, gains.integral * error * dt, 0.0)
        np.clip(self._integral, -gains.integral_limit, gains.integral_limit, out=self._integral)
        return valve_volts(self._valve, np.where(seen, opening, 0.0))

    def _opening(self, rate: np.ndarray, pressures: np.ndarray) -> np.ndarray:
        flow = self._flow
        least = _LEAST_DROP * flow.supply
        filling = flow.fill_rate * np.maximum(flow.supply - pressures, least)
        emptying = flow.exhaust_rate * np.maximum(pressures, least)
        return np.clip(rate / np.where(rate > 0.0, filling, emptying), -1.0, 1.0)

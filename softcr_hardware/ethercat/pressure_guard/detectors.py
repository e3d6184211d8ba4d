"""One cycle of all detectors of one chamber, and the voltage that its guarded valve is given."""

import math
from enum import IntEnum

from softcr_hardware.ethercat.pressure_guard.air_budget import (
    add_evidence,
    add_openings,
    forget_air,
)
from softcr_hardware.ethercat.pressure_guard.flow_model import advance_model, volts_at
from softcr_hardware.ethercat.pressure_guard.flow_residual import (
    add_flow,
    add_reading,
    forget_residual,
)
from softcr_hardware.ethercat.pressure_guard.following import forget_command, is_astray
from softcr_hardware.ethercat.pressure_guard.freshness import is_frozen, look_at_reading
from softcr_hardware.ethercat.pressure_guard.ping import (
    forget_pings,
    hear_answer,
    ping_opening,
)
from softcr_hardware.ethercat.pressure_guard.pulses import forget_pulses, pulsed_volts
from softcr_hardware.ethercat.pressure_guard.records import Record
from softcr_models.room_kernels import compiled

_TWICE = 2  # new samples above the limit
_APART = 3  # new samples of two sensors that differ
_DIFFERENCE_FILTER = 0.01  # [s]


class PressureFault(IntEnum):
    """What a detector has found; its words are the reason of the vent."""

    NONE = 0
    FROZEN = 1
    UNSEEN_AIR = 2
    SURPLUS_AIR = 3
    NO_ANSWER = 4
    ASTRAY = 5
    OVERPRESSURE = 6
    SENSORS_DIFFER = 7
    SUPPLY = 8

    @property
    def words(self) -> str:
        """As in sentences."""
        return _WORDS[self]


_WORDS = {
    PressureFault.NONE: "",
    PressureFault.FROZEN: "sensor frozen",
    PressureFault.UNSEEN_AIR: "air that the sensor does not show",
    PressureFault.SURPLUS_AIR: "air that nobody let in",
    PressureFault.NO_ANSWER: "sensor does not answer a ping",
    PressureFault.ASTRAY: "pressure does not follow",
    PressureFault.OVERPRESSURE: "overpressure",
    PressureFault.SENSORS_DIFFER: "its two sensors differ, or one is silent",
    PressureFault.SUPPLY: "supply",
}

_FROZEN, _UNSEEN, _SURPLUS, _NO_ANSWER, _ASTRAY, _OVER, _DIFFER = range(1, 8)


@compiled
def watch_channel(
    channel: Record,
    constants: Record,
    dt: float,
    acted: float,
    came: bool,
    volts: float,
    toggle: bool,
    pressure: float,
    second: float,
    expected: float,
    gap: float,
) -> int:
    """Look at one chamber after an exchange.

    Args:
        channel, constants: the chamber's and the station's records.
        dt: since the last cycle [s].
        acted: what the valve was given meanwhile [V].
        came: whether the exchange brought a reading that its terminal calls good.
        volts, toggle: of the reading.
        pressure: the same [Pa].
        second: of the second sensor [Pa]; NaN for none.
        expected: by the pressure loop [Pa]; NaN for none.
        gap: since the last exchange that came [s].

    Returns:
        the PressureFault that stands now.
    """
    advance_model(channel, constants, acted, dt)
    add_flow(channel, constants, dt)
    new = came and look_at_reading(channel, volts, toggle, gap)
    residual = 0
    if new:
        if math.isnan(channel.pressure):  # the first
            channel.pressure = channel.predicted = channel.expected = pressure
            forget_air(channel)
        change = pressure - channel.pressure
        residual = add_reading(channel, constants, change, max(gap, dt))
        flow = channel.predicted - channel.pressure
        channel.pressure = channel.predicted = pressure
        look_beyond(channel, constants, second, max(gap, dt))
        add_evidence(channel, change, flow, max(gap, dt))
    add_openings(channel, constants, dt)
    missed = hear_answer(channel, constants, new, dt)
    astray = is_astray(channel, constants, expected, dt)
    fault = fault_of_reading(channel, constants)
    if fault == 0 and residual != 0:
        fault = _UNSEEN if residual > 0 else _SURPLUS
    if fault == 0 and missed:
        fault = _NO_ANSWER
    if fault == 0 and astray:
        fault = _ASTRAY
    channel.fault = fault
    return fault


@compiled
def fault_of_reading(channel: Record, constants: Record) -> int:
    """The PressureFault that a reading shows without any model of the flow; 0 for none."""
    if is_frozen(channel, constants):
        return _FROZEN
    if channel.over >= _TWICE:
        return _OVER
    if channel.apart >= _APART or channel.alone >= constants.toggle_age:
        return _DIFFER
    return 0


@compiled
def look_beyond(channel: Record, constants: Record, second: float, dt: float) -> None:
    """Hold a new reading against the limit, and against the second sensor's [Pa], NaN for none,
    `dt` [s] after the one before."""
    over = not channel.pressure <= constants.maximum + constants.overpressure
    channel.over = channel.over + 1 if over else 0
    if math.isnan(second):
        channel.alone += dt if channel.paired else 0.0
        return
    channel.alone = 0.0
    share = dt / (dt + _DIFFERENCE_FILTER)
    channel.difference += share * (channel.pressure - second - channel.difference)
    apart = abs(channel.difference) > constants.second_difference
    channel.apart = channel.apart + 1 if apart else 0


@compiled
def guarded_volts(channel: Record, constants: Record, wanted: float, dt: float) -> float:
    """The voltage [V] of the next cycle: that of the wanted opening, of a pulse or of a ping."""
    if not math.isfinite(wanted):
        return float(constants.closed)
    if constants.regulated:
        asked = ping_opening(channel, constants, dt)
        if asked == 0.0:
            return float(constants.closed)
        if asked < 0.0:
            return float(volts_at(constants, asked))
    return float(pulsed_volts(channel, constants, wanted, dt))


@compiled
def arm_channel(channel: Record, expected: float) -> None:
    """The valves are enabled: what was before does not count; it begins at `expected` [Pa]."""
    forget_residual(channel)
    forget_air(channel)
    forget_pings(channel)
    forget_pulses(channel)
    forget_command(channel, expected)
    channel.difference = channel.alone = 0.0
    channel.over = channel.apart = 0

"""One cycle of all detectors of one chamber, and the voltage that its guarded valve is given.

No small openings at rest: what is wanted below the least opening is given as pulses of it.

At an opening of 1 % a dead band that is known to 1 % says nothing of the flow, and the flow
residual is blind. So small wanted openings are summed up; each time they amount to a pulse, or
nearly, one is given, and between pulses the valve waits in its dead band, 1.5 times the opening's
tolerance from its edge. What the lagging valve is modelled to have delivered is taken from the sum,
flanks included: both are alike, so that a lag that is not the modelled one makes little difference.

While a chamber moves, its motion itself speaks for the sensor (`air_budget`); as long as it does,
openings are given as they are wanted, for the ripple of pulses shows at the robot's tip.

Air that the sensor does not show, or that nobody let in: the flow residual.

    r <- r e^(-L dt) + f dt - dy,      U, D: the same of the rise and the fall margin

with the modelled flow f of `flow_model` and the reading's change dy. r > n + D is air that went in
and is not seen, or that went out by itself: a sensor that sticks, fades or has lost its slope, a
leak, a hose that came off, a supply that failed. -r > n + U is air that nobody let in: a valve that
sticks open, a supply too high. Two leaks L with a threshold n each, the fast one for what happens
within a second, the slow one for what drifts: about L n / (1 - delta - d/u) is the smallest rate
that is seen. What lies beyond the margins is low-passed against the sensor's noise, and a sample
moves it by a share of at most two thresholds: one disturbed reading is no fault.
"""

import math
from enum import IntEnum

from softcr_hardware.ethercat.pressure_guard.air_budget import (
    add_evidence,
    add_openings,
    forget_air,
)
from softcr_hardware.ethercat.pressure_guard.flow_model import advance_model, volts_at
from softcr_hardware.ethercat.pressure_guard.following import forget_command, is_astray
from softcr_hardware.ethercat.pressure_guard.freshness import is_frozen, look_at_reading
from softcr_hardware.ethercat.pressure_guard.ping import (
    forget_pings,
    hear_answer,
    ping_opening,
)
from softcr_hardware.ethercat.pressure_guard.records import Record
from softcr_models.room_kernels import compiled

_FILTER = 0.004  # [s]
_MOST_SHARE = 0.22  # of a sample in the low pass: three in a row may be believed, one is not
_MOST_STEP = 2.0  # thresholds


@compiled
def add_flow(channel: Record, constants: Record, dt: float) -> None:
    """What the model says of the time `dt` [s] since the last cycle."""
    fast, slow = math.exp(-constants.fast_leak * dt), math.exp(-constants.slow_leak * dt)
    channel.fast = channel.fast * fast + channel.flow
    channel.fast_up = channel.fast_up * fast + channel.rise_margin
    channel.fast_down = channel.fast_down * fast + channel.fall_margin
    channel.slow = channel.slow * slow + channel.flow
    channel.slow_up = channel.slow_up * slow + channel.rise_margin
    channel.slow_down = channel.slow_down * slow + channel.fall_margin


@compiled
def add_reading(channel: Record, constants: Record, change: float, dt: float) -> int:
    """What a new sample says.

    Args:
        channel, constants: whose.
        change: of the reading since the last new sample [Pa].
        dt: this time [s].

    Returns:
        1 for unseen air, -1 for air that nobody let in, 0 for neither.
    """
    channel.fast -= change
    channel.slow -= change
    n, m = constants.fast_threshold, constants.slow_threshold
    unseen = max((channel.fast - channel.fast_down) / n, (channel.slow - channel.slow_down) / m)
    surplus = -min((channel.fast + channel.fast_up) / n, (channel.slow + channel.slow_up) / m)
    share = min(1.0 - math.exp(-dt / _FILTER), _MOST_SHARE)
    channel.unseen = _moved(channel.unseen, unseen, share)
    channel.surplus = _moved(channel.surplus, surplus, share)
    channel.nearest = max(channel.nearest, channel.unseen, channel.surplus)
    if channel.unseen > 1.0:
        return 1
    return -1 if channel.surplus > 1.0 else 0


@compiled
def _moved(low_passed: float, seen: float, share: float) -> float:
    step = min(max(seen - low_passed, -_MOST_STEP), _MOST_STEP)
    return max(low_passed + share * step, 0.0)  # within the margins is within them, far or not


@compiled
def forget_residual(channel: Record) -> None:
    """Begin again, as when the valves are enabled."""
    channel.fast = channel.fast_up = channel.fast_down = 0.0
    channel.slow = channel.slow_up = channel.slow_down = 0.0
    channel.unseen = channel.surplus = channel.nearest = 0.0


_WAIT = 1.5  # opening tolerances from the dead band's edge
_TRIGGER = 0.75  # pulses owed, for one to begin
_MOST_OWED = 2.0  # pulses
_SHORTEST, _LONGEST = 0.004, 0.006  # [s] of a pulse
_EVIDENT = 0.05  # [s] since reading and model last agreed in motion


@compiled
def pulsed_volts(channel: Record, constants: Record, wanted: float, dt: float) -> float:
    """The voltage [V] of the next cycle for a wanted opening, `dt` [s] after the last one."""
    least = constants.least_opening
    if abs(wanted) >= least or channel.still_motion < _EVIDENT:
        channel.pulse_left = 0.0
        channel.owed = constants.lag * channel.opening  # what the lag still delivers at its end
        return float(volts_at(constants, wanted))
    owed = channel.owed + (wanted - channel.opening) * dt
    side = 1.0 if owed > 0.0 else -1.0
    length = _pulse_length(channel, constants, side)
    most = _MOST_OWED * least * length + constants.lag
    channel.owed = min(max(owed, -most), most)
    if channel.pulse_left > 0.5 * dt:
        channel.pulse_left -= dt
    elif abs(channel.owed) >= _TRIGGER * least * length:
        channel.pulse_left = length - dt
        channel.pulse_side = side
    else:
        channel.pulse_left = 0.0
        span = constants.fill_span if side > 0.0 else constants.exhaust_span
        edge = constants.dead_band - _WAIT * constants.opening_tolerance * span
        return float(constants.closed + constants.side * side * max(edge, 0.0))
    return float(volts_at(constants, channel.pulse_side * least))


@compiled
def _pulse_length(channel: Record, constants: Record, side: float) -> float:
    """How long [s] the least opening takes for a pulse's pressure."""
    if side > 0.0:
        rate = constants.fill_rate * (constants.supply - channel.pressure)
    else:
        rate = constants.exhaust_rate * channel.pressure
    wanted = constants.pulse_size / max(constants.least_opening * rate, 1.0)
    return float(min(max(wanted, _SHORTEST), _LONGEST))


@compiled
def forget_pulses(channel: Record) -> None:
    """Nothing is owed, as after a vent."""
    channel.owed = channel.pulse_left = 0.0


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

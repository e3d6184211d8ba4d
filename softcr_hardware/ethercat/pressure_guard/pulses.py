"""No small openings: what is wanted below the least opening is given as pulses of it.

At an opening of 1 % a dead band that is known to 1 % says nothing of the flow, and the flow
residual is blind. So small wanted openings are summed up; each time they amount to a pulse, or
nearly, one is given, and between pulses the valve waits in its dead band, 1.5 times the opening's
tolerance from its edge. What the lagging valve is modelled to have delivered is taken from the sum,
flanks included. The opening of a pulse is then known to 15 %.
"""

from softcr_hardware.compilation import compiled
from softcr_hardware.ethercat.pressure_guard.flow_model import volts_at
from softcr_hardware.ethercat.pressure_guard.records import Record

_WAIT = 1.5  # opening tolerances from the dead band's edge
_TRIGGER = 0.75  # pulses owed, for one to begin
_MOST_OWED = 2.0  # pulses


@compiled
def pulsed_volts(channel: Record, constants: Record, wanted: float, dt: float) -> float:
    """The voltage [V] of the next cycle for a wanted opening, `dt` [s] after the last one."""
    least = constants.least_opening
    pulse = least * constants.pulse_time
    if abs(wanted) >= least:
        channel.pulse_left = 0.0
        channel.owed = constants.lag * channel.opening  # what the lag still delivers at its end
        return float(volts_at(constants, wanted))
    owed = channel.owed + (wanted - channel.opening) * dt
    most = _MOST_OWED * pulse + constants.lag
    channel.owed = min(max(owed, -most), most)
    if channel.pulse_left > 0.5 * dt:
        channel.pulse_left -= dt
    elif abs(channel.owed) >= _TRIGGER * pulse:
        channel.pulse_left = constants.pulse_time - dt
        channel.pulse_side = 1.0 if channel.owed > 0.0 else -1.0
    else:
        channel.pulse_left = 0.0
        side = 1.0 if channel.owed > 0.0 else -1.0
        span = constants.fill_span if side > 0.0 else constants.exhaust_span
        edge = constants.dead_band - _WAIT * constants.opening_tolerance * span
        return float(constants.closed + constants.side * side * max(edge, 0.0))
    return float(volts_at(constants, channel.pulse_side * least))


@compiled
def forget_pulses(channel: Record) -> None:
    """Nothing is owed, as after a vent."""
    channel.owed = channel.pulse_left = 0.0

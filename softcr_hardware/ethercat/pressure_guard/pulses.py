"""No small openings at rest: what is wanted below the least opening is given as pulses of it.

At an opening of 1 % a dead band that is known to 1 % says nothing of the flow, and the flow
residual is blind. So small wanted openings are summed up; each time they amount to a pulse, or
nearly, one is given, and between pulses the valve waits in its dead band, 1.5 times the opening's
tolerance from its edge. What the lagging valve is modelled to have delivered is taken from the sum,
flanks included: both are alike, so that a lag that is not the modelled one makes little difference.

While a chamber moves, its motion itself speaks for the sensor (`air_budget`); as long as it does,
openings are given as they are wanted, for the ripple of pulses shows at the robot's tip.
"""

from softcr_hardware.ethercat.pressure_guard.flow_model import volts_at
from softcr_hardware.ethercat.pressure_guard.records import Record
from softcr_models.room_kernels import compiled

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

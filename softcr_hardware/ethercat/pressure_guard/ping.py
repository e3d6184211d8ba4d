"""A ping: air is let out for a moment, and the sensor must show it.

Asked for when a chamber may hold half of its budget unseen (`air_budget`), and when nothing has
spoken for the sensor for long: one that sticks while no air goes in does no harm, but it is to be
known before some does. The valve is closed until it is shut, exhausts for about 1 kPa, and is
closed again; the mean readings before and after must differ by 0.35 to 2.2 times what the model
says. It counts from the middle of the first mean to that of the second, so that the flank of an
opening before counts on both sides. A ping that could ask for less than 0.5 kPa gives no verdict.
Several misses in a row are a fault. Pings always let air out.
"""

from softcr_hardware.ethercat.pressure_guard.air_budget import believe_reading, budget
from softcr_hardware.ethercat.pressure_guard.records import Record
from softcr_models.room_kernels import compiled

_IDLE, _BEFORE, _EXHAUST, _AFTER = 0, 1, 2, 3
_CLOSED_BEFORE, _CLOSED_AFTER = 0.016, 0.022  # [s]
_MEAN = 0.010  # [s] at the end of both
_OPENING = 0.08
_ASKED = 1000.0  # [Pa]
_SHORTEST, _LONGEST = 0.004, 0.060  # [s] of the exhaust
_LEAST_ASKED = 500.0  # [Pa]
_LEAST_PRESSURE = 8000.0  # [Pa] below which an exhaust says too little
_LEAST_ANSWER, _MOST_ANSWER = 0.35, 2.2
_PAUSE = 0.3  # [s] after a ping without a verdict; one that was missed is repeated at once
_EXCUSED = 0.3  # [s] after a ping, for the loop to come back


@compiled
def is_wanted(channel: Record, constants: Record) -> bool:
    """Whether a chamber may hold half of its budget unseen, or nothing has spoken for its sensor
    for long; and whether it can be asked."""
    unseen = channel.highest - channel.pressure > 0.5 * budget(channel, constants)
    asked = unseen or channel.unproven > constants.ping_every
    return bool(asked and channel.pressure > _LEAST_PRESSURE)


@compiled
def ping_opening(channel: Record, constants: Record, dt: float) -> float:
    """Opening that a ping asks for in the next cycle; NaN where there is none.

    Begins one where it is wanted. `dt` [s] has passed since the last cycle.
    """
    if channel.ping_phase == _IDLE:
        channel.ping_pause -= dt
        if channel.ping_pause > 0.0 or not is_wanted(channel, constants):
            return float("nan")
        channel.ping_time = channel.ping_model = channel.ping_sum = 0.0
        channel.ping_samples = 0
        channel.ping_phase = _BEFORE
        channel.pings += 1
    return -_OPENING if channel.ping_phase == _EXHAUST else 0.0


@compiled
def hear_answer(channel: Record, constants: Record, new: bool, dt: float) -> bool:
    """Take the last cycle into account.

    Args:
        channel, constants: whose.
        new: whether it brought a new sample.
        dt: its length [s].

    Returns:
        whether too many pings in a row were missed.
    """
    if channel.ping_phase == _IDLE:
        return False
    channel.excused = _EXCUSED
    before = channel.ping_time
    channel.ping_time += dt
    channel.ping_model += channel.flow
    if channel.ping_phase == _EXHAUST:
        _end_exhaust(channel)
        return False
    closed = _CLOSED_BEFORE if channel.ping_phase == _BEFORE else _CLOSED_AFTER
    if before < closed - 0.5 * _MEAN <= channel.ping_time:
        channel.ping_middle = channel.ping_model
    if new and channel.ping_time > closed - _MEAN:
        channel.ping_sum += channel.pressure
        channel.ping_samples += 1
    if channel.ping_time < closed or channel.ping_samples == 0:
        return False
    mean = channel.ping_sum / channel.ping_samples
    if channel.ping_phase == _BEFORE:
        channel.ping_before = mean
        channel.ping_model -= channel.ping_middle
        channel.ping_phase, channel.ping_time = _EXHAUST, 0.0
        return False
    channel.ping_phase = _IDLE
    _judge(channel, mean)
    return bool(channel.missed >= constants.ping_misses)


@compiled
def _end_exhaust(channel: Record) -> None:
    enough = -channel.ping_model >= _ASKED and channel.ping_time >= _SHORTEST
    if enough or channel.ping_time >= _LONGEST:
        channel.ping_phase, channel.ping_time = _AFTER, 0.0
        channel.ping_sum, channel.ping_samples = 0.0, 0


@compiled
def _judge(channel: Record, after: float) -> None:
    asked = -channel.ping_middle
    if asked < _LEAST_ASKED:
        channel.ping_pause = _PAUSE
        return
    answer = (channel.ping_before - after) / asked
    if _LEAST_ANSWER <= answer <= _MOST_ANSWER:
        channel.missed = 0
        believe_reading(channel)
    else:
        channel.missed += 1


@compiled
def forget_pings(channel: Record) -> None:
    """None is under way, and none was missed."""
    channel.ping_phase = channel.missed = 0
    channel.ping_pause = 0.0

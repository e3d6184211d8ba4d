"""Whether a channel's converter still converts: its value and its toggle bit, each channel alone.

A toggle bit that stands still is no proof of an old sample: a terminal that runs free may toggle
twice between two exchanges; a reading that changes is new whatever its toggle says. A sensor with
noise sigma and a converter of step q repeats a reading with probability q / (2 sigma sqrt(pi)): 4 %
at 50 Pa of noise and 7.6 Pa of step, so that 40 equal readings in a row do not happen by chance. A
sensor quieter than half a step makes this rule false.
"""

from softcr_hardware.ethercat.pressure_guard.records import Record
from softcr_models.room_kernels import compiled

_LONG_GAP = 0.002
"""After a longer gap an unchanged toggle says nothing: it may have changed twice [s]."""


@compiled
def look_at_reading(channel: Record, volts: float, toggle: bool, gap: float) -> bool:
    """Take a reading of the wire into account.

    Args:
        channel: whose it is.
        volts: of the reading [V].
        toggle: bit of its status.
        gap: time since the exchange before [s].

    Returns:
        whether it is a new sample.
    """
    same = volts == channel.count
    changed = not same or toggle != channel.toggle
    channel.count, channel.toggle = volts, toggle
    if changed:
        channel.equal = channel.equal + 1 if same else 0
        channel.still = 0.0
    else:
        channel.still += gap
    return bool(changed or gap > _LONG_GAP)


@compiled
def is_frozen(channel: Record, constants: Record) -> bool:
    """Whether the very same reading has come too often, or none for too long."""
    return bool(channel.equal >= constants.equal_samples or channel.still >= constants.toggle_age)

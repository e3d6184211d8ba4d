"""Whether a chamber goes where the pressure loop means it to go; needs no model of the flow.

With x the pressure that the loop's own lag leads to and y the reading,

    |x - y| > base + share * sum of |dx| that leaks at 6 1/s

for some time is a fault. The second term leaves room for a lag that is not quite the loop's.
"""

import math

from softcr_hardware.ethercat.pressure_guard.records import Record
from softcr_models.room_kernels import compiled

_LEAK = 6.0  # [1/s]


@compiled
def is_astray(channel: Record, constants: Record, expected: float, dt: float) -> bool:
    """Whether the last reading has been too far from `expected` [Pa] for too long.

    Args:
        channel, constants: whose.
        expected: of the loop; NaN where it does not look at measured pressures.
        dt: since the last cycle [s].
    """
    moved = abs(expected - channel.expected)
    channel.expected = expected
    channel.motion *= math.exp(-_LEAK * dt)
    if moved > 0.0:  # not NaN
        channel.motion += moved
    if channel.excused > 0.0:
        channel.excused -= dt
        channel.astray = 0.0
        return False
    bound = constants.follow_base + constants.follow_share * channel.motion
    channel.astray = channel.astray + dt if abs(expected - channel.pressure) > bound else 0.0
    return bool(channel.astray >= constants.follow_time)


@compiled
def forget_command(channel: Record, expected: float) -> None:
    """Begin again at `expected` [Pa]."""
    channel.expected = expected
    channel.motion = channel.astray = channel.excused = 0.0

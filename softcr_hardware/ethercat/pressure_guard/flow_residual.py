"""Air that the sensor does not show, or that nobody let in: the flow residual.

    r <- r e^(-L dt) + f dt - dy,      U, D: the same of the rise and the fall margin

with the modelled flow f of `flow_model` and the reading's change dy. r > n + D is air that went in
and is not seen, or that went out by itself: a sensor that sticks, fades or has lost its slope, a
leak, a hose that came off, a supply that failed. -r > n + U is air that nobody let in: a valve that
sticks open, a supply too high. Two leaks L with a threshold n each; several new samples in a row
must say so, for one disturbed reading is no fault. The smallest rate that is seen is about
L n / (1 - delta - d/u): 10 kPa/s of the fast and 1.8 kPa/s of the slow one.
"""

import math

from softcr_hardware.compilation import compiled
from softcr_hardware.ethercat.pressure_guard.records import Record


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
def add_reading(channel: Record, constants: Record, change: float) -> int:
    """What a new sample says that differs by `change` [Pa] from the last one.

    Returns:
        1 for unseen air, -1 for air that nobody let in, 0 for neither.
    """
    channel.fast -= change
    channel.slow -= change
    n, m = constants.fast_threshold, constants.slow_threshold
    unseen = channel.fast > n + channel.fast_down or channel.slow > m + channel.slow_down
    surplus = -channel.fast > n + channel.fast_up or -channel.slow > m + channel.slow_up
    channel.beyond = channel.beyond + 1 if unseen or surplus else 0
    if channel.beyond < constants.samples_in_a_row:
        return 0
    return 1 if unseen else -1


@compiled
def forget_residual(channel: Record) -> None:
    """Begin again, as when the valves are enabled."""
    channel.fast = channel.fast_up = channel.fast_down = 0.0
    channel.slow = channel.slow_up = channel.slow_down = 0.0
    channel.beyond = 0

"""Air that the sensor does not show, or that nobody let in: the flow residual.

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

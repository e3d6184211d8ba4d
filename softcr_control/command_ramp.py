"""Commands that are approached along a ramp, as the held commands that lead to the same pressures.

The bench's valves spread every change of a command over a period, see
`softcr_hardware.safety.setpoint`; the simulator's follow it at once. Behind the lag (32) a ramp is,
at the ends of ticks, a weighted mean of two held commands: exact, and linear, so that a controller
plans over ramps as over steps. Ours; the paper holds its commands.
"""

import math

import numpy as np

from softcr_models.chain.pressure import PressureLag

HELD = np.ones(1)
"""The weights of commands that are followed at once."""


def ramp_weights(lag: PressureLag, period: float) -> np.ndarray:
    """(2,) weights, together 1, of the command before and of a tick's own.

    In its tick the ramp leads from the one to the other: it begins and ends with the tick. With
    x = pole period the integral of the way s / period with exp(-pole (period - s)), over that of 1,
    is 1 / (1 - exp(-x)) - 1 / x.

    Args:
        lag: behind the ramp. The weights hardly depend on its pole: that of the robot file will do.
        period: of a tick [s].
    """
    decay = lag.pole * period
    own = -1.0 / math.expm1(-decay) - 1.0 / decay
    return np.array([1.0 - own, own])

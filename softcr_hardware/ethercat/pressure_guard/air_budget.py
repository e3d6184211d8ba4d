"""How much air a chamber may hold that its sensor has not shown: a bound by the openings alone.

The bound takes every opening as wrong as it may be, always towards more pressure:

    filling      d(highest)/dt = (1 + delta) (u + d) k_fill (S - highest)
    exhausting   d(highest)/dt = -(1 - delta) (|u| - d) k_exhaust highest

so that a sensor that sticks while air goes in shows as `highest` leaving the reading. It is never
below the reading, less what noise does. Evidence brings it back to the reading: in motion, model
and reading, both high-passed at 8 rad/s, agree in gain; at rest, the answer to a ping (`ping`).
"""

import math

from softcr_hardware.ethercat.pressure_guard.records import Record
from softcr_models.room_kernels import compiled

NOISE = 500.0  # [Pa] of a reading, beside the bound
_HIGH_PASS = 8.0  # [rad/s]
_MEMORY = 4.0  # [1/s] at which what model and reading have in common is forgotten
_LEAST_WAVE = 600.0  # [Pa] rms of the model, for its gain to mean something
_LEAST_GAIN, _MOST_GAIN = 0.5, 1.7
_NEAR_LIMIT = 5000.0  # [Pa] above the limit a chamber must not get
_LEAST_BUDGET = 3000.0  # [Pa]


@compiled
def add_openings(channel: Record, constants: Record, dt: float) -> None:
    """Raise or lower the bound by the modelled opening of the last `dt` [s]."""
    u, d, delta = channel.opening, constants.opening_tolerance, constants.flow_tolerance
    if u > 0.0:
        rate = (1.0 + delta) * (u + d) * constants.fill_rate
        share = 1.0 - math.exp(-rate * dt)
        channel.highest += share * max(constants.supply - channel.highest, 0.0)
    elif -u > d:
        rate = (1.0 - delta) * (-u - d) * constants.exhaust_rate
        channel.highest *= math.exp(-rate * dt)
    channel.unproven += dt
    channel.still_motion += dt
    if not channel.highest >= channel.pressure - NOISE:
        channel.highest = channel.pressure - NOISE


@compiled
def add_evidence(channel: Record, change: float, flow: float, dt: float) -> None:
    """Compare the motion of reading and model.

    Args:
        channel: whose.
        change: of the reading since the last new sample [Pa].
        flow: the model's, in the same time [Pa].
        dt: this time [s].
    """
    decay, memory = math.exp(-_HIGH_PASS * dt), math.exp(-_MEMORY * dt)
    channel.model_wave = channel.model_wave * decay + flow
    channel.sensor_wave = channel.sensor_wave * decay + change
    share = 1.0 - memory
    model, sensor = channel.model_wave, channel.sensor_wave
    channel.model_power = channel.model_power * memory + share * model * model
    channel.shared_power = channel.shared_power * memory + share * model * sensor
    power = channel.model_power
    if power > _LEAST_WAVE**2 and _LEAST_GAIN * power < channel.shared_power < _MOST_GAIN * power:
        believe_reading(channel)
        if channel.excused <= 0.0:  # a motion that was commanded, none that a ping has made
            channel.still_motion = 0.0


@compiled
def believe_reading(channel: Record) -> None:
    """There was evidence: the chamber holds what the sensor says."""
    channel.highest = min(channel.highest, channel.pressure + NOISE)
    channel.unproven = 0.0


@compiled
def budget(channel: Record, constants: Record) -> float:
    """How far above its reading a chamber may be [Pa]; less near the limit."""
    left = constants.maximum + _NEAR_LIMIT - channel.pressure
    return float(min(constants.budget, max(left, _LEAST_BUDGET)))


@compiled
def forget_air(channel: Record) -> None:
    """Begin at the reading, as when the valves are enabled."""
    channel.highest = channel.pressure + NOISE
    channel.unproven = 0.0
    channel.still_motion = math.inf
    channel.model_wave = channel.sensor_wave = 0.0
    channel.model_power = channel.shared_power = 0.0

"""How much air a valve has let into or out of a chamber since the last cycle, and how wrong that
may be.

A valve follows its voltage with a first-order lag; the voltage that acted over a cycle is the one
sent an exchange before. With its opening u, negative to the exhaust, the supply's pressure S and
the rates k of the station file

    f = u k_fill (S - p)       filling
    f = -|u| k_exhaust p       exhausting

is the modelled rate of a chamber at pressure p. It is wrong by at most

    w = delta |f| + d m,       m = k_fill (S - p) or k_exhaust p,

where delta is the relative error of the flow and d that of the opening, which only counts where the
valve is within d of leaving its dead band. Beyond that a valve may be shut altogether, but never
work backwards:

    filling      rise margin w,             fall margin min(|f|, w)
    exhausting   rise margin min(|f|, w),   fall margin w
"""

import math

from softcr_hardware.ethercat.pressure_guard.records import Record
from softcr_models.room_kernels import compiled

_PIECE = 0.001  # [s] over which opening and pressure are taken as constant
_PIECES = 100


@compiled
def opening_at(constants: Record, volts: float) -> float:
    """What a valve at rest does at a voltage: -1 fully exhausting, 0 closed, 1 fully filling."""
    above = constants.side * (volts - constants.closed)
    span = constants.fill_span if above > 0.0 else constants.exhaust_span
    opened = (abs(above) - constants.dead_band) / span
    return math.copysign(min(max(opened, 0.0), 1.0), above)


@compiled
def volts_at(constants: Record, opening: float) -> float:
    """Voltage of an opening [V]; below 0 in magnitude a place inside of the dead band.

    Args:
        constants: of the station.
        opening: from -1 to 1; its sign is the side.
    """
    span = constants.fill_span if opening > 0.0 else constants.exhaust_span
    reach = constants.dead_band + min(abs(opening), 1.0) * span
    return constants.closed + constants.side * math.copysign(reach, opening)


@compiled
def advance_model(channel: Record, constants: Record, volts: float, dt: float) -> None:
    """Flow and margins of the time `dt` [s] since the last cycle, the valve having been at `volts`.

    Sets position, opening, flow, rise_margin, fall_margin and moves `predicted`.
    """
    pieces = min(max(math.ceil(dt / _PIECE - 1e-6), 1), _PIECES)
    step = min(dt / pieces, _PIECE)
    lag = constants.lag
    decay = math.exp(-step / lag) if lag > 0.0 else 0.0
    delta, d = constants.flow_tolerance, constants.opening_tolerance
    flow = rise = fall = opened = 0.0
    for _ in range(pieces):
        away = channel.position - volts
        mean = volts + away * (lag / step) * (1.0 - decay)
        channel.position = volts + away * decay
        opening = opening_at(constants, mean)
        above = constants.side * (mean - constants.closed)
        p = channel.predicted
        if above > 0.0:
            rate, drop, span = constants.fill_rate, constants.supply - p, constants.fill_span
        else:
            rate, drop, span = constants.exhaust_rate, p, constants.exhaust_span
        moved = drop * (1.0 - math.exp(-abs(opening) * rate * step))
        margin = delta * abs(moved)
        if abs(above) > constants.dead_band - d * span:
            margin += d * rate * max(drop, 0.0) * step
        if above > 0.0:
            rise += margin
            fall += min(abs(moved), margin)
        else:
            moved = -moved
            rise += min(abs(moved), margin)
            fall += margin
        flow += moved
        opened += opening / pieces
        channel.predicted = p + moved
    channel.opening, channel.flow = opened, flow
    channel.rise_margin, channel.fall_margin = rise, fall

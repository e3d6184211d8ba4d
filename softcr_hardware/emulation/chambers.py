"""Emulated valves and chambers, and how they may differ from what the station file says of them.

A chamber behind an opening u is first order towards the supply or the air, as in the station file,
with gains of its own, a dead band, hysteresis and lag of its own, a leak, an output of few bits,
and a valve that may stick:

    dp/dt = u k_fill (S - p) - leak p,   or   -|u| k_exhaust p - leak p

Nothing here is the driver's model of it; what both say of a valve is in the station file alone.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from softcr_hardware.ethercat.terminals import Flow, PressureRegulator, ValveMap
from softcr_models.room_kernels import compiled

SENSOR_NOISE = 50.0
"""Of an emulated pressure sensor, standard deviation [Pa]: one without noise is a broken one."""
_PIECE = 0.001  # [s]


@dataclass(frozen=True)
class ChamberErrors:
    """How emulated chambers differ from the station file; none by default.

    Attributes:
        fill_gain, exhaust_gain: factors on the rates.
        dead_band: added to that of the file [V].
        hysteresis: full width of the valve's play [V].
        lag: added to that of the file [s].
        leak: rate towards the air beside the valve [1/s].
        output_bits: of the output terminal over 10 V; 0 for an exact one.
        stuck: opening at which the valve sticks; NaN for none.
        supply: factor on the supply's pressure.
        droop: share of it that is missing while all valves fill, fully open: the regulator's.
    """

    fill_gain: float = 1.0
    exhaust_gain: float = 1.0
    dead_band: float = 0.0
    hysteresis: float = 0.0
    lag: float = 0.0
    leak: float = 0.0
    output_bits: int = 0
    stuck: float = math.nan
    supply: float = 1.0
    droop: float = 0.0


CHAMBER = np.dtype(
    [(field.name, "f8") for field in fields(ChamberErrors)]
    + [(name, "f8") for name in ("side", "closed", "fill", "exhaust", "end_pressure")]
    + [(name, "f8") for name in ("fill_rate", "exhaust_rate")]
    + [(name, "f8") for name in ("held", "position", "pressure")]  # [V], [V], [Pa]
    + [(name, "f8") for name in ("opening", "drooped")]  # of the valve; factor on the supply
    + [("range", "f8")]  # of a pressure regulator [Pa]; 0 for a flow valve
    + [(name, "f8") for name in ("more_leak", "sticking", "supplied")]  # faults, as leak and so on
)
"""One valve and its chamber: numbers, then state."""


def emulated_chambers(
    valve: ValveMap | PressureRegulator,
    flow: Flow,
    count: int,
    errors: ChamberErrors | None = None,
) -> Any:
    """(count,) CHAMBER, vented, with the valves on exhaust."""
    errors = errors or ChamberErrors()
    made = np.zeros(count, CHAMBER)
    for field in fields(errors):
        made[field.name] = getattr(errors, field.name)
    made["lag"] += valve.lag
    if isinstance(valve, PressureRegulator):
        made["closed"], made["fill"], made["range"] = valve.empty, valve.full, valve.range
    else:
        made["dead_band"] += valve.dead_band
        made["side"] = math.copysign(1.0, valve.fill - valve.closed)
        made["closed"], made["fill"], made["exhaust"] = valve.closed, valve.fill, valve.exhaust
    made["end_pressure"] = flow.supply
    made["fill_rate"], made["exhaust_rate"] = flow.fill_rate, flow.exhaust_rate
    made["held"] = made["position"] = valve.exhaust
    made["drooped"] = made["supplied"] = 1.0
    made["sticking"] = math.nan
    return made


@compiled
def advance_regulated(chamber: Any, command: float, dt: float) -> None:
    """The same of a pressure regulator: its chamber follows the command with a lag, up to the
    supply; a leak takes away what the regulator's resistance lets it."""
    end = chamber.end_pressure * chamber.supply * chamber.drooped * chamber.supplied
    stuck = chamber.stuck if math.isnan(chamber.sticking) else chamber.sticking
    share = (command - chamber.closed) / (chamber.fill - chamber.closed)
    target = min(max(share, 0.0) * chamber.range * chamber.fill_gain, end)
    if not math.isnan(stuck):
        target = max(stuck, 0.0) * end
    rate, leak = 1.0 / max(chamber.lag, 1e-4), chamber.leak + chamber.more_leak
    rest = rate * target / (rate + leak)
    chamber.pressure = rest + (chamber.pressure - rest) * math.exp(-(rate + leak) * dt)


@compiled
def advance_chamber(chamber: Any, volts: float, dt: float) -> None:
    """Let `dt` [s] pass with the valve's command at `volts`."""
    if chamber.range > 0.0:
        advance_regulated(chamber, volts, dt)
        return
    if chamber.output_bits > 0.0:
        counts = 2.0**chamber.output_bits - 1.0
        volts = round(volts / 10.0 * counts) * 10.0 / counts
    play = 0.5 * chamber.hysteresis
    chamber.held = min(max(chamber.held, volts - play), volts + play)
    pieces = max(math.ceil(dt / _PIECE - 1e-6), 1)
    step = dt / pieces
    decay = math.exp(-step / chamber.lag) if chamber.lag > 0.0 else 0.0
    end = chamber.end_pressure * chamber.supply * chamber.drooped * chamber.supplied
    leak = chamber.leak + chamber.more_leak
    stuck = chamber.stuck if math.isnan(chamber.sticking) else chamber.sticking
    for _ in range(pieces):
        before = chamber.position
        chamber.position = chamber.held + (before - chamber.held) * decay
        mean = chamber.held + (before - chamber.held) * (1.0 - decay) * chamber.lag / step
        above = chamber.side * (mean - chamber.closed)
        full = chamber.fill if above > 0.0 else chamber.exhaust
        opening = (abs(above) - chamber.dead_band) / (
            abs(full - chamber.closed) - chamber.dead_band
        )
        opening = math.copysign(min(max(opening, 0.0), 1.0), above)
        if not math.isnan(stuck):
            opening = stuck
        chamber.opening = opening
        if opening > 0.0:
            rate, towards = opening * chamber.fill_rate * chamber.fill_gain, end
        else:
            rate, towards = -opening * chamber.exhaust_rate * chamber.exhaust_gain, 0.0
        total = rate + leak
        if total > 0.0:
            rest = rate * towards / total
            chamber.pressure = rest + (chamber.pressure - rest) * math.exp(-total * step)


@compiled
def advance_chambers(
    chambers: np.ndarray, volts: np.ndarray, dt: float, pressures: np.ndarray
) -> None:
    """The same for every chamber of an actuator, commands (m,) [V]; they share the supply. Fills in
    their pressures (m,) [Pa]."""
    pieces = max(math.ceil(dt / _PIECE - 1e-6), 1) if chambers[0].droop > 0.0 else 1
    for _ in range(pieces):
        filling = 0.0
        for index in range(len(chambers)):
            advance_chamber(chambers[index], volts[index], dt / pieces)
            filling += max(chambers[index].opening, 0.0)
        for index in range(len(chambers)):
            chambers[index].drooped = 1.0 - chambers[index].droop * filling / len(chambers)
    for index in range(len(chambers)):
        pressures[index] = chambers[index].pressure

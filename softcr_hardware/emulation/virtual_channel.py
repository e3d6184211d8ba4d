"""One chamber with valve, lying sensor, pressure loop and guard on virtual time, compiled.

For campaigns of many hours: the loop and the guard are the fast cycle's own kernels, in the order
of the valve driver (exchange, guard, loop), while the plant and the sensor are emulated. A vent is
what the driver makes of one: the exhaust's voltage from then on.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softcr_hardware.emulation.chambers import ChamberErrors, advance_chamber, emulated_chambers
from softcr_hardware.ethercat.pressure_guard.detectors import (
    PressureFault,
    arm_channel,
    guarded_volts,
    watch_channel,
)
from softcr_hardware.ethercat.pressure_guard.guard import fill_in
from softcr_hardware.ethercat.pressure_guard.records import CHANNEL
from softcr_hardware.ethercat.pressure_loop import (
    GAINS,
    LOOP,
    regulated_opening,
    reset_loop,
    station_constants,
)
from softcr_hardware.ethercat.terminals import Station
from softcr_models.room_kernels import compiled, one_compiles

CYCLE = 0.001
"""Of the driver [s]."""
AFTER_VENT = 0.3
"""A run goes on for so long after a vent [s]."""
_COUNT = 10.0 / 0x7FFF  # [V] of an input

NO_HOLD, HELD, FROZEN, NEW_NOISE = range(4)
"""What becomes of a reading: it is new; the last count again with a toggle; neither; the last
pressure with noise of its own."""


@dataclass(frozen=True)
class SensorErrors:
    """What an honest sensor, bus and machine do.

    Attributes:
        noise: standard deviation [Pa].
        lost: share of lost samples.
        gap: length of gaps of the machine [s], none for 0.
        gap_every: mean time between gaps [s].
        age: of a sample when it is read [s], up to a cycle.
    """

    noise: float = 50.0
    lost: float = 0.0
    gap: float = 0.0
    gap_every: float = 2.0
    age: float = 0.0


@dataclass
class Course:
    """What happens from cycle to cycle, (T,) each: None for the honest one.

    Attributes:
        slope: factor on the sensor's pressure.
        offset: added to it [Pa].
        step: of a reading that is quantised [Pa]; 0 for the converter's own.
        hold: NO_HOLD, HELD, FROZEN or NEW_NOISE.
        lag: of the sensor's line [s].
        leak: of the chamber [1/s].
        stuck: opening of a valve that sticks; NaN for none.
        supply: factor on the supply.
    """

    slope: np.ndarray | None = None
    offset: np.ndarray | None = None
    step: np.ndarray | None = None
    hold: np.ndarray | None = None
    lag: np.ndarray | None = None
    leak: np.ndarray | None = None
    stuck: np.ndarray | None = None
    supply: np.ndarray | None = None


_HONEST = {
    "slope": 1.0, "offset": 0.0, "step": 0.0, "hold": 0.0, "lag": 0.0, "leak": 0.0,
    "stuck": math.nan, "supply": 1.0,
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes:
        fault: that it was vented for; NONE where it was not.
        vented: when [s]; infinite for never.
        peak: largest true pressure from the fault's beginning on [Pa].
        pings: how many there were.
        pressures: (T,) true [Pa], where they were asked for.
        readings: (T,) likewise.
    """

    fault: PressureFault
    vented: float
    peak: float
    pings: int
    nearest: float
    pressures: np.ndarray = field(repr=False)
    readings: np.ndarray = field(repr=False)


def run_channel(
    station: Station,
    maximum: float,
    setpoint: np.ndarray,
    course: Course | None = None,
    errors: ChamberErrors | None = None,
    sensor: SensorErrors | None = None,
    begin: float = 0.0,
    seed: int = 0,
    second: bool = False,
    guarded: bool = True,
    kept: bool = False,
) -> Outcome:
    """Drive one chamber, vented at first.

    Args:
        station: valve, flow, gains and guard.
        maximum: highest command [Pa].
        setpoint: (T,) of the loop, a cycle each [Pa].
        course: of faults.
        errors: of the emulated chamber against the station file.
        sensor: of an honest sensor.
        begin: of the fault: the peak counts from here [s].
        seed: of noise, losses and gaps.
        second: whether an honest second sensor is compared.
        guarded: whether a fault vents.
        kept: whether pressures and readings are returned.
    """
    sensor, steps = sensor or SensorErrors(), len(setpoint)
    valve = station.flow_valve
    constants = station_constants(valve, station.flow)
    fill_in(constants, station.guard, maximum, True)
    gains = np.zeros(1, GAINS)
    for name in GAINS.names or ():
        gains[name] = getattr(station.gains, name)
    channel, loop = np.zeros(1, CHANNEL), np.zeros(1, LOOP)
    for name in ("count", "pressure", "predicted"):
        channel[name] = np.nan
    channel["position"] = valve.exhaust
    plant = emulated_chambers(valve, station.flow, 1, errors)
    random = np.random.default_rng(seed)
    told = np.column_stack(
        [
            np.full(steps, honest) if (given := getattr(course, name, None)) is None else given
            for name, honest in _HONEST.items()
        ]
    ).astype(float)
    noise = sensor.noise * random.standard_normal((steps, 2))
    came = random.random(steps) >= sensor.lost
    ticked = _gaps(sensor, steps, random)
    pascal_per_volt = station.chambers[0].sensor.pascal_per_volt
    size = steps if kept else 1
    trace = np.zeros((2, size))
    settings = np.array(
        [pascal_per_volt, station.chambers[0].sensor.zero, sensor.age, valve.exhaust, begin]
    )
    arguments = (plant, channel, loop, gains, constants)
    with one_compiles():
        fault, vented, peak, pings = _run(
            *arguments, setpoint, told, noise, came, ticked, settings, second, guarded, trace
        )
    return Outcome(
        PressureFault(fault), vented, peak, pings, float(channel["nearest"][0]), trace[0], trace[1]
    )


def _gaps(sensor: SensorErrors, steps: int, random: np.random.Generator) -> np.ndarray:
    """(T,) whether the machine makes a cycle."""
    ticked = np.ones(steps, bool)
    if sensor.gap > 0.0:
        length = round(sensor.gap / CYCLE)
        for start in np.flatnonzero(random.random(steps) < CYCLE / sensor.gap_every):
            ticked[start : start + length] = False
    return ticked


@compiled
def _run(
    plant: Any,
    channel: Any,
    loop: Any,
    gains: Any,
    constants: Any,
    setpoint: np.ndarray,
    told: np.ndarray,
    noise: np.ndarray,
    came: np.ndarray,
    ticked: np.ndarray,
    settings: np.ndarray,
    second: bool,
    guarded: bool,
    trace: np.ndarray,
) -> tuple[int, float, float, int]:
    pascal_per_volt, zero, age, exhaust, begin = settings
    acted = coming = exhaust
    toggle = False
    shown = last_volts = 0.0  # behind the sensor's line [Pa]; on the wire [V]
    fault, vented, peak = 0, math.inf, 0.0
    since, gap = 0.0, 0.0  # since the last cycle, and the last that came [s]
    reset_loop(loop[0], 0.0)
    arm_channel(channel[0], 0.0)
    warm = 50  # cycles before the valves are enabled
    for step in range(len(setpoint)):
        now = step * CYCLE
        slope, offset, quantum, hold, lag, leak, stuck, supply = told[step]
        plant[0].leak, plant[0].stuck, plant[0].supply = leak, stuck, supply
        before = plant[0].pressure
        advance_chamber(plant[0], acted, CYCLE)
        true = plant[0].pressure
        seen = before + (true - before) * (1.0 - age / CYCLE)
        shown += (seen - shown) * (1.0 - math.exp(-CYCLE / lag)) if lag > 0.0 else seen - shown
        if now >= begin:
            peak = max(peak, true)
        if len(trace[0]) > 1:
            trace[0, step] = true
            trace[1, step] = channel[0].pressure
        if now >= vented + AFTER_VENT:
            break
        since += CYCLE
        gap += CYCLE
        if not ticked[step]:
            continue
        held = hold != NO_HOLD
        if not held:
            last = shown
        if hold in (NO_HOLD, NEW_NOISE):
            reading = slope * last + offset + noise[step, 0]
            if quantum > 0.0:
                reading = quantum * round(reading / quantum)
            last_volts = round((zero + reading / pascal_per_volt) / _COUNT) * _COUNT
        if hold != FROZEN:
            toggle = not toggle
        pressure = (last_volts - zero) * pascal_per_volt
        other = seen + noise[step, 1] if second else math.nan
        found = watch_channel(
            channel[0], constants[0], since, acted, came[step], last_volts, toggle, pressure,
            other, loop[0].expected, gap,
        )  # fmt: skip
        acted = coming
        wanted = regulated_opening(
            loop[0], gains[0], constants[0], setpoint[step], channel[0].pressure, since
        )
        if step < warm:
            coming = exhaust
            reset_loop(loop[0], 0.0)
            arm_channel(channel[0], 0.0)
        elif math.isfinite(vented) or (found != 0 and guarded):
            if not math.isfinite(vented):
                vented, fault = now, found
            coming = exhaust
        else:
            coming = guarded_volts(channel[0], constants[0], wanted, since)
        since = 0.0
        if came[step]:
            gap = 0.0
    return fault, vented, peak, channel[0].pings

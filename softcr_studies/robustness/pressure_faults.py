"""What a lying pressure sensor, a valve or a supply can do behind the pressure guard.

Each fault on several plants and motions, one chamber at a time, on virtual time, with the fast
cycle's own compiled pressure loop and guard: how many runs are vented, how late, and how high the
true pressure gets while the fault lasts. Plants differ from the station file by as much as the
guard's tolerances allow for; faults begin at 4 s unless they are there from the start.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field

from softcr_hardware.emulation.chambers import ChamberErrors
from softcr_hardware.emulation.fault_shapes import given_fault
from softcr_hardware.emulation.virtual_channel import (
    CYCLE,
    Course,
    Outcome,
    SensorErrors,
    run_channel,
)
from softcr_hardware.ethercat.pressure_guard.detectors import PressureFault
from softcr_hardware.ethercat.terminals import Station, load_station
from softcr_models import load_robot
from softcr_studies.frame.study import Cell, Metric, Must, Result, Seeds, Study, StudySettings

ROBOT = "licher2025"
BEGIN = 4.0
"""Of a fault that is not there from the start [s]."""
_ENABLED = 0.12  # [s] from here on the motion runs
_COMMAND_RAMP = 14  # cycles between commands, over which the valves' driver spreads each


@dataclass(frozen=True)
class Column:
    """A bench.

    Attributes:
        name: in the table.
        commissioned: whether flow and dead band were measured: the plants' errors and the guard's
            tolerances are the smaller ones.
        supply: of the regulator [Pa].
        second: whether each chamber has a second sensor.
    """

    name: str
    commissioned: bool
    supply: float
    second: bool = False


COLUMNS = (
    Column("wide, 150 kPa", False, 150e3),
    Column("measured, 150 kPa", True, 150e3),
    Column("measured, regulator 105 kPa", True, 105e3),
    Column("measured, 150 kPa, second sensor", True, 150e3, True),
)
LOW = COLUMNS[2]


@dataclass(frozen=True)
class Fault:
    """What fails.

    Attributes:
        name: in the table.
        course: of times since its beginning (T,) [s], never negative, and the supply [Pa].
        from_start: whether it is there before the valves are enabled.
    """

    name: str
    course: Callable[[np.ndarray, float], Course]
    from_start: bool = False


def _slope(name: str, course: Callable[[np.ndarray], np.ndarray]) -> Fault:
    return Fault(name, lambda t, supply: Course(slope=course(t)))


def _typed(name: str, words: str, start: bool = False) -> Fault:
    """As a person types it into the emulated bench, see fault_shapes."""
    given = given_fault(words.split())
    return Fault(name, lambda t, supply: given.course(t), start)


def _slope_to(share: float, within: float) -> Fault:
    name = f"slope to {100 * share:.0f} % in {within:g} s"
    return _typed(name, f"slope {share} in {within} s")


def _slope_of(share: float) -> Fault:
    return _typed(f"slope {100 * share:g} % from the start", f"slope {share}", start=True)


def _fades(tau: float) -> Fault:
    return _typed(f"fades, time constant {tau:g} s", f"fades {tau} s")


def _kinked(lag: float) -> Fault:
    return _typed(f"sensor line kinked, lag {lag:g} s", f"kinked {lag} s")


def _drifts(rate: float) -> Fault:
    return _typed(f"offset {rate:+g} kPa/s", f"offset {rate} kPa/s")


def _jumps(step: float) -> Fault:
    return _typed(f"offset step {step:+g} kPa", f"offset {step} kPa")


def _quantised(step: float) -> Fault:
    return _typed(f"reading in steps of {step:g} kPa", f"quantised {step} kPa")


def _leak(rate: float, name: str = "leak") -> Fault:
    return _typed(f"{name} {rate:g} 1/s", f"leak {rate} 1/s")


def _stuck(opening: float, name: str) -> Fault:
    return _typed(name, f"valve {opening}")


def _supply(pressure: float) -> Fault:
    return Fault(
        f"supply {pressure / 1e3:.0f} kPa",
        lambda t, supply: Course(supply=np.full(len(t), pressure / supply)),
    )


FAULTS = (
    _typed("value frozen", "frozen"),
    _typed("converter and toggle stop", "stopped"),
    _typed("stuck, noise alive", "stuck"),
    _typed("reads 0 at once", "slope 0"),
    *map(_fades, (0.05, 1.0, 10.0)),
    *map(_kinked, (0.3, 5.0)),
    *(_slope_to(share, within) for share, within in
      ((0.5, 0.3), (1.6, 0.3), (0.7, 0.3), (0.7, 10.0), (0.7, 60.0))),
    *map(_slope_of, (0.5, 0.625, 0.8, 0.9, 0.95, 1.25, 1.6)),
    *map(_drifts, (-1.0, -5.0, -20.0, 1.0)),
    *map(_jumps, (-3.0, -6.0, -15.0)),
    _typed("offset wanders by 10 kPa, 0.1 Hz", "wanders 10 kPa every 10 s"),
    _slope("slope 70 % in 0.5 of each 2 s", lambda t: np.where(t % 2.0 < 0.5, 0.7, 1.0)),
    _slope("reads 0 for 5 ms of each 0.5 s", lambda t: np.where(t % 0.5 < 0.005, 0.0, 1.0)),
    *map(_quantised, (0.5, 5.0)),
    _typed("held 0.9 of each 1 s", "held 0.9 every 1 s"),
    _typed("held 0.1 of each 0.2 s", "held 0.5 every 0.2 s"),
    _typed("held 20 of each 40 ms", "held 0.5 every 0.04 s"),
    _leak(1.0), _leak(10.0), _leak(50.0), _leak(200.0, "hose off,"),
    _stuck(0.2, "valve stuck open 20 %"), _stuck(0.5, "valve stuck open 50 %"),
    _stuck(1.0, "valve stuck open 100 %"), _stuck(0.0, "valve stuck closed"),
    _stuck(-0.2, "valve stuck on 20 % exhaust"),
    _supply(1.0), _supply(300e3),
)  # fmt: skip
HONEST = Fault("no fault", lambda t, supply: Course())
BEHIND_REGULATOR = "supply 300 kPa"
"""Not a fault that the regulator bounds: the manifold's relief valve does."""

_UNBOUNDED = (HONEST.name, BEHIND_REGULATOR)


class Settings(StudySettings):
    """How many plants, for how long."""

    seeds: Seeds = 1
    plants: int = Field(
        6, ge=1, le=1000, description="number of plants that differ from the station file"
    )
    duration: float = Field(
        60.0, gt=BEGIN, le=36000.0, description="duration of a run", json_schema_extra={"unit": "s"}
    )


def station_of(column: Column) -> Station:
    """The shipped station as a column has it."""
    station = load_station(ROBOT)
    return station.model_copy(
        update={
            "flow": station.flow.model_copy(update={"supply": column.supply}),
            "guard": station.guard.model_copy(update={"commissioned": column.commissioned}),
        }
    )


def plant_of(column: Column, random: np.random.Generator) -> tuple[ChamberErrors, SensorErrors]:
    """A plant of the class that the column's tolerances are for: the corner of gains and dead band
    or within, hysteresis to 15 mV, lag within 2 ms, outputs of 12 bits, noise of 50 to 200 Pa, 1 %
    of the samples lost, gaps of 17 ms, samples 0.5 ms old."""
    gain, band = (0.08, 0.012) if column.commissioned else (0.15, 0.040)
    fill, exhaust, dead_band, lag = np.clip(random.uniform(-1.5, 1.5, 4), -1.0, 1.0).tolist()
    plant = ChamberErrors(
        fill_gain=1.0 + gain * fill, exhaust_gain=1.0 + gain * exhaust,
        dead_band=band * dead_band, hysteresis=random.uniform(0.0, 0.015), lag=0.002 * lag,
        output_bits=12,
    )  # fmt: skip
    return plant, SensorErrors(random.uniform(50.0, 200.0), 0.01, 0.017, 2.0, 0.0005)


def motions(duration: float, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Name -> setpoints of every cycle (T,) [Pa], as the valves' driver would ramp them."""
    t = CYCLE * np.arange(round(duration / CYCLE))
    fade = np.minimum(t, 1.0)
    steps = np.repeat(random.uniform(0.0, 98e3, len(t) // 500 + 1), 500)[: len(t)]
    wanted = {f"rest at {level} kPa": np.full(len(t), 1e3 * level) for level in (15, 40, 60, 98)}
    wanted |= {
        "40 +- 25 kPa, 1 Hz": fade * (40e3 + 25e3 * np.sin(2.0 * np.pi * t)),
        "70 +- 28 kPa, 1.5 Hz": fade * (70e3 + 28e3 * np.sin(3.0 * np.pi * t)),
        "random steps": steps,
    }
    most = load_robot(ROBOT).pressure_limits.maximum_rate * CYCLE
    return {
        name: _as_sent(np.where(t < _ENABLED, 0.0, course), most) for name, course in wanted.items()
    }


def _as_sent(wanted: np.ndarray, most: float) -> np.ndarray:
    """Setpoints that follow commands (T,) [Pa] of 70 Hz as ramps, by `most` [Pa] in a cycle."""
    steps = -(-len(wanted) // _COMMAND_RAMP)
    commands = np.repeat(wanted[::_COMMAND_RAMP], _COMMAND_RAMP)[: len(wanted)]
    sent, now = np.empty(steps * _COMMAND_RAMP), 0.0
    for step in range(steps):
        begin = step * _COMMAND_RAMP
        slope = np.clip((commands[begin] - now) / _COMMAND_RAMP, -most, most)
        sent[begin : begin + _COMMAND_RAMP] = now + slope * np.arange(1, _COMMAND_RAMP + 1)
        now = sent[begin + _COMMAND_RAMP - 1]
    return sent[: len(wanted)]


def outcomes(
    fault: Fault, column: Column, plants: int, duration: float, seed: int = 0
) -> list[Outcome]:
    """Every plant under every motion."""
    station, maximum = station_of(column), load_robot(ROBOT).pressure_limits.maximum
    begin = 0.0 if fault.from_start else BEGIN
    times = CYCLE * np.arange(round(duration / CYCLE)) - begin
    course = fault.course(np.maximum(times, 0.0), column.supply)
    if not fault.from_start:
        course = _from(course, times >= 0.0)
    found = []
    for plant in range(plants):
        random = np.random.default_rng((seed, plant))
        errors, sensor = plant_of(column, random)
        for number, setpoint in enumerate(motions(duration, random).values()):
            found.append(
                run_channel(
                    station, maximum, setpoint, course, errors, sensor, begin,
                    seed=1000 * plant + number, second=column.second,
                )
            )  # fmt: skip
    return found


def _from(course: Course, begun: np.ndarray) -> Course:
    """The course where the fault has begun, and an honest bench before."""
    honest = {"slope": 1.0, "supply": 1.0, "stuck": np.nan}
    told = {
        name: np.where(begun, values, honest.get(name, 0.0))
        for name, values in vars(course).items()
        if values is not None
    }
    return replace(course, **told)


def in_words(found: Sequence[Outcome], begin: float) -> str:
    """Share vented, slowest vent and largest true pressure: `100 %, 0.04 s, 98`."""
    late = [each.vented - begin for each in found if np.isfinite(each.vented)]
    share = "none" if not late else f"{100 * len(late) / len(found):.0f} %"
    slowest = f", {max(late):.2g} s" if late else ""
    return f"{share}{slowest}, {1e-3 * max(each.peak for each in found):.0f}"


def run(cell: Cell) -> Result:
    """One fault on one bench."""
    [column] = [each for each in COLUMNS if each.name == cell.method]
    settings = cell.settings
    found = outcomes(cell.case, column, settings.plants, settings.duration, cell.seed)
    begin = 0.0 if cell.case.from_start else BEGIN
    late = np.array([each.vented - begin for each in found if np.isfinite(each.vented)])
    reasons = [each.fault for each in found]
    return {
        "vented": 100.0 * len(late) / len(found),
        "slowest": late.max() if len(late) else np.nan,
        "peak": 1e-3 * max(each.peak for each in found),
        "pings": sum(each.pings for each in found) / (len(found) * settings.duration),
        "note": "; ".join(
            f"{each.words} {reasons.count(each)}" for each in PressureFault
            if each in reasons and each is not PressureFault.NONE
        ),
    }  # fmt: skip


def cases(settings: Settings) -> Sequence[Fault]:
    """No fault, and all of them."""
    return (HONEST, *FAULTS)


STUDY = Study(
    name="robustness/pressure-faults",
    source="",
    summary="what lying pressure sensors, valves and supplies do behind the pressure guard",
    run=run,
    cases=cases,
    methods=tuple(column.name for column in COLUMNS),
    settings=Settings,
    metrics=(
        Metric("vented", "%", "vented"),
        Metric("slowest vent", "s",
               lambda result: None if np.isnan(result["slowest"]) else result["slowest"]),
        Metric("largest true pressure", "kPa", "peak"),
    ),
    musts=(
        Must("vented", 0.0, case=HONEST.name),
        *(Must("largest true pressure", 105.1, case=fault.name, method=LOW.name)
          for fault in FAULTS if fault.name not in _UNBOUNDED),
    ),
    exact="The plant is first order, as the model is; its gains, dead band, hysteresis, lag, noise "
    "and losses differ from it within the class of the column, but it neither chokes nor heats, "
    "and no rod acts back on it. Every fault lasts to the end of a run.",
    about={"motions": list(motions(BEGIN, np.random.default_rng(0))), "limit_kpa": 100.0},
)  # fmt: skip

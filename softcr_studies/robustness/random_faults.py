"""Random sequences of faults behind the pressure guard: how high a true pressure ever gets.

In each short run one to four things go wrong, at once or one after the other, for good or for a
while: what a sensor reads, its line, its converter, the valve, the chamber, the supply. Plant and
noise are of the column's class, cycles of the fast loop are left out for up to 50 ms, and the
setpoint is random. The study `robustness/pressure-faults` has the faults one by one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from pydantic import Field

from softcr_hardware.emulation.virtual_channel import (
    CYCLE,
    Course,
    Outcome,
    SensorErrors,
    run_channel,
)
from softcr_hardware.ethercat.pressure_guard.detectors import PressureFault
from softcr_hardware.ethercat.terminals import Station
from softcr_models import load_robot
from softcr_studies.frame.study import Cell, Metric, Must, Result, Seeds, Study, StudySettings
from softcr_studies.robustness.pressure_faults import (
    COLUMNS,
    LOW,
    ROBOT,
    Column,
    plant_of,
    station_of,
)

_ENABLED = 0.12  # [s] from here on the setpoint moves, and something may fail
_LOST, _GAP, _GAP_EVERY = 0.02, 0.05, 0.5  # share of samples, [s], [s]

Draw = Callable[[np.random.Generator], float]
WRONG: dict[str, tuple[float, Draw]] = {
    "slope": (1.0, lambda random: random.uniform(0.0, 2.0)),
    "offset": (0.0, lambda random: 15e3 * random.standard_normal()),
    "step": (0.0, lambda random: 10.0 ** random.uniform(1.0, 4.0)),
    "hold": (0.0, lambda random: float(random.integers(1, 4))),
    "lag": (0.0, lambda random: 10.0 ** random.uniform(-2.0, 1.0)),
    "leak": (0.0, lambda random: 10.0 ** random.uniform(-1.0, 2.3)),
    "stuck": (np.nan, lambda random: random.uniform(-1.0, 1.0)),
    "supply": (1.0, lambda random: random.uniform(0.0, 1.0)),
}
"""Attribute of a Course -> its honest value, and one that is not."""
_AT_ONCE = ("hold", "stuck", "step")  # nothing in between


def random_course(times: np.ndarray, random: np.random.Generator) -> Course:
    """What goes wrong at times (T,) [s] since the valves were enabled."""
    told: dict[str, Any] = {}
    for name in random.choice(list(WRONG), size=random.integers(1, 5), replace=False):
        honest, draw = WRONG[name]
        begin = random.uniform(0.0, 0.7 * times[-1])
        end = begin + (np.inf if random.random() < 0.5 else random.exponential(0.2))
        wrong = (times >= begin) & (times < end)
        share = np.ones(len(times))
        if name not in _AT_ONCE and random.random() < 0.5:  # it comes gradually
            share = np.clip((times - begin) / random.exponential(0.5), 0.0, 1.0)
        value = draw(random)
        come = value if name in _AT_ONCE else honest + (value - honest) * share
        told[name] = np.where(wrong, come, honest)
    return Course(**told)


def random_setpoint(times: np.ndarray, maximum: float, random: np.random.Generator) -> np.ndarray:
    """(T,) pressures [Pa] at times (T,) [s]: at rest, steps, or a sine."""
    kind, level = random.integers(3), random.uniform(0.05, 0.98) * maximum
    if kind == 0:
        return np.full(len(times), level)
    if kind == 1:
        levels = random.uniform(0.0, 0.98 * maximum, len(times))
        return np.asarray(levels[(times / 0.2).astype(int)])
    swing = random.uniform(0.0, min(level, 0.98 * maximum - level) + 1.0)
    phase = 2.0 * np.pi * (random.uniform(0.3, 2.0) * times + random.random())
    return np.asarray(level + swing * np.sin(phase))


def sequence(
    column: Column, station: Station, maximum: float, duration: float, random: np.random.Generator
) -> Outcome:
    """One run of `duration` [s] on a column's station, for commands up to `maximum` [Pa]."""
    times = CYCLE * np.arange(round((duration + _ENABLED) / CYCLE)) - _ENABLED
    moving = times >= 0.0
    since = np.maximum(times, 0.0)
    setpoint = np.where(moving, random_setpoint(since, maximum, random), 0.0)
    course = random_course(since, random)
    for name, values in vars(course).items():
        if values is not None:
            setattr(course, name, np.where(moving, values, WRONG[name][0]))
    errors, sensor = plant_of(column, random)
    sensor = SensorErrors(sensor.noise, _LOST, _GAP, _GAP_EVERY)
    seed = int(random.integers(2**31))
    return run_channel(
        station, maximum, setpoint, course, errors, sensor, seed=seed, second=column.second
    )


class Settings(StudySettings):
    """How many sequences, for how long."""

    seeds: Seeds = 10
    sequences: int = Field(1000, ge=1, le=1_000_000, description="number of sequences of each seed")
    duration: float = Field(
        1.0, gt=0.1, le=3600.0, description="duration of a run", json_schema_extra={"unit": "s"}
    )


def run(cell: Cell) -> Result:
    """So many sequences on one bench."""
    [column] = [each for each in COLUMNS if each.name == cell.method]
    station, maximum = station_of(column), load_robot(ROBOT).pressure_limits.maximum
    random = cell.random("sequences")
    vented, peak = 0, 0.0
    for _ in range(cell.settings.sequences):
        found = sequence(column, station, maximum, cell.settings.duration, random)
        vented += found.fault != PressureFault.NONE
        peak = max(peak, found.peak)
    share = 100.0 * vented / cell.settings.sequences
    return {"sequences": cell.settings.sequences, "vented": share, "peak": 1e-3 * peak}


STUDY = Study(
    name="robustness/random-faults",
    source="",
    summary="how high random sequences of faults get a true pressure behind the pressure guard",
    run=run,
    cases=lambda settings: ["any of them"],
    methods=tuple(column.name for column in COLUMNS),
    settings=Settings,
    metrics=(
        Metric("sequences", "-", "sequences"),
        Metric("vented", "%", "vented"),
        Metric("largest true pressure", "kPa", "peak"),
    ),
    musts=(Must("largest true pressure", 105.1, method=LOW.name),),
    exact="The plant is first order, as the model is; its gains, dead band, hysteresis, lag, noise "
    "and losses differ from it within the class of the column.",
    about={"limit_kpa": 100.0},
)

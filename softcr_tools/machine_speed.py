"""Whether this machine is fast enough for a rehearsal now: the loop's own work, timed beforehand.

The work is the valve driver's cycle on emulated chambers in memory: plain Python and some numpy, as
most of what a rehearsal computes. It is done on every core that a rehearsal may use at once, in
bursts of 20 ms with pauses, in the same kind of real-time scheduling; so what counts is how fast
the cores are now, with what their host and the other users of their caches take, and not how many
ordinary processes wait for them.
"""

import itertools
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcr_hardware.actuator import EmulatedActuator
from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.memory_bus import MemoryBus
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.safety_settings import SafetySettings
from softcr_models.robot import load_robot
from softcr_runtime.realtime import schedule_realtime

CORES = 2
"""A rehearsal is divided among so many at most, as far as its forecast goes."""
NEEDED = 0.029
"""Share of a core that a rehearsal needs, for each microsecond that a cycle of the work takes; as
measured: 127 and 138 % where it takes 46 and 47."""
MOST = 0.8
"""Share of the cores' time that a rehearsal may need: the rest is for what comes in bursts."""

_BURSTS, _BURST, _PAUSE = 12, 0.02, 0.06  # [s]
_PRIORITY = 1
_CYCLE = 0.001  # [s]


@dataclass(frozen=True)
class Forecast:
    """What a rehearsal would need of this machine now."""

    cycle: float  # time that one cycle of the work takes on the slowest of the cores [s]
    cores: int  # how many took part

    @property
    def needed(self) -> float:
        """Cores that a rehearsal would keep busy."""
        return NEEDED * 1e6 * self.cycle

    @property
    def available(self) -> float:
        """Cores that it may keep busy."""
        return MOST * self.cores

    @property
    def enough(self) -> bool:
        """Whether a rehearsal is going to work here."""
        return self.needed <= self.available

    @property
    def words(self) -> str:
        """What was measured, and what would be needed."""
        least = self.available / (NEEDED * 1e6)
        return (
            f"a cycle of the valve driver in memory takes {1e6 * self.cycle:.0f} us here now, on "
            f"{self.cores} core{'s' * (self.cores > 1)} at once, so a rehearsal needs "
            f"{100 * self.needed:.0f} % of a core and may take {100 * self.available:.0f} % "
            f"(the cycle then takes {1e6 * least:.0f} us at most)"
        )


def forecast() -> Forecast:
    """Measure for a second what the cores that this process may use give now."""
    cores = min(len(os.sched_getaffinity(0)), CORES)
    context = multiprocessing.get_context("fork")  # everything is loaded already
    with context.Pool(cores) as workers:
        return Forecast(max(workers.map(_measured_cycle, range(cores), chunksize=1)), cores)


def _measured_cycle(_: int) -> float:
    schedule_realtime(_PRIORITY)
    return typical_cycle(loop_work())


def typical_cycle(work: Callable[[], None]) -> float:
    """Median over bursts of the time that one call of `work` takes [s]."""
    durations = []
    for _ in range(_BURSTS):
        begin = time.perf_counter()
        calls = 0
        while (elapsed := time.perf_counter() - begin) < _BURST:
            work()
            calls += 1
        durations.append(elapsed / calls)
        time.sleep(_PAUSE)
    return statistics.median(durations)


def loop_work() -> Callable[[], None]:
    """One cycle of the valve driver on emulated chambers per call, on a clock of its own."""
    station, robot = load_station("licher2025"), load_robot("licher2025")
    station = station.model_copy(update={"arming_test": False})
    data = ProcessData(station)
    safety = SafetySettings(require_operator=False, require_mocap=False)
    now = 0.0
    bus = MemoryBus(station, data, EmulatedActuator(station), lambda: now, quantised=False)
    driver = ValveDriver(station, robot.pressure_limits, data, bus, safety)
    driver.open()
    driver.enable()
    cycles = itertools.count(1)

    def cycle() -> None:
        nonlocal now
        now = next(cycles) * _CYCLE
        if round(now / _CYCLE) % 14 == 0:  # at about 70 Hz
            wave = 3e4 * (1.0 + np.sin(6.0 * now + np.arange(len(station.chambers))))
            driver.hear("command", now, wave)
        driver.enable()
        driver.tick(now)

    return cycle

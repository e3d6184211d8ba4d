"""Whether this machine is fast enough for a rehearsal now: the loop's own work, timed beforehand.

The work is the valve driver's cycle on emulated chambers in memory: plain Python and some numpy, as
most of what a rehearsal computes. It is done on every core that a rehearsal may use at once, in
bursts of 20 ms with pauses, in the same kind of real-time scheduling; so what counts is how fast
the cores are now, with what their host and the other users of their caches take, and not how many
ordinary processes wait for them.
"""

import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from softcr_runtime.ros.realtime import schedule_realtime
from softcr_tools.running.free_cores import cores_that_can_be_had

CORES = 2
"""A rehearsal is divided among so many at most, as far as its forecast goes."""
NEEDED = 0.04
"""Share of a core that a rehearsal needs, for each microsecond that a cycle of the work takes; as
measured, on cores that others used as well: 139 to 170 % in runs before which it took, at the least
of three times, 35 to 44."""
MOST = 0.8
"""Share of the cores' time that a rehearsal may need: the rest is for what comes in bursts."""

_BURSTS, _BURST, _PAUSE = 12, 0.02, 0.06  # [s]
_TRIES = 3  # of a forecast that refuses: a host may be slow for a second
_PRIORITY = 1


@dataclass(frozen=True)
class Forecast:
    """What a rehearsal would need of this machine now."""

    cycle: float  # time that one cycle of the work takes on the slowest of the cores [s]
    cores: int  # how many took part
    had: float = math.inf  # how many of them this process gets; quotas count

    @property
    def needed(self) -> float:
        """Cores that a rehearsal would keep busy."""
        return NEEDED * 1e6 * self.cycle

    @property
    def available(self) -> float:
        """Cores that it may keep busy."""
        return MOST * min(float(self.cores), self.had)

    @property
    def enough(self) -> bool:
        """Whether a rehearsal is going to work here."""
        return self.needed <= self.available

    @property
    def words(self) -> str:
        """What was measured, and what would be needed."""
        least = self.available / (NEEDED * 1e6)
        had = f" of which {self.had:.1f} can be had," if self.had < 0.95 * self.cores else ""
        return (
            f"a cycle of the valve driver in memory takes {1e6 * self.cycle:.0f} us here now, on "
            f"{self.cores} core{'s' * (self.cores > 1)} at once,{had} so a rehearsal needs "
            f"{100 * self.needed:.0f} % of a core and may take {100 * self.available:.0f} % "
            f"(the cycle then takes {1e6 * least:.0f} us at most)"
        )


def forecast() -> Forecast:
    """Measure what the cores that this process may use give now, for a second or the best of some
    seconds."""
    cores = min(len(os.sched_getaffinity(0)), CORES)
    context, cycle = multiprocessing.get_context("fork"), math.inf  # everything is loaded already
    with context.Pool(cores) as workers:
        for _ in range(_TRIES):
            cycle = min(cycle, max(workers.map(_measured_cycle, range(cores), chunksize=1)))
            found = Forecast(cycle, cores, cores_that_can_be_had())
            if found.enough:
                break
    return found


def _measured_cycle(_: int) -> float:
    schedule_realtime(_PRIORITY)
    from softcr_hardware.ethercat.memory_cycle import memory_cycle  # brings kernels with it

    return typical_cycle(memory_cycle())


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

"""How durations are measured."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numba
import numpy as np

WARM_UP = 3
FEWEST = 3
Item = TypeVar("Item")


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Attributes:
        repeats: of every measurement that is not slow.
        seconds: spent on one measurement at most, once it has its fewest repeats.
        periods: control periods of the reference motion (specs: 140, two seconds).
    """

    repeats: int = 200
    seconds: float = 4.0
    periods: int = 140


@dataclass(frozen=True)
class Timing:
    """Durations of one piece of work, in seconds or whatever `times` made of them."""

    median: float
    p99: float
    minimum: float
    repeats: int

    def times(self, factor: float) -> "Timing":
        """The same in other units, or for a part of the work."""
        return Timing(factor * self.median, factor * self.p99, factor * self.minimum, self.repeats)


def timing_of(durations: Iterable[float]) -> Timing:
    """Statistics of durations [s]."""
    values = np.fromiter(durations, float)
    return Timing(
        float(np.median(values)),
        float(np.percentile(values, 99)),
        float(values.min()),
        len(values),
    )


def measure_each(work: Callable[[Item], object], items: Iterable[Item], effort: Effort) -> Timing:
    """Times `work(item)` item by item [s]; making the items is not timed.

    The first WARM_UP items are not counted.
    """
    durations: list[int] = []
    deadline = time.perf_counter() + effort.seconds
    for item in itertools.islice(items, WARM_UP + effort.repeats):
        begin = time.perf_counter_ns()
        work(item)
        durations.append(time.perf_counter_ns() - begin)
        if len(durations) >= WARM_UP + FEWEST and time.perf_counter() > deadline:
            break
    return timing_of(1e-9 * duration for duration in durations[WARM_UP:])


def measure(work: Callable[[], object], effort: Effort) -> Timing:
    """Times `work()` again and again [s]."""
    return measure_each(lambda _: work(), itertools.repeat(None), effort)


@contextmanager
def cores(count: int) -> Iterator[None]:
    """Lets compiled kernels use so many cores."""
    before = numba.get_num_threads()
    numba.set_num_threads(count)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def cores_available() -> int:
    """Cores that compiled kernels may use."""
    return int(numba.config.NUMBA_NUM_THREADS)

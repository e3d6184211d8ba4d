"""How durations are measured, and what a study of them looks like."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numba
import numpy as np
from pydantic import Field

from softcr_models.robot import Robot, load_robot
from softcr_studies.study import Cell, Metric, Result, Results, Row, Study, StudySettings

WARM_UP = 3
FEWEST = 3
Item = TypeVar("Item")
TIP_ERROR = "tip error"


class Effort(StudySettings):
    """How much is measured."""

    repeats: int = Field(200, ge=3, le=100_000, description="of every measurement that is not slow")
    seconds: float = Field(
        4.0, gt=0.0, le=600.0, description="spent on one measurement at most",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip
    periods: int = Field(
        140, ge=4, le=10_000, description="control periods of the reference motion"
    )


Work = Callable[[Effort], Result]
"""Measures something; see `told` and `skipped`."""


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


def told(timing: Timing, unit: str, tip_error: float | None = None, note: str = "") -> Result:
    """The result of a cell.

    Args:
        timing: in the unit.
        unit: "us per tick".
        tip_error: mean error of the tip that belongs to these times [m].
        note: what one must know to understand the figures.
    """
    result: dict[str, Any] = {
        f"median [{unit}]": timing.median, f"p99 [{unit}]": timing.p99,
        f"minimum [{unit}]": timing.minimum, "repeats": timing.repeats, "note": note,
    }  # fmt: skip
    return result if tip_error is None else result | {TIP_ERROR: 1e3 * tip_error}


def skipped(reason: str) -> Result:
    """The result of a cell that cannot be measured here."""
    return {"skipped": reason}


@dataclass(frozen=True)
class Baseline:
    """Another cell whose median is compared with that of ours, in the same unit.

    Attributes:
        ours, theirs: (case, method).
        pieces: how many of theirs make one of ours.
        must: how many times faster ours has to be.
    """

    ours: tuple[str, str]
    theirs: tuple[str, str]
    pieces: int = 1
    must: float | None = None

    def row(self, results: Results, units: Sequence[str]) -> Iterator[Row]:
        """How many times faster ours is; nothing where one of them was not measured."""
        ours, theirs = (results.first(*cell) for cell in (self.ours, self.theirs))
        for unit in units:
            name = f"median [{unit}]"
            if name in ours and name in theirs:
                what = self.theirs[1] if self.theirs[0] == self.ours[0] else ", ".join(self.theirs)
                what = what if self.pieces == 1 else f"{self.pieces} x {what}"
                ratio = self.pieces * theirs[name] / ours[name]
                yield Row(*self.ours, f"times faster than {what}", ratio, 0.0, "x", 1,
                          must=self.must, at_least=True, timing=True)  # fmt: skip


def speed_study(
    name: str,
    summary: str,
    work: Mapping[tuple[str, str], Work],
    units: Sequence[str],
    baselines: Sequence[Baseline] = (),
    further: Callable[[Results], Iterable[Row]] = lambda results: (),
    metrics: Sequence[Metric] = (),
    **about: Any,
) -> Study:
    """A study whose cells measure one thing each, one at a time, with all cores.

    Args:
        name, summary: of the study; `about` are other attributes.
        work: (case, method) -> what measures it.
        units: of times.
        further: other rows.
        metrics: beside times and tip errors.
    """

    def run(cell: Cell) -> Result:
        return work[cell.case, cell.method](cell.settings)

    def rows(results: Results) -> Iterator[Row]:
        for each in baselines:
            yield from each.row(results, units)
        yield from further(results)

    times = [
        Metric(quantity, unit, f"{quantity} [{unit}]", timing=True)
        for unit in units
        for quantity in ("median", "p99", "minimum")
    ]
    times += [Metric("repeats", "-", "repeats", timing=True), Metric(TIP_ERROR, "mm", TIP_ERROR)]
    cases = tuple(dict.fromkeys(case for case, _ in work))
    return Study(
        name=name, source="", summary=summary, run=run, cases=cases,
        methods=lambda case: [method for other, method in work if other == case],
        settings=Effort, metrics=(*times, *metrics), further_rows=rows, seeded=False, serial=True,
        **about,
    )  # fmt: skip


def robot() -> Robot:
    """Whose figures these are."""
    return load_robot("licher2025")


def median_of(results: Results, case: str, method: str, unit: str) -> float:
    """Of a cell that was measured, in its unit."""
    return float(results.first(case, method)[f"median [{unit}]"])

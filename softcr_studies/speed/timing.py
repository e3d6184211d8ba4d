"""How durations are measured, and what a study of them looks like."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numba
import numpy as np
from pydantic import Field

from softcr_studies.frame.study import Cell, Metric, Result, Results, Row, Study, StudySettings

WARM_UP = 3
FEWEST = 3
TIP_ERROR = "tip error"
Item = TypeVar("Item")


class Effort(StudySettings):
    """How much is measured."""

    repeats: int = Field(
        200,
        ge=3,
        le=100_000,
        description="number of repetitions of every measurement that is not slow",
    )
    seconds: float = Field(
        4.0, gt=0.0, le=600.0, description="longest duration of one measurement",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip
    periods: int = Field(
        140, ge=4, le=10_000, description="number of control periods of the reference motion"
    )


Work = Callable[[Effort], Result]
"""Measures something, see `told`; may raise `Skipped`."""


class Skipped(Exception):
    """Something cannot be measured here."""


def measure_each(
    work: Callable[[Item], object], items: Iterable[Item], effort: Effort
) -> np.ndarray:
    """Durations (R,) [s] of `work(item)`, item by item; making the items is not timed.

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
    return 1e-9 * np.array(durations[WARM_UP:])


def measure(work: Callable[[], object], effort: Effort) -> np.ndarray:
    """Durations (R,) [s] of `work()`, again and again."""
    return measure_each(lambda _: work(), itertools.repeat(None), effort)


def cores_available() -> int:
    """Cores that compiled kernels may use."""
    return int(numba.config.NUMBA_NUM_THREADS)


@contextmanager
def cores(count: int) -> Iterator[None]:
    """Lets compiled kernels use so many cores; raises Skipped where there are fewer."""
    if count > cores_available():
        raise Skipped(f"kernels may use {cores_available()} core here")
    before = numba.get_num_threads()
    numba.set_num_threads(count)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def told(
    durations: np.ndarray, unit: str, tip_error: float | None = None, note: str = ""
) -> Result:
    """The result of a cell: durations (R,) in the unit, the mean tip error [m] of such work."""
    result: dict[str, Any] = {
        "unit": unit,
        "median": float(np.median(durations)),
        "p99": float(np.percentile(durations, 99)),
        "minimum": float(np.min(durations)),
        "repeats": len(durations),
        "note": note,
    }
    return result if tip_error is None else result | {TIP_ERROR: 1e3 * tip_error}


@dataclass(frozen=True)
class Baseline:
    """Another cell (case, method) whose median is compared with that of ours, in the same unit."""

    ours: tuple[str, str]
    theirs: tuple[str, str]
    pieces: int = 1  # of theirs that make one of ours
    must: float | None = None  # how many times faster ours has to be

    def __call__(self, results: Results) -> Iterator[Row]:
        """How many times faster ours is; nothing where one of them was not measured."""
        ours, theirs = results.first(*self.ours), results.first(*self.theirs)
        if "median" in ours and "median" in theirs:
            what = self.theirs[1] if self.theirs[0] == self.ours[0] else ", ".join(self.theirs)
            what = what if self.pieces == 1 else f"{self.pieces} x {what}"
            ratio = self.pieces * theirs["median"] / ours["median"]
            yield Row(*self.ours, f"times faster than {what}", ratio, 0.0, "x", 1,
                      must=self.must, at_least=True, timing=True)  # fmt: skip


def speed_study(
    name: str,
    summary: str,
    work: Mapping[tuple[str, str], Work],
    units: Sequence[str],
    compared: Sequence[Callable[[Results], Iterable[Row]]] = (),
    metrics: Sequence[Metric] = (),
    **about: Any,
) -> Study:
    """A study whose cells measure one thing each, one at a time, with all cores.

    Args:
        name, summary: of the study, as `about`.
        work: (case, method) -> what measures it.
        units: of the times.
        compared: further rows, of more cells than one.
        metrics: beside times and tip errors.
    """

    def run(cell: Cell) -> Result:
        try:
            return work[cell.case, cell.method](cell.settings)
        except Skipped as reason:
            return {"skipped": str(reason)}

    def in_unit(quantity: str, unit: str, result: Result) -> float | None:
        return result[quantity] if result["unit"] == unit else None

    times = [
        Metric(name, unit, partial(in_unit, name, unit), timing=True)
        for unit in units
        for name in ("median", "p99", "minimum")
    ]
    counts = Metric("repeats", "-", "repeats", timing=True), Metric(TIP_ERROR, "mm", TIP_ERROR)
    return Study(
        name=name, source="", summary=summary, run=run,
        cases=tuple(dict.fromkeys(case for case, _ in work)),
        methods=lambda case: [method for other, method in work if other == case],
        settings=Effort, metrics=(*times, *counts, *metrics), seeded=False, serial=True,
        further_rows=lambda results: [row for each in compared for row in each(results)], **about,
    )  # fmt: skip

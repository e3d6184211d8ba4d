"""Ticks of nodes whose sensors keep their own time. No ROS here.

Cameras at 120 Hz and valves at 200 Hz never share a stamp. On the bench ticks are therefore the
whole multiples of the period in ROS time: nodes of one rate have the same ticks without a word
between them, and messages about one tick carry one stamp. What a sensor read at a tick is linear
between its samples before and after it; a hole of more than `LONGEST_HOLE` is not bridged. Linear
interpolation errs by at most |acceleration| hole^2 / 8: 0.1 mm over a camera's period and 1 mm over
the longest hole, at the 10 m/s^2 of the fastest references.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from softcr_runtime.blocks.sample import Sample

LONGEST_HOLE = 2.0
"""Between two samples that are interpolated [periods]."""

AnySample = TypeVar("AnySample", bound=Sample)
Blend = Callable[[Any, Any, float], Any]
"""The value at a part of the way from an older to a newer one, 0 <= part <= 1."""


def linear(older: np.ndarray, newer: np.ndarray, part: float) -> np.ndarray:
    """The value at a part of the way, 0 <= part <= 1."""
    return older + part * (newer - older)


class TickGrid:
    """Whole multiples of a period."""

    def __init__(self, period: float) -> None:
        """A grid of a period [s]."""
        self.period = round(1e9 * period)  # [ns]

    def after(self, older: int, newer: int) -> range:
        """The ticks t [ns] with older < t <= newer."""
        return range((older // self.period + 1) * self.period, newer + 1, self.period)

    def bridges(self, older: int, newer: int) -> bool:
        """Whether samples of two stamps [ns] may be interpolated."""
        return 0 < newer - older <= LONGEST_HOLE * self.period


class Resampler(Generic[AnySample]):
    """The samples of one sensor as samples at the ticks of a grid."""

    def __init__(self, period: float, blend: Blend = linear) -> None:
        """Nothing heard yet.

        Args:
            period: between ticks [s].
            blend: value between two values, at a part of the way.
        """
        self._grid = TickGrid(period)
        self._blend = blend
        self._older: AnySample | None = None

    def add(self, sample: AnySample) -> Iterator[AnySample]:
        """The ticks that a sample, newer than the ones before, completes.

        Each carries the stamp of its tick and was received when `sample` was.
        """
        older, self._older = self._older, sample
        if older is None or not self._grid.bridges(older.stamp, sample.stamp):
            if sample.stamp % self._grid.period == 0:
                yield sample
            return
        for tick in self._grid.after(older.stamp, sample.stamp):
            yield between(older, sample, tick, self._blend)


def between(older: AnySample, newer: AnySample, stamp: int, blend: Blend) -> AnySample:
    """The sample that a sensor would have sent at a stamp [ns] from the older to the newer one."""
    part = (stamp - older.stamp) / (newer.stamp - older.stamp)
    value = blend(older.value, newer.value, part)
    return replace(newer, stamp=stamp, value=value, older=older.stamp, newer=newer.stamp)

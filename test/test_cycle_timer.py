"""Pacing and statistics of ticks, on a clock that only moves when told to."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcr_runtime.blocks.cycle_timer import (
    HISTOGRAM_EDGES,
    CycleTimer,
    MonotonicClock,
    TickStatistics,
)

PERIOD = 1.0 / 70.0


class VirtualClock:
    """A clock that stands still until it is moved; sleeping moves it."""

    def __init__(self, start=0.0):
        self._now = start

    def now(self):
        return self._now

    def sleep_until(self, moment):
        self._now = max(self._now, moment)

    def advance(self, duration):
        self._now += duration


def test_wakes_on_the_grid_without_drift():
    clock = VirtualClock(start=1e5)
    timer = CycleTimer(PERIOD, clock)
    for index in range(1, 10_001):
        assert timer.wait() == 0
        assert timer.index == index
        assert clock.now() == 1e5 + index * PERIOD
        clock.advance(0.7 * PERIOD)
    assert timer.missed == 0


@pytest.mark.parametrize(("work", "missed"), [(1.25, 1), (1.0, 0)])
def test_a_late_cycle_is_missed_and_the_next_point_kept_of_a_grid_that_begins_later(work, missed):
    """The work of cycle 1 ends at 12.25: point 2 has passed. At 12 it is exactly in time."""
    clock = VirtualClock()
    timer = CycleTimer(1.0, clock, start=10.0)
    assert timer.wait() == 0
    assert clock.now() == 11.0
    clock.advance(work)
    assert timer.wait() == missed
    assert (timer.index, timer.missed, clock.now()) == (2 + missed, missed, 12.0 + missed)


@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=50), st.floats(1e-3, 2.0))
def test_every_grid_point_is_either_met_or_missed(works, period):
    clock = VirtualClock()
    timer = CycleTimer(period, clock)
    met = 0
    for work in works:
        timer.wait()
        met += 1
        assert clock.now() == pytest.approx(timer.start + timer.index * period, rel=1e-5)
        clock.advance(work)
    assert timer.index == met + timer.missed


@pytest.mark.parametrize("period", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_period_is_refused(period):
    with pytest.raises(ValueError, match="period"):
        CycleTimer(period, VirtualClock())
    with pytest.raises(ValueError, match="period"):
        TickStatistics(period, VirtualClock())


def test_the_real_clock_never_wakes_early():
    clock = MonotonicClock()
    moment = clock.now() + 2e-3
    clock.sleep_until(moment)
    assert clock.now() >= moment
    clock.sleep_until(moment - 10.0)  # in the past: returns


def _statistics(durations, period=PERIOD):
    clock = VirtualClock()
    statistics = TickStatistics(period, clock)
    for duration in durations:
        clock.advance(period)
        statistics.add(duration)
    return statistics


@given(st.lists(st.floats(0.05e-3, 0.1), min_size=1, max_size=300))
def test_quantiles_are_those_of_the_sorted_durations_to_one_percent(durations):
    summary = _statistics(durations).summary()
    for share, key in ((0.5, "p50_ms"), (0.99, "p99_ms")):
        exact = np.quantile(durations, share, method="inverted_cdf")
        assert summary[key] == pytest.approx(1e3 * exact, rel=0.01)
    assert summary["max_ms"] == 1e3 * max(durations)
    assert summary["mean_ms"] == pytest.approx(1e3 * np.mean(durations))


def test_the_slowest_ticks_are_not_hidden_by_the_last_bin():
    summary = _statistics([1e-3] * 90 + [0.5] * 10).summary()
    assert 100.0 < summary["p99_ms"] <= summary["max_ms"] == 500.0


def test_rate_cycles_deadline_and_missed():
    statistics = _statistics([1e-3] * 50 + [2 * PERIOD, PERIOD])
    statistics.skip(3)
    summary = statistics.summary()
    assert summary["rate_hz"] == pytest.approx(70.0)
    assert summary["cycles"] == statistics.cycles == 52
    assert summary["missed_cycles"] == statistics.missed == 1 + 3
    assert summary["deadline_ms"] == pytest.approx(1e3 * PERIOD)


def test_histogram_holds_every_tick():
    durations = [1e-6, 0.06e-3, 1e-3, 1e-3, 20e-3, 3.0]
    histogram = _statistics(durations).summary()["tick_time_histogram_ms"]
    assert sum(histogram["counts"]) == len(durations)
    assert histogram["edges"] == pytest.approx(1e3 * HISTOGRAM_EDGES, rel=1e-4)
    expected, _ = np.histogram(np.clip(durations, 0.0501e-3, 0.0999), HISTOGRAM_EDGES)
    assert histogram["counts"] == expected.tolist()


def test_without_ticks_nothing_is_claimed():
    summary = TickStatistics(PERIOD, VirtualClock()).summary()
    assert summary["cycles"] == summary["missed_cycles"] == 0
    for key in ("rate_hz", "p50_ms", "p99_ms", "max_ms", "mean_ms"):
        assert math.isnan(summary[key])

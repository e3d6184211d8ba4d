"""The server's clock on ours: against a linear program, and against clocks that are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from softcr_hardware.clock import ServerClock, hull_slope

OFFSET = 4321.0


def play(clock, seconds, drift=0.0, start=0.0, jitter=5e-4, delay=2e-4, seed=0, offset=OFFSET):
    """Frames at 120 Hz; the errors of the mapped moments of sending, behind the delay [s]."""
    random = np.random.default_rng(seed)
    errors = []
    for sent in start + np.arange(round(120 * seconds)) / 120:
        left = offset + sent * (1.0 + drift)
        clock.see(sent, left + delay + random.exponential(jitter))
        errors.append(clock.local(sent) - left - delay)
    return np.array(errors)


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=30), st.integers(0, 2**31))
def test_the_highest_line_under_points_is_that_of_the_linear_program(heights, seed):
    x = np.sort(np.random.default_rng(seed).uniform(0.0, 10.0, len(heights)))
    y = np.array(heights)
    slope = hull_slope(x, y)
    height = (y - slope * x).min()
    # Moon et al.: maximise the sum of a x + b subject to a x + b <= y
    sums, lines = [-x.sum(), -float(len(x))], np.column_stack((x, np.ones_like(x)))
    best = linprog(sums, lines, y, bounds=[(None, None)] * 2)
    assert slope * x.sum() + height * len(x) == pytest.approx(-best.fun, abs=1e-6)


@pytest.mark.parametrize("drift", [-5e-5, 0.0, 5e-5, 2e-4])
def test_offset_and_drift_are_found_behind_jitter(drift):
    clock = ServerClock()
    errors = play(clock, 60.0, drift)
    assert np.abs(errors[120 * 10 :]).max() < 2e-4
    assert clock.drift == pytest.approx(drift, abs=5e-6)
    assert clock.epochs == 1


def test_before_a_drift_can_be_seen_the_shortest_delay_is_the_clock():
    clock = ServerClock()
    errors = play(clock, 4.0)
    assert clock.drift == 0.0
    assert np.abs(errors[120:]).max() < 2e-4
    clock = ServerClock(largest_drift=3e-4)
    play(clock, 20.0, drift=5e-3)  # which no quartz has
    assert clock.drift == pytest.approx(3e-4)


def test_a_restarted_server_is_another_clock_after_half_a_second():
    clock = ServerClock()
    play(clock, 20.0)
    play(clock, 0.4, start=0.0, offset=OFFSET + 20.0)
    assert clock.epochs == 1  # not yet: it may have been garbage
    errors = play(clock, 5.0, start=0.4, offset=OFFSET + 20.0)
    assert clock.epochs == 2
    assert np.abs(errors[120:]).max() < 2e-4


def test_late_and_foreign_stamps_do_not_move_the_clock():
    clock = ServerClock()
    play(clock, 10.0)
    sent = 10.0
    before = clock.local(sent)
    assert clock.see(sent, sent + OFFSET + 0.050)  # late by 50 ms: a delay
    for garbage in (0.0, 1e6, 1e12, 5.0):
        assert not clock.see(garbage, sent + OFFSET)
    # a stall of 3 s: then what was queued comes at once
    for queued in sent + np.arange(240) / 120:
        clock.see(queued, sent + OFFSET + 3.0)
    assert clock.epochs == 1
    assert clock.local(sent) == pytest.approx(before, abs=1e-6)

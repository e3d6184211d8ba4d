"""The watch for commands that swing from limit to limit."""

import numpy as np
import pytest

from softcr_runtime.blocks.command_swings import SwingWatch

PERIOD = 1 / 70
RANGES = np.array([7e4, 7e4, 40.0])


def first_swing(command_at, seconds=6.0):
    """When the watch says so [s]; None: never."""
    watch = SwingWatch(RANGES)
    for tick in range(round(seconds / PERIOD)):
        time = tick * PERIOD
        if watch.swings(time, command_at(time)):
            return time
    return None


def square(hertz):
    """One input from limit to limit and back, which is two ranges in a period."""
    return lambda time: np.array([0.0, 0.0, 40.0 * (int(2.0 * hertz * time) % 2)])


def test_an_input_that_goes_from_limit_to_limit_is_found_once_it_has_travelled_eleven_ranges():
    assert first_swing(square(5.0)) == pytest.approx(12 * 0.1, abs=1.5 * PERIOD)


@pytest.mark.parametrize("hertz", [0.5, 1.5, 2.5])
def test_the_fastest_references_are_none(hertz):
    full = lambda time: RANGES * (0.5 + 0.5 * np.sin(2.0 * np.pi * hertz * time))  # noqa: E731
    assert first_swing(full) is None


def test_what_was_long_ago_counts_no_more():
    watch = SwingWatch(RANGES)
    swing = square(5.0)
    for tick in range(70):  # nine ranges
        assert not watch.swings(tick * PERIOD, swing(tick * PERIOD))
    for tick in range(70):  # and nine again, after a rest
        assert not watch.swings(3.0 + tick * PERIOD, swing(tick * PERIOD))

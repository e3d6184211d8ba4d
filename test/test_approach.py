"""The way back to a reference after a hold: no jump, no detour, and an end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcr_control.reference.approach import DURATION, Approach

PERIOD = 1 / 70
POINTS = st.tuples(*[st.floats(-0.2, 0.2)] * 3).map(np.array)


@given(begin=POINTS, wanted=POINTS, speed=POINTS, ticks=st.integers(0, 100))
def test_the_way_leads_from_the_tip_to_the_reference(begin, wanted, speed, ticks):
    now = round(1e9 * PERIOD * ticks)  # stamps are whole nanoseconds
    times = (1e-9 * now + PERIOD * np.arange(10))[:, None]
    tips = wanted + speed * times
    way = Approach()
    assert way.towards(tips, 0, PERIOD) is tips  # there is nothing to come back from
    way.begin(begin, 0, wanted + speed * PERIOD * np.arange(2)[:, None], PERIOD)
    aims = way.towards(tips, now, PERIOD)
    if ticks == 0:
        np.testing.assert_allclose(aims[0], begin, atol=1e-12)
    behind = times[:, 0] >= DURATION
    np.testing.assert_array_equal(aims[behind], tips[behind])
    # on the line between the two, no nearer to the reference than time has passed
    to_tip, to_aim = (np.linalg.norm(each - begin, axis=1) for each in (tips, aims))
    left = np.linalg.norm(tips - aims, axis=1)
    np.testing.assert_allclose(to_aim + left, to_tip, atol=1e-9)
    assert (to_aim <= to_tip * np.minimum(times[:, 0] / DURATION, 1.0) + 1e-9).all()
    steps = np.linalg.norm(np.diff(aims, axis=0), axis=1)
    farthest = np.linalg.norm(tips - begin, axis=1).max()
    assert steps.max() <= PERIOD * (np.linalg.norm(speed) + farthest / DURATION) + 1e-9


def test_it_ends():
    way, tips = Approach(), np.ones((3, 3))
    way.begin(np.zeros(3), 0, tips, PERIOD)
    assert way.towards(tips, round(1e9 * DURATION), PERIOD) is tips
    assert way.towards(tips, 0, PERIOD) is tips


@pytest.mark.parametrize(
    ("share", "along"), [(1.0, 1.0), (0.5, 0.5), (0.0, 0.0), (1.5, 1.0), (-1.0, 0.0)]
)
def test_a_tip_that_moves_goes_on(share, along):
    wanted, speed = np.array([0.05, 0.0, 0.1]), np.array([0.0, 0.6, 0.0])
    tips = wanted + speed * PERIOD * np.arange(10)[:, None]
    tip, way = wanted + np.array([0.002, 0.0, 0.0]), Approach()
    for tick in (-1, 0):
        moved = PERIOD * tick * speed
        way.begin(tip + share * moved, round(1e9 * PERIOD * tick), tips + moved, PERIOD)
    left = 1.0 - PERIOD * np.arange(10)[:, None] / DURATION
    begins = tip + along * (tips - wanted)
    np.testing.assert_allclose(way.towards(tips, 0, PERIOD), tips + left * (begins - tips))


def test_how_fast_a_tip_was_long_ago_does_not_count():
    tips = np.array([0.6 * PERIOD, 0.0, 0.0]) * np.arange(10)[:, None]
    way = Approach()
    way.begin(np.array([-0.12, 0.0, 0.0]), -round(0.2e9), tips, PERIOD)
    way.begin(tips[0], 0, tips, PERIOD)
    np.testing.assert_allclose(way.towards(tips, 0, PERIOD)[0], tips[0])
    assert way.towards(tips, 0, PERIOD)[1, 0] < 0.1 * tips[1, 0]

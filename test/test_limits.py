import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcr_control.command_limits import limit_command
from softcr_control.predictive.knots import Knots, even_knots
from softcr_control.predictive.limits import largest_steps, limit_knots

LOW, HIGH, RATE, DT = 0.0, 1e5, 1e6, 0.01  # at most 10 kPa per tick

pressures = st.lists(st.floats(-2e5, 3e5), min_size=3, max_size=3).map(np.array)
inside = st.lists(st.floats(LOW, HIGH), min_size=3, max_size=3).map(np.array)


@given(pressures, inside)
def test_limited_command_keeps_box_and_slew(command, previous):
    limited, clipped = limit_command(command, previous, LOW, HIGH, RATE, DT)
    assert np.all((limited >= LOW) & (limited <= HIGH))
    assert np.all(np.abs(limited - previous) <= RATE * DT * (1 + 1e-12))
    assert clipped == (not np.array_equal(limited, command))


@given(inside)
def test_allowed_command_passes_unchanged(command):
    limited, clipped = limit_command(command, command, LOW, HIGH, RATE, DT)
    assert np.array_equal(limited, command)
    assert not clipped


def test_slew_moves_towards_the_command():
    limited, clipped = limit_command([50e3, 0.0, 30e3], [30e3] * 3, LOW, HIGH, RATE, DT)
    assert np.allclose(limited, [40e3, 20e3, 30e3])
    assert clipped


@pytest.mark.parametrize("bad", [[np.nan, 1.0, 1.0], [np.inf, 1.0, 1.0], [1.0, 1.0], 5.0])
def test_what_is_not_a_command_is_refused_whole(bad):
    limited, clipped = limit_command(bad, [1e3, 2e3, 3e3], LOW, HIGH, RATE, DT)
    assert np.array_equal(limited, [1e3, 2e3, 3e3])
    assert clipped


def test_box_wins_over_slew_and_over_a_previous_command_outside():
    limited, _ = limit_command([2e5] * 3, [1.5e5] * 3, LOW, HIGH, RATE, DT)
    assert np.array_equal(limited, [HIGH] * 3)


@given(st.integers(1, 5), st.booleans(), st.integers(0, 2**32 - 1))
def test_projected_knots_give_feasible_commands(segments, first_fixed, seed):
    horizon = 8
    layout = Knots(even_knots(segments, horizon, first_fixed), horizon, 3)
    generator = np.random.default_rng(seed)
    knots = generator.normal(5e4, 1e5, (20, layout.count, 3))
    previous = generator.uniform(LOW, HIGH, 3)
    if first_fixed:
        knots[:, 0] = previous
    steps = RATE * DT * layout.spans[:, None] * np.ones(3)
    limit_knots(knots, previous, LOW, HIGH, largest_steps(steps, np.full(3, HIGH - LOW)))
    commands = layout.commands(knots)
    before = np.concatenate([np.broadcast_to(previous, (20, 1, 3)), commands[:, :-1]], axis=1)
    assert commands.min() >= LOW - 1e-9
    assert commands.max() <= HIGH + 1e-9
    assert np.abs(commands - before).max() <= RATE * DT * (1 + 1e-9)


def test_projection_leaves_feasible_knots_alone():
    knots = np.array([[[30e3, 30e3, 30e3], [60e3, 10e3, 30e3]]])
    limited = knots.copy()
    limit_knots(limited, np.full(3, 30e3), LOW, HIGH, [np.full(3, 10e3), np.full(3, 70e3)])
    assert np.array_equal(limited, knots)


def test_each_input_has_its_own_limits():
    low, high = np.array([0.0, -0.01]), np.array([1e5, 0.03])
    steps = largest_steps(np.array([[1e3, 0.1], [2e5, 0.1]]), high - low)
    assert steps[1] is None  # the box is met first
    knots = np.array([[[5e4, 0.05], [2e5, -0.05]]])
    limit_knots(knots, np.array([2e4, 0.0]), low, high, steps)
    assert np.array_equal(knots, [[[2.1e4, 0.03], [1e5, -0.01]]])

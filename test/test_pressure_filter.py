"""Readings filtered with commands: against a Kalman filter written out, noise, missing commands."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcr_estimation.estimator import EstimatorBlock
from softcr_estimation.sensors.pressure_filter import PressureFilter
from softcr_models import load_robot
from softcr_models.chain.pressure import PressureLag
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.values import Pose

DT = 1 / 70
LAG = PressureLag(18.0, 20.0)
A = math.exp(-20.0 * DT)
B = 0.9 * (1.0 - A)


def driven(ticks, noise, rng, delay=1, ramped=False):
    """Readings (T, 3), true pressures (T, 3) and commands (T, 3) by stamps of ticks: the one of
    tick k acts in the tick that begins `delay` later."""
    times = DT * np.arange(ticks)
    phase = 2 * np.pi * times[:, None] * np.array([0.4, 0.9, 1.4])
    commands = 35e3 + 8e3 * np.sin(phase)
    true = np.empty_like(commands)
    true[0] = 30e3
    for k in range(1, ticks):
        held = commands[max(k - 1 - delay, 0)]
        if ramped:  # a ramp is nearly the mean of the two, see `command_ramp`
            held = 0.48 * commands[max(k - 2 - delay, 0)] + 0.52 * held
        true[k] = A * true[k - 1] + B * held
    return true + noise * rng.standard_normal(true.shape), true, commands


def filtered(readings, commands, missing=(), lag=LAG):
    """(T, 3) what a filter makes of readings; what was played in a tick is heard at its end."""
    pressures, found = PressureFilter(lag, DT), []
    for k, reading in enumerate(readings):
        if k > 0 and k - 1 not in missing:
            pressures.hear(DT * (k - 1), commands[k - 1])
        found.append(pressures.filtered(reading, DT * k))
    return np.array(found), pressures


def test_it_is_a_scalar_kalman_filter_with_the_noises_it_says():
    """Against the filter in its information form, one chamber and one tick after the other."""
    readings, _, commands = driven(300, 150.0, np.random.default_rng(1))
    pressures = PressureFilter(LAG, DT)
    mean, information = None, 0.0
    for k, reading in enumerate(readings):
        if k > 0:
            pressures.hear(DT * (k - 1), commands[k - 1])
        found = pressures.filtered(reading, DT * k)
        noise, process = pressures.noise**2, pressures._process
        if k < 200 or pressures.delay != 1.0:
            mean, information = found, 1.0 / pressures._variance if pressures._variance else 0.0
            continue
        for i in range(3):
            ahead = 1.0 / (A**2 / information + process)
            at = A * mean[i] + B * commands[k - 2][i]
            expected = (ahead * at + reading[i] / noise) / (ahead + 1.0 / noise)
            assert found[i] == pytest.approx(expected, rel=1e-12)
        mean, information = found, ahead + 1.0 / noise
    assert k == 299
    assert pressures.delay == 1.0


@settings(max_examples=12, deadline=None)
@given(st.floats(50.0, 400.0), st.integers(0, 10_000))
def test_noise_is_found_and_most_of_it_removed(noise, seed):
    """Five seconds; the noise's estimate has 6 % of deviation from 300 innovations."""
    readings, true, commands = driven(350, noise, np.random.default_rng(seed))
    found, pressures = filtered(readings, commands)
    assert pressures.noise == pytest.approx(noise, rel=0.35)
    left = np.sqrt(np.mean((found - true)[150:] ** 2))
    assert left < 0.6 * noise


def test_readings_without_noise_stay_as_they_are_and_another_lag_passes_for_no_noise():
    """The error of the model is the same in neighbouring ticks, noise is not."""
    readings, _, commands = driven(300, 0.0, np.random.default_rng(2))
    found, _ = filtered(readings, commands)
    np.testing.assert_allclose(found, readings, rtol=1e-12)
    found, pressures = filtered(readings, commands, lag=PressureLag(27.0, 30.0))
    np.testing.assert_array_equal(found, readings)
    assert pressures.follows


@pytest.mark.parametrize(
    ("delay", "ramped", "expected"),
    [(0, False, 0.0), (0, True, 0.5), (1, False, 1.0), (1, True, 1.5), (2, False, 2.0)],
)
def test_it_finds_when_commands_act(delay, ramped, expected):
    rng = np.random.default_rng(4)
    readings, true, commands = driven(300, 100.0, rng, delay, ramped)
    found, pressures = filtered(readings, commands)
    assert pressures.delay == expected
    assert np.sqrt(np.mean((found - true)[150:] ** 2)) < 70.0


def test_without_commands_readings_stay_as_they_are_and_it_goes_on_with_them():
    readings, true, commands = driven(400, 200.0, np.random.default_rng(5))
    found, pressures = filtered(readings, commands, missing=range(200, 260))
    changed = (found != readings).any(axis=1)
    assert changed[100:200].all()
    assert not changed[207:260].any()  # for five periods the last command counts
    assert changed[265:].all()
    assert pressures.follows
    assert 50 <= pressures.unfiltered <= 56
    assert np.sqrt(np.mean((found - true)[320:] ** 2)) < 120.0


def test_a_period_left_out_and_commands_that_are_no_numbers_change_nothing():
    readings, _, commands = driven(120, 200.0, np.random.default_rng(6))
    _, pressures = filtered(readings, commands)
    late = readings[-1] + 50.0
    np.testing.assert_array_equal(pressures.filtered(late, DT * 121), late)
    silent = PressureFilter(LAG, DT)
    for k, reading in enumerate(readings):
        silent.hear(DT * k, np.array([np.nan, 0.0, 0.0]))
        np.testing.assert_array_equal(silent.filtered(reading, DT * k), reading)
    assert not silent.follows
    assert silent.unfiltered == 0


def test_where_commands_were_lost_readings_stay_as_they_are():
    """The one before is not taken to have lasted until the next that was heard."""
    readings, _, commands = driven(300, 200.0, np.random.default_rng(7))
    found, pressures = filtered(readings, commands, missing=range(200, 203))
    changed = (found != readings).any(axis=1)
    assert not changed[204:206].any()  # commands may act two ticks later
    assert changed[100:200].all()
    assert changed[207:].all()
    assert pressures.unfiltered == 0


def block(**given):
    robot = load_robot("licher2025")
    told = {"mode": "lockstep", "estimator": "test_pressure_filter:Tip", "intervals": 3}
    return EstimatorBlock(robot, EstimatorBlock.settings_of(told | given))


class Tip:
    """An estimator that keeps what it is told."""

    gives_state = False
    tip_position, tip_position_covariance = np.zeros(3), np.eye(3)

    def __init__(self, context, settings=None):
        self.inputs = []

    def reset(self):
        """See Estimator."""

    def update(self, inputs, measurements, stamp):
        """See Estimator."""
        self.inputs.append(inputs)
        return self


def test_the_block_hears_commands_and_does_without():
    rng, made = np.random.default_rng(7), block()
    lag = made.model.inputs.lag
    a = math.exp(-lag.pole * DT)
    pressures, true, readings = np.full(3, 30e3), [], []
    command = last = np.full(3, 30e3)
    for k in range(1, 200):
        stamp = round(1e9 * k * DT)
        held, command = command, 35e3 + 8e3 * np.sin(0.1 * k) * np.ones(3)
        readings.append(pressures + 200.0 * rng.standard_normal(3))
        true.append(pressures)
        samples = {
            "pressure/state": Sample("pressure/state", stamp, readings[-1], 0.0),
            "mocap/tip/pose": Sample("mocap/tip/pose", stamp, Pose.of(np.eye(4)), 0.0),
        }
        if 1 < k < 180:
            earlier = round(1e9 * (k - 1) * DT)
            samples["pressure/sent"] = Sample("pressure/sent", earlier, last, 0.0)
        made.tick(stamp, samples)
        last = command
        pressures = a * pressures + lag.gain / lag.pole * (1.0 - a) * held
    told = np.array(made.estimator.inputs)
    error = np.sqrt(np.mean((told - np.array(true))[100:178] ** 2))
    assert error < 120.0
    np.testing.assert_array_equal(told[-5:], readings[-5:])
    assert made.describe()["pressure_filter"].startswith("off: nothing on pressure/sent")
    made.reset()
    assert made.describe()["unfiltered"] == 0


def test_it_can_be_switched_off_and_robots_without_a_lag_hear_no_commands():
    topics = [each.topic for each in block(pressure_filter=False).inputs]
    assert "pressure/sent" not in topics
    assert "pressure/sent" in [each.topic for each in block().inputs]
    assert "pressure/sent" in [each.topic for each in block(mode="wall").inputs]
    arm = load_robot("dalenberg_robot1", ("arm",))
    told = {"robot": "dalenberg_robot1", "estimator": "test_pressure_filter:Tip"}
    led_by_tendons = EstimatorBlock(arm, EstimatorBlock.settings_of(told))
    assert [each.topic for each in led_by_tendons.inputs] == ["tendon/state", "mocap/body/poses"]
    assert "pressure_filter" not in led_by_tendons.describe()

"""The pressure lag from commands and readings: found when it moves, kept when it rests."""

import numpy as np
import pytest

from softcr_control.predictive.lag_estimation import LagEstimator
from softcr_models.chain.pressure import PressureLag

FILE, PERIOD, RANGES = PressureLag(11.0, 10.94), 1 / 70, np.full(3, 1e5)


def learn(estimator, truth, command_at, ticks, noise=0.0, every=1, late=0.0):
    """Readings of three chambers under a lag, told at every tick, or at every second, third one.

    Each command acts a share `late` of a period after its tick has begun.
    """
    random = np.random.default_rng(0)
    pressures, before, sent = np.full(3, 3e4), np.full(3, 3e4), [command_at(-PERIOD)]
    for tick in range(ticks):
        sent.append(command_at(tick * PERIOD))
        for command, share in ((sent[-2], late), (sent[-1], 1.0 - late)):
            pressures = truth.step(pressures, command, share * PERIOD)
        if len(sent) == 1 + every:
            after = pressures + noise * random.standard_normal(3)
            estimator.observe(before, np.array(sent), after)
            before, sent = after, sent[-1:]


def circle(time):
    return 3e4 + 2e4 * np.sin(2 * np.pi * (1.5 * time + np.arange(3) / 3))


@pytest.mark.parametrize("every", [1, 2, 3, 4])
@pytest.mark.parametrize(("pole", "ratio"), [(9.0, 1.0), (13.0, 1.03), (10.94, 0.96)])
def test_finds_the_lag_within_a_second_of_motion(pole, ratio, every):
    estimator = LagEstimator(FILE, PERIOD, RANGES)
    learn(estimator, PressureLag(ratio * pole, pole), circle, 70, every=every)
    assert estimator.lag.pole == pytest.approx(pole, rel=0.01)
    assert estimator.lag.gain / estimator.lag.pole == pytest.approx(ratio, rel=0.005)
    estimator.reset()
    assert estimator.lag == FILE


@pytest.mark.parametrize("every", [1, 2, 3, 4])
@pytest.mark.parametrize(("told", "late"), [(0.0, 0.5), (0.5, 0.0), (0.5, 1.0), (0.0, 0.0)])
def test_finds_how_late_commands_act(told, late, every):
    estimator = LagEstimator(FILE, PERIOD, RANGES, told)
    learn(estimator, FILE, circle, 140, noise=50.0, every=every, late=late)
    # of a reading at a tick's end, what a command adds early in the tick has decayed more
    x = FILE.pole * PERIOD
    weight = (np.exp(-x * (1.0 - late)) - np.exp(-x)) / (1.0 - np.exp(-x))
    assert estimator.weight == pytest.approx(weight, abs=0.05)
    assert estimator.lag.pole == pytest.approx(FILE.pole, rel=0.03)
    estimator.reset()
    assert estimator.weight == told


def test_noise_at_rest_does_not_pass_for_a_faster_lag():
    """Without the threshold, least squares would take the noise for a lag without memory."""
    estimator = LagEstimator(FILE, PERIOD, RANGES)
    learn(estimator, FILE, lambda time: np.full(3, 3e4), 2000, noise=300.0)
    assert estimator.lag.pole == pytest.approx(FILE.pole, rel=0.02)
    learn(estimator, FILE, circle, 1400, noise=100.0)
    assert estimator.lag.pole == pytest.approx(FILE.pole, rel=0.02)


def test_follows_a_lag_that_changes():
    estimator = LagEstimator(FILE, PERIOD, RANGES)
    learn(estimator, FILE, circle, 1400)
    learn(estimator, PressureLag(9.0, 9.0), circle, 70 * 60)
    assert estimator.lag.pole == pytest.approx(9.0, rel=0.03)


def test_broken_readings_tell_nothing_and_the_estimate_stays_in_its_range():
    estimator, command = LagEstimator(FILE, PERIOD, RANGES), np.full((2, 3), 5e4)
    estimator.observe(np.array([np.nan, 0.0, 0.0]), command, np.array([0.0, np.nan, np.inf]))
    assert estimator.lag == FILE
    for _ in range(500):  # a stuck sensor
        estimator.observe(np.zeros(3), command, np.zeros(3))
    assert FILE.pole / 2 * 0.999 <= estimator.lag.pole <= FILE.pole * 2 * 1.001
    assert 1 / 1.11 < estimator.lag.gain / estimator.lag.pole < 1.11


def test_inputs_of_other_units_teach_the_same_lag():
    """Tendons of millimetres as well as pressures, each in its own range."""
    truth, found = PressureLag(9.0, 9.0), []
    for scale in (np.ones(3), np.array([1e-7, 3e-2, 1e-3])):
        estimator, before = LagEstimator(FILE, PERIOD, 1e5 * scale), 3e4 * scale
        for tick in range(70):
            commands = scale * np.array([circle((tick - 1) * PERIOD), circle(tick * PERIOD)])
            after = truth.step(before, commands[1], PERIOD)
            estimator.observe(before, commands, after)
            before = after
        found.append(estimator.lag.pole)
    assert found == pytest.approx([9.0, 9.0], rel=0.01)
    assert found[1] == pytest.approx(found[0], rel=1e-9)


def test_readings_that_do_not_follow_the_commands_tell_nothing():
    """Valves that are not enabled, while pulses of an arming test or a hand move the pressures."""
    estimator, random = LagEstimator(FILE, PERIOD, RANGES), np.random.default_rng(0)
    before, commands = np.zeros(3), np.zeros((2, 3))
    for tick in range(700):
        commands = np.array([commands[1], random.uniform(0.0, 3e4, 3)])
        after = np.where(np.arange(3) == tick // 40 % 3, 3.5e3 * (10 < tick % 40 < 30), 0.0)
        estimator.observe(before, commands, after + 22.0 * random.standard_normal(3))
        before = after
    assert estimator.lag.pole == pytest.approx(FILE.pole, rel=0.05)
    assert estimator.lag.gain == pytest.approx(FILE.gain, rel=0.05)
    learn(estimator, PressureLag(9.0, 9.0), circle, 140)  # and those that do are learned from again
    assert estimator.lag.pole == pytest.approx(9.0, rel=0.03)

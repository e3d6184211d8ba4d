"""The pressure lag against scipy's discretisation of the same transfer function."""

import numpy as np
import pytest
from scipy.signal import cont2discrete, lfilter

from softcr_models.chain.pressure import PressureLag


def test_step_is_the_exact_zero_order_hold():
    lag, dt = PressureLag(11.0, 10.94), 1 / 70
    commands = np.random.default_rng(0).uniform(0, 1e5, 200)
    numerator, denominator, _ = cont2discrete(([11.0], [1.0, 10.94]), dt, method="zoh")
    expected = lfilter(numerator.ravel(), denominator, np.append(commands, 0.0))[1:]
    pressures = lag.trajectory(np.zeros(1), commands[None, :, None], dt)[0, 1:, 0]
    assert pressures == pytest.approx(expected, rel=1e-12)


def test_two_half_steps_are_one_step():
    lag = PressureLag(11.0, 10.94)
    start, command = np.array([1e4, 5e4, 0.0]), np.array([9e4, 0.0, 3e4])
    halves = lag.step(lag.step(start, command, 0.01), command, 0.01)
    assert halves == pytest.approx(lag.step(start, command, 0.02), rel=1e-13)


def test_commands_along_pressures_lead_there():
    lag, dt = PressureLag(11.0, 10.94), 1 / 70
    wanted = np.random.default_rng(1).uniform(0, 1e5, (30, 3))
    commands = lag.commands_along(wanted, dt)
    led = lag.trajectory(wanted[0], commands[None], dt)[0]
    assert led == pytest.approx(wanted, rel=1e-9)

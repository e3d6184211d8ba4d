"""Ramped commands: planned over as what the valves make of them, against a fine integration."""

import numpy as np
import pytest

from softcr_control.command_ramp import ramp_weights
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.horizon import Horizon, HorizonSettings
from softcr_control.reference.references import Reference
from softcr_hardware.safety.safety import Action
from softcr_hardware.safety.setpoint import Setpoint
from softcr_models import CosseratRod, load_robot
from softcr_models.chain.pressure import PressureLag
from softcr_models.prediction import RodPrediction

ROBOT = load_robot("licher2025")
PERIOD = 1 / 70
PIECES = 400  # of a period


def behind_valves(commands, pressures, lag):
    """(T + 1, m) Pressures at ticks at whose beginning commands (T, m) reach a real setpoint."""
    setpoint = Setpoint(ROBOT.pressure_limits, 3, PERIOD, 2e5)
    setpoint.pressures = setpoint._target = commands[0].copy()
    reached, piece = [pressures], PERIOD / PIECES
    for command in commands:
        setpoint.command(command)
        for _ in range(PIECES):
            before = setpoint.pressures
            middle = 0.5 * (before + setpoint.advance(Action.NONE, piece))
            pressures = lag.step(pressures, middle, piece)
        reached.append(pressures)
    return np.array(reached)


@pytest.mark.parametrize("pole", [2.0, 10.94, 60.0])
def test_a_ramp_is_a_mean_of_two_held_commands(pole):
    lag = PressureLag(1.005 * pole, pole)
    before, own = np.array([3e4, 1e4, 5e4]), np.array([3.3e4, 0.7e4, 5e4])
    reached = behind_valves(np.array([before, own]), before, lag)
    held = ramp_weights(lag, PERIOD) @ np.array([before, own])
    assert lag.step(reached[1], held, PERIOD) == pytest.approx(reached[2], abs=0.02)


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_pressures_are_predicted_as_the_valves_make_them(delay):
    """What was sent before and what is optimised, both; and no other lag is learned from it."""
    rng = np.random.default_rng(delay)
    steps = rng.uniform(-3e3, 3e3, (12, 3))
    steps[:delay] = 0.0  # until the first answer acts
    steps[0] = [3e4, 2e4, 4e4]
    commands = np.cumsum(steps, axis=0)  # command k acts in tick k
    prediction = RodPrediction(CosseratRod(ROBOT, 3))
    context = ControlContext(ROBOT, prediction, PERIOD, ramped=True)
    horizon = Horizon(context, HorizonSettings(horizon=4))
    lag = ROBOT.pressure_lag
    pressures = behind_valves(commands, commands[0], lag)
    state = prediction.equilibrium(commands[0], prediction.nominal_parameters)
    reference = Reference(0.0, PERIOD, np.tile(state, (12, 1)), np.zeros((12, 3)))
    for tick in range(5):
        seen = Observation(tick * PERIOD, state, {}, reference, pressures[tick], prediction, delay)
        horizon.observe(seen)
        problem = horizon.problem(seen)
        if tick < 4:
            horizon.remember(commands[None, tick + delay])
    assert horizon.lag.pole == pytest.approx(lag.pole, rel=2e-3)
    assert problem.approach == pytest.approx(pressures[4 : 5 + delay], abs=5.0)
    rollout = problem.rollout(commands[None, 4 + delay : 8 + delay])
    assert rollout.inputs[0] == pytest.approx(pressures[4 + delay : 9 + delay], abs=5.0)
    assert np.abs(np.diff(rollout.inputs[0], axis=0)).max() > 200.0

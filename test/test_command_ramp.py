"""Ramped commands: planned over as what the valves make of them, against a fine integration."""

from dataclasses import replace

import numpy as np
import pytest

from softcr_control.command_ramp import ramp_weights
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.horizon import BRIDGED, Horizon, HorizonSettings
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


@pytest.mark.parametrize(("delay", "moved"), [(1, 0.0), (3, 1.5e3)])
def test_behind_the_horizon_the_known_inputs_of_the_motion_are_reached_through_the_lag(
    delay, moved
):
    """At the end of each command that is held; moved by as much as the last optimised one is."""
    prediction, lag, ticks = RodPrediction(CosseratRod(ROBOT, 3)), ROBOT.pressure_lag, 4
    times = PERIOD * np.arange(delay + ticks + BRIDGED + 5)
    felt = 4e4 + 5e3 * np.sin(2 * np.pi * (times[:, None] + np.array([0.0, 0.1, 0.2])))
    commands = (felt[1:] - np.exp(-lag.pole * PERIOD) * felt[:-1]) * lag.pole / lag.gain
    commands /= 1.0 - np.exp(-lag.pole * PERIOD)
    horizon = Horizon(ControlContext(ROBOT, prediction, PERIOD), HorizonSettings(horizon=ticks))
    state = prediction.nominal_parameters
    reference = Reference(0.0, PERIOD, None, np.zeros((30, 3)), inputs=felt)
    seen = Observation(0.0, state, {}, reference, felt[0], prediction, delay)
    horizon.observe(seen)
    optimised = commands[delay : delay + ticks] + moved
    sent = horizon.remember(optimised, seen)
    assert sent.shape == (ticks + BRIDGED, 3)
    assert np.array_equal(sent[:ticks], optimised)
    reached = lag.trajectory(felt[delay + ticks], sent[None, ticks:] - moved, PERIOD)[0]
    assert reached[2::2] == pytest.approx(felt[delay + ticks + 2 : -4 : 2], abs=1e-6 * 4e4)
    short = replace(seen, reference=replace(reference, inputs=felt[: delay + ticks + BRIDGED]))
    assert len(horizon.remember(optimised, short)) == ticks

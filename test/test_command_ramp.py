"""Ramped commands: planned over as what the valves make of them, against a fine integration."""

from dataclasses import replace

import numpy as np
import pytest

from softcr_control.command_ramp import ramp_weights
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.horizon import BRIDGED, HELD_TICKS, Horizon, HorizonSettings
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


@pytest.mark.parametrize(
    ("delay", "moved", "ramped"),
    [(1, 0.0, False), (3, 1.5e3, False), (1, 0.0, True), (3, 0.0, True)],
)
def test_behind_half_the_horizon_the_known_inputs_are_reached_through_the_lag(delay, moved, ramped):
    """At the end of each command that is held; moved by as much as the optimised ones are."""
    prediction, lag, ticks = RodPrediction(CosseratRod(ROBOT, 3)), ROBOT.pressure_lag, 5
    times = PERIOD * np.arange(delay + ticks + BRIDGED + 5)
    felt = 4e4 + 5e3 * np.sin(2 * np.pi * (times[:, None] + np.array([0.0, 0.1, 0.2])))
    commands = (felt[1:] - np.exp(-lag.pole * PERIOD) * felt[:-1]) * lag.pole / lag.gain
    commands /= 1.0 - np.exp(-lag.pole * PERIOD)
    context = ControlContext(ROBOT, prediction, PERIOD, ramped=ramped)
    horizon = Horizon(context, HorizonSettings(horizon=ticks))
    reference = Reference(0.0, PERIOD, None, np.zeros((30, 3)), inputs=felt)
    state = prediction.equilibrium(felt[0], prediction.nominal_parameters)
    seen = Observation(0.0, state, {}, reference, felt[0], prediction, delay)
    horizon.observe(seen)
    if ramped:  # what is held amounts to the same
        before, own = ramp_weights(lag, PERIOD)
        last, held = horizon.previous, commands
        commands = held.copy()
        for row in range(delay, delay + 3):
            last = commands[row] = (held[row] - before * last) / own
    optimised = commands[delay : delay + ticks] + moved
    sent = horizon.remember(optimised, seen)
    assert sent.shape == (3 + BRIDGED, 3)
    assert np.array_equal(sent[:3], optimised[:3])
    weights = np.array([before, own]) if ramped else np.array([0.0, 1.0])
    amounts = weights[0] * sent[2:-1] + weights[1] * sent[3:]
    reached = lag.trajectory(felt[delay + 3], amounts[None] - moved, PERIOD)[0]
    told = felt[delay + 3 + HELD_TICKS :: HELD_TICKS]
    assert reached[HELD_TICKS::HELD_TICKS] == pytest.approx(told[: BRIDGED // HELD_TICKS], abs=1e-3)
    short = replace(seen, reference=replace(reference, inputs=felt[: delay + ticks + BRIDGED]))
    np.testing.assert_array_equal(horizon.remember(optimised, short), optimised[:3])


def test_what_is_optimised_while_recovering_hardly_moves_what_follows():
    """The mean is over the answers of a third of a second, not of the newest one."""
    prediction = RodPrediction(CosseratRod(ROBOT, 3))
    horizon = Horizon(ControlContext(ROBOT, prediction, PERIOD), HorizonSettings(horizon=4))
    felt = np.full((40, 3), 3e4)
    reference = Reference(0.0, PERIOD, None, np.zeros((30, 3)), inputs=felt)
    steady = felt[0] * ROBOT.pressure_lag.pole / ROBOT.pressure_lag.gain
    for tick, more in enumerate((0.0,) * 30 + (5e3,)):
        seen = Observation(tick * PERIOD, np.zeros(3), {}, reference, felt[0], prediction, 1)
        horizon.observe(seen)
        sent = horizon.remember(np.tile(steady + more, (4, 1)), seen)
    assert sent[2:] == pytest.approx(np.tile(steady, (len(sent) - 2, 1)), abs=0.1 * more)

"""What every predictive controller promises, on any model: limits, recovery, goals, seeds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.models import PERIOD, CurvedModel, LinearModel, TendonModel, ask, circle, context, limited
from kit.steering import standing, steered

from softcr_control import GaussNewtonMpc, Nempc
from softcr_control.costs import CostSettings
from softcr_control.reference.references import Reference
from softcr_papers.pawlowski2019.lookahead.ilqr import Ilqr
from softcr_papers.pawlowski2019.lookahead.lqr import Lqr
from softcr_papers.pawlowski2019.lookahead.nlsq import Nlsq

KINDS = {"nempc": Nempc, "rod_mpc": GaussNewtonMpc, "nlsq": Nlsq, "lqr": Lqr, "ilqr": Ilqr}
MEASURED, STATE = np.array([3e4, 2e4, 1e4]), np.array([0.01, 0.2, -0.005, 0.0, 0.05])


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def made(kind, model, seed=1, step_ticks=2, **costs):
    own = {Nempc: {"population": 200}, GaussNewtonMpc: {}}
    numbers = own.get(kind, {"step_ticks": step_ticks})
    weights = CostSettings(**{"input_rate": 0.05, "tip_position": 1e4, **costs})
    return kind(context(model, seed), kind.Settings(costs=weights, **numbers))


def sent_along(controller, reference, ticks=20):
    """(T, 3) what it sends on the linear model, with lag and a tick of delay."""
    _, answers = steered(controller, LinearModel(), reference, ticks, STATE, MEASURED)
    return np.array([each.pressures for each in answers])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), rate=st.floats(1e5, 1e7), shift=st.floats(-1.0, 1.0))
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_commands_keep_box_and_slew_whatever_is_wanted(kind, seed, rate, shift):
    draw, controller = np.random.default_rng(seed), made(kind, limited(CurvedModel(), rate=rate))
    previous = MEASURED
    for tick in range(5):
        tips = draw.normal(shift, 1.0, (controller.rows, 3))
        reference = Reference(tick * PERIOD, PERIOD, None, tips)
        command = ask(controller, draw.normal(size=5), reference, MEASURED)
        assert np.abs(command.pressures - previous).max() <= rate * PERIOD * (1 + 1e-9)
        steps = np.abs(np.diff(command.plan, axis=0))
        assert steps.max() <= rate * PERIOD * (1 + 1e-9)
        assert np.min(command.plan) >= -1e-6  # interpolation rounds; the limiter comes after it
        assert np.max(command.plan) <= 1e5 + 1e-6
        np.testing.assert_allclose(command.plan[0], command.pressures, rtol=1e-12, atol=1e-9)
        previous = command.pressures


def test_a_goal_that_jumps_is_gone_to_at_the_limit_of_the_rate(kind):
    def jumping(time, rows):
        reference = circle(time, rows, 0.1)
        reference.tip_positions[:] *= (-1) ** int(time / 0.2)
        return reference

    controller = made(kind, limited(LinearModel(), rate=1e6), input_rate=1e-6)
    changes = np.abs(np.diff(np.vstack([MEASURED, sent_along(controller, jumping, 60)]), axis=0))
    assert 0.9e6 * PERIOD < changes.max() <= 1e6 * PERIOD * (1 + 1e-9)


def test_the_same_seed_sends_the_same_and_a_reset_starts_over(kind):
    first, second = (made(kind, LinearModel()) for _ in range(2))
    sent = sent_along(first, circle)
    assert np.array_equal(sent, sent_along(second, circle))
    first.reset()
    assert np.array_equal(sent, sent_along(first, circle))
    if kind is Nempc:
        assert not np.array_equal(sent, sent_along(made(kind, LinearModel(), 2), circle))


def test_a_broken_state_continues_the_plan_and_the_next_tick_recovers(kind):
    controller = made(kind, LinearModel(), step_ticks=1)
    good = ask(controller, STATE, circle(0.0, 40), MEASURED)
    broken = ask(controller, np.full(5, np.nan), circle(PERIOD, 40), MEASURED)
    assert not good.fallback
    assert broken.fallback
    assert np.isinf(broken.cost)
    assert np.isnan(broken.predicted_tips).all()
    np.testing.assert_allclose(broken.pressures, good.plan[1])
    again = ask(controller, STATE, circle(2 * PERIOD, 40), MEASURED)
    assert not again.fallback
    assert np.isfinite(again.cost)


def test_a_setpoint_of_tendons_is_reached_inside_their_limits(kind):
    """Without a lag, in ranges and at rates of each tendon's own."""
    model, held = TendonModel(), np.array([0.02, 0.09])
    goal = model.tip_positions(model.equilibrium(held, None)[None], None)[0]
    controller, inputs = made(kind, model, input_rate=1e-3, tip_position=1e6), model.inputs
    felt = np.clip(np.zeros(2), inputs.low, inputs.high)
    begin = model.equilibrium(felt, None)
    states, answers = steered(controller, model, standing(goal), 70, begin, felt)
    sent = np.array([each.pressures for each in answers])
    assert not any(each.fallback for each in answers)
    assert np.linalg.norm(model.tip_positions(states[-1:], None)[0] - goal) < 1e-4
    assert sent[-1] == pytest.approx(held, abs=5e-4)
    assert ((inputs.low - 1e-12 <= sent) & (sent <= inputs.high + 1e-12)).all()
    steps = np.abs(np.diff(sent, axis=0)) / (inputs.rate * PERIOD)
    assert (steps <= 1 + 1e-9).all()
    assert (steps.max(axis=0) > 0.5).all()  # each input used its own rate

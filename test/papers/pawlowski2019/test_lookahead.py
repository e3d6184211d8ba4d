"""NLSQ, LQR and iLQR: against scipy on linear models, the box, errata of the thesis, limits."""

import numpy as np
import pytest
from kit.models import PERIOD, CurvedModel, LinearModel, ask, circle, context, limited
from pydantic import ValidationError
from scipy import linalg
from scipy.optimize import lsq_linear

from softcr_control.controller import ControllerBlock
from softcr_control.costs import CostSettings
from softcr_control.observation import Observation
from softcr_control.predictive.horizon import Horizon
from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.lookahead.held_steps import Linear
from softcr_papers.pawlowski2019.lookahead.ilqr import Ilqr
from softcr_papers.pawlowski2019.lookahead.linearised import LinearisedModel
from softcr_papers.pawlowski2019.lookahead.lqr import Lqr
from softcr_papers.pawlowski2019.lookahead.nlsq import Nlsq
from softcr_papers.pawlowski2019.lookahead.plan import limited_path
from softcr_papers.pawlowski2019.lookahead.printed import riccati_gains
from softcr_papers.pawlowski2019.lookahead.riccati import backward

KINDS = pytest.mark.parametrize("kind", [Nlsq, Lqr, Ilqr])
MEASURED = np.array([3e4, 2e4, 1e4])
STATE = np.array([0.01, 0.2, -0.005, 0.0, 0.05])
RANDOM = np.random.default_rng(11)


def system(nz=6, m=2, outputs=3):
    a = RANDOM.normal(size=(nz, nz))
    a *= 0.95 / np.abs(linalg.eigvals(a)).max()
    c = RANDOM.normal(size=(outputs, nz))
    return a, RANDOM.normal(size=(nz, m)), c, 0.3


def regulator(a, b, c, effort):
    """A step of x' = A x + B u with |C x|^2 + effort |u|^2, at zero."""
    outputs, m = len(c), b.shape[1]
    g = np.vstack((c, np.zeros((m, a.shape[1]))))
    h = np.vstack((np.zeros((outputs, m)), np.sqrt(effort) * np.eye(m)))
    return Linear(np.zeros(len(a)), a, b, np.zeros(outputs + m), g, h)


def free(count, m):
    return np.full((count, m), -1e9), np.full((count, m), 1e9)


def test_without_a_box_the_gains_are_those_of_the_discrete_riccati_equation():
    a, b, c, effort = system()
    value = linalg.solve_discrete_are(a, b, c.T @ c, effort * np.eye(2))
    want = linalg.solve(effort * np.eye(2) + b.T @ value @ b, b.T @ value @ a)
    steps = [regulator(a, b, c, effort)] * 80
    first = backward(steps, np.zeros((80, 6)), *free(80, 2))[0]
    assert first.gain == pytest.approx(-want, abs=1e-6)
    printed = riccati_gains([(a, b)] * 80, c.T @ c, effort * np.eye(2), c.T @ c)[0]
    assert printed == pytest.approx(want, abs=1e-6)


def test_the_sign_of_4_30_is_that_of_algorithm_3():
    """With the printed plus sign the cost is higher than without any input."""
    a, b, c, effort = system()
    gains = riccati_gains([(a, b)] * 20, c.T @ c, effort * np.eye(2), c.T @ c)
    start = RANDOM.normal(size=6)

    def cost(sign):
        x, total = start, 0.0
        for gain in gains:
            u = sign * gain @ x
            total += np.sum((c @ x) ** 2) + effort * u @ u
            x = a @ x + b @ u
        return total

    assert cost(-1.0) < cost(0.0) < cost(1.0)


def made(kind, model=None, **numbers):
    weights = CostSettings(**{"input_rate": 0.02, "input_level": 0.0, **numbers.pop("costs", {})})
    model = model or LinearModel()
    return kind(context(model), kind.Settings(costs=weights, **numbers)), model


@KINDS
def test_on_a_linear_model_the_plan_is_the_optimum_in_its_box(kind):
    """Written out as least squares in the box, over commands that are held for two ticks."""
    command, _, cost, least_squares = on_a_linear_model(kind, 1e5)
    assert command.cost == pytest.approx(cost(least_squares(0.0, 1e5)), rel=1e-3)
    high = 4e4
    command, inputs, cost, least_squares = on_a_linear_model(kind, high)
    best = least_squares(0.0, high)
    assert (best > 0.999 * high).any()  # or the box would not matter
    assert command.cost == pytest.approx(cost(best), rel=1e-3)
    assert inputs == pytest.approx(best.reshape(inputs.shape), abs=0.02 * high)
    assert cost(np.clip(least_squares(-np.inf, np.inf), 0.0, high)) > 1.01 * cost(best)


def on_a_linear_model(kind, high):
    """An answer and its plan in a box; what inputs cost, and their least squares."""
    numbers = {"passes": 40} if kind is Lqr else {"iterations": 40, "tolerance": 0.0}
    unlimited = limited(LinearModel(), rate=1e9, high=high)
    controller, model = made(kind, unlimited, horizon=8, step_ticks=2, **numbers)
    reference = circle(0.0, 14)
    command = ask(controller, STATE, reference, MEASURED)
    problem = problem_of(controller, model, reference)

    def vector(inputs):
        path = limited_path(inputs.reshape(1, 4, 3), MEASURED, np.full(3, 1e9), 2)
        rollout = problem.rollout(path)
        terms = controller._terms
        return np.concatenate([term.residuals(rollout)[0] for term in terms])

    def least_squares(low, high):
        start = vector(np.zeros(12))
        jacobian = 1e-5 * np.array([vector(d) - start for d in 1e5 * np.eye(12)]).T
        return 1e5 * lsq_linear(1e5 * jacobian, -start, (1e-5 * low, 1e-5 * high), tol=1e-14).x

    def cost(inputs):
        return np.sum(vector(inputs) ** 2)

    return command, command.best_knots, cost, least_squares


def problem_of(controller, model, reference):
    horizon = Horizon(context(model), controller.settings)
    observation = Observation(0.0, STATE, {}, reference, MEASURED, model, 1)
    horizon.observe(observation)
    return horizon.problem(observation)


def test_a_linearised_model_is_the_model_where_it_is_linear_and_its_outputs_everywhere():
    model, curved = LinearModel(), CurvedModel()
    numbers = np.array([50.0, 0.07])
    made_at = np.array([0.02, -0.1, 0.01, 0.3, 0.0]), np.array([1e4, 5e4, 9e4])
    linear = LinearisedModel(curved, *made_at, numbers, PERIOD, 1e-4)
    levels = RANDOM.uniform(0.0, 1e5, (2, 5, 3))
    want = curved.rollout_tips(STATE, levels, numbers, PERIOD)
    assert linear.rollout(STATE, levels, numbers, PERIOD) == pytest.approx(
        model.rollout(STATE, levels, numbers, PERIOD), rel=1e-6, abs=1e-9
    )
    assert linear.rollout_tips(STATE, levels, numbers, PERIOD) == pytest.approx(want, abs=1e-7)


def test_steps_in_a_block_are_changed_together_and_the_first_by_itself():
    weights = {"costs": {"tip_position": 1e4}, "horizon": 8, "step_ticks": 1}
    free, model = made(Nlsq, limited(LinearModel(), rate=1e9), **weights)
    blocked, alone = (made(Nlsq, model, blocks=each, **weights)[0] for each in ((1, 3), (1, 1)))
    plan = ask(blocked, STATE, circle(0.0, 14), MEASURED).best_knots
    assert np.ptp(plan[1:4], axis=0).max() == pytest.approx(0.0, abs=1e-9)
    assert np.ptp(plan[4:7], axis=0).max() == pytest.approx(0.0, abs=1e-9)
    assert blocked.settings.block_sizes.tolist() == [1, 3, 3, 1]
    assert np.abs(plan[1] - plan[0]).max() > 1.0
    first = ask(alone, STATE, circle(0.0, 14), MEASURED)
    assert first.cost == ask(free, STATE, circle(0.0, 14), MEASURED).cost


@KINDS
def test_a_command_is_held_over_its_step(kind):
    controller, _ = made(kind, CurvedModel(), horizon=6, step_ticks=3)
    before, sent = MEASURED, []
    for tick in range(9):
        answer = ask(controller, STATE, circle(tick * PERIOD, 14), before)
        before = answer.pressures
        sent.append(answer.best_knots[0])
    for plan in range(3):
        assert np.ptp(sent[3 * plan : 3 * plan + 3], axis=0).max() == 0.0
    assert np.abs(np.diff(sent[::3], axis=0)).max() > 1e3


def test_as_printed_the_target_is_an_equilibrium_and_inputs_count_from_zero():
    controller, _ = made(Lqr, horizon=4, step_ticks=1, form="printed")
    command = ask(controller, STATE, circle(0.0, 12), MEASURED)
    assert np.isfinite(command.cost)
    assert not command.fallback


def test_settings_that_make_no_horizon_and_short_references_are_refused():
    for kind in (Nlsq, Lqr, Ilqr):
        with pytest.raises(ValidationError, match="horizon 7 must be a multiple of step_ticks 2"):
            kind.Settings(horizon=7, step_ticks=2)
    for blocks in ((), (2, 2), (1, 0, 3)):  # must begin with one step
        with pytest.raises(ValidationError, match="blocks"):
            Nlsq.Settings(horizon=8, step_ticks=2, blocks=blocks)
    controller, _ = made(Nlsq, horizon=8)
    with pytest.raises(UserError, match="reference has 4 rows, needs 10"):
        ask(controller, STATE, circle(0.0, 4), MEASURED)


def test_another_horizon_brings_its_steps_along():
    kind = Nlsq.Settings
    assert kind.beside_horizon({"step_ticks": 4}, 10) == {"step_ticks": 1}
    assert kind.beside_horizon({"step_ticks": 5}, 10) == {}
    assert kind(horizon=10, step_ticks=5).steps == 2


@pytest.mark.parametrize("name", ["nlsq", "lqr", "ilqr"])
def test_every_setting_can_be_a_ros_parameter(name):
    given = ControllerBlock.settings_of({"controller": name, "model": "rod"})
    assert given.step_ticks == 2

"""NLSQ, LQR and iLQR: against scipy on linear models, the box, errata of the thesis, limits."""

import numpy as np
import pytest
from linear_models import (
    PERIOD,
    CurvedModel,
    LinearModel,
    TendonModel,
    ask,
    circle,
    context,
    limited,
)
from pydantic import ValidationError
from scipy import linalg
from scipy.optimize import lsq_linear, minimize

from softcr_control.costs import CostSettings
from softcr_control.horizon import Horizon
from softcr_control.lookahead.held_steps import HeldSteps, Linear
from softcr_control.lookahead.ilqr import Ilqr
from softcr_control.lookahead.lqr import LinearProblem, Lqr
from softcr_control.lookahead.nlsq import Nlsq
from softcr_control.lookahead.plan import limited_path
from softcr_control.lookahead.printed import riccati_gains
from softcr_control.lookahead.quadratic import backward
from softcr_control.observation import Observation
from softcr_control.references import Reference
from softcr_models.errors import UserError

KINDS = pytest.mark.parametrize("kind", [Nlsq, Lqr, Ilqr])
MEASURED = np.array([3e4, 2e4, 1e4])
STATE = np.array([0.01, 0.2, -0.005, 0.0, 0.05])
RANDOM = np.random.default_rng(11)


def system(nz=6, m=2, outputs=3):
    """A stable random system and its cost."""
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


def test_a_box_is_kept_in_the_solution_and_not_after_it():
    a, b, c, effort = system()
    count, start = 6, 2.0 * RANDOM.normal(size=6)
    step = regulator(a, b, c, effort)
    low, high = np.full((count, 2), -0.2), np.full((count, 2), 0.25)
    one = LinearProblem([step] * count, np.zeros(6), np.zeros(2), low, high, start)

    def cost(inputs):
        x, total = start, 0.0
        for u in inputs.reshape(count, 2):
            total += np.sum((step.g @ x + step.h @ u) ** 2)
            x = a @ x + b @ u
        return total

    bounds = list(zip(low.ravel(), high.ravel(), strict=True))
    best = minimize(cost, np.zeros(2 * count), bounds=bounds, method="L-BFGS-B",
                    options={"ftol": 1e-15, "gtol": 1e-10})  # fmt: skip
    found = one.solved(np.zeros((count, 2)), 50)
    assert found.cost == pytest.approx(best.fun, rel=1e-6)
    assert found.inputs == pytest.approx(best.x.reshape(count, 2), abs=1e-3)
    assert (np.abs(found.inputs - 0.25) < 1e-9).any() or (np.abs(found.inputs + 0.2) < 1e-9).any()
    cut = np.clip(one_shot(step, start, count), low, high)
    assert cost(cut) > 1.001 * best.fun


def one_shot(step, start, count):
    """What the Riccati equation says without the box, for the linear motion."""
    policies = backward([step] * count, np.zeros((count, 6)), *free(count, 2))
    x, inputs = start, []
    for policy in policies:
        inputs.append(policy.gain @ x)
        x = step.a @ x + step.b @ inputs[-1]
    return np.array(inputs)


def made(kind, model=None, **numbers):
    weights = CostSettings(**{"input_rate": 0.02, "input_level": 0.0, **numbers.pop("costs", {})})
    model = model or LinearModel()
    return kind(context(model), kind.Settings(costs=weights, **numbers)), model


@KINDS
def test_on_a_linear_model_the_plan_is_the_optimum(kind):
    """Written out as least squares in the box, over commands that are held for two ticks."""
    numbers = {"passes": 40} if kind is Lqr else {"iterations": 40, "tolerance": 0.0}
    unlimited = limited(LinearModel(), rate=1e9)
    controller, model = made(kind, unlimited, horizon=8, step_ticks=2, **numbers)
    reference = circle(0.0, 14)
    command = ask(controller, STATE, reference, MEASURED)
    problem = problem_of(controller, model, reference)

    def vector(free_numbers):
        path = limited_path(1e5 * free_numbers.reshape(1, 4, 3), MEASURED, np.full(3, 1e9), 2)
        rollout = problem.rollout(path)
        terms = controller._terms
        return np.concatenate([term.residuals(rollout)[0] for term in terms])

    start = np.tile(MEASURED / 1e5, 4)
    jacobian = np.array([vector(start + d) - vector(start) for d in np.eye(12)]).T
    best = lsq_linear(jacobian, jacobian @ start - vector(start), (0.0, 1.0), tol=1e-14).x
    assert command.cost == pytest.approx(np.sum(vector(best) ** 2), rel=1e-3)


def problem_of(controller, model, reference):
    horizon = Horizon(context(model), controller.settings)
    observation = Observation(0.0, STATE, {}, reference, MEASURED, model, 1)
    horizon.observe(observation)
    return horizon.problem(observation)


def test_derivatives_of_a_step_are_those_of_the_linear_model():
    controller, model = made(Nlsq, horizon=4, step_ticks=2)
    problem = problem_of(controller, model, circle(0.0, 14))
    steps = HeldSteps(problem, controller._terms, 2, np.full(3, 1e5), 1e-4)
    linear = steps.linear(steps.begin[None], MEASURED[None] + 1e3)[0]
    move = 1e-2 * np.concatenate((model.state.scale, np.full(6, 1e5)))
    moved = (steps.begin + move)[None]
    later, _ = steps.advance(moved, MEASURED[None] + 1e3)
    assert later[0] == pytest.approx(linear.next + linear.a @ move, rel=1e-6, abs=1e-9)
    later, _ = steps.advance(steps.begin[None], MEASURED[None] + 2e3)
    assert later[0] == pytest.approx(linear.next + linear.b @ np.full(3, 1e3), rel=1e-6, abs=1e-9)


@KINDS
def test_a_command_is_held_over_its_step_and_keeps_the_limits(kind):
    controller, model = made(kind, CurvedModel(), horizon=6, step_ticks=3)
    inputs, before, sent = model.inputs, MEASURED, []
    for tick in range(9):
        reference = circle(tick * PERIOD, 14)
        answer = ask(controller, STATE, reference, before)
        assert (answer.pressures >= inputs.low).all()
        assert (answer.pressures <= inputs.high).all()
        step = np.abs(answer.pressures - before)
        assert (step <= inputs.rate * PERIOD * (1 + 1e-9)).all()
        before = answer.pressures
        sent.append(answer.best_knots[0])
    for plan in range(3):
        assert np.ptp(sent[3 * plan : 3 * plan + 3], axis=0).max() == 0.0
    assert np.abs(np.diff(sent[::3], axis=0)).max() > 1e3


@KINDS
def test_tendons_without_a_lag_reach_a_setpoint(kind):
    model = TendonModel()
    held = np.array([0.02, 0.09])
    goal = model.tip_positions(model.equilibrium(held, None)[None], None)[0]
    weights = CostSettings(input_rate=1e-4, tip_position=1e6)
    controller = kind(context(model), kind.Settings(costs=weights))
    felt = active = np.array([0.0, 0.02])
    state = model.equilibrium(felt, None)
    for k in range(70):
        reference = Reference(k * PERIOD, PERIOD, None, np.tile(goal, (controller.rows, 1)))
        answer = ask(controller, state, reference, felt).pressures
        state = model.step(state[None], felt[None], active[None], None, PERIOD)[0]
        felt, active = active, answer
    assert model.tip_positions(state[None], None)[0] == pytest.approx(goal, abs=1e-4)
    assert answer == pytest.approx(held, abs=1e-3)


@KINDS
def test_a_state_that_is_no_number_is_a_fallback_and_the_next_plan_recovers(kind):
    controller, _ = made(kind, horizon=4, step_ticks=1)
    good = ask(controller, STATE, circle(0.0, 12), MEASURED)
    broken = ask(controller, np.full(5, np.nan), circle(PERIOD, 12), MEASURED)
    assert not good.fallback
    assert broken.fallback
    assert np.isfinite(broken.pressures).all()
    assert not ask(controller, STATE, circle(2 * PERIOD, 12), MEASURED).fallback


def test_as_printed_the_target_is_an_equilibrium_and_inputs_count_from_zero():
    controller, _ = made(Lqr, horizon=4, step_ticks=1, form="printed")
    command = ask(controller, STATE, circle(0.0, 12), MEASURED)
    assert np.isfinite(command.cost)
    assert not command.fallback


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"horizon": 0}, "greater than or equal to 2"),
        ({"step_ticks": 0}, "greater than or equal to 1"),
        ({"horizon": 7, "step_ticks": 2}, "horizon 7 must be a multiple of step_ticks 2"),
        ({"perturbation": 0.0}, "greater than 0"),
    ],
)
@KINDS
def test_settings_that_make_no_horizon_are_refused(kind, numbers, words):
    with pytest.raises(ValidationError, match=words):
        kind.Settings(**numbers)


def test_too_few_reference_rows_are_a_line():
    controller, _ = made(Nlsq, horizon=8)
    with pytest.raises(UserError, match="reference has 4 rows, needs 10"):
        ask(controller, STATE, circle(0.0, 4), MEASURED)


def test_another_horizon_brings_its_steps_along():
    kind = Nlsq.Settings
    assert kind.beside_horizon({"step_ticks": 4}, 10) == {"step_ticks": 1}
    assert kind.beside_horizon({"step_ticks": 5}, 10) == {}
    assert kind(horizon=10, step_ticks=5).steps == 2

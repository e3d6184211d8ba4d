"""The gradient MPC: against scipy on a linear model, its limits, its broken cases, its file."""

import numpy as np
import pytest
from kit.models import CurvedModel, LinearModel, ask, circle, context, limited
from kit.steering import standing, steered
from pydantic import ValidationError
from scipy.optimize import lsq_linear
from test_nempc import costs, residuals

from softcr_control.costs import CostSettings
from softcr_control.predictive.gauss_newton import GaussNewtonMpc, GaussNewtonSettings
from softcr_control.predictive.knots import Knots

STATE = np.array([0.01, 0.2, -0.005, 0.0, 0.05])
MEASURED = np.array([3e4, 2e4, 1e4])
RATE = 0.05


def make(model=None, **numbers) -> GaussNewtonMpc:
    """`max_rate` is of the model's inputs."""
    model = model or LinearModel()
    if "max_rate" in numbers:
        limited(model, rate=numbers.pop("max_rate"))
    numbers = {"costs": costs(RATE), "horizon": 8, "knots": (2, 8), **numbers}
    return GaussNewtonMpc(context(model), GaussNewtonSettings(**numbers))


def errors_of(model, controller, plan):
    """The cost along the circle as a vector whose square it is, see test_nempc."""
    numbers = controller.settings
    layout = Knots(np.array([-1.0, *(k - 1.0 for k in numbers.knots)]), numbers.horizon, 3)
    told = MEASURED, MEASURED, plan, layout, circle(0.0, 12), RATE
    return residuals(model, STATE, *told)


@pytest.mark.parametrize("knots", [(8,), (2, 8), (2, 4, 8), tuple(range(1, 9))])
def test_on_a_linear_model_one_step_is_the_optimum(knots):
    model, controller = LinearModel(), make(knots=knots, damping=0.0, max_rate=1e9)

    def vector(free):
        return errors_of(model, controller, np.vstack([MEASURED, 1e5 * free.reshape(-1, 3)]))

    start = np.tile(MEASURED / 1e5, len(knots))
    jacobian = np.array([vector(start + d) - vector(start) for d in np.eye(len(start))]).T
    best = lsq_linear(jacobian, jacobian @ start - vector(start), (0.0, 1.0), tol=1e-14).x
    command = ask(controller, STATE, circle(0.0, 12), MEASURED)
    assert command.cost == pytest.approx(np.sum(vector(best) ** 2), rel=1e-4)
    own = np.sum(errors_of(model, controller, command.best_knots) ** 2)
    assert own == pytest.approx(command.cost, rel=1e-9)


def test_on_a_curved_model_a_few_ticks_of_one_step_each_converge():
    model, still = CurvedModel(), standing(circle(0.0, 1).tip_positions[0])
    _, answers = steered(make(model, max_rate=1e9), model, still, 60, STATE, MEASURED)
    assert answers[-1].cost < 1e-3 * answers[0].cost


def test_the_plan_never_gets_worse_within_a_tick():
    model = CurvedModel()
    controller = make(model)
    held = np.sum(errors_of(model, controller, np.tile(MEASURED, (3, 1))) ** 2)
    command = ask(controller, STATE, circle(0.0, 12), MEASURED)
    assert command.cost <= held * (1 + 1e-9)


def test_a_chamber_that_moves_nothing_stays_though_nothing_is_damped():
    model = LinearModel()
    model._b[:, 2] = 0.0
    controller = make(model, damping=0.0, costs=CostSettings(input_rate=0.0))
    command = ask(controller, STATE, circle(0.0, 12), MEASURED)
    assert not command.fallback
    assert command.pressures[2] == pytest.approx(MEASURED[2])
    assert abs(command.pressures[:2] - MEASURED[:2]).max() > 100.0


@pytest.mark.parametrize("knots", [(), (0, 7), (4, 2, 7), (2, 2, 7), (2, 6), (2, 9)])
def test_knots_that_make_no_polyline_are_refused(knots):
    with pytest.raises(ValidationError):
        GaussNewtonSettings(knots=knots)

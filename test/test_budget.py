"""How long a tick may compute: what budgets allow, and controllers that answer with less."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.models import PERIOD, CurvedModel, circle, context

from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.gauss_newton import GaussNewtonMpc, GaussNewtonSettings
from softcr_control.predictive.nempc import Nempc, NempcSettings
from softcr_models.errors import UserError
from softcr_models.model import nominal_parameters
from softcr_models.models import make_model
from softcr_models.robots.robot import load_robot
from softcr_papers.pawlowski2019.lookahead.ilqr import Ilqr, IlqrSettings
from softcr_papers.pawlowski2019.lookahead.lqr import Lqr, LqrSettings
from softcr_papers.pawlowski2019.lookahead.nlsq import Nlsq, NlsqSettings
from softcr_runtime.blocks.budget import Budget, RecordedBudget, TimedBudget, recorded_budget
from softcr_tools.running.run_options import SimulationOptions

STATE = np.array([0.01, 0.05, -0.01, 0.1, 0.04])
MEASURED = np.array([30e3, 20e3, 25e3])


class SlowModel(CurvedModel):
    """A model on whose clock the future of each candidate takes a microsecond."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.batches = 0.0, []  # [s], numbers of candidates

    def rollout(self, state, inputs, parameters, dt):
        self.now += 1e-6 * len(inputs)
        self.batches.append(len(inputs))
        return super().rollout(state, inputs, parameters, dt)

    def budget(self, seconds: float) -> TimedBudget:
        return TimedBudget(self.now + seconds, lambda: self.now)


def answer(controller, model, time: float, budget: Budget):
    reference = circle(time, 20)
    return controller.command(
        Observation(time, STATE, {}, reference, MEASURED, model, budget=budget)
    )


# --- budgets -------------------------------------------------------------------------------------


@given(
    st.floats(0.0, 10.0),
    st.integers(1, 50),
    st.lists(st.tuples(st.integers(1, 50), st.floats(0.0, 2.0))),
)
def test_a_recorded_budget_allows_what_the_timed_one_allowed(seconds, first, pieces):
    now = 0.0
    timed = TimedBudget(seconds, lambda: now)
    timed.begin(first)
    allowed, done = [], first
    for work, taken in pieces:
        now += taken
        allowed.append(timed.allows(work))
        done += work * allowed[-1]
    assert allowed == sorted(allowed, reverse=True)  # what was refused once is not allowed later
    assert timed.effort == (np.inf if all(allowed) else done)
    again = recorded_budget(timed.effort)
    assert again.limited
    again.begin(first)
    assert [again.allows(work) for work, _ in pieces] == allowed
    assert again.effort == timed.effort


def test_a_piece_is_refused_that_would_end_too_late_at_the_speed_so_far():
    now = 0.0
    budget = TimedBudget(1.0, lambda: now)
    budget.begin(100)
    now = 0.5  # 5 ms each
    assert budget.allows(50)
    now = 0.75
    assert not budget.allows(51)
    assert budget.effort == 150


def test_without_a_limit_everything_is_allowed_and_nothing_is_told():
    budget = recorded_budget(Budget().effort)
    budget.begin(1)
    assert not budget.limited
    assert budget.allows(10**9)
    assert np.isnan(budget.effort)


# --- controllers ---------------------------------------------------------------------------------


def population(model, **numbers) -> Nempc:
    chosen = {"population": 1000, "horizon": 8, "polish": False, **numbers}
    return Nempc(context(model), NempcSettings(**chosen))


@pytest.mark.parametrize("reached", [128, 384, 640, 896, 1000])
def test_nempc_answers_with_the_best_of_the_pieces_that_it_had_time_for(reached):
    model = SlowModel()
    hurried = population(model)
    for tick in range(3):  # later ones begin from candidates that were not looked at
        patient = deepcopy(hurried)
        whole = answer(patient, model, tick * PERIOD, Budget())
        # the state in which the answer begins to act is the future of one more
        found = answer(hurried, model, tick * PERIOD, model.budget(1e-6 * (reached + 10)))
        assert (whole.candidates, found.candidates) == (1000, reached)
        knots, costs = patient._generation
        assert np.array_equal(hurried._generation[0], knots)  # the same ones were drawn
        assert np.array_equal(found.best_knots, knots[costs[:reached].argmin()])
        assert found.cost == pytest.approx(costs[:reached].min(), rel=1e-12)
        assert found.cost_terms.keys() == whole.cost_terms.keys()


def test_nempc_looks_at_its_parents_and_polishes_however_late_it_is():
    model = SlowModel()
    late = population(model, parents=0.4, polish=True)
    found = answer(late, model, 0.0, model.budget(-1.0))
    assert found.candidates == 512
    assert 8 in model.batches  # proposals of the polish
    rough = answer(population(model, parents=0.4), model, 0.0, model.budget(-1.0))
    assert found.cost < rough.cost


def test_nempc_goes_through_as_many_generations_as_it_has_time_for():
    model = SlowModel()
    controller = population(model, generations=5)
    found = answer(controller, model, 0.0, model.budget(2600e-6))
    assert found.candidates == 2384
    assert answer(population(model, generations=5), model, 0.0, Budget()).candidates == 5000


@pytest.mark.parametrize("name", ["licher2025", "licher2025_chain"])
@pytest.mark.parametrize("single_precision", [True, False])
def test_costs_of_candidates_are_equal_to_the_bit_in_pieces(name, single_precision):
    robot = load_robot(name)
    model = make_model("rod", robot, {"single_precision": single_precision})
    inputs = np.full(3, 2e4)
    state = model.equilibrium(inputs, nominal_parameters(model.parameters))
    found = []
    for budget in (Budget(), RecordedBudget(np.inf)):
        controller = Nempc(ControlContext(robot, model, PERIOD), NempcSettings(population=600))
        told = Observation(0.0, state, {}, circle(0.0, 20), inputs, model, budget=budget)
        plans = [controller.command(replace(told, stamp=k * PERIOD)).plan for k in range(2)]
        found.append((*controller._generation, *plans))
    for whole, pieces in zip(*found, strict=True):
        assert np.array_equal(whole, pieces)


def test_the_gradient_mpc_leaves_out_no_two_steps_in_a_row():
    model = SlowModel()
    controller = GaussNewtonMpc(context(model), GaussNewtonSettings())
    late = [answer(controller, model, k * PERIOD, model.budget(-1.0)) for k in range(5)]
    assert [each.candidates for each in late] == [15, 7, 15, 7, 15]
    assert np.allclose(late[3].plan[0], late[2].plan[1])  # as it was planned before
    assert answer(controller, model, 5 * PERIOD, model.budget(1.0)).candidates == 15


@pytest.mark.parametrize(
    "make",
    [
        lambda context: Nlsq(context, NlsqSettings(iterations=9, tolerance=0.0)),
        lambda context: Lqr(context, LqrSettings(passes=9)),
        lambda context: Ilqr(context, IlqrSettings(iterations=9, tolerance=0.0)),
    ],
    ids=["nlsq", "lqr", "ilqr"],
)
def test_iterations_end_with_the_budget_and_a_replay_does_as_many(make):
    found = []
    for budget in (Budget(), RecordedBudget(2), SlowModel().budget(-1.0), RecordedBudget(1)):
        model = SlowModel()
        plan = answer(make(context(model)), model, 0.0, budget)
        found.append((plan.cost, budget.effort, plan.plan))
    (whole, *_), (two, *_), (one, effort, plan), (*_, again) = found
    assert whole < two < one
    assert effort == 1
    assert np.array_equal(again, plan)


@pytest.mark.parametrize("mode", ["lockstep", "virtual"])
def test_a_budget_is_refused_where_no_clock_limits_a_tick(mode):
    with pytest.raises(UserError, match=r"^controller.budget in mode '\w+': is without effect"):
        SimulationOptions.of_options({"mode": mode, "controller.budget": "0.2"})
    SimulationOptions.of_options({"mode": "wall", "controller.budget": "0.2"})

"""The gradient MPC: against scipy on a linear model, its limits, its broken cases, its file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.optimize import lsq_linear
from test_nempc import LAG, PERIOD, CurvedModel, LinearModel, circle, residuals, terms

from softcr_control.command import Command
from softcr_control.controller_file import RodMpcFile, load_rod_mpc
from softcr_control.knots import Knots
from softcr_control.references import Reference
from softcr_control.rod_mpc import RodMpc, RodMpcSettings
from softcr_models.errors import UserError

STATE = np.array([0.01, 0.2, -0.005, 0.0, 0.05])
MEASURED = np.array([3e4, 2e4, 1e4])
RATE = 0.05


def make(model=None, **numbers) -> RodMpc:
    model = model or LinearModel()
    return RodMpc(model, LAG, RodMpcSettings(**numbers), terms(model, RATE))


def layout(controller: RodMpc) -> Knots:
    knots = controller.settings.knots
    return Knots(np.array([-1.0, *(k - 1.0 for k in knots)]), controller.settings.horizon, 3)


def cost_of(model, controller, plan, reference) -> float:
    """Written out tick by tick, see test_nempc."""
    vector = residuals(model, STATE, MEASURED, MEASURED, plan, layout(controller), reference, RATE)
    return float(vector @ vector)


@pytest.mark.parametrize("knots", [(8,), (2, 8), (2, 4, 8), tuple(range(1, 9))])
def test_on_a_linear_model_one_step_is_the_optimum(knots):
    model, controller = LinearModel(), make(knots=knots, damping=0.0, max_rate=1e9)
    reference = circle(0.0, 12)

    def vector(free):
        plan = np.vstack([MEASURED, 1e5 * free.reshape(-1, 3)])
        return residuals(
            model, STATE, MEASURED, MEASURED, plan, layout(controller), reference, RATE
        )

    start = np.tile(MEASURED / 1e5, len(knots))
    jacobian = np.array([vector(start + d) - vector(start) for d in np.eye(len(start))]).T
    best = lsq_linear(jacobian, jacobian @ start - vector(start), (0.0, 1.0), tol=1e-14).x
    command = controller.command(STATE, None, reference, MEASURED)
    expected = np.sum(vector(best) ** 2)
    assert command.cost == pytest.approx(expected, rel=1e-4)
    assert cost_of(model, controller, command.best_knots, reference) == pytest.approx(
        command.cost, rel=1e-9
    )


def test_on_a_curved_model_a_few_ticks_of_one_step_each_converge():
    model = CurvedModel()
    controller = make(model, max_rate=1e9)
    still = circle(0.0, 1).tip_positions[0]
    state, pressures, active = STATE.copy(), MEASURED.copy(), MEASURED.copy()
    costs = []
    for _ in range(60):
        reference = Reference(0.0, PERIOD, np.full((12, 5), np.nan), np.tile(still, (12, 1)))
        command = controller.command(state, None, reference, pressures)
        costs.append(command.cost)
        later = LAG.step(pressures, active, PERIOD)
        state = model.step(state[None], pressures[None], later[None], None, PERIOD)[0]
        pressures, active = later, command.pressures
    assert costs[-1] < 1e-3 * costs[0]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    knots=st.sampled_from([(8,), (2, 8), (1, 3, 8)]),
    rate=st.floats(1e5, 1e7),
)
def test_commands_keep_box_and_slew_whatever_is_wanted(seed, knots, rate):
    draw = np.random.default_rng(seed)
    controller = make(CurvedModel(), knots=knots, max_rate=rate)
    previous = np.clip(MEASURED, 0.0, 1e5)
    for _ in range(5):
        tips = draw.normal(0.0, 1.0, (12, 3))
        reference = Reference(0.0, PERIOD, np.full((12, 5), np.nan), tips)
        command = controller.command(draw.normal(size=5), None, reference, MEASURED)
        plan = [previous, *layout(controller).commands(command.best_knots[None])[0]]
        steps = np.abs(np.diff(plan, axis=0))
        assert steps.max() <= rate * PERIOD * (1 + 1e-9)
        assert np.min(plan) >= -1e-6  # interpolation rounds; the limiter comes after it
        assert np.max(plan) <= 1e5 + 1e-6
        assert np.array_equal(command.pressures, plan[1])
        previous = command.pressures


def test_the_plan_never_gets_worse_within_a_tick():
    model = CurvedModel()
    controller = make(model)
    reference = circle(0.0, 12)
    held = np.repeat(MEASURED[None], 3, axis=0)
    command = controller.command(STATE, None, reference, MEASURED)
    assert command.cost <= cost_of(model, controller, held, reference) * (1 + 1e-9)


def test_a_state_that_is_no_number_continues_the_plan_and_the_next_tick_recovers():
    controller = make()
    good = controller.command(STATE, None, circle(0.0, 12), MEASURED)
    plan = layout(controller).commands(good.best_knots[None])[0]
    broken = controller.command(np.full(5, np.nan), None, circle(0.0, 12), MEASURED)
    assert broken.fallback
    assert np.isinf(broken.cost)
    assert np.isnan(broken.predicted_tips).all()
    assert np.allclose(broken.pressures, plan[1])
    after = controller.command(STATE, None, circle(0.0, 12), MEASURED)
    assert isinstance(after, Command)
    assert not after.fallback


class IdleModel(LinearModel):
    """The same, but its last chamber moves nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._b[:, 2] = 0.0


def test_a_chamber_that_moves_nothing_stays_though_nothing_is_damped():
    model = IdleModel()
    controller = RodMpc(model, LAG, RodMpcSettings(damping=0.0), terms(model)[:1])
    command = controller.command(STATE, None, circle(0.0, 12), MEASURED)
    assert not command.fallback
    assert command.pressures[2] == pytest.approx(MEASURED[2])
    assert abs(command.pressures[:2] - MEASURED[:2]).max() > 100.0


@pytest.mark.parametrize("knots", [(), (0, 8), (4, 2, 8), (2, 2, 8), (2, 7), (2, 9)])
def test_knots_that_make_no_polyline_are_refused(knots):
    with pytest.raises(ValidationError):
        RodMpcSettings(knots=knots)


def test_another_horizon_keeps_the_places_of_the_knots():
    assert RodMpcSettings().for_horizon(56).knots == (14, 56)
    assert RodMpcSettings().for_horizon(2).knots == (1, 2)


def test_two_terms_of_a_name_are_refused():
    twice = (*terms(LinearModel()), *terms(LinearModel()))
    with pytest.raises(UserError, match="no name twice"):
        RodMpc(LinearModel(), LAG, RodMpcSettings(), twice)


def test_the_shipped_file_holds_the_defaults(tmp_path):
    file = load_rod_mpc()
    assert file == RodMpcFile().model_copy(update={"description": file.description})
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("rod_mpc: {knots: [2, 7]}\n")
    with pytest.raises(UserError, match=r"wrong.yaml: rod_mpc: .*knots \[2, 7\] must ascend"):
        load_rod_mpc(wrong)
    with pytest.raises(UserError, match=r"'nowhere': unknown; known are .*rod_mpc"):
        load_rod_mpc("nowhere")

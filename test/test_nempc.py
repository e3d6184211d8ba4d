"""NEMPC against problems whose optimum is known otherwise, and its promises one by one."""

from dataclasses import replace

import numpy as np
import pytest
from kit.models import LAG, PERIOD, LinearModel, ask, circle, context, limited
from kit.steering import standing, steered
from pydantic import ValidationError
from scipy.optimize import lsq_linear

from softcr_control.controller_file import named_settings
from softcr_control.costs import CostSettings
from softcr_control.observation import ControlContext
from softcr_control.predictive.horizon import MAXIMUM_DELAY
from softcr_control.predictive.knots import Knots, even_knots
from softcr_control.predictive.nempc import Nempc, NempcSettings
from softcr_control.predictive.polish import STEP_FRACTIONS, cheapest, gauss_newton_proposals
from softcr_control.predictive.tip_offsets import Moment, TipOffsets
from softcr_control.reference.references import Reference
from softcr_control.reference.settings import ReferenceSettings
from softcr_models.chain.pressure import PressureLag
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import load_robot
from softcr_models.rod.cosserat_rod import CosseratRod

LAYOUT = Knots(even_knots(1, 8, False), 8, 3)


def costs(rate: float = 0.05) -> CostSettings:
    return CostSettings(tip_position=1e4, input_rate=rate)


def make(model=None, rate=0.05, seed=1, **numbers) -> Nempc:
    """`max_rate` is of the model's inputs."""
    model = model or LinearModel()
    if "max_rate" in numbers:
        limited(model, rate=numbers.pop("max_rate"))
    numbers = {"population": 300, "horizon": 8, "costs": costs(rate), **numbers}
    return Nempc(context(model, seed), NempcSettings(**numbers))


def advanced(model, state, pressures, command):
    """State and pressures a tick later."""
    later = LAG.step(pressures, command, PERIOD)
    return model.step(state, pressures, later, None, PERIOD), later


def residuals(model, state, pressures, previous, knots, layout, reference, rate):
    """The cost as a vector whose square it is, written out tick by tick."""
    commands = [np.array(previous)]
    for i in range(8):
        commands.append([np.interp(i, layout.times, knots[:, c]) for c in range(3)])
    parts = []
    for i, command in enumerate(commands):
        state, pressures = advanced(model, state, pressures, np.array(command))
        if i > 0:
            tip = model.tip_positions(state[None], None)[0]
            parts.append(1e2 * (tip - reference.tip_positions[i + 1]))
            parts.append(np.sqrt(rate) * (np.array(command) - commands[i - 1]) / 1e5)
    return np.concatenate(parts)


def optimum(model, state, pressures, previous, layout, reference, rate) -> tuple[float, np.ndarray]:
    """The least cost over the box by scipy, for a linear model."""

    def cost_vector(free):
        knots = 1e5 * free.reshape(-1, 3)
        if layout.first_fixed:
            knots = np.vstack([previous, knots])
        return residuals(model, state, pressures, previous, knots, layout, reference, rate)

    count = 3 * (layout.count - layout.first_fixed)
    constant = cost_vector(np.zeros(count))
    matrix = np.stack([cost_vector(unit) - constant for unit in np.eye(count)], axis=1)
    solution = lsq_linear(matrix, -constant, bounds=(0.0, 1.0), method="bvls", tol=1e-14)
    return 2 * solution.cost, 1e5 * solution.x.reshape(-1, 3)


STATE = np.array([0.01, 0.05, -0.01, 0.1, 0.04])
MEASURED = np.array([30e3, 20e3, 25e3])


@pytest.mark.parametrize(
    ("segments", "first_fixed"), [(1, False), (2, False), (1, True), (2, True)]
)
@pytest.mark.parametrize("radius", [0.03, 0.3], ids=["inside", "at the box"])
def test_cost_approaches_the_optimum_over_generations(segments, first_fixed, radius):
    model, reference = LinearModel(), circle(0.0, 10, radius)
    layout = Knots(even_knots(segments, 8, first_fixed), 8, 3)
    least, _ = optimum(model, STATE, MEASURED, MEASURED, layout, reference, 0.05)
    options = {"segments": segments, "first_knot_fixed": first_fixed, "max_rate": 1e9}
    costs = {}
    for generations in (1, 10, 100):
        controller = make(model, generations=generations, polish=False, **options)
        costs[generations] = ask(controller, STATE, reference, MEASURED).cost
    assert costs[1] >= costs[10] >= costs[100] >= least * (1 - 1e-9)
    assert costs[100] < 1.02 * least


def reachable() -> Reference:
    """Tips that steady commands inside the box cause from STATE."""
    model, state, pressures, tips = LinearModel(), STATE, MEASURED, []
    for _ in range(10):
        tips.append(model.tip_positions(state[None], None)[0])
        state, pressures = advanced(model, state, pressures, np.array([50e3, 30e3, 40e3]))
    return Reference(0.0, PERIOD, None, np.array(tips))


def test_polish_reaches_an_optimum_inside_the_box():
    model, reference = LinearModel(), reachable()
    least, knots = optimum(model, STATE, MEASURED, MEASURED, LAYOUT, reference, 0.05)
    rough, smooth = (
        ask(make(model, generations=3, polish=each, max_rate=1e9), STATE, reference, MEASURED)
        for each in (False, True)
    )
    assert smooth.cost < 1.000001 * least < 1.1 * least < rough.cost
    assert np.allclose(smooth.best_knots, knots, atol=10.0)


@pytest.mark.parametrize("high", [1e5, 4.3e4], ids=["inside", "at the box"])
@pytest.mark.parametrize("samples", [8, 25])
def test_polish_of_linear_residuals_ends_at_the_bounded_least_squares(samples, high):
    draw = np.random.default_rng(samples)
    candidates = np.minimum(draw.normal(4e4, 5e3, (samples, 2, 3)), high)
    matrix, wanted = draw.normal(size=(9, 6)), draw.normal(4.3e4, 5e3, 6)
    residuals = (candidates.reshape(samples, 6) - wanted) @ matrix.T / 1e5
    found = gauss_newton_proposals(candidates, residuals, np.zeros(3), np.full(3, high))
    best = lsq_linear(matrix, matrix @ wanted, (0.0, high), method="bvls", tol=1e-14).x
    whole = np.argmin(abs(STEP_FRACTIONS - 1.0))
    assert STEP_FRACTIONS[whole] == 1.0
    np.testing.assert_allclose(found[whole].ravel(), best, atol=20.0)  # Pa


def test_polish_looks_at_the_cheapest_candidates_and_at_none_that_broke():
    costs = np.array([3.0, np.inf, 1.0, 2.0, np.inf, 5.0, 4.0])
    assert sorted(cheapest(costs, 2, 1)[1:]) == [0, 2, 3, 6]
    assert sorted(cheapest(costs, 2, 2)[1:]) == [0, 2, 3, 5, 6]
    assert cheapest(costs, 2, 2)[0] == 2


def test_command_is_the_first_of_the_best_polyline_and_cost_is_the_sum_of_terms():
    command = ask(make(), STATE, circle(0.0, 10), MEASURED)
    assert np.array_equal(command.pressures, command.best_knots[0])
    assert command.cost == pytest.approx(sum(command.cost_terms.values()))
    assert set(command.cost_terms) == {"tip_position", "input_rate"}
    value = residuals(
        LinearModel(), STATE, MEASURED, MEASURED, command.best_knots, LAYOUT, circle(0.0, 10), 0.05
    )
    assert command.cost == pytest.approx(value @ value)


def test_predicted_tips_come_true_when_the_plan_is_carried_out():
    model, controller = LinearModel(), make()
    command = ask(controller, STATE, circle(0.0, 10), MEASURED)
    commands = [MEASURED, *LAYOUT.commands(command.best_knots[None])[0]]
    state, pressures = STATE, MEASURED
    for i, held in enumerate(commands):
        state, pressures = advanced(model, state, pressures, held)
        if i > 0:
            tip = model.tip_positions(state[None], None)[0]
            assert np.allclose(tip, command.predicted_tips[i - 1], atol=1e-9)


def tip_errors(controller, plant, seconds: float, reference=circle, **late):
    """Tip errors (T,) [m] of a loop."""
    ticks = round(seconds / PERIOD)
    states, _ = steered(controller, plant, reference, ticks, STATE, MEASURED, **late)
    wanted = [reference(k * PERIOD, 1).tip_positions[0] for k in range(ticks)]
    return np.linalg.norm(plant.tip_positions(states[:-1], None) - wanted, axis=1)


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_delay_is_compensated(delay):
    """The loop is good with the delay that the controller is told, and bad with another."""
    model = LinearModel()
    errors = {}
    for told in (1, 2, 3):
        controller = make(model, rate=1e-3, estimate_lag=False)
        errors[told] = tip_errors(controller, model, 2.0, delay=delay, told=told)[70:].mean()
    right = errors.pop(delay)
    assert right < 1e-3
    assert right < 0.2 * min(errors.values())


def test_a_delay_of_a_tick_more_than_told_is_found():
    model = LinearModel()
    found, known = (
        tip_errors(make(model, rate=1e-3, estimate_lag=learns), model, 2.0, delay=2)
        for learns in (True, False)
    )
    assert found[70:].mean() < 1e-3
    assert found[70:].mean() < 0.2 * known[70:].mean()


def test_a_learned_tip_offset_brings_the_tip_of_another_plant_to_its_goal():
    """Offset-free: a plant whose chambers push a tenth less ends where it should, not beside."""
    plant, still = LinearModel(), standing([0.01, 0.005, 0.05])
    plant._b *= 0.9
    errors = {}
    for gain in (0.0, 0.1):
        controller = make(rate=1e-3, tip_offset_gain=gain)
        errors[gain] = tip_errors(controller, plant, 3.0, still)[-70:].mean()
    assert errors[0.0] > 2e-4
    assert errors[0.1] < 0.1 * errors[0.0]


def test_offsets_are_what_predictions_of_so_many_ticks_lacked():
    """At every number of ticks ahead, though a prediction is begun in some ticks only."""
    model, plant, ticks = LinearModel(), LinearModel(), 8
    plant._b *= 0.9
    pressures, parameters = np.array([5e4, 2e4, 1e4]), np.empty(0)
    rest = plant.equilibrium(pressures, None)
    offsets = TipOffsets(model, PERIOD, ticks, gain=1.0)
    for k in range(40):
        offsets.learn(Moment(k * PERIOD, rest, pressures, parameters))
    held = np.tile(pressures, (1, ticks + 1, 1))
    predicted = model.rollout(rest, held, parameters, PERIOD)[0]
    lacked = model.tip_positions(rest[None], None) - model.tip_positions(predicted, None)
    assert np.abs(lacked).max() > 1e-4
    assert np.allclose(offsets.ahead(0, ticks), lacked, rtol=0, atol=1e-12)
    assert np.allclose(offsets.ahead(2, ticks)[-2:], lacked[-1], rtol=0, atol=1e-12)


def test_a_learned_tip_offset_follows_with_the_gain_of_a_tick():
    """However seldom an offset is looked at."""
    model, gain, count = LinearModel(), 0.05, 90
    pressures = np.array([5e4, 2e4, 1e4])
    offsets, sure = (TipOffsets(model, PERIOD, 9, each) for each in (gain, 1.0))
    for k in range(count):
        for each in (offsets, sure):
            each.learn(Moment(k * PERIOD, STATE, pressures, np.empty(0)))
    share = offsets.ahead(0, 9)[:, 0] / sure.ahead(0, 9)[:, 0]
    ticks = count - np.arange(9)
    assert (share > 1.0 - (1.0 - gain) ** (ticks - 3.0) - 1e-9).all()
    assert (share < 1.0 - (1.0 - gain) ** (ticks + 3.0) + 1e-9).all()


def test_ticks_that_are_missing_teach_no_offset():
    """States of before a gap say nothing about those after it; the model is the plant."""
    plant = LinearModel()
    controller = make(tip_offset_gain=0.1)
    horizon, state = controller._horizon, STATE
    for k in range(40):
        time = k * PERIOD + (k // 5)  # a second is lost after every five ticks
        if k % 5 == 0:
            state = (-1) ** k * STATE  # and much happens in it
        ask(controller, state, circle(time, controller.rows), MEASURED)
        state = plant.step(state, MEASURED, MEASURED, None, PERIOD)
    assert np.abs(horizon._offsets.ahead(0, 8)).max() < 1e-12


def test_best_plan_survives_a_tick():
    """With a perfect model the shifted best plan is still there, so the cost does not jump up."""
    controller = make(population=20, strangers=0.5, generations=1, polish=False)

    def straight(time, _):
        return circle(time, 10, 0.0)

    _, answers = steered(controller, LinearModel(), straight, 60, STATE, MEASURED)
    costs = [each.cost_terms["tip_position"] for each in answers]
    assert max(costs[30:]) < 0.05 * costs[0]


def test_lanes_that_are_not_finite_are_never_chosen():
    class Breaking(LinearModel):
        def rollout(self, state, pressures, parameters, dt):
            states = super().rollout(state, pressures, parameters, dt)
            if len(states) > 1:
                states[: len(states) // 2, 3:] = np.nan
            return states

    command = ask(make(Breaking()), STATE, circle(0.0, 10), MEASURED)
    assert np.isfinite(command.cost)
    assert np.isfinite(command.predicted_tips).all()
    assert not command.fallback


def test_broken_from_the_beginning_holds_the_measured_pressures():
    for state, measured, held in (
        (np.full(5, np.nan), MEASURED, MEASURED),
        (STATE, np.array([np.nan, 20e3, 25e3]), [0.0, 20e3, 25e3]),
    ):
        command = ask(make(), state, circle(0.0, 10), measured)
        assert command.fallback
        assert np.array_equal(command.pressures, held)


def test_parameters_by_name_reach_the_model():
    model = LinearModel()
    told = {"bending_compliance": 45.0, "tip_mass": 0.08}
    ask(make(model), STATE, circle(0.0, 10), MEASURED, told)
    assert all(np.array_equal(seen, [45.0, 0.08]) for seen in model.seen_parameters)


def test_pressure_gains_and_offsets_are_those_of_what_the_model_sees():
    """What is felt is gain times reading plus offset, of commands behind their lag as well."""
    model, reference = LinearModel(), reachable()
    gains, offsets = np.array([1.1, 0.95, 1.0]), np.array([4e3, -3e3, 0.0])
    told = {f"pressure_gain_{i + 1}": gains[i] for i in range(3)}
    told |= {f"pressure_offset_{i + 1}": offsets[i] for i in range(2)}
    numbers = {"rate": 1e-9, "generations": 20, "max_rate": 1e9}
    read = (MEASURED - offsets) / gains
    found = ask(make(model, **numbers), STATE, reference, read, told).pressures
    plain = ask(make(model, **numbers), STATE, reference, MEASURED).pressures
    np.testing.assert_allclose(gains * found + offsets * LAG.pole / LAG.gain, plain, atol=1e3)


def test_another_lag_than_the_files_is_learned_while_it_moves():
    model = LinearModel()
    slow = PressureLag(0.7 * LAG.gain, 0.7 * LAG.pole)
    errors = {}
    for learns in (True, False):
        believed = LinearModel()
        believed.inputs = replace(believed.inputs, lag=slow)
        controller = make(believed, rate=1e-3, estimate_lag=learns)
        errors[learns] = tip_errors(controller, model, 2.0)[70:].mean()
    assert errors[True] < 0.5 * errors[False]


def test_unknown_parameter_and_short_reference_are_named():
    with pytest.raises(UserError, match="parameter stiffness: unknown; allowed are bending_compl"):
        ask(make(), STATE, circle(0.0, 10), MEASURED, {"stiffness": 1.0})
    with pytest.raises(UserError, match="9 rows, needs 10"):
        ask(make(), STATE, circle(0.0, 9), MEASURED)
    beyond = MAXIMUM_DELAY + 1
    with pytest.raises(UserError, match=f"delay {beyond} is not allowed: 1 to {MAXIMUM_DELAY}"):
        ask(make(), STATE, circle(0.0, 40), MEASURED, delay=beyond)


def test_rod_follows_the_fast_trajectory_with_the_shipped_controller():
    """The exact rod as model and plant (state known), lag and delay: what is left is the search."""
    robot = load_robot("licher2025")
    rod = RodPrediction(CosseratRod(robot, intervals=5))
    settings = named_settings("nempc", given={"population": 256})
    controller = Nempc(ControlContext(robot, rod, PERIOD), settings)
    source = ReferenceSettings(duration=2.0).source(rod, PERIOD)
    begin = source.states[0]
    states, answers = steered(controller, rod, source.window, 105, begin, np.zeros(3))
    tips = rod.tip_poses(states[:-1], np.tile(rod.nominal_parameters, (105, 1)))[:, :, 3]
    errors = np.linalg.norm(tips - source.tip_positions[:105], axis=1)
    assert not any(each.fallback for each in answers)
    assert np.mean(errors) < 3e-4
    assert np.max(errors) < 1e-3
    sent = [each.pressures for each in answers[35:]]
    assert np.abs(np.diff(sent, n=2, axis=0)).mean() < 1e3  # 7 kPa without the polish


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"parents": 0.8, "strangers": 0.3}, "must be at most 1"),
        ({"mutation_scale_low": 5.0}, "must be at most mutation_scale_high"),
        ({"segments": 8}, "must be below horizon"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(wrong, message):
    with pytest.raises(ValidationError, match=message):
        NempcSettings(**wrong)

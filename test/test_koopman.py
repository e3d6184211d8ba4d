"""The Koopman model against systems whose model is known, its regulator against scipy's."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from softcr_control.observation import ControlContext, Observation
from softcr_control.reference.references import SampledReference
from softcr_models.errors import UserError
from softcr_models.model import Inputs
from softcr_studies.koopman.file import load_design, save_design
from softcr_studies.koopman.lifted_model import (
    KoopmanModel,
    Lift,
    Scaling,
    Trial,
    identified,
    monomials,
    ridge_regression,
)
from softcr_studies.koopman.lqr import Gains, KoopmanDesign, KoopmanLqr, StaticModel, Weights
from softcr_studies.koopman.selection import grid, rollout_errors, select

A1 = np.array([[0.9, 0.2], [-0.1, 0.8]])
B1 = np.array([[0.1, 0.0, 0.3], [0.0, 0.2, -0.1]])


def linear_trial(seed, length=400, offset=0.0):
    """y[k + 1] = A1 y[k] + B1 u[k], shifted by offset."""
    random = np.random.default_rng(seed)
    inputs = random.uniform(-1.0, 1.0, (length, 3))
    outputs = np.zeros((length, 2))
    for k in range(length - 1):
        outputs[k + 1] = A1 @ outputs[k] + B1 @ inputs[k]
    return Trial(outputs + offset, inputs)


def in_units(model: KoopmanModel):
    """A and B of a model without delays, in the units of outputs and inputs."""
    out, into = model.output_scaling.scale, model.input_scaling.scale
    return out[:, None] * model.transition / out, out[:, None] * model.input_matrix / into


def koopman_exact_trial(seed, length=400, mu=0.9, decay=0.7):
    """x1+ = mu x1 + 0.3 u, x2+ = decay x2 + 0.5 x1^2 + 0.2 u; with u = 0 the lift (x1, x2, x1^2)
    closes (Brunton et al., PLoS ONE 11, 2016)."""
    state, rows = np.random.default_rng(seed).uniform(-1.0, 1.0, 2), []
    for _ in range(length):
        rows.append(state)
        state = np.array([mu * state[0], decay * state[1] + 0.5 * state[0] ** 2])
    return Trial(np.array(rows), np.zeros((length, 1)))


@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_a_linear_system_is_recovered(offset):
    trials = [linear_trial(seed, offset=offset) for seed in (1, 2)]
    model = identified(trials, Lift(0), 0.0, 0.1)
    transition, input_matrix = in_units(model)
    np.testing.assert_allclose(transition, A1, atol=1e-10)
    np.testing.assert_allclose(input_matrix, B1, atol=1e-10)
    errors = rollout_errors(model, linear_trial(3, offset=offset), 50)
    assert errors.shape == (350, 50)
    assert errors.max() < 1e-9


def test_delays_see_what_one_output_hides():
    """Only y1 is measured: with one delay the second order system is known again."""
    trials = [Trial(trial.outputs[:, :1], trial.inputs) for trial in map(linear_trial, (1, 2, 3))]
    blind = identified(trials[:2], Lift(0), 1e-12, 0.1)
    seeing = identified(trials[:2], Lift(1), 0.0, 0.1)
    assert rollout_errors(blind, trials[2], 10).mean() > 1e-2
    assert rollout_errors(seeing, trials[2], 10).max() < 1e-9


def test_a_lift_that_closes_predicts_a_nonlinear_system_exactly():
    trials = [koopman_exact_trial(seed, 30) for seed in range(8)]
    exact = identified(trials[:6], Lift(0, degree=2), 1e-14, 0.1)
    linear = identified(trials[:6], Lift(0), 1e-14, 0.1)
    assert rollout_errors(exact, trials[7], 20).max() < 1e-4
    assert rollout_errors(linear, trials[7], 20).max() > 1e-2


@given(
    delays=st.integers(0, 3), degree=st.integers(1, 3), lift_inputs=st.booleans(),
    seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_passed_on_rows_are_exact_whatever_the_lift(delays, degree, lift_inputs, seed):
    lift, trial = Lift(delays, degree, lift_inputs), linear_trial(seed, 60)
    model = identified([trial], lift, 1e-3, 0.1)
    states = model.lifted(trial.outputs, trial.inputs)
    driving = model.input_scaling.to_model(trial.inputs[delays:])
    after = states @ model.transition.T + driving @ model.input_matrix.T + model.constant
    past = slice(model.outputs, lift.linear_size(2, 3))
    np.testing.assert_allclose(after[:-1, past], states[1:, past], atol=1e-12)
    assert states.shape == (60 - delays, len(model.constant))
    found = model.output_scaling.from_model(states[:, :2])
    np.testing.assert_allclose(found, trial.outputs[delays:], atol=1e-12)


def test_monomials_are_all_products():
    values = np.array([[2.0, 3.0], [5.0, -1.0]])
    expected = [[4, 6, 9, 8, 12, 18, 27], [25, -5, 1, 125, -25, 5, -1]]
    np.testing.assert_array_equal(monomials(values, 2, 3), expected)
    assert monomials(values, 2, 1).shape == (2, 0)


@given(seed=st.integers(0, 99), ridge=st.floats(1e-6, 1e3))
@settings(max_examples=25, deadline=None)
def test_ridge_shrinks_and_keeps_the_mean(seed, ridge):
    random = np.random.default_rng(seed)
    x, noise = random.standard_normal((50, 4)), random.standard_normal((50, 2))
    targets = x @ random.standard_normal((4, 2)) + 3.0 + noise
    free, _ = ridge_regression(x, targets, 0.0)
    slopes, intercept = ridge_regression(x, targets, ridge)
    assert np.linalg.norm(slopes) <= np.linalg.norm(free) + 1e-12
    residual = targets - x @ slopes.T - intercept
    np.testing.assert_allclose(residual.mean(axis=0), 0.0, atol=1e-10)


def test_selection_takes_the_lift_that_made_the_data():
    trials = [koopman_exact_trial(seed, 30) for seed in range(9)]
    choices = select(trials, grid((0,), (1, 2), (1e-12, 1.0)), 10, 3, 0.1)
    assert (choices[0].lift, choices[0].ridge) == (Lift(0, 2), 1e-12)
    assert [c.error for c in choices] == sorted(c.error for c in choices)


def test_what_cannot_be_identified_is_refused():
    trial = linear_trial(1)
    mixed = trial.inputs @ np.array([[0.7, 0.3, 0.1], [0.1, 1.3, 0.9], [0.0, 0.0, 0.0]])
    mixed[:, 2] = mixed[:, :2] @ [0.3, -1.7]
    for inputs in (np.zeros_like(trial.inputs), mixed):
        with pytest.raises(UserError, match="excite"):
            identified([Trial(trial.outputs, inputs)], Lift(1), 0.0, 0.1)
    assert identified([Trial(trial.outputs, mixed)], Lift(1), 1e-6, 0.1).outputs == 2
    with pytest.raises(UserError, match="4 samples that 3 delays need"):
        identified([Trial(trial.outputs[:4], trial.inputs[:4])], Lift(3), 0.0, 0.1)
    with pytest.raises(UserError, match=r"allowed are \(T, p\) and \(T, m\)"):
        Trial(trial.outputs, trial.inputs[1:])
    with pytest.raises(UserError, match="outputs of row 7"):
        Trial(np.where(np.arange(400)[:, None] == 7, np.nan, trial.outputs), trial.inputs)
    with pytest.raises(UserError, match="2 folds of 1 trials"):
        select([trial], grid((0,), (1,), (0.0,)), 5, 2, 0.1)


def test_a_constant_column_keeps_its_unit():
    scaling = Scaling.of(np.array([[1.0, 4.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(scaling.scale, [1.0, 1.0])
    np.testing.assert_array_equal(scaling.to_model(np.array([[2.0, 5.0]])), [[0.0, 1.0]])


def regulated_model():
    trials = [linear_trial(seed) for seed in (1, 2)]
    return identified(trials, Lift(1), 1e-9, 0.1)


@pytest.mark.parametrize("rate", [0.0, 0.7])
def test_the_gain_is_that_of_the_riccati_equation(rate):
    model = regulated_model()
    gains = Gains.of(model, Weights(effort=0.2, rate=rate))
    # the change of the input as a second input of an augmented cost, solved by plain iteration
    a, b = model.transition, model.input_matrix
    pick = np.zeros((3, len(a)))
    pick[:, 4:7] = np.eye(3)
    cost = np.diag([1.0, 1.0] + [0.0] * (len(a) - 2)) + rate * pick.T @ pick
    value = np.zeros_like(a)
    for _ in range(2000):
        inner = (0.2 + rate) * np.eye(3) + b.T @ value @ b
        gain = np.linalg.solve(inner, b.T @ value @ a - rate * pick)
        value = cost + a.T @ value @ a - gain.T @ inner @ gain
    np.testing.assert_allclose(gains.feedback, gain, atol=1e-8)
    if not rate:
        riccati = linalg.solve_discrete_are(a, b, cost, 0.2 * np.eye(3))
        known = np.linalg.solve(0.2 * np.eye(3) + b.T @ riccati @ b, b.T @ riccati @ a)
        np.testing.assert_allclose(gains.feedback, known, atol=1e-9)
    assert abs(linalg.eigvals(a - b @ gains.feedback)).max() < 1.0


def test_preview_is_the_least_squares_optimum_of_known_disturbances():
    model, horizon = regulated_model(), 60
    a, b = model.transition, model.input_matrix
    gains = Gains.of(model, Weights(effort=0.2, preview=horizon))
    random = np.random.default_rng(0)
    disturbances = random.standard_normal((horizon, len(a)))
    disturbances[8:] = 0.0
    start = random.standard_normal(len(a))
    first = -gains.feedback @ start - np.einsum("kmn,kn->m", gains.preview, disturbances)
    # all inputs at once: outputs and efforts are affine in them
    outputs = model.outputs
    free, rows = start, []
    response = np.zeros((len(a), 3 * horizon))
    for k in range(horizon):
        free = a @ free + disturbances[k]
        response = a @ response
        response[:, 3 * k : 3 * k + 3] += b
        rows.append((response[:outputs].copy(), free[:outputs].copy()))
    matrix = np.vstack([row for row, _ in rows] + [np.sqrt(0.2) * np.eye(3 * horizon)])
    goal = -np.concatenate([value for _, value in rows] + [np.zeros(3 * horizon)])
    optimum = np.linalg.lstsq(matrix, goal, rcond=None)[0][:3]
    np.testing.assert_allclose(first, optimum, atol=1e-6)


def gains_of(transition, input_matrix):
    model = identified([linear_trial(1)], Lift(0), 0.0, 0.1)
    changes = {"transition": transition, "input_matrix": input_matrix}
    return Gains.of(dataclasses.replace(model, **changes), Weights())


@pytest.mark.parametrize("eigenvalue", [1.0, 1.01, 1.5, -3.0, 100.0])
@pytest.mark.parametrize("rotated", [False, True])
def test_what_cannot_be_stabilised_is_refused(eigenvalue, rotated):
    """A mode that grows or stays, and that no input reaches. Which of these scipy's solver itself
    refuses depends on the processor; no gain may come of any."""
    turn = np.array([[0.8, 0.6], [-0.6, 0.8]]) if rotated else np.eye(2)
    with pytest.raises(UserError, match="no stabilising gain"):
        gains_of(turn @ np.diag([eigenvalue, 0.5]) @ turn.T, turn @ [[0.0] * 3, [1.0] * 3])


def test_what_grows_and_can_be_stabilised_is():
    a, b = np.diag([1.5, 0.5]), np.array([[0.1] * 3, [1.0] * 3])
    assert abs(linalg.eigvals(a - b @ gains_of(a, b).feedback)).max() < 1.0


class Curve:
    """A quadratic steady curve behind a lag: what a Koopman regulator should master."""

    def __init__(self):
        self.state, self.previous = np.zeros(3), np.zeros(3)

    @property
    def tip(self):
        return self.state + 2e3 * self.state**2

    def advance(self, command):
        """What is sent now acts a sample late."""
        self.state = 0.9 * self.state + 1e-9 * self.previous
        self.previous = command


def curve_trial(seed):
    random, plant, tips = np.random.default_rng(seed), Curve(), []
    commands = np.repeat(random.uniform(1e3, 9e3, (20, 3)), 60, axis=0)
    for command in commands:
        tips.append(plant.tip)
        plant.advance(command)
    return Trial(np.array(tips), commands)


class TipModel:
    """Says the limits of the inputs; its state is the tip."""

    inputs = Inputs(
        "pressure", ("a", "b", "c"), "Pa", np.zeros(3), np.full(3, 1e4), np.full(3, 1e6)
    )
    parameters = ()

    def observe(self, names, states, inputs, parameters):
        return {"tip": np.concatenate((np.tile(np.eye(3), (1, 1, 1)), states[:, :, None]), axis=2)}


def followed(weights, wanted):
    """(T, 3) tips that follow wanted (T, 3)."""
    trials = [curve_trial(seed) for seed in range(4)]
    model = identified(trials, Lift(2, 2, True), 1e-9, 0.01)
    static = StaticModel.identified(trials, 50, degree=4)
    robot = TipModel()
    control = KoopmanLqr(ControlContext(None, robot, 0.01), KoopmanDesign(model, static, weights))
    plant, tips = Curve(), []
    source = SampledReference(0.01, None, wanted)
    for k in range(len(wanted)):
        tips.append(plant.tip)
        reference = source.window(0.01 * k, control.rows)
        seen = Observation(0.01 * k, plant.tip, {}, reference, np.zeros(3), robot)
        command = control.command(seen)
        assert ((command.pressures >= 0.0) & (command.pressures <= 1e4)).all()
        plant.advance(command.pressures)
    return np.array(tips)


def test_a_setpoint_is_reached_on_a_curve():
    goal = np.array([3e-5, 5e-5, 4e-5])
    tips = followed(Weights(effort=0.1), np.tile(goal, (200, 1)))
    np.testing.assert_allclose(tips[150:], np.tile(goal, (50, 1)), rtol=0.01)


def test_preview_follows_a_motion_more_closely():
    phase = 2 * np.pi * 0.01 * np.arange(400)[:, None] - np.array([0.0, 2.0, 4.0])
    wanted = 4e-5 + 1.5e-5 * np.sin(phase)
    published, ahead = (
        np.linalg.norm(followed(Weights(0.01, 0.0, preview), wanted) - wanted, axis=1)[100:].mean()
        for preview in (0, 30)
    )
    assert ahead < 0.3 * published


def test_the_static_model_needs_samples_that_stand_still():
    restless = Trial(np.zeros((50, 3)), np.random.default_rng(0).uniform(size=(50, 3)))
    with pytest.raises(UserError, match="0 samples stand still for 5"):
        StaticModel.identified([restless], 5)


def test_a_design_survives_its_file_and_a_broken_file_is_refused(tmp_path):
    trials = [curve_trial(seed) for seed in range(2)]
    model = identified(trials, Lift(1, 2), 1e-6, 0.01)
    design = KoopmanDesign(model, StaticModel.identified(trials, 50), Weights(0.3, 0.1, 7))
    save_design(tmp_path / "design", design)
    loaded = load_design(tmp_path / "design")
    assert loaded.weights == design.weights
    assert (loaded.model.lift, loaded.model.period) == (Lift(1, 2), 0.01)
    tips, inputs = trials[0].outputs, trials[0].inputs
    start = model.lifted(tips, inputs)[0]
    found, expected = (each.rollout(start, inputs) for each in (loaded.model, model))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(loaded.static.inputs(tips), design.static.inputs(tips))
    (tmp_path / "design.json").write_text("{}")
    for name in ("design", "nowhere"):
        with pytest.raises(UserError, match="cannot be read as a Koopman design"):
            load_design(tmp_path / name)

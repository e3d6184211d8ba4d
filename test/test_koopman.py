"""The Koopman model against systems whose model is known, its regulator against scipy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcr_control.koopman import (
    KoopmanModel,
    Lift,
    Scaling,
    Trial,
    identified,
    monomials,
    ridge_regression,
)
from softcr_control.koopman_selection import grid, rollout_errors, select
from softcr_models.errors import UserError

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
    random = np.random.default_rng(seed)
    state = random.uniform(-1.0, 1.0, 2)
    rows = []
    for _ in range(length):
        rows.append(state)
        state = np.array([mu * state[0], decay * state[1] + 0.5 * state[0] ** 2])
    return Trial(np.array(rows), np.zeros((length, 1)))


@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_a_linear_system_is_recovered(offset):
    model = identified([linear_trial(1, offset=offset), linear_trial(2, offset=offset)],
                       Lift(0), 0.0, 0.1)  # fmt: skip
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
    np.testing.assert_allclose(
        model.output_scaling.from_model(states[:, :2]), trial.outputs[delays:], atol=1e-12
    )


def test_monomials_are_all_products():
    values = np.array([[2.0, 3.0], [5.0, -1.0]])
    np.testing.assert_array_equal(
        monomials(values, 2, 3),
        [[4, 6, 9, 8, 12, 18, 27], [25, -5, 1, 125, -25, 5, -1]],
    )
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
    with pytest.raises(UserError, match="excite"):
        identified([Trial(trial.outputs, np.zeros_like(trial.inputs))], Lift(1), 0.0, 0.1)
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

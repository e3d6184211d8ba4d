"""The expanded Lagrangian: its closed form is the quadrature's, its regression predicts torques and
motions."""

import numpy as np
import pytest

from softcr_models import UserError
from softcr_papers.valadas2024.learning.monomials import (
    LEAST_PREDICTED,
    MonomialFit,
    learn_monomials,
    monomial_basis,
)
from softcr_papers.valadas2024.learning.simulated import predicted_strains
from softcr_papers.valadas2024.strain.arm import load_strain_arm
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics

ONE = load_strain_arm("pcs_one_segment").numbers
TWO = load_strain_arm("pcs_two_segments").numbers


def motion(numbers, frames, seed=0):
    """Strains that bend by 20 to 60 rad/m, rates and accelerations, (frames, n) each."""
    random, n = np.random.default_rng(seed), 3 * len(numbers.lengths)
    strains = random.uniform(-1.0, 1.0, (frames, n)) * np.resize([1.0, 0.3, 0.3], n)
    bends = random.uniform(20.0, 60.0, (frames, n // 3))
    strains[:, 0::3] = bends * random.choice([-1.0, 1.0], bends.shape)
    sizes = np.resize([60.0, 0.3, 0.3], n)
    return strains, *(random.normal(size=(frames, n)) * sizes * size for size in (100.0, 1e4))


def close(found, expected, tolerance):
    sizes = np.abs(expected).max(axis=0)
    np.testing.assert_allclose(found / sizes, expected / sizes, atol=tolerance)


@pytest.mark.parametrize(("numbers", "frames", "error"), [(ONE, 50, 1e-8), (TWO, 10, 1e-7)])
def test_the_closed_form_is_the_quadrature(numbers, frames, error):
    basis, states = monomial_basis(numbers.lengths), motion(numbers, frames)
    found = basis.columns(*states) @ basis.coefficients(numbers)
    close(found, StrainDynamics(numbers, 20).torque(*states), error)


def test_the_regression_predicts_torques_of_other_motions():
    basis, states, others = monomial_basis(ONE.lengths), motion(ONE, 400), motion(ONE, 50, 1)
    dynamics = StrainDynamics(ONE)
    fit = learn_monomials(basis, *states, dynamics.torque(*states))
    assert fit.used == 1.0
    close(fit.torque(*others), dynamics.torque(*others), 1e-4)
    np.testing.assert_allclose(fit.stiffness, ONE.stiffness, rtol=1e-2)


def test_true_coefficients_predict_the_motion_of_a_bent_robot():
    basis, start = monomial_basis(ONE.lengths), np.array([40.0, 0.05, -0.05])
    torques = np.tile(0.9 * ONE.stiffness * start, (5, 1))
    found = MonomialFit(basis, basis.coefficients(ONE), 1.0).predicted(start, torques, 0.01)
    expected = predicted_strains(ONE, start, torques, 0.01)
    assert (expected[:, 0] > LEAST_PREDICTED).all()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_what_is_not_allowed_gets_one_line():
    with pytest.raises(UserError, match="monomials of 4 segments: must be 1 to 3"):
        monomial_basis(np.full(4, 0.1))
    basis, states = monomial_basis(ONE.lengths), motion(ONE, 400)
    straight = states[0] * [1e-3, 1.0, 1.0]
    with pytest.raises(UserError, match="0 frames bend by 3 rad/m or more everywhere"):
        learn_monomials(basis, straight, *states[1:], states[2])

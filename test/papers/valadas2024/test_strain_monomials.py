"""The expanded Lagrangian: its closed form is the quadrature's, its regression predicts torques."""

import numpy as np
import pytest

from softcr_models import UserError
from softcr_models.robots.robot import load_strain_arm
from softcr_models.strain.dynamics import StrainDynamics
from softcr_papers.valadas2024.learning.monomials import learn_monomials, monomial_basis

ONE = load_strain_arm("pcs_one_segment").numbers
TWO = load_strain_arm("pcs_two_segments").numbers


def motion(numbers, frames, seed=0):
    """Strains that bend by 20 to 60 rad/m, rates and accelerations, (frames, n) each."""
    random, n = np.random.default_rng(seed), 3 * len(numbers.lengths)
    sizes = np.resize([1.0, 0.3, 0.3], n)
    strains = random.uniform(-1.0, 1.0, (frames, n)) * sizes
    bends = random.uniform(20.0, 60.0, (frames, n // 3))
    strains[:, 0::3] = bends * random.choice([-1.0, 1.0], bends.shape)
    sizes = np.resize([60.0, 0.3, 0.3], n)
    return strains, *(random.normal(size=(frames, n)) * sizes * size for size in (100.0, 1e4))


@pytest.fixture(scope="module")
def two_segments():
    return monomial_basis(TWO.lengths)


def close(found, expected, tolerance):
    sizes = np.abs(expected).max(axis=0)
    np.testing.assert_allclose(found / sizes, expected / sizes, atol=tolerance)


def test_the_closed_form_of_one_segment_is_its_quadrature():
    basis, states = monomial_basis(ONE.lengths), motion(ONE, 50)
    found = basis.columns(*states) @ basis.coefficients(ONE)
    close(found, StrainDynamics(ONE, 20).torque(*states), 1e-8)


def test_the_closed_form_of_two_segments_is_their_quadrature(two_segments):
    states = motion(TWO, 10)
    found = two_segments.columns(*states) @ two_segments.coefficients(TWO)
    close(found, StrainDynamics(TWO, 20).torque(*states), 1e-7)


def test_the_regression_predicts_torques_of_other_motions():
    basis, states, others = monomial_basis(ONE.lengths), motion(ONE, 400), motion(ONE, 50, 1)
    dynamics = StrainDynamics(ONE)
    fit = learn_monomials(basis, *states, dynamics.torque(*states))
    assert fit.used == 1.0
    close(fit.torque(*others), dynamics.torque(*others), 1e-4)
    np.testing.assert_allclose(fit.stiffness, ONE.stiffness, rtol=1e-2)


def test_each_monomial_has_a_name_of_its_own(two_segments):
    one = monomial_basis(ONE.lengths)
    for basis in (one, two_segments):
        assert len(set(basis.names)) == len(basis.names)
    assert any(name == "bending_1^2" for name in one.names)
    assert any("sin(1)" in name and "bending_1'" in name for name in one.names)


def test_what_is_not_allowed_gets_one_line():
    with pytest.raises(UserError, match="monomials of 4 segments: must be 1 to 3"):
        monomial_basis(np.full(4, 0.1))
    basis, states = monomial_basis(ONE.lengths), motion(ONE, 400)
    straight = states[0] * [1e-3, 1.0, 1.0]
    with pytest.raises(UserError, match="0 frames bend by 3 rad/m or more everywhere"):
        learn_monomials(basis, straight, *states[1:], states[2])

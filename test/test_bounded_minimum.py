"""The compiled minimum in a box: its optimality conditions, and scipy's bounded least squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from softcr_control.predictive.bounded_minimum import bounded_minimum

DAMPING = 1e-6  # as in rod_mpc.yaml


def kkt_residual(hessian, gradient, low, high, x):
    """Largest violation of the optimality conditions, each as a part of the sum it is made of.

    Slopes are zero where a number is free, point outwards where it lies at a bound.
    """
    slope = gradient + hessian @ x
    magnitude = np.abs(gradient) + np.abs(hessian) @ np.abs(x) + np.finfo(float).tiny
    wrong = np.where(x == low, np.minimum(slope, 0.0), slope)
    wrong = np.where(x == high, np.where(x == low, 0.0, np.maximum(slope, 0.0)), wrong)
    return np.abs(wrong / magnitude).max()


def box_of(draw, size, widest):
    """Bounds of any width from 0 on, round zero or beside it."""
    low = draw.normal(size=size) * 10.0 ** draw.uniform(-6, widest, size)
    width = 10.0 ** draw.uniform(-9, widest, size)
    width[draw.random(size) < 0.1] = 0.0
    return low, low + width


@st.composite
def least_squares(draw):
    """Jacobian, residual, and a box; of any rank, columns of any magnitude."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size, rank = draw(st.integers(1, 24)), draw(st.integers(0, 40))
    jacobian = random.normal(size=(40, rank)) @ random.normal(size=(rank, size))
    jacobian *= 10.0 ** random.uniform(-draw(st.floats(0.0, 4.0)), 0.0, size)
    return jacobian, random.normal(size=40), *box_of(random, size, draw(st.floats(-6.0, 3.0)))


def damped(jacobian, residual):
    """Hessian, gradient and weight of the damping that makes any Jacobian convex."""
    size = jacobian.shape[1]
    weight = DAMPING * np.sum(jacobian**2) / size + 1e-12
    return jacobian.T @ jacobian + weight * np.eye(size), jacobian.T @ residual, weight


@settings(max_examples=1000, deadline=None)
@given(problem=least_squares())
def test_the_optimality_conditions_hold(problem):
    jacobian, residual, low, high = problem
    hessian, gradient, _ = damped(jacobian, residual)
    found = bounded_minimum(hessian, gradient, low, high)
    assert (low <= found).all()
    assert (found <= high).all()
    assert kkt_residual(hessian, gradient, low, high, found) < 1e-13


@settings(max_examples=100, deadline=None)
@given(problem=least_squares())
def test_it_is_the_bounded_least_squares_of_scipy(problem):
    jacobian, residual, low, high = problem
    hessian, gradient, weight = damped(jacobian, residual)
    found = bounded_minimum(hessian, gradient, low, high)
    stacked = np.vstack([jacobian, np.sqrt(weight) * np.eye(len(found))])
    target = np.concatenate([-residual, np.zeros(len(found))])
    apart = np.maximum(high, np.nextafter(low, np.inf))  # scipy wants an open box
    # its "bvls" stops before the minimum in three of four of the hardest of these
    theirs = lsq_linear(stacked, target, (low, apart), "trf", tol=1e-14, max_iter=1000).x
    ours, scipys = (np.sum((stacked @ x - target) ** 2) for x in (found, theirs))
    assert ours <= scipys * (1 + 1e-12)
    assert ours == pytest.approx(scipys, rel=1e-9)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), size=st.integers(1, 24), weak=st.sampled_from([0.0, 0.5, 1.0])
)
def test_a_minimum_that_is_known_is_found_though_multipliers_vanish(seed, size, weak):
    """Made backwards: bounds, the minimum, multipliers; a share `weak` of these is zero."""
    draw = np.random.default_rng(seed)
    root = draw.normal(size=(size, size))
    hessian = root @ root.T + 0.1 * np.eye(size)
    low = draw.normal(size=size)
    high = low + draw.uniform(0.1, 2.0, size)
    place = draw.integers(-1, 2, size)  # at low, inside, at high
    inside = low + draw.uniform(0.0, 1.0, size) * (high - low)
    minimum = np.where(place < 0, low, np.where(place > 0, high, inside))
    multipliers = place * draw.uniform(0.1, 2.0, size) * (draw.random(size) >= weak)
    found = bounded_minimum(hessian, -multipliers - hessian @ minimum, low, high)
    assert found == pytest.approx(minimum, rel=1e-9, abs=1e-9)
    strongly = multipliers != 0.0
    assert np.array_equal(found[strongly], minimum[strongly])

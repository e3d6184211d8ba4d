"""Constant-strain kinematics against the matrix exponential, differences and themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.refused_calls import refused
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from softcr_papers.valadas2024.strain.affine_curvature import affine_poses
from softcr_papers.valadas2024.strain.kinematics import (
    StrainKinematics,
    planar_poses,
    strains_between,
    transforms,
)

CHAIN = StrainKinematics(np.array([0.05, 0.1, 0.06]))
PLACES = np.linspace(0.0, CHAIN.length, 22)


def exponential(strains, lengths, place):
    """Pose of a place by scipy's exponential of the twist, segment by segment."""
    frame = np.eye(3)
    turned = 0.0
    for (kappa, shear, axial), length in zip(strains.reshape(-1, 3), lengths, strict=True):
        along = min(place, length)
        twist = np.array([[0.0, -kappa, shear], [kappa, 0.0, 1.0 + axial], [0.0, 0.0, 0.0]])
        frame = frame @ expm(twist * along)
        turned += kappa * along
        place -= along
    return np.r_[frame[:2, 2], turned]


def strains(seed, batch=()):
    """Of every size: segments bend up to 1.5 turns; some are straight or nearly so."""
    random = np.random.default_rng(seed)
    q = random.uniform(-1.0, 1.0, (*batch, 9)) * np.tile([9.0 / 0.1, 0.3, 0.3], 3)
    return q * 10.0 ** -random.integers(0, 12, (*batch, 9)).clip(min=0)


@pytest.mark.parametrize("seed", range(6))
def test_poses_are_those_of_the_exponential(seed):
    q = strains(seed)
    found = CHAIN.poses(q, PLACES)
    expected = [exponential(q, CHAIN.lengths, place) for place in PLACES]
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_the_straight_robot_lies_along_y():
    found = CHAIN.poses(np.zeros(9), PLACES)
    np.testing.assert_allclose(found, np.outer(PLACES, [0.0, 1.0, 0.0]), atol=1e-16)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_strains_come_back_from_poses(seed):
    q = strains(seed, (3,))
    ends = CHAIN.poses(q, np.cumsum(CHAIN.lengths))
    scale = np.tile([60.0, 0.3, 0.3], 3)
    np.testing.assert_allclose(CHAIN.strains(ends) / scale, q / scale, atol=1e-12)


def test_a_segment_that_bends_by_more_than_a_turn_comes_back():
    q = np.array([2.3 * 2.0 * np.pi / 0.05, 0.2, -0.1, 0.0, 0.0, 0.0, -7.0 / 0.06, 0.1, 0.3])
    np.testing.assert_allclose(
        CHAIN.strains(CHAIN.poses(q, np.cumsum(CHAIN.lengths))), q, atol=1e-9
    )


@pytest.mark.parametrize("seed", range(4))
def test_jacobians_are_derivatives_of_poses(seed):
    q = strains(seed)
    found = CHAIN.jacobian(q, PLACES)
    for k, step in enumerate(np.tile([1e-4, 1e-6, 1e-6], 3)):
        change = step * np.eye(9)[k]
        slope = (CHAIN.poses(q + change, PLACES) - CHAIN.poses(q - change, PLACES)) / (2.0 * step)
        np.testing.assert_allclose(found[..., k], slope, atol=1e-9)


def test_both_formulas_of_an_arc_meet():
    """Just inside and outside of where the series begin, and at the straight segment."""
    for turn in (0.5, 1e-2):
        for sign in (1.0, -1.0):
            below, above = (
                CHAIN.jacobian(
                    np.tile([sign * turn * (1.0 + way) / 0.1, 0.1, 0.2], 3), np.array([0.15])
                )
                for way in (-1e-13, 1e-13)
            )
            np.testing.assert_allclose(below, above, atol=1e-11)


def test_batches_are_their_rows_and_transforms_come_back():
    q = strains(5, (2, 3))
    found = CHAIN.poses(q, PLACES)
    assert found.shape == (2, 3, 22, 3)
    np.testing.assert_array_equal(found[1, 2], CHAIN.poses(q[1, 2], PLACES))
    matrices = transforms(found)
    moved = np.swapaxes(matrices[..., :3], -1, -2) @ matrices[..., :3]
    np.testing.assert_allclose(moved, np.broadcast_to(np.eye(3), moved.shape), atol=1e-14)
    smooth = CHAIN.poses(np.tile([40.0, 0.1, 0.1], 3), PLACES)
    np.testing.assert_allclose(planar_poses(transforms(smooth)), smooth, atol=1e-12)


def test_an_affine_curvature_is_integrated():
    a, length = np.array([[25.0, -50.0], [0.0, 0.0], [-30.0, 10.0]]), 0.15
    places = np.linspace(0.0, length, 21)
    found = affine_poses(a, length, places)
    for (first, second), rows in zip(a, found, strict=True):

        def slope(s, y, first=first, second=second):
            return [-np.sin(y[2]), np.cos(y[2]), first + second * s / length]

        exact = solve_ivp(slope, (0.0, length), np.zeros(3), rtol=1e-11, atol=1e-13, t_eval=places)
        np.testing.assert_allclose(rows, exact.y.T, atol=1e-10)


def test_what_is_not_allowed_gets_one_line():
    still, ends = np.zeros((3, 3)), np.array([0.0, 0.1, 0.1])
    refused(
        (lambda: StrainKinematics(np.array([0.1, 0.0])), "must be above 0"),
        (lambda: CHAIN.poses(np.zeros(6), PLACES), r"strains of shape \(6,\): allowed is"),
        (lambda: CHAIN.poses(np.zeros(9), PLACES[::-1]), "must not fall"),
        (lambda: CHAIN.poses(np.zeros(9), np.array([0.3])), "from 0 to the length 0.21 m"),
        (lambda: strains_between(still, ends), "must rise"),
        (lambda: strains_between(still, ends[:2]), "poses of shape"),
        (lambda: affine_poses(np.zeros(3), 0.1, np.zeros(1)), "curvatures of shape"),
        (lambda: affine_poses(np.zeros(2), 0.1, np.array([0.2])), "must not fall"),
    )

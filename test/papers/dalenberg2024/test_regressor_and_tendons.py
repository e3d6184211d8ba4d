"""Dalenberg: Algorithm 1, (22) to (26); the regressor of Theorem 1; tendons, (39) to (49)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.refused_calls import refused
from oracles.threads import actuation_by_quadrature

from softcr_papers.constant_curvature.kinematics import ConstantCurvatureChain, coverage_of
from softcr_papers.dalenberg2024.regressor import regressor
from softcr_papers.dalenberg2024.tendons import Tendons

LENGTHS = np.array([0.12, 0.28, 0.27])
HANGING = np.diag([1.0, -1.0, -1.0, 1.0])
STEP = 1e-30


def random_motion(seed: int, sections: int) -> tuple[np.ndarray, np.ndarray]:
    """q and q' (3 n,) with bends near 1 rad and elongations of centimetres."""
    scale = np.tile([1.0, 1.0, 0.05], sections)
    q, rate = np.random.default_rng(seed).normal(size=(2, 3 * sections))
    return q * scale, rate * scale


# -- Algorithm 1 ----------------------------------------------------------------------------------


def literal_decoupling(place: float, lengths: np.ndarray) -> tuple[float, int]:
    """(24), (25) and Remark 3 as they are printed, sections counted from 1."""
    ends = np.concatenate([[0.0], np.cumsum(lengths)])
    if place > ends[-1]:
        return 1.0, len(lengths)
    section = min(m for m in range(1, len(ends)) if ends[m] >= place)
    return (place - ends[section - 1]) / (ends[section] - ends[section - 1]), section


@given(st.floats(0.0, 1.2), st.lists(st.floats(0.02, 0.5), min_size=1, max_size=5).map(np.array))
@settings(deadline=None)
def test_coverage_is_the_printed_algorithm(place, lengths):
    fraction, section = literal_decoupling(place, lengths)
    covered = coverage_of(np.array([place]), lengths)[0]
    assert ((covered >= 0.0) & (covered <= 1.0)).all()
    np.testing.assert_allclose(covered[: section - 1], 1.0, atol=1e-12)
    np.testing.assert_allclose(covered[section - 1], fraction, atol=1e-12)
    np.testing.assert_allclose(covered[section:], 0.0, atol=1e-12)


# -- Theorem 1 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sections", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_tips_velocity_is_linear_in_the_lengths(sections, seed):
    """(2), (4), (10) for any lengths, against the complex step along the motion."""
    chain = ConstantCurvatureChain(sections, base=HANGING)
    q, rate = random_motion(seed, sections)
    lengths = np.random.default_rng(seed).uniform(0.1, 0.4, (4, sections))
    y, phi = regressor(chain, q, rate)
    assert y.shape == (3, sections)
    velocities = chain.position(q + 1j * STEP * rate, lengths).imag / STEP
    for found in (lengths @ y.T + phi, chain.position_jacobian(q, lengths) @ rate):
        np.testing.assert_allclose(found, velocities, atol=1e-13)


def test_one_section_is_the_printed_one():
    """(7), differentiated in time by the complex step."""
    q, rate = random_motion(7, 1)

    def tip(q):
        bend = np.sqrt(q[0] ** 2 + q[1] ** 2)
        by_length = np.array(
            [q[0] * (1 - np.cos(bend)) / bend**2, q[1] * (1 - np.cos(bend)) / bend**2,
             np.sin(bend) / bend]
        )  # fmt: skip
        return np.stack([q[2] * by_length, by_length], axis=1)

    moved = tip(q + 1j * STEP * rate).imag / STEP
    y, phi = regressor(ConstantCurvatureChain(1), q, rate)
    np.testing.assert_allclose(np.column_stack([phi, y]), moved, atol=1e-13)
    found = ConstantCurvatureChain(1).position(q, np.array([0.3]))
    np.testing.assert_allclose(tip(q) @ [1.0, 0.3], found, atol=1e-14)


def test_the_regressor_is_smooth_at_the_straight_pose():
    chain, (_, rate) = ConstantCurvatureChain(3), random_motion(1, 3)
    still, near = (regressor(chain, scale * np.ones(9), rate)[0] for scale in (0.0, 1e-9))
    np.testing.assert_allclose(still, near, atol=1e-8)


def test_orientation_does_not_depend_on_lengths():
    """Remark 1: the orientation's regressor is zero."""
    chain, (q, _) = ConstantCurvatureChain(3), random_motion(2, 3)
    one, other = (chain.motion(q, q, lengths) for lengths in (LENGTHS, 2.0 * LENGTHS))
    np.testing.assert_array_equal(one[0][:3, :3], other[0][:3, :3])
    np.testing.assert_array_equal(one[1][3:], other[1][3:])


@pytest.mark.parametrize("covered", [[1.0, 1.0, 1.0], [1.0, 0.4, 0.0]])
def test_angular_velocity_and_drift_follow_from_the_pose(covered):
    """(5) by the complex step; the drift is the rate of J q' at constant q'."""
    chain, (q, rate) = ConstantCurvatureChain(3, 0.7, HANGING), random_motion(3, 3)
    pose, jacobian, drift = chain.motion(q, rate, LENGTHS, covered)
    moved, jacobian_moved, _ = chain.motion(q + 1j * STEP * rate, rate, LENGTHS, covered)
    spin = moved.imag[:3, :3] / STEP @ pose[:3, :3].T
    np.testing.assert_allclose(spin, -spin.T, atol=1e-12)
    twist = [*(moved.imag[:3, 3] / STEP), spin[2, 1], spin[0, 2], spin[1, 0]]
    np.testing.assert_allclose(jacobian @ rate, twist, atol=1e-12)  # (6)
    np.testing.assert_allclose(drift, jacobian_moved.imag / STEP @ rate, atol=1e-11)


# -- threads and tendons --------------------------------------------------------------------------


def straight(x, y):
    def route(places):
        return np.tile([x, y], (len(places), 1)), np.zeros((len(places), 2))

    return route


def gentle_shape(seed: int, sections: int) -> np.ndarray:
    """q that no tendon of these offsets is turned inside out by: bends below 1.3 rad."""
    q, _ = random_motion(seed, sections)
    return np.clip(q, -0.9, 0.9) * np.tile([1.0, 1.0, 0.1], sections)


RACKS = np.array([0.15, 0.36, 0.60])
ANGLES = np.deg2rad([[0, 120, 240], [40, 160, 280], [80, 200, 320]])


@pytest.mark.parametrize("lengths", [LENGTHS, np.array([0.15, 0.21, 0.2, 0.1])])
def test_the_closed_form_is_the_quadrature(lengths):
    """(45), (46), wherever racks lie in the sections."""
    tendons = Tendons.of_racks(RACKS, 0.03, ANGLES)
    q = gentle_shape(5, len(lengths))
    routes = [straight(*offset) for offset in tendons.offsets]
    expected = actuation_by_quadrature(q, lengths, 0.7, routes, tendons.ends)
    np.testing.assert_allclose(tendons.actuation(lengths, 0.7), expected, atol=1e-13)


def test_an_independent_tendon_acts_between_its_racks():
    coupled, independent = (
        Tendons.of_racks(RACKS, 0.03, ANGLES, routing).actuation(LENGTHS)
        for routing in ("coupled", "independent")
    )
    q = gentle_shape(6, 3)
    routes = [straight(*offset) for offset in Tendons.of_racks(RACKS, 0.03, ANGLES).offsets]
    until = actuation_by_quadrature(q, LENGTHS, 1.0, routes, np.repeat([0.0, 0.15, 0.36], 3))
    np.testing.assert_allclose(independent, coupled - until, atol=1e-13)
    np.testing.assert_array_equal(independent[:, :3], coupled[:, :3])


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=10)
def test_differentials_are_changes_of_length_in_space(seed):
    """(48), (49), over large bends: lengths of fine polylines through a tendon's points."""
    q, tendons = gentle_shape(seed, 3), Tendons.of_racks(RACKS[-1:], 0.03, ANGLES[:1, :1])
    places = np.linspace(0.0, RACKS[-1], 40001)
    poses = ConstantCurvatureChain(3, 1.0).pose(q, LENGTHS, coverage_of(places, LENGTHS))
    points = (poses @ [*tendons.offsets[0], 0.0, 1.0])[:, :3]
    length = np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    np.testing.assert_allclose(tendons.actuation(LENGTHS).T @ q, length - RACKS[-1], atol=1e-7)


def test_batches_of_lengths_are_single_matrices_stacked():
    tendons = Tendons.of_racks(RACKS, 0.03, ANGLES)
    found = tendons.actuation(np.array([LENGTHS, LENGTHS[::-1]]))
    assert found.shape == (2, 9, 9)
    np.testing.assert_array_equal(found[1], tendons.actuation(LENGTHS[::-1]))


def test_impossible_tendons_are_refused():
    def of(racks):
        return Tendons.of_racks(racks, 0.03, ANGLES[:2])

    backwards = np.zeros((1, 2)), np.array([0.2]), np.array([0.1])
    refused(
        (lambda: of([0.3, 0.2]), r"racks: .* must rise from above 0"),
        (lambda: of(RACKS), r"angles of shape \(2, 3\): must be \(3, tendons\)"),
        (lambda: Tendons(*backwards), "each must begin at 0 or later, and end after"),
    )

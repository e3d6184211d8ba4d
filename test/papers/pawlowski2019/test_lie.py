"""Rotations and rigid motions: identities, series, pinocchio, and the thesis's printed forms."""

import itertools

import numba
import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import expm

from softcr_papers.pawlowski2019.lie import kernel, se3, so3

RANDOM = np.random.default_rng(20)
ANGLES = (0.0, 1e-12, 1e-7, 1e-4, 0.1, 0.5, 1.9, 2.1, 3.0, np.pi - 1e-6)


def twists(angles=ANGLES, each=4):
    """(len(angles), each, 6) with these turns."""
    found = RANDOM.normal(size=(len(angles), each, 6))
    found[..., 3:] *= np.array(angles)[:, None, None] / np.linalg.norm(
        found[..., 3:], axis=-1, keepdims=True
    )
    return found


X, Y = twists(), twists()
EACH = X.reshape(-1, 6)


def test_maps_are_those_of_matrices():
    assert np.array_equal(se3.vee(se3.hat(X)), X)
    bracket = se3.hat(X) @ se3.hat(Y) - se3.hat(Y) @ se3.hat(X)
    assert se3.vee(bracket) == pytest.approx((se3.ad(X) @ Y[..., None])[..., 0], abs=1e-13)
    for ours, want in (
        (se3.exp(EACH), [expm(each) for each in se3.hat(EACH)]),
        (se3.adjoint(se3.exp(EACH)), [expm(each) for each in se3.ad(EACH)]),
        (se3.dexp(EACH), [series_of_dexp(each) for each in EACH]),
    ):
        assert ours == pytest.approx(np.array(want), abs=1e-13)


def test_rotations_stay_rotations():
    poses = se3.exp(X)
    turns = poses[..., :3, :3]
    assert np.abs(np.swapaxes(turns, -1, -2) @ turns - np.eye(3)).max() < 1e-15
    assert np.abs(np.linalg.det(turns) - 1.0).max() < 1e-15
    assert np.abs(se3.inverse(poses) @ poses - np.eye(4)).max() < 1e-13


def test_logarithm_is_the_inverse_of_the_exponential():
    assert se3.log(se3.exp(X)) == pytest.approx(X, abs=1e-9)  # near pi
    assert se3.log(se3.exp(X[:-1])) == pytest.approx(X[:-1], abs=1e-13)
    axes = np.vstack((np.eye(3), RANDOM.normal(size=(5, 3))))
    turns = np.pi * axes / np.linalg.norm(axes, axis=1, keepdims=True)  # half turns
    assert so3.exp(so3.log(so3.exp(turns))) == pytest.approx(so3.exp(turns), abs=1e-14)


def series_of_dexp(twist):
    """sum_k ad^k / (k + 1)!."""
    ad, term, total = se3.ad(twist), np.eye(6), np.eye(6)
    for k in range(1, 60):
        term = term @ ad / (k + 1)
        total = total + term
    return total


def test_inverse_tangent_maps():
    near = twists((0.0, 1e-8, 1e-3, 0.5, 1.9, 2.1, 4.0, 6.0))
    unit = np.broadcast_to(np.eye(6), (*near.shape[:-1], 6, 6))
    assert se3.dexp_inverse(near) @ se3.dexp(near) == pytest.approx(unit, abs=1e-10)
    assert so3.dexp_inverse(near[..., 3:]) @ so3.dexp(near[..., 3:]) == pytest.approx(
        unit[..., :3, :3], abs=1e-11
    )


def test_agrees_with_pinocchio():
    for x, y in zip(EACH, Y.reshape(-1, 6), strict=True):
        motion, pose = pin.Motion(x), pin.exp6(pin.Motion(x))
        assert se3.exp(x) == pytest.approx(pose.homogeneous, abs=1e-12)
        assert se3.adjoint(se3.exp(x)) == pytest.approx(pose.action, abs=1e-12)
        assert se3.ad(x) @ y == pytest.approx((motion ^ pin.Motion(y)).vector, abs=1e-12)
        assert so3.exp(x[3:]) == pytest.approx(pin.exp3(x[3:]), abs=1e-12)
        assert so3.hat(x[3:]) == pytest.approx(pin.skew(x[3:]), abs=0.0)
        # their Jacobians are those of the body's side
        assert se3.dexp(-x) == pytest.approx(pin.Jexp6(motion), abs=1e-12)
        assert so3.dexp(-x[3:]) == pytest.approx(pin.Jexp3(x[3:]), abs=1e-12)
        if np.linalg.norm(x[3:]) < 3.1:
            assert se3.log(se3.exp(x)) == pytest.approx(pin.log6(pose).vector, abs=1e-12)
            assert se3.dexp_inverse(-x) == pytest.approx(pin.Jlog6(pose), abs=1e-12)


# -- the compiled text ----------------------------------------------------------------------------


@numba.njit
def _all_maps(x, y, rotation, position, out):
    kernel.exponential(rotation, position, x)
    kernel.logarithm(out[0], rotation, position)
    kernel.transport_wrench(out[1], rotation, position, y)
    kernel.dexp_inverse_times(out[2], x, y)
    kernel.dexp_inverse_transposed_times(out[3], x, y)
    out[4:] = 0.0
    kernel.add_ad(out[4], x, y)
    kernel.add_ad_transposed(out[5], 1.0, x, y)
    kernel.advance(rotation, position, y)


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(_all_maps, id="compiled", marks=pytest.mark.slow),
        pytest.param(_all_maps.py_func, id="Python"),
    ],
)
def test_text_for_compiled_loops_is_the_same(run):
    for x, y in zip(EACH, Y.reshape(-1, 6), strict=True):
        rotation, position, out = np.empty((3, 3)), np.empty(3), np.empty((6, 6))
        run(x, y, rotation, position, out)
        g = se3.exp(x)
        want = (
            se3.log(g), se3.adjoint(g).T @ y, se3.dexp_inverse(x) @ y,
            se3.dexp_inverse(x).T @ y, se3.ad(x) @ y, se3.ad(x).T @ y,
        )  # fmt: skip
        near_pi = np.linalg.norm(x[3:]) > 3.1
        assert out[0] == pytest.approx(want[0], abs=1e-8 if near_pi else 1e-13)
        for ours, theirs in zip(out[1:], want[1:], strict=True):
            assert ours == pytest.approx(theirs, abs=1e-12)
        assert rotation == pytest.approx((g @ se3.exp(y))[:3, :3], abs=1e-14)
        assert position == pytest.approx((g @ se3.exp(y))[:3, 3], abs=1e-13)


def test_compiled_logarithm_finds_half_turns_about_every_axis():
    out = np.empty(6)
    for axis in itertools.product((-1.0, 0.0, 0.5, 1.0), repeat=3):
        if any(axis):
            turn = 3.14159 * np.array(axis) / np.linalg.norm(axis)
            kernel.logarithm(out, so3.exp(turn), np.zeros(3))
            assert out[3:] == pytest.approx(turn, abs=1e-9)


# -- what the thesis prints -----------------------------------------------------------------------


def test_the_printed_coefficient_of_the_tangent_map_is_wrong():
    """(2.72) with a(theta) = sin(theta) / theta before ad: off by the order of one."""
    x = np.array([0.3, -0.2, 0.5, 0.4, 0.8, -0.6])
    theta = np.linalg.norm(x[3:])
    a, b = np.sin(theta) / theta, (1.0 - np.cos(theta)) / theta**2
    printed = se3.dexp(x) + (a - b) * se3.ad(x)
    assert np.abs(se3.dexp(x) - series_of_dexp(x)).max() < 1e-15
    assert np.abs(printed - series_of_dexp(x)).max() > 0.1


def test_the_printed_map_of_wrenches_does_not_keep_power():
    """(1.19), W_2 = Ad^T W_1, beside (1.17), eta_2 = Ad eta_1: power would depend on the frame."""
    pose, velocity, wrench = se3.exp(X[5, 0]), Y[5, 0], Y[5, 1]
    moved = se3.adjoint(pose) @ velocity
    power = velocity @ wrench
    ours = np.linalg.solve(se3.adjoint(pose).T, wrench)  # W_1 = Ad^T W_2
    assert moved @ ours == pytest.approx(power, abs=1e-13)
    assert abs(moved @ (se3.adjoint(pose).T @ wrench) - power) > 0.1

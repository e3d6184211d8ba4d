"""Constant curvature: Dalenberg (1) and (3), Mehl et al. (1) to (7)."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.refused_calls import refused
from scipy.integrate import solve_ivp

from softcr_models import CosseratRod, load_robot
from softcr_papers.constant_curvature.kernel import (
    CENTRE_OF_GRAVITY,
    COUNT,
    TIP,
    point_motion,
    stumpff,
)
from softcr_papers.constant_curvature.kinematics import (
    ConstantCurvatureChain,
    coordinates_of_tip,
    section_pose,
)
from softcr_papers.mehl2024.dynamics import ConstantCurvatureModel

RADIUS, LENGTH = 0.021, 0.13
LENGTHS = np.array([0.12, 0.28, 0.27])
BASE = pin.SE3(pin.rpy.rpyToMatrix(3.0, 0.2, 0.1), np.array([0.1, -0.2, 0.3])).homogeneous


def random_coordinates(seed: int, *shape: int, bend: float = 1.0, stretch: float = 0.05):
    scale = np.tile([bend, bend, stretch], shape[-1] // 3)
    return np.random.default_rng(seed).normal(0.0, 1.0, shape) * scale


def coverage(section: int, fraction: float) -> np.ndarray:
    """(3,) of a point on one of three sections."""
    return np.clip(fraction + section - np.arange(3), 0.0, 1.0) * (np.arange(3) <= section)


# -- Stumpff's functions --------------------------------------------------------------------------


def test_stumpff_functions_do_not_jump_where_the_series_ends():
    below, above = stumpff(np.array([np.nextafter(4.0, 0.0), 4.0]))
    np.testing.assert_allclose(below, above, rtol=3e-14)


@pytest.mark.parametrize("z", [0.0, 1e-12, 0.3, 3.9, 4.1, 9.0])
def test_stumpff_derivatives(z):
    derivative = stumpff(np.array(z + 1e-30j)).imag / 1e-30
    c, k = stumpff(np.array(z)), np.arange(COUNT - 2)
    np.testing.assert_allclose(derivative[:-2], 0.5 * (k * c[2:] - c[1:-1]), atol=1e-13)


# -- kinematics -----------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.floats(0.0, 1.0))
@settings(deadline=None, max_examples=50)
def test_a_section_is_the_screw_motion_of_its_strain(seed, fraction):
    q = random_coordinates(seed, 3)
    twist = np.array([0.0, 0.0, LENGTH + q[2], -q[1] / 0.8, q[0] / 0.8, 0.0])
    expected = pin.exp6(fraction * twist).homogeneous
    np.testing.assert_allclose(section_pose(q, LENGTH, 0.8, fraction), expected, atol=1e-14)


def test_a_chain_is_the_integral_of_its_curvature():
    chain = ConstantCurvatureChain(3, radius=0.7, base=BASE)
    q = random_coordinates(1, 9)

    def slope(_, flat, section):
        length = LENGTHS[section] + q[3 * section + 2]
        u, v = q[3 * section : 3 * section + 2] / 0.7
        strain = np.array([[0, 0, u, 0], [0, 0, v, 0], [-u, -v, 0, length], [0, 0, 0, 0]])
        return (flat.reshape(4, 4) @ strain).ravel()

    pose = BASE.ravel()
    for section in range(3):
        for fraction in (0.35, 1.0):
            moved = solve_ivp(slope, (0.0, fraction), pose, args=(section,), rtol=1e-11, atol=1e-12)
            expected = moved.y[:, -1].reshape(4, 4)
            found = chain.pose(q, LENGTHS, coverage(section, fraction))
            np.testing.assert_allclose(found, expected, atol=1e-9)
        pose = moved.y[:, -1]


@pytest.mark.parametrize("q", [np.zeros(9), random_coordinates(2, 9), 1e-7 * np.ones(9)])
@pytest.mark.parametrize(("section", "fraction"), [(2, 1.0), (1, 0.6), (0, 0.0)])
def test_jacobians_agree_with_the_complex_step(q, section, fraction):
    chain = ConstantCurvatureChain(3, radius=0.7, base=BASE)
    point = coverage(section, fraction)
    pose = chain.pose(q, LENGTHS, point)
    body = chain.body_jacobian(q, LENGTHS, point)
    linear = chain.position_jacobian(q, LENGTHS, point)
    assert body.shape == (6, 9)
    for column in range(9):
        shifted = q.astype(complex)
        shifted[column] += 1e-30j
        change = chain.pose(shifted, LENGTHS, point).imag / 1e-30
        twist = np.linalg.inv(pose) @ change
        expected = [*twist[:3, 3], twist[2, 1], twist[0, 2], twist[1, 0]]
        np.testing.assert_allclose(body[:, column], expected, atol=1e-13)
        np.testing.assert_allclose(linear[:, column], change[:3, 3], atol=1e-13)
    assert not body[:, 3 * (section + 1) :].any()


def test_batches_are_single_calls_stacked():
    chain = ConstantCurvatureChain(3)
    q = random_coordinates(3, 2, 4, 9)
    lengths = LENGTHS + np.random.default_rng(0).uniform(0.0, 0.1, (4, 3))
    point = coverage(1, 0.3)
    poses, jacobians = chain.pose(q, lengths, point), chain.body_jacobian(q, lengths, point)
    for i in range(2):
        for j in range(4):
            np.testing.assert_array_equal(poses[i, j], chain.pose(q[i, j], lengths[j], point))
            single = chain.body_jacobian(q[i, j], lengths[j], point)
            np.testing.assert_allclose(jacobians[i, j], single, atol=1e-15)


def test_everything_is_smooth_through_the_straight_pose():
    """Third differences along a line through it shrink with the step's cube, down to rounding."""
    direction = np.array([0.8, -0.5, 0.1])
    for step in (1e-1, 1e-2, 1e-3):
        line = np.linspace(-2.0, 2.0, 5)[:, None] * step * direction
        parts = (
            section_pose(line, LENGTH, 1.0),
            ConstantCurvatureChain(1).body_jacobian(line, [LENGTH]),
            *point_motion(line, line, LENGTH, 1.0, CENTRE_OF_GRAVITY)[1:],
        )
        values = np.concatenate([part.reshape(5, -1) for part in parts], axis=1)
        assert np.abs(np.diff(values, 3, axis=0)).max() < 6.0 * step**3 + 1e-14
    tiny = section_pose(1e-160 * direction, LENGTH, 1.0)
    np.testing.assert_allclose(tiny, section_pose(np.zeros(3), LENGTH, 1.0), atol=1e-15)


@given(st.floats(0.0, 3.0), st.floats(-4.0, 4.0), st.floats(-0.05, 0.1))
@settings(deadline=None)
def test_coordinates_are_found_again_from_the_tip(theta, direction, stretch):
    delta = theta * RADIUS
    q = np.array([delta * np.cos(direction), delta * np.sin(direction), stretch])
    tip = section_pose(q, LENGTH, RADIUS)[:3, 3]
    # a bend of 3 rad brings the tip down to the base plane's level
    if tip[2] > 1e-4:
        np.testing.assert_allclose(coordinates_of_tip(tip, LENGTH, RADIUS), q, atol=1e-10)


def test_a_backbone_goes_from_base_to_tip():
    chain = ConstantCurvatureChain(3, base=BASE)
    q = random_coordinates(4, 5, 9)
    poses = chain.backbone(q, LENGTHS, 68)  # 0.67 m: a point every centimetre
    np.testing.assert_allclose(poses[:, 0], np.broadcast_to(BASE, (5, 4, 4)))
    np.testing.assert_allclose(poses[:, -1], chain.pose(q, LENGTHS), atol=1e-12)
    np.testing.assert_allclose(poses[:, 12], chain.pose(q, LENGTHS, coverage(0, 1.0)), atol=1e-12)
    second = chain.position(q, LENGTHS, coverage(1, 1.0))
    np.testing.assert_allclose(poses[:, 40, :3, 3], second, atol=1e-12)


def test_wrong_arguments_and_impossible_numbers_are_refused_in_one_line(model):
    chain, q = ConstantCurvatureChain(2), np.zeros(6)
    refused(
        (lambda: chain.pose(q[:3], LENGTHS[:2]), r"q of shape \(3,\): must be \(\.\.\., 6\)"),
        (lambda: chain.pose(q, LENGTHS), r"rest_lengths of shape \(3,\)"),
        (lambda: chain.pose(q, LENGTHS[:2], np.ones(3)), r"coverage of shape \(3,\)"),
        (lambda: ConstantCurvatureChain(0), "sections: 0"),
        (lambda: ConstantCurvatureChain(1, radius=0.0), "radius: 0"),
        (lambda: model.replace(mass=-0.1), "mass: -0.1 is not allowed: must be finite and above 0"),
        (lambda: model.replace(elongation_damping=np.nan), "elongation_damping: nan"),
    )


# -- dynamics -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    """Hanging at an angle, with a tip mass: nothing vanishes by symmetry."""
    robot = load_robot("licher2025").replace(base_orientation=(2.6, 0.3, 0.5))
    return ConstantCurvatureModel.of_robot(robot)


def random_motion(seed: int, bend: float = 0.03) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    q_f = random.normal(0.0, 1.0, 9) * np.array([*[0.5] * 6, bend, bend, 0.01])
    return q_f, random.normal(0.0, 1.0, 9) * np.array([*[1.0] * 6, 0.2, 0.2, 0.1])


def test_the_centre_of_gravity_is_the_mean_of_the_arc():
    q = np.array([0.02, -0.01, 0.005])
    fractions = (np.arange(20000) + 0.5) / 20000
    mean = section_pose(q, LENGTH, RADIUS, fractions)[:, :3, 3].mean(axis=0)
    found = point_motion(q, q, LENGTH, RADIUS, CENTRE_OF_GRAVITY)[0]
    np.testing.assert_allclose(found, mean, atol=1e-9)


@pytest.mark.parametrize("order", [TIP, CENTRE_OF_GRAVITY])
@pytest.mark.parametrize("q", [np.zeros(3), np.array([0.03, -0.02, 0.01]), np.full(3, 0.05)])
def test_point_jacobians_agree_with_the_complex_step(order, q):
    rate = np.array([0.3, 0.2, -0.1])
    _, jacobian, jacobian_rate = point_motion(q, rate, LENGTH, RADIUS, order)
    shifted = q + 1e-30j * np.eye(3)
    columns = point_motion(shifted, 0 * shifted, LENGTH, RADIUS, order)[0].imag / 1e-30
    np.testing.assert_allclose(jacobian, columns.T, atol=1e-12)
    moved = point_motion(q + 1e-30j * rate, 0j * q, LENGTH, RADIUS, order)[1].imag / 1e-30
    np.testing.assert_allclose(jacobian_rate, moved, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_forces_follow_from_kinetic_and_potential_energy(model, seed):
    """Lagrange's equations from M alone by differences; M' - 2 C is skew-symmetric."""
    (q_f, rate), still, moves = random_motion(seed), np.zeros(9), 1e-6 * np.eye(9)
    change = (model.inertia(q_f + 1e-6 * rate) - model.inertia(q_f - 1e-6 * rate)) / 2e-6
    coriolis = model.coriolis(q_f, rate)
    skew = change - 2.0 * coriolis
    np.testing.assert_allclose(skew, -skew.T, atol=1e-8)
    slopes = np.array([model.inertia(q_f + e) - model.inertia(q_f - e) for e in moves]) / 2e-6
    by_q = 0.5 * rate @ slopes @ rate
    np.testing.assert_allclose(coriolis @ rate, change @ rate - by_q, atol=1e-8)
    gradient = [(model.energy(q_f + e, still) - model.energy(q_f - e, still)) / 2e-6 for e in moves]
    np.testing.assert_allclose(model.bias(q_f, still), gradient, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_the_fixed_base_is_the_floating_one_held(model, seed):
    q_f, rate = random_motion(seed)
    q_f[:6] = rate[:6] = 0.0
    pressures = np.array([3e4, 1e4, 0.0])
    acceleration, reaction = model.motion(q_f[6:], rate[6:], pressures)
    inertia, bias = model.inertia(q_f), model.bias(q_f, rate)
    force = model.actuation_force(pressures)
    np.testing.assert_allclose(inertia[6:, 6:] @ acceleration + bias[6:], force, atol=1e-12)  # (5)
    np.testing.assert_allclose(inertia[:6, 6:] @ acceleration + bias[:6], reaction, atol=1e-12)


def test_energy_changes_by_the_work_of_pressures_and_dampers(model):
    pressures = np.array([3e4, 1e4, 0.0])

    def slope(_, state):
        q, rate = state[:3], state[3:6]
        acceleration, _ = model.motion(q, rate, pressures)
        damping = model.internal_force(np.zeros(3), rate)
        power = rate @ (model.actuation_force(pressures) + damping)
        return np.concatenate([rate, acceleration, [power]])

    start = np.array([0.02, 0.01, 0.0, 0.2, -0.1, 0.05, 0.0])
    end = solve_ivp(slope, (0.0, 0.5), start, rtol=1e-10, atol=1e-12).y[:, -1]

    def energy(state):
        held = np.zeros(6)
        return model.energy(np.r_[held, state[:3]], np.r_[held, state[3:6]])

    assert abs(end[6]) > 1e-3
    assert energy(end) - energy(start) == pytest.approx(end[6], abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_base_reaction_is_that_of_rigid_bodies_on_the_same_path(model, seed):
    """Pinocchio carries both point masses on prismatic joints over a base that is held."""
    q_f, rate = random_motion(seed)
    q, rate = q_f[6:], rate[6:]
    acceleration, reaction = model.motion(q, rate, np.array([3e4, 1e4, 0.0]))
    expected = np.zeros(6)
    for mass, order in ((model.mass, CENTRE_OF_GRAVITY), (model.tip_mass, TIP)):

        def path(t, order=order):
            along = q + t * rate + 0.5 * t**2 * acceleration
            return point_motion(along, along, model.rest_length, model.radius, order)[0]

        step = 1e-5
        before, now, after = path(-step), path(0.0), path(step)
        motion = now, (after - before) / (2 * step), (after - 2.0 * now + before) / step**2
        expected += rigid_base_wrench(mass, model.gravity, *motion)
    np.testing.assert_allclose(reaction, expected, atol=2e-6)


def rigid_base_wrench(mass, gravity, position, velocity, acceleration):
    """(6,) wrench on a held base below a point mass on three slides, by pinocchio's RNEA."""
    rigid = pin.Model()
    rigid.gravity.linear = np.array(gravity)
    joint = rigid.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    for slide in (pin.JointModelPX(), pin.JointModelPY(), pin.JointModelPZ()):
        joint = rigid.addJoint(joint, slide, pin.SE3.Identity(), slide.shortname())
    point = pin.Inertia(mass, np.zeros(3), np.zeros((3, 3)))
    rigid.appendBodyToJoint(joint, point, pin.SE3.Identity())
    pose, still = np.array([0.0, 0, 0, 0, 0, 0, 1]), np.zeros(6)  # of the base
    motion = np.r_[pose, position], np.r_[still, velocity], np.r_[still, acceleration]
    return pin.rnea(rigid, rigid.createData(), *motion)[:6]


def test_without_gravity_the_cosserat_rod_bends_into_the_same_arc():
    """Uniform pressure wrenches make uniform strains: here constant curvature is exact."""
    robot = load_robot("licher2025").replace(gravity=0.0)
    rod, model = CosseratRod(robot), ConstantCurvatureModel.of_robot(robot)
    pressures = np.array([4e4, 1e4, 0.0])
    pose = rod.backbone(rod.equilibrium(pressures), 2)[-1]
    stiffness = np.array([model.bending_stiffness] * 2 + [model.elongation_stiffness])
    q = model.actuation_force(pressures) / stiffness
    found = section_pose(q, model.rest_length, model.radius)
    found[2, 3] += rod.base_height
    np.testing.assert_allclose(found, pose, atol=1e-6)
    np.testing.assert_allclose(model.motion(q, np.zeros(3), pressures)[0], 0.0, atol=1e-10)


def test_tip_velocity_and_rates_belong_together(model):
    q, rate = np.array([0.02, -0.01, 0.005]), np.array([0.2, 0.1, -0.05])
    velocity = model.tip_velocity(q, rate)
    moved = (model.tip(q + 1e-6 * rate) - model.tip(q - 1e-6 * rate)) / 2e-6
    np.testing.assert_allclose(velocity, moved, atol=1e-8)
    np.testing.assert_allclose(model.rate_of_tip(q, velocity), rate, atol=1e-12)

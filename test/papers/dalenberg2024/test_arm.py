"""The tendon-driven arm (Dalenberg, (33) to (38)): energy, skew symmetry, virtual work."""

import numpy as np
import pinocchio as pin
import pytest
import yaml
from kit.refusals import one_line
from scipy.integrate import solve_ivp

from softcr_papers.constant_curvature.kinematics import coverage_of
from softcr_papers.dalenberg2024.arm import load_arm
from softcr_papers.dalenberg2024.arm_dynamics import ArmDynamics, TendonGains
from softcr_papers.dalenberg2024.tendons import Tendons

ROBOT = load_arm("dalenberg_robot1")
# leaning: nothing vanishes by symmetry
SHORTER = {"bodies": (0.14, 0.2), "racks": (0.1, 0.3), "actuators": ROBOT.actuators[:6]}
LEANING = ROBOT.model_copy(update=SHORTER | {"base_orientation": (2.6, 0.3, 0.5)})
NO_TENDONS = TendonGains(proportional=0.0, integral=0.0, derivative=0.0)


@pytest.fixture(scope="module")
def arm():
    return ArmDynamics(LEANING, payload=0.3)


def motion(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """q, q' (6,) with bends near 1 rad."""
    scale = np.tile([0.8, 0.8, 0.02], 2)
    q, rate = np.random.default_rng(seed).normal(size=(2, 6))
    return q * scale, 2.0 * rate * scale


# -- Lagrange's equations -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_forces_are_those_of_inertia_and_potential(arm, seed):
    """(36), (37) from M alone by differences; M' - 2 C is skew-symmetric; (38): G and K."""
    (q, rate), still, step = motion(seed), np.zeros(6), 1e-5
    slopes = [(arm.inertia(q + e) - arm.inertia(q - e)) / (2 * step) for e in step * np.eye(6)]
    slopes = np.array(slopes)  # k, i, j
    christoffel = 0.5 * (
        np.einsum("kij->ijk", slopes) + np.einsum("jik->ijk", slopes) - slopes
    )  # the last: [i, j, k] = dM_jk / dq_i
    coriolis = arm.coriolis(q, rate)
    np.testing.assert_allclose(coriolis, christoffel @ rate, atol=1e-8)
    weight = arm.bias(q, still)
    np.testing.assert_allclose(coriolis @ rate + weight, arm.bias(q, rate), atol=1e-12)
    skew = np.einsum("kij,k->ij", slopes, rate) - 2.0 * coriolis
    np.testing.assert_allclose(skew, -skew.T, atol=1e-8)
    moves = 1e-6 * np.eye(6)
    gradient = [(arm.energy(q + e, still) - arm.energy(q - e, still)) / 2e-6 for e in moves]
    np.testing.assert_allclose(weight - arm.force(q, still, np.zeros(6)), gradient, atol=1e-7)


def test_energy_changes_by_the_work_of_tendons_and_dampers(arm):
    tendons = np.array([-8.0, 0.0, -2.0, -5.0, 0.0, -1.0])
    pulls = LEANING.tendons().actuation(LEANING.rest_lengths)

    def slope(_, state):
        q, rate = state[:6], state[6:12]
        power = rate @ (pulls @ tendons - arm.damping * rate)
        return np.r_[rate, arm.acceleration(q, rate, tendons), power]

    q, rate = motion(1)
    start = np.r_[0.3 * q, 0.3 * rate, 0.0]
    end = solve_ivp(slope, (0.0, 0.2), start, "Radau", rtol=1e-9, atol=1e-11).y[:, -1]
    gained = arm.energy(end[:6], end[6:12]) - arm.energy(start[:6], start[6:12])
    assert abs(end[12]) > 0.1
    assert gained == pytest.approx(end[12], abs=1e-6)


def test_quadrature_is_fine_enough(arm):
    exact, (q, rate) = ArmDynamics(LEANING, payload=0.3, quadrature=12), motion(4)
    np.testing.assert_allclose(arm.inertia(q), exact.inertia(q), atol=1e-9)
    np.testing.assert_allclose(arm.bias(q, rate), exact.bias(q, rate), atol=1e-7)
    coarse, inertia = ArmDynamics(LEANING, payload=0.3, quadrature=3), exact.inertia(q)
    np.testing.assert_allclose(coarse.inertia(q), inertia, atol=1e-5 * inertia.max())


# -- pinocchio ------------------------------------------------------------------------------------


def rigid_joints(q: np.ndarray, lengths: np.ndarray, coverage: np.ndarray) -> np.ndarray:
    """(5 k,) joints that carry a point as the arcs do: turn, lean, slide, lean, turn back."""
    joints = []
    for section in np.flatnonzero(coverage):
        x, y, stretch = q[3 * section : 3 * section + 3]
        bend, length = np.hypot(x, y), lengths[section] + stretch
        half = 0.5 * coverage[section] * bend
        chord = coverage[section] * length * np.sin(half) / half
        direction = np.arctan2(y, x)
        joints += [direction, half, chord, half, -direction]
    return np.array(joints)


def rigid_forces(arm, mass, coverage, q, rate, acceleration):
    """(6,) generalised forces for a point mass on its path, by pinocchio's RNEA."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRZ(), pin.SE3(arm.chain.base), "0")
    kinds = (pin.JointModelRY, pin.JointModelPZ, pin.JointModelRY, pin.JointModelRZ)
    for number in range(1, 5 * np.count_nonzero(coverage)):
        kind = (pin.JointModelRZ, *kinds)[number % 5]
        joint = model.addJoint(joint, kind(), pin.SE3.Identity(), str(number))
    point = pin.Inertia(mass, np.zeros(3), np.zeros((3, 3)))
    model.appendBodyToJoint(joint, point, pin.SE3.Identity())

    def joints(along):
        return rigid_joints(along, arm.arm.rest_lengths, coverage)

    step = 1e-4
    times = (-step, 0.0, step)
    before, now, after = (joints(q + t * rate + 0.5 * t**2 * acceleration) for t in times)
    mapping = np.array([joints(q + e) - joints(q - e) for e in 1e-6 * np.eye(6)]) / 2e-6
    velocity = (after - before) / (2 * step)
    acceleration = (after - 2 * now + before) / step**2
    return mapping @ pin.rnea(model, model.createData(), now, velocity, acceleration)


@pytest.mark.parametrize("seed", range(2))
def test_inverse_dynamics_are_those_of_rigid_bodies_on_the_same_path(arm, seed):
    q, rate = motion(seed)
    acceleration = 5.0 * np.random.default_rng(seed + 9).normal(size=6)
    points, weights = np.polynomial.legendre.leggauss(5)
    expected = rigid_forces(arm, 0.3, np.ones(2), q, rate, acceleration)
    masses = LEANING.density * np.pi * LEANING.radius**2 * LEANING.rest_lengths
    for section in range(2):
        for point, weight in zip(points, weights, strict=True):
            coverage = np.clip(0.5 * (point + 1.0) + section - np.arange(2), 0.0, 1.0)
            coverage[section + 1 :] = 0.0
            mass = 0.5 * weight * masses[section]
            expected += rigid_forces(arm, mass, coverage, q, rate, acceleration)
    found = arm.inertia(q) @ acceleration + arm.bias(q, rate)
    np.testing.assert_allclose(found, expected, atol=1e-5)


# -- statics and motion ---------------------------------------------------------------------------


def test_a_hanging_arm_is_stretched_by_what_hangs_below():
    arm = ArmDynamics(ROBOT, payload=0.5)
    state = arm.rest()
    arm.advance(state, np.zeros(9), 5.0, NO_TENDONS, longest_step=5e-3)
    masses = ROBOT.density * np.pi * ROBOT.radius**2 * ROBOT.rest_lengths
    below = np.cumsum(masses[::-1])[::-1] - 0.5 * masses + 0.5
    np.testing.assert_allclose(state.q[2::3], 9.81 * below / arm.stiffness[2::3], rtol=1e-4)
    np.testing.assert_allclose(state.q[0::3], 0.0, atol=1e-12)


def test_many_bodies_are_a_beam():
    """A light, horizontal cantilever sinks by F L^3 / (3 E I)."""
    sideways = {"base_orientation": (0.0, 0.5 * np.pi, 0.0)}
    beam = ROBOT.model_copy(update=sideways | {"bodies": (0.05,) * 12, "density": 1e-3})
    arm, payload = ArmDynamics(beam, payload=0.02), 0.02
    state = arm.rest()
    arm.advance(state, np.zeros(9), 5.0, NO_TENDONS, longest_step=5e-3)
    moment = 0.25 * np.pi * beam.radius**4
    expected = payload * 9.81 * 0.6**3 / (3.0 * beam.youngs_modulus * moment)
    sunk = -arm.chain.position(state.q, beam.rest_lengths)[2]
    assert sunk == pytest.approx(expected, rel=0.01)


def test_steps_converge_to_the_motion():
    """First order: an error that halves with the step, against Radau with the same loops."""
    arm, gains = ArmDynamics(LEANING, payload=0.3), TendonGains()
    reference = np.array([-0.05, 0.0, 0.02, 0.0, -0.03, 0.0])

    def slope(_, state):
        q, rate, integral = state[:6], state[6:12], state[12:]
        error = reference - q @ arm.actuation
        tendons = gains.proportional * error + gains.integral * integral
        tendons -= gains.derivative * rate @ arm.actuation
        return np.r_[rate, arm.acceleration(q, rate, tendons), error]

    start = np.zeros(18)
    exact = solve_ivp(slope, (0.0, 0.2), start, "Radau", rtol=1e-8, atol=1e-10).y[:, -1]
    errors = []
    for step in (2e-3, 1e-3):
        state = arm.rest()
        forces = arm.advance(state, reference, 0.2, gains, step)
        errors.append(np.abs(state.q - exact[:6]).max())
    assert errors[1] < 0.6 * errors[0]
    assert errors[1] < 4e-3 * np.abs(exact[:6]).max()
    expected = gains.proportional * (reference - exact[:6] @ arm.actuation)
    expected += gains.integral * exact[12:] - gains.derivative * exact[6:12] @ arm.actuation
    np.testing.assert_allclose(forces, expected, atol=0.02 * np.abs(expected).max())


def test_loops_in_configuration_space_move_the_models_coordinates():
    """tau = K (q_d - q) on the model: in equilibrium K (q_d - q) is what springs and weight ask."""
    robot = ROBOT.model_copy(update={"bodies": (0.105, 0.255, 0.24)})  # the model itself
    arm, gains = ArmDynamics(robot), TendonGains(space="configuration", integral=0.0)
    wanted = np.array([0.3, 0.1, 0.0, 0.2, -0.1, 0.0, -0.1, 0.2, 0.0])
    state = arm.rest()
    arm.advance(state, wanted @ arm.actuation, 10.0, gains, 5e-3)
    asked = arm.bias(state.q, 0.0 * state.q) + arm.stiffness * state.q
    np.testing.assert_allclose(750.0 * (wanted - state.q), asked, atol=1e-3)
    assert np.abs(state.q - wanted)[[0, 1, 3, 4, 6, 7]].max() < 0.02


def test_unilateral_tendons_do_not_push():
    arm, state = ArmDynamics(LEANING), ArmDynamics(LEANING).rest()
    reference = np.array([0.05, -0.05, 0.0, 0.05, -0.05, 0.0])
    forces = arm.advance(state, reference, 0.1, TendonGains(unilateral=True))
    assert forces.max() == 0.0
    assert forces.min() < -1.0


# -- files ----------------------------------------------------------------------------------------


def test_the_robots_of_the_thesis():
    one, two = ROBOT, load_arm("dalenberg_robot2")
    assert two.bodies == (0.075,) * 6
    np.testing.assert_allclose(two.model_lengths, 0.15)
    assert two.racks == (0.15, 0.30, 0.45)
    assert sum(one.bodies) == pytest.approx(0.6)
    for robot in (one, two):
        assert len(robot.tendons()) == 9
        assert robot.chain.position(np.zeros(3 * len(robot.bodies)), robot.rest_lengths)[2] < 0.0
        assert "reconstruct" in robot.description
    assert (one.tendons("independent").begins[3:] > 0.0).all()


def test_tendons_work_as_they_move():
    """tau^T dq = u^T d(length), the length being that of the tendon in space."""
    arm, (q, rate) = ArmDynamics(LEANING), motion(2)
    q = 0.5 * q
    tendons, lengths = LEANING.tendons(), LEANING.rest_lengths

    def length(q, tendon):
        places = np.linspace(0.0, tendons.ends[tendon], 4001)
        poses = arm.chain.pose(q, lengths, coverage_of(places, lengths))
        offset = np.r_[tendons.offsets[tendon], 0.0, 1.0]
        return np.linalg.norm(np.diff((poses @ offset)[:, :3], axis=0), axis=1).sum()

    step = 1e-4
    for tendon in range(len(tendons)):
        change = (length(q + step * rate, tendon) - length(q - step * rate, tendon)) / (2 * step)
        assert arm.actuation[:, tendon] @ rate == pytest.approx(change, abs=1e-6)


def test_a_payload_is_an_external_force_and_its_inertia(arm):
    empty, (q, rate) = ArmDynamics(LEANING), motion(3)
    _, jacobian, drift = arm.chain.motion(q, rate, LEANING.rest_lengths)
    along = jacobian[:3]
    np.testing.assert_allclose(arm.inertia(q) - empty.inertia(q), 0.3 * along.T @ along, atol=1e-12)
    pull = 0.3 * (drift[:3] - np.array([0.0, 0.0, -9.81]))
    np.testing.assert_allclose(arm.bias(q, rate) - empty.bias(q, rate), along.T @ pull, atol=1e-12)


def test_tendons_of_a_list_are_those_of_rings_and_a_rack_may_have_any():
    around = 2.0 * np.pi * np.arange(3) / 3
    angles = np.add.outer(0.698132 * np.arange(3), around)
    for routing in ("coupled", "independent"):
        rings = Tendons.of_racks(np.array(ROBOT.racks), 0.03, angles, routing)
        mine = ROBOT.tendons(routing)
        np.testing.assert_allclose(mine.offsets, rings.offsets, rtol=1e-15)
        np.testing.assert_array_equal(mine.begins, rings.begins)
        np.testing.assert_array_equal(mine.ends, rings.ends)
    few = ROBOT.model_copy(update={"actuators": ROBOT.actuators[4:6]})
    assert few.actuator_names == ("tendon_5", "tendon_6")
    np.testing.assert_array_equal(few.tendons().ends, [0.36, 0.36])
    np.testing.assert_array_equal(few.tendons("independent").begins, [0.105, 0.105])


def test_mistakes_get_one_line(tmp_path):
    path = tmp_path / "arm.yaml"
    for racks, complaint in (
        ([0.3, 0.7], "racks: 0.7 m is beyond the arm's 0.6"),
        ([0.3, 0.2], r"racks \[0.3, 0.2\] must rise"),
    ):
        path.write_text(yaml.safe_dump(ROBOT.model_dump(mode="json") | {"racks": racks}))
        with one_line(complaint):
            load_arm(path)
    with one_line("payload: -1 kg is not allowed: at least 0"):
        ArmDynamics(ROBOT, payload=-1)

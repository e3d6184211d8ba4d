"""Elastic tendons that motors wind: their tension, energy, stiff limit and the steps' matrices."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from softcr_models import CosseratRod, load_robot
from softcr_models.files.config import config_directory
from softcr_models.files.yaml_files import validated
from softcr_models.robots.parts import SLACK
from softcr_models.robots.robot import Robot
from softcr_models.rod import evaluation, linear_solver, tendon_coupling
from softcr_models.rod.kernel import derivative
from softcr_models.rod.linear_solver import Factors
from softcr_models.rod.packing import load_state, store_state
from softcr_models.rod.state import RodState
from softcr_models.rod.tendon_coupling import Coupling
from softcr_models.rod_model.tendon_lengths import tendon_lengths


def trunk():
    """Segments as of the shipped trunk, of a linear material, and six motors that bend it far."""
    guess = load_robot(config_directory() / "recordings/asl_trunk_guess.yaml")
    wound = {"lever_arm": 0.025, "spool_radius": 0.01, "stiffness": 1000.0, "pretension": 4.0}
    segments = [
        each.model_dump() | {"bending_compliance": compliance}
        for each, compliance in zip(guess.segments, (10.0, 15.0, 20.0), strict=True)
    ]
    ends = ("lower", "upper", "lower", "upper", "middle", "middle")
    degrees = (45.0, 0.0, 135.0, 90.0, 60.0, 150.0)
    actuators = [
        each.model_dump() | wound | {"angle": np.radians(angle), "to": end}
        for each, angle, end in zip(guess.actuators, degrees, ends, strict=True)
    ]
    return guess.replace(segments=segments, actuators=actuators)


TRUNK = trunk()
ANGLES = np.array([0.9, -0.6, 0.3, 1.2, -0.2, 0.5])


def moving(rod, inputs, seed=2):
    still = rod.equilibrium(inputs)
    change = 0.02 * np.random.default_rng(seed).normal(size=rod.state_size)
    change[6 * rod.total_intervals :] *= 0.2
    return still + change


def stretches(rod, state, angles):
    """(tendons,) by how much each is longer than on the straight rod with its motor at 0 [m]."""
    robot = rod.robot
    longer = tendon_lengths(rod, state) - tendon_lengths(rod, rod.rest_state())
    return longer + robot.tendon_springs[:, 0] * np.asarray(angles)[robot.tendon_inputs]


def point_at(rod, state, angles):
    """What the kernels know of a state, in plain numpy."""
    parts = rod.body, rod.grid, rod.fittings, rod.loads, None
    return evaluation.point_of(state, angles, rod.nominal_parameters, *parts)


def tensions(rod, state, angles):
    point = point_at(rod, state, angles)
    evaluation.rates_at(point, rod.grid, rod.state_size)
    return point.extras.tensions


def test_a_tension_is_that_of_a_spring_and_never_below_zero():
    """By the base's actuation wrench of the exact model, whose lengths have an oracle of their
    own."""
    robot = TRUNK.replace(tendon_model="exact")
    rod = CosseratRod(robot, 4)
    for angles in (np.zeros(6), ANGLES, 4.0 * ANGLES):
        state = rod.equilibrium(angles) if angles is not ANGLES else moving(rod, angles)
        found, motor = tensions(rod, state, angles), robot.motors[0]
        linear = motor.pretension + motor.stiffness * stretches(rod, state, angles)
        assert (found > 0.0).all()
        taut = linear > 5.0 * motor.pretension
        off = np.abs(found - np.maximum(linear, 0.0)) / motor.pretension
        assert off.max() < 0.5 * SLACK
        assert off[taut].max(initial=0.0) < 0.003
    assert (found < 0.01 * motor.pretension).any()  # slack
    at_rest = tensions(rod, rod.rest_state(), np.zeros(6))
    assert at_rest == pytest.approx(np.full(12, motor.pretension), rel=1e-12)


def test_matrices_of_steps_are_those_of_the_equations():
    """(alpha A - G) d = A r against complex steps of the residual, without gravity."""
    rod = CosseratRod(TRUNK.replace(gravity=0.0), 3)
    state, alpha = moving(rod, ANGLES), 400.0
    point = point_at(rod, state, ANGLES)
    rows, count = int(rod.grid.first_row[-1]), 12
    coupling = Coupling(np.empty((count, rows, 6)), np.empty(count), np.empty((count, count)),
                        np.empty(count), np.empty((rows, 6)), np.empty((rows, 6)))  # fmt: skip
    extras = point.extras._replace(coupling=coupling)
    e, s, w, section, grid = point.e, point.s, point.w, point.section, rod.grid
    de, ds, d_e, d_s, r_e, r_s = (np.empty((rows, 6)) for _ in range(6))
    derivative(e, s, w, section, grid, extras, de, ds)
    blocks = (np.empty((rows, 6, 6)) for _ in range(5))
    factors = Factors(np.empty((rows, 6)), np.empty((rows, 6, 3)), *blocks)
    right = np.random.default_rng(5).normal(size=rod.state_size)
    load_state(r_e, r_s, np.empty(6), right, grid, rod.fittings)
    linear_solver.linearise(e, s, ds, w, alpha, section, grid, extras, factors)
    tendon_coupling.couple(rod.fittings.springs, s, alpha, section, grid, extras, factors, d_e, d_s)
    linear_solver.solve(r_e, r_s, None, alpha, section, grid, extras, factors, d_e, d_s)
    tendon_coupling.solve_coupled(rod.fittings.springs, r_e, r_s, alpha, section, grid, extras,
                                  factors, d_e, d_s)  # fmt: skip
    solved = np.empty(rod.state_size)
    store_state(solved, d_e, d_s, np.zeros(6), grid)
    rate = np.empty(rod.state_size)
    store_state(rate, de, ds, np.zeros(6), grid)

    def along(direction, rates):
        moved = rod.residual(state + 1e-30j * direction, rate + 1e-30j * rates, ANGLES)
        return moved.imag[:-6] / 1e-30

    # of the state the residual has G, of the rate -A
    left = -along(solved, alpha * solved)
    expected = -along(np.zeros_like(right), right)
    assert np.abs(left - expected).max() < 1e-10 * np.abs(expected).max()


def means(rod, vector):
    """Of each interval: its segment, mean velocity (6,) and mean wrench (6,)."""
    layout, row, node, velocity = RodState(vector, rod.segments), 0, 0, np.zeros(6)
    for a, rows in enumerate(np.diff(rod.grid.first_row)):
        if a > 0:
            velocity = rod.fittings.adjoint[a - 1] @ velocity
        for _ in range(rows - 1):
            beyond, wrenches = layout.velocities[node], layout.wrenches[row : row + 2]
            yield a, 0.5 * (velocity + beyond), wrenches.mean(axis=0)
            velocity, row, node = beyond, row + 1, node + 1
        row += 1


def compliances(rod):
    return rod.body.compliance + rod.body.bending_share * rod.nominal_parameters[0]


def energy(rod, state, angles):
    """Of motion, strains and springs [J]; without gravity."""
    grid, total = rod.grid, 0.0
    for a, velocity, stress in means(rod, state):
        rotary = grid.bending_inertia[a], grid.bending_inertia[a], grid.torsion_inertia[a]
        twice = rod.body.line_density[a] * np.array([1.0, 1.0, 1.0, *rotary]) @ velocity**2
        twice += compliances(rod)[a] @ stress**2
        total += 0.5 * grid.interval_length[a] * twice
    ends = RodState(state, rod.segments).velocities[np.cumsum(np.diff(grid.first_row) - 1) - 1]
    total += 0.5 * np.einsum("ai,aij,aj", ends, rod.fittings.mass, ends)
    motor = rod.robot.motors[0]
    width = SLACK * motor.pretension
    x = motor.pretension * (1.0 - 0.25 * SLACK**2) + motor.stiffness * stretches(rod, state, angles)
    root = np.sqrt(x * x + width * width)
    stored = 0.25 * (x * (x + root) + width * width * np.arcsinh(x / width)) / motor.stiffness
    return total + stored.sum()


def dissipation(rod, rate):
    """What the strains lose [W]: the material's delay times the squared rate of the strain."""
    viscous = compliances(rod) * rod.body.relaxation * rod.grid.interval_length[:, None]
    return sum(viscous[a] @ stress**2 for a, _, stress in means(rod, rate))


def test_frozen_motors_put_no_energy_into_the_rod():
    """The energy of motion, strains and springs changes by what the material loses, and by no more;
    some tendons are slack."""
    rod = CosseratRod(TRUNK.replace(gravity=0.0), 4)
    for angles in (0.0 * ANGLES, ANGLES, 4.0 * ANGLES):
        state = moving(rod, angles)
        rate = rod.derivative(state, angles)
        size = 1e-7
        ahead, behind = (energy(rod, state + sign * size * rate, angles) for sign in (1.0, -1.0))
        lost = dissipation(rod, rate)
        assert lost > 0.0
        assert (behind - ahead) / (2.0 * size) == pytest.approx(lost, rel=1e-5)


def test_steps_lose_energy_in_large_bends():
    """Let go from a large bend, at steps of 10 ms, hardly damped."""
    segments = [each.model_dump() | {"relaxation_times": [1e-4] * 6} for each in TRUNK.segments]
    robot = TRUNK.replace(gravity=0.0, segments=segments)
    rod, still = CosseratRod(robot, 4), np.zeros(6)
    bent = rod.equilibrium(2.0 * ANGLES)
    states = rod.simulate(bent, np.tile(still, (200, 1)), 0.01)
    found = np.array([energy(rod, state, still) for state in (bent, *states)])
    least = energy(rod, rod.equilibrium(still), still)
    assert np.diff(found).max() < 1e-4 * (found[0] - least)
    assert found[0] - found[-1] > 0.1 * (found[0] - least)


def three_motors(stiffness, model):
    """A soft cylinder with three single tendons, which fix its length and its bending."""
    robot = load_robot("tendon_arm")
    motors = [
        {"type": "motor", "name": f"m{k}", "angle": 2.0 * k, "lever_arm": 0.004,
         "spool_radius": 0.005, "stiffness": stiffness, "pretension": 1.0}
        for k in range(3)
    ]  # fmt: skip
    content = robot.model_dump() | {
        "actuators": motors, "tendon_model": model, "sensors": robot.sensors[1:],
        "angle_limits": {"minimum": -1.0, "maximum": 1.0, "maximum_rate": 5.0},
    }  # fmt: skip
    del content["tension_limits"]
    return CosseratRod(validated(Robot, content, "the test's"), 6)


@pytest.mark.parametrize(("model", "moving_stiffness"), [("constant", 1e6), ("exact", 1e5)])
def test_stiff_tendons_have_the_wound_length(model, moving_stiffness):
    """Where the rod rests, and in steps of 10 ms while motors turn, but for what they are elastic;
    the directions of the exact model are not in the steps' matrices, which limits its stiffness."""
    wound = np.array([0.4, 0.1, 0.2])
    reach = 0.005 * wound.max()
    rod = three_motors(3e7, model)
    assert np.abs(stretches(rod, rod.equilibrium(wound), wound)).max() < 1e-4 * reach
    rod = three_motors(moving_stiffness, model)
    angles = np.outer(np.minimum(np.arange(61) / 20, 1.0), wound)
    states = rod.simulate_ramps(rod.equilibrium(0.0 * wound), angles, 0.01, substeps=2)
    off = [stretches(rod, state, each) for state, each in zip(states, angles[1:], strict=True)]
    steady = stretches(rod, rod.equilibrium(wound), wound)
    assert np.abs(off).max() < 3.0 * np.abs(steady).max()
    assert np.abs(off[-1] - steady).max() < 1e-4 * reach


def test_steps_are_those_of_radau():
    """Of the trunk whose motors turn as fast as they may, one of them until tendons are slack."""
    rod = CosseratRod(TRUNK, 3)
    start, speeds = rod.equilibrium(np.zeros(6)), 5.0 * ANGLES
    count, period = 30, 0.01
    levels = np.outer(period * np.arange(count + 1), speeds)
    found = solve_ivp(
        lambda t, x: rod.derivative(x, t * speeds), (0.0, count * period), start, "Radau",
        rtol=1e-7, atol=1e-7, jac=lambda t, x: rod.linearize(x, t * speeds)[0],
    )  # fmt: skip
    states = rod.simulate_ramps(start, levels, period, substeps=2)
    tip, true = rod.tip_pose(states[-1])[:3, 3], rod.tip_pose(found.y[:, -1])[:3, 3]
    assert np.linalg.norm(true - rod.tip_pose(start)[:3, 3]) > 0.05
    assert np.linalg.norm(tip - true) < 1e-4

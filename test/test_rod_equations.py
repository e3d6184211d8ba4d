"""The rod's equations against computations that share nothing with them."""

import numpy as np
import pytest
from oracles import statics
from test_segments_dynamics import single

from softcr_models import CosseratRod, load_robot
from softcr_models.rod.cosserat_rod import EquilibriumError
from softcr_models.rod.state import RodState

ROBOT = load_robot("licher2025")
# an independent dense prototype, n = 5, upright: rod's tip [mm] after 6 s at pressures [kPa]
ORACLES = [
    ([0, 0, 0], [0, 0, 124.1]),
    ([20, 0, 0], [-50.3, 0, 113.9]),
    ([40, 0, 0], [-86.1, 0, 82.5]),
    ([60, 0, 0], [-100.7, 0, 44.5]),
    ([60, 30, 0], [-88.7, -51.2, 61.6]),
    ([60, 60, 60], [0, 0, 155.4]),
]


def rod_tip_mm(rod, state):
    poses = rod.backbone(state, 2)
    return 1e3 * (poses[-1] - poses[0])[:3, 3]


@pytest.mark.parametrize(("pressures", "tip"), ORACLES)
def test_published_steady_tips(pressures, tip):
    rod = CosseratRod(ROBOT, 5)
    pressures = 1e3 * np.array(pressures, float)
    settled = rod.simulate(rod.rest_state(), np.tile(pressures, (420, 1)), 1 / 70)[-1]
    assert np.linalg.norm(rod_tip_mm(rod, settled) - tip) < 1.0
    steady = rod.equilibrium(pressures)
    assert np.linalg.norm(rod_tip_mm(rod, steady) - tip) < 1.0
    assert np.abs(rod.derivative(steady, pressures)).max() < 1e-6


def test_published_linearisation_at_rest():
    rod = CosseratRod(ROBOT, 5)
    eigenvalues = np.linalg.eigvals(rod.linearize(rod.rest_state(), np.zeros(3))[0])
    assert eigenvalues.real.min() == pytest.approx(-3.0e5, rel=0.01)
    slowest = eigenvalues[np.argmax(eigenvalues.real)]
    assert slowest.real == pytest.approx(-0.97, abs=0.01)
    assert abs(slowest.imag) == pytest.approx(16.2, abs=0.05)


def test_base_force_at_rest_is_the_weight():
    rod = CosseratRod(ROBOT, 7)
    steady = rod.equilibrium(np.zeros(3))
    mass = ROBOT.density * ROBOT.cross_section_area * ROBOT.length + ROBOT.tip_mass
    wrench = rod.base_wrench(steady, np.zeros(3))
    assert wrench == pytest.approx([0, 0, -9.81 * mass, 0, 0, 0], abs=1e-9)


@pytest.mark.parametrize("pressures", [[2e4, 0, 0], [6e4, 3e4, 0], [5e4, 5e4, 4e4]])
def test_statics_converge_to_the_boundary_value_problem(pressures):
    pressures = np.array(pressures, float)
    rod = CosseratRod(ROBOT, 40)
    steady = rod.equilibrium(pressures)
    rest = statics.collocation(single(ROBOT, pressures))
    tip, base = rest.tip, rest.base
    found = 1e-3 * rod_tip_mm(rod, steady)
    assert np.linalg.norm(found - tip) < 0.005 * np.linalg.norm(tip)
    wrench = rod.base_wrench(steady, pressures)
    wrench[3:] -= np.cross([0, 0, rod.base_height], wrench[:3])  # back to the rod's base
    assert np.linalg.norm(wrench[:3] - base[:3]) < 0.005 * np.linalg.norm(base[:3])
    assert np.linalg.norm(wrench[3:] - base[3:]) < 0.005 * np.linalg.norm(base[3:])


def test_spatial_refinement_is_of_second_order():
    """Motion at 1 Hz: three-phase pressures, 2 s; n against twice as many."""
    times = np.arange(140) / 70
    phases = 2 * np.pi * (times[:, None] + np.arange(3) / 3)
    pressures = 3e4 + 2.5e4 * np.sin(phases)
    tips = {}
    for n in (5, 10, 20, 40):
        rod = CosseratRod(ROBOT, n)
        states = rod.simulate(rod.rest_state(), pressures, 1 / 70)
        tips[n] = np.array([rod_tip_mm(rod, state) for state in states])
    differences = [np.linalg.norm(tips[n] - tips[2 * n], axis=1).mean() for n in (5, 10, 20)]
    ratios = np.array(differences[:-1]) / differences[1:]
    assert ratios == pytest.approx([4.0, 4.0], rel=0.2)
    # the dense prototype: n = 5 against 20 about 7 mm, n = 10 against 20 about 1.5 mm
    coarse = np.linalg.norm(tips[5] - tips[20], axis=1).mean()
    assert 5.0 < coarse < 10.0


def energy(rod, state):
    """[J] kinetic, elastic and of weight, as the scheme has them: by mean velocities and forces."""
    parts, robot = RodState(state), rod.robot
    e = np.concatenate((np.zeros((1, 6)), parts.velocities))
    mean_e, mean_s = (0.5 * (each[:-1] + each[1:]) for each in (e, parts.wrenches))
    density = rod.body.line_density[0] + robot.tip_mass * rod.body.tip_share[:-1]
    inertia = rod.grid.bending_inertia[0]
    mass = density[:, None] * [1, 1, 1, inertia, inertia, 2 * inertia]
    height = rod.node_poses(state)[:, 2, 3]
    potential = np.sum(density * robot.gravity * 0.5 * (height[:-1] + height[1:]))
    quadratic = np.sum(mass * mean_e**2) + np.sum(robot.compliances * mean_s**2)
    return rod.grid.interval_length[0] * (0.5 * quadratic + potential)


def test_simulated_energy_never_grows_without_input():
    rod = CosseratRod(ROBOT.replace(gravity=0.0), 5, max_substep=1e-3)
    start = rod.equilibrium(np.array([4e4, 1e4, 0.0]))
    states = rod.simulate(start, np.zeros((100, 3)), 1 / 140)
    energies = np.array([energy(rod, state) for state in (start, *states)])
    assert (np.diff(energies) < 1e-9 * energies[0]).all()
    assert energies[-1] < 0.9 * energies[0]


def test_gravity_potential_is_kept_too():
    """Upright and falling to the side without damping: total energy stays."""
    robot = ROBOT.replace(relaxation_times=(1e-6,) * 6)
    rod = CosseratRod(robot, 10, max_substep=5e-5)  # L-stable: long steps eat fast waves
    start = rod.equilibrium(np.array([1e4, 0.0, 0.0]))
    steady = energy(rod, rod.equilibrium(np.zeros(3)))
    states = rod.simulate(start, np.zeros((200, 3)), 1e-3)
    energies = np.array([energy(rod, state) for state in (start, *states)])
    above = energies[0] - steady
    assert above > 0
    # the quadrature of gravity's power and of the potential agree to second order in h
    assert np.abs(energies - energies[0]).max() < 0.02 * above


def test_straight_pose_is_smooth():
    """No 0/0 at zero curvature: derivatives on both sides of straight agree."""
    rod = CosseratRod(ROBOT, 5)
    straight = rod.derivative(rod.rest_state(), np.zeros(3))
    assert np.isfinite(straight).all()
    slopes = []
    for small in (1e-4, 1e-7):
        state = rod.rest_state()
        RodState(state).wrenches[:, 3] = small
        slopes.append((rod.derivative(state, np.zeros(3)) - straight) / small)
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-3, abs=1e-1)


def test_poses_are_rigid_and_end_in_the_tip_pose():
    rod = CosseratRod(ROBOT, 5)
    state = rod.equilibrium(np.array([7e4, 1e4, 3e4]))
    backbone = rod.backbone(state, 33)
    rotations = backbone[:, :3, :3]
    identities, base = np.broadcast_to(np.eye(3), (33, 3, 3)), np.eye(4)
    assert rotations @ rotations.transpose(0, 2, 1) == pytest.approx(identities, abs=1e-9)
    base[2, 3] = 0.024
    assert backbone[0] == pytest.approx(base)
    tip = rod.tip_pose(state)
    assert tip[:3, 3] == pytest.approx(backbone[-1, :3, 3] + 0.01 * backbone[-1, :3, 2])
    assert rod.node_poses(state)[-1] == pytest.approx(backbone[-1], abs=1e-12)
    # constant curvature: a known wrench gives a circle arc
    arc = rod.rest_state()
    curvature = 8.0
    RodState(arc).wrenches[:, 4] = curvature / ROBOT.bending_compliance
    end = rod.backbone(arc, 2)[-1, :3, 3]
    angle = curvature * ROBOT.length
    expected = [(1 - np.cos(angle)) / curvature, 0, np.sin(angle) / curvature + 0.024]
    assert end == pytest.approx(expected, abs=1e-9)


def test_a_weightless_robot_has_a_steady_state_and_one_without_load_says_so():
    rod = CosseratRod(ROBOT.replace(gravity=0.0), 3)
    assert np.abs(rod.equilibrium(np.zeros(3))).max() < 1e-12
    rod.row_actuation[:] = 0.0
    with pytest.raises(EquilibriumError, match="a steady state has no scale"):
        rod.equilibrium(np.zeros(3))

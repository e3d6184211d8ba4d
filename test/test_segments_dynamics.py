"""The dense reference of arms of several segments: power, statics, and today's rod."""

import numpy as np
import pytest
from oracles import cases
from oracles.arms import Arm, Segment
from oracles.dynamics import Equations, Grid, State, rest, tip_pose
from oracles.random_arms import random_arm, random_state
from scipy.spatial.transform import Rotation

from softcr_models import CosseratRod, load_robot
from softcr_models.rod.state import RodState


@pytest.mark.parametrize("counts", [(3,), (2, 3), (3, 2, 2)])
@pytest.mark.parametrize("exact", [True, False])
def test_power_is_balanced_to_rounding(counts, exact):
    """Energy gained + damping = power of all loads: boundaries, bodies, tendons, drag, tip."""
    for seed in range(3):
        arm, grid = random_arm(seed, len(counts), exact), Grid(counts)
        equations = Equations(arm, grid, random_state(seed, grid, len(counts)))
        gained, taken, brought = equations.powers(equations.rates())
        assert taken > 0.0
        assert gained + taken == pytest.approx(brought, abs=1e-13 * (abs(gained) + taken))


@pytest.mark.parametrize(("name", "counts"), [(n, c) for n in cases.COLLOCATION_ERRORS
                                              for c in cases.COLLOCATION_ERRORS[n]])  # fmt: skip
def test_rest_is_off_the_continuum_by_the_known_collocation_error(name, counts):
    grid, want = Grid(counts), cases.SOLUTIONS[name]
    state = rest(cases.ARMS[name], grid)
    pose = tip_pose(cases.ARMS[name], grid, state.wrenches)
    error = 1e3 * np.linalg.norm(pose[:3, 3] - want.tip)
    assert error == pytest.approx(cases.COLLOCATION_ERRORS[name][counts], rel=0.03)
    wanted = Rotation.from_quat(np.roll(want.quaternion, -1))
    assert (wanted.inv() * Rotation.from_matrix(pose[:3, :3])).magnitude() < 0.01
    equations = Equations(cases.ARMS[name], grid, state)
    rates = equations.rates()
    assert np.abs(rates.vector()).max() < 1e-6
    base = equations.base_wrench(rates)
    assert np.abs(base[:3] - want.force).max() < 3.2e-3 * (5 / min(counts)) ** 2
    assert np.abs(base[3:] - want.moment).max() < 6.4e-4 * (5 / min(counts)) ** 2


@pytest.mark.parametrize("tension", [0.5, 2.0])
def test_an_arc_needs_no_refinement(tension):
    arm, grid = cases.soft_rod(tension), Grid((2,))
    tip = tip_pose(arm, grid, rest(arm, grid).wrenches)[:3, 3]
    assert tip == pytest.approx(cases.SOLUTIONS[f"soft rod {tension:g} N"].tip, abs=6e-10)


def single(robot, pressures):
    """A robot of today; the last of its length, where the tip mass is spread, is a segment."""
    area = robot.cross_section_area
    ratio = robot.second_moment_of_area / area
    tip = robot.length * robot.tip_mass_fraction
    density = robot.density * area
    segments = tuple(
        Segment(length, robot.compliances, np.array(robot.relaxation_times), line_density,
                ratio * np.array([1, 1, 2]), robot.actuation_matrix @ pressures)
        for length, line_density in (
            (robot.length - tip, density), (tip, density + robot.tip_mass / tip)
        )
    )  # fmt: skip
    return Arm(segments, up=cases.gravity(*robot.base_orientation))


@pytest.mark.parametrize("seed", range(4))
def test_todays_rod_is_the_dense_one(seed):
    """Also that a boundary without anything on it changes nothing."""
    robot = load_robot("licher2025").replace(
        base_orientation=(0.4, -0.7, 0.3),
        relaxation_times=(0.004, 0.005, 0.006, 0.005, 0.004, 0.007),
    )
    rod, pressures = CosseratRod(robot, 5), np.array([3e4, 1e4, 5e4])
    random = np.random.default_rng(seed)
    velocities = random.normal(size=(5, 6)) * [1, 1, 1, 10, 10, 10]
    wrenches = random.normal(size=(6, 6)) * [2, 2, 10, 0.2, 0.2, 0.05]
    base = random.normal(size=6)
    state = RodState.join(velocities, wrenches, base).array
    expected = RodState(rod.derivative(state, pressures))
    twice = np.insert(wrenches, 5, wrenches[4], axis=0)
    grid = Grid((4, 1), robot.gravity_subintervals, robot.gravity_strain_point)
    found = Equations(single(robot, pressures), grid, State(velocities, twice, base)).rates()
    assert found.wrenches[4] == pytest.approx(found.wrenches[5], rel=1e-9, abs=1e-7)
    for ours, theirs in (
        (found.velocities, expected.velocities),
        (np.delete(found.wrenches, 5, axis=0), expected.wrenches),
        (found.base, expected.base_wrench),
    ):
        scale = np.abs(theirs).max(axis=0)
        assert (np.abs(ours - theirs) / scale).max() < 1e-10

"""Strains in space: the planar models in a plane, Lagrange's equations, and the exact rod."""

import numpy as np
import pytest
from strain_space import SpatialDynamics

from softcr_models import CosseratRod, load_robot
from softcr_papers.valadas2024.strain.arm import load_strain_arm
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics
from softcr_papers.valadas2024.strain.kinematics import transforms

PLANAR = StrainDynamics(load_strain_arm("pcs_two_segments").numbers)
LENGTHS = PLANAR.numbers.lengths
IN_PLANE = np.array([4, 0, 2])  # bending about y, shear along x, axial
PLACES = np.concatenate([6 * i + IN_PLANE for i in range(2)])
SIGNS = np.tile([-1.0, 1.0, 1.0], 2)  # of the plane's angle


def spatial_twin():
    """The planar robot of two segments in space, its other strains stiff as those in the plane."""
    numbers = PLANAR.numbers
    stiffness, damping = (
        each.reshape(2, 3)[:, [1, 1, 2, 0, 0, 0]] / LENGTHS[:, None]
        for each in (numbers.stiffness, numbers.damping)
    )
    gravity = 9.81 * np.array([numbers.down[0], 0.0, numbers.down[1]])
    return SpatialDynamics(LENGTHS, numbers.mass, numbers.inertia, stiffness, damping, gravity)


SPACE = spatial_twin()


def in_space(planar):
    out = np.zeros((*planar.shape[:-1], 12))
    out[..., PLACES] = planar * SIGNS
    return out


def test_in_a_plane_it_is_the_planar_model():
    random = np.random.default_rng(0)
    q, rate = random.normal(size=(2, 4, 6)) * np.tile([30.0, 0.2, 0.2], 2)
    places = np.linspace(0.0, LENGTHS.sum(), 9)
    wide, moving = in_space(q), in_space(rate)
    poses = transforms(PLANAR.kinematics.poses(q, places))
    np.testing.assert_allclose(SPACE.poses(wide, places)[..., :3, :], poses, atol=1e-12)
    inertias, coriolis, gravity = SPACE.matrices(wide, moving)
    chosen, inertia = np.ix_(range(4), PLACES, PLACES), PLANAR.inertia(q)
    found = inertias[chosen] * np.outer(SIGNS, SIGNS)
    np.testing.assert_allclose(found, inertia, atol=1e-10 * np.abs(inertia).max())
    force = (PLANAR.coriolis(q, rate) @ rate[..., None])[..., 0] + PLANAR.gravity_force(q)
    found = (coriolis @ moving[..., None])[..., 0] + gravity
    np.testing.assert_allclose(found[:, PLACES] * SIGNS, force, atol=1e-9 * np.abs(force).max())


def rod_and_chain(segments, pressures, **changes):
    """A Cosserat rod, and a chain of constant strains with its numbers and the chambers' force."""
    robot = load_robot("licher2025").replace(**changes)
    rod = CosseratRod(robot, 20)
    lengths = np.full(segments, robot.length / segments)
    ends = np.cumsum(lengths) / robot.length
    share = robot.tip_mass / (robot.tip_mass_fraction * robot.length)
    at_the_tip = ends > 1.0 - robot.tip_mass_fraction + 1e-9
    mass = robot.density * robot.segment_areas[0] + share * at_the_tip
    section = robot.segment_second_moments[0] / robot.segment_areas[0]
    stiffness = np.tile(1.0 / robot.segment_compliances[0], (segments, 1))
    damping = stiffness * robot.segment_relaxation_times[0]
    # short segments need no more points
    about = lengths, mass, section * mass, stiffness, damping, -rod.grid.gravity, 4
    force = np.outer(lengths, rod.row_actuation[0] @ pressures).ravel()
    return rod, SpatialDynamics(*about), force


PRESSURES = np.array([40e3, 15e3, 5e3])


def test_shapes_at_rest_under_weight_become_those_of_the_exact_rod():
    """A rod that stands out sideways, with three different pressures: a shape in space."""
    errors = []
    for segments in (5, 10):
        rod, chain, force = rod_and_chain(segments, PRESSURES, base_orientation=(1.2, 0.3, 0.0))
        true = rod.backbone(rod.equilibrium(PRESSURES), 11)[:, :3, 3]
        true = true - [0.0, 0.0, rod.base_height]
        found = chain.poses(chain.equilibrium(force), np.linspace(0.0, rod.robot.length, 11))
        errors.append(np.linalg.norm(found[:, :3, 3] - true, axis=1).max())
    assert np.ptp(true[:, 0]) > 0.01
    assert np.ptp(true[:, 1]) > 0.01
    assert errors[0] < 5e-4
    assert errors[1] < 0.35 * errors[0]  # of second order


@pytest.mark.slow
def test_a_free_vibration_is_that_of_the_exact_rod():
    """Let go under three pressures: the tip of five segments stays near the rod's for 0.3 s."""
    rod, chain, force = rod_and_chain(5, PRESSURES)
    times = np.linspace(0.0, 0.3, 61)
    start = np.r_[chain.equilibrium(force), np.zeros(chain.size)]
    strains = chain.simulate(start, 0.0 * force, times)[:, : chain.size]
    found = chain.poses(strains, np.array([rod.robot.length]))[:, 0, :3, 3]
    held = np.zeros((1200, 3))
    states = rod.simulate(rod.equilibrium(PRESSURES), held, 2.5e-4)[19::20]
    true = np.array([rod.backbone(state, 2)[-1, :3, 3] for state in states])
    true = true - [0.0, 0.0, rod.base_height]
    apart = np.linalg.norm(found[1:] - true, axis=1)
    swing = np.ptp(true, axis=0).max()
    assert swing > 0.05
    assert apart.mean() < 0.02 * swing

"""The studies of Valadas et al.: their cells, at their smallest."""

import numpy as np
import pytest

from softcr_papers.valadas2024.strain.kinematics import strains_between
from softcr_papers.valadas2024.studies import exact_rod, fusion, regression, rod_motion
from softcr_papers.valadas2024.studies.robots import CASES, sine_torques
from softcr_studies.frame.study import Cell


def test_torques_of_the_test_are_the_published_ones():
    """At t = 1 s by hand; case 2 has other amplitudes of bending than case 1."""
    one, two = sine_torques(3), sine_torques(6)
    assert one.shape == (700, 3)
    assert two.shape == (700, 6)
    np.testing.assert_allclose(one[100, 0], 0.03 * (np.sin(3.0) + np.cos(1.0)))
    np.testing.assert_allclose(two[100, 0], 0.02 * (np.sin(3.0) + np.cos(1.0)))
    np.testing.assert_allclose(one[100, 2], 2.0 * np.sin(2.0) - np.cos(1.0))
    np.testing.assert_allclose(two[100, 5], -np.sin(3.0) - np.cos(2.0))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_starts_bend_as_published(case):
    turns = np.rad2deg(case.starts[:, 0::3] * case.arm.lengths)
    assert case.starts.shape == (8, len(case.amplitudes))
    assert 119.0 < np.abs(turns).min() <= np.abs(turns).max() < 341.0
    assert not case.starts[:, list(case.stiff)].any()


def test_three_segments_have_the_shapes_of_an_affine_curvature():
    cell = Cell(fusion.Affine(shapes=60), fusion.EXACT, 0, fusion.Settings())
    found = fusion.run(cell)
    assert found["segments"] == 3
    assert found["position, refined ends"] < 0.25
    assert found["position, all markers"] < 0.25
    assert found["position, segment ends"] < 0.746
    assert found["angle, refined ends"] < 0.5 * found["angle, segment ends"]  # of all poses alike


def test_the_first_row_is_far_better_than_published():
    found = regression.run(Cell(regression.ROWS[0], regression.WEAK, 0, regression.Settings()))
    assert found["tip"] < 0.5
    assert found["angle"] < 0.015
    assert found["strains dropped as in the paper"] == 100.0


def test_a_straight_rod_without_weight_has_the_strains_of_its_torques():
    true = rod_motion.true_rod()
    rod = rod_motion.PlanarRod(true.robot.replace(gravity=0.0, tip_mass=1e-6), 5)
    levels = np.array([[30e3, 10e3]])
    lengths = np.array([true.robot.length])
    poses = rod.poses(rod.rod.equilibrium(levels[0, [0, 1, 1]])[None])[0]
    bending, shear, axial = strains_between(poses[[0, -1]], np.r_[0.0, lengths])
    numbers = rod_motion.numbers_of(true.robot)
    stiffness = [numbers[f"stiffness_{kind}"] for kind in ("bending", "shear", "axial")]
    torques = rod.torques(levels, lengths)[0] / lengths[0]
    np.testing.assert_allclose([bending, shear, axial], torques / stiffness, atol=1e-6)
    assert abs(bending) > 4.0


def test_a_rod_has_the_numbers_that_it_was_given():
    robot = rod_motion.true_rod().robot
    numbers = {name: 1.1 * value for name, value in rod_motion.numbers_of(robot).items()}
    found = rod_motion.numbers_of(rod_motion.with_numbers(robot, numbers))
    assert found == pytest.approx(numbers)


@pytest.mark.slow
def test_three_segments_predict_an_exact_rod():
    cell = Cell(exact_rod.CASE, exact_rod.THREE, 0, exact_rod.Settings())
    found = exact_rod.run(cell)
    assert found["segments"] == 3
    assert found["strains kept"] == 100.0
    assert found["tip"] < 1.0

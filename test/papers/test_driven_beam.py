"""An exact rod under the inputs of a paper's robot: against closed forms, and its loop."""

import numpy as np
import pytest

from softcr_papers.dalenberg2024.arm import load_arm
from softcr_papers.dalenberg2024.studies.other_plants import rod_sections
from softcr_papers.driven_beam import DrivenBeam, Hysteresis, Sections
from softcr_papers.valadas2024.strain.kinematics import StrainKinematics, planar_poses
from softcr_papers.valadas2024.studies.other_plants import sections
from softcr_papers.valadas2024.studies.robots import CASES

STIFFNESS = np.array([[20.0, 20.0, 30.0, 0.02, 0.02, 0.02]])


def rod(damping=1.0, gravity=(0.0, 0.0, 0.0), mass=0.0, hysteresis=None):
    """One part, 0.2 m and 1 kg/m, with a stretching force and a bending moment."""
    actuation = np.zeros((1, 6, 2))
    actuation[0, 2, 0] = actuation[0, 4, 1] = 1.0
    inertia = np.array([[1.0, 1.0, 1.0, 1e-4, 1e-4, 2e-4]])
    parts = Sections(np.array([0.2]), STIFFNESS, damping * STIFFNESS, inertia, actuation)
    return DrivenBeam(parts, gravity, mass, 0.02, hysteresis)


def test_a_hanging_rod_is_stretched_by_its_weight_and_payload():
    beam = rod(damping=0.2, gravity=(0.0, 0.0, 9.81), mass=0.05)
    beam.advance(np.zeros(2), 3.0, 300)
    stretch = 9.81 * 0.2 * (0.5 * 0.2 + 0.05) / 30.0
    assert beam.poses[-1, 2, 3] - 0.2 == pytest.approx(stretch, rel=1e-4)


def test_without_weight_it_has_the_strains_of_a_chain_of_constant_ones():
    numbers = CASES[1].arm.numbers
    strains = np.array([20.0, 0.05, 0.1, -8.0, -0.03, 0.05])
    beam = DrivenBeam(sections(numbers, numbers.lengths), np.zeros(3), 0.0, 0.01)
    beam.advance(numbers.stiffness * strains, 4.0, 4000)
    np.testing.assert_allclose(beam.conjugates(), strains, atol=2e-3 * np.abs(strains).max())
    chain = StrainKinematics(numbers.lengths)
    ends = planar_poses(beam.poses)[beam.first[1:]]
    np.testing.assert_allclose(ends, chain.poses(strains, np.cumsum(chain.lengths)), atol=2e-3)


def test_tendons_of_an_arc_are_as_long_as_in_closed_form():
    arm = load_arm("dalenberg_robot2")
    beam = DrivenBeam(rod_sections(arm, arm.model_lengths), np.zeros(3), 0.0, 0.01)
    q = np.array([0.3, -0.2, 0.004, 0.1, 0.4, -0.002, -0.3, 0.2, 0.003])
    fractions = np.linspace(0.0, 1.0, len(beam.poses)) * 3
    covered = np.clip(fractions[:, None] - np.arange(3), 0.0, 1.0)
    chain = arm.model
    beam.poses[:] = (np.linalg.inv(arm.base) @ chain.pose(q, arm.model_lengths, covered))[:, :3]
    expected = arm.tendons("coupled").actuation(arm.model_lengths).T @ q
    np.testing.assert_allclose(beam.conjugates(), expected, atol=2e-5)


@pytest.mark.parametrize("gain", [1.0, 1e4])
def test_a_loop_ends_where_springs_balance(gain):
    """Of any stiffness: the strain's work is 0.2 m of it."""
    beam, springs = rod(), np.diag([gain, gain])
    force = springs @ [0.01, 0.2]
    for _ in range(2000):
        beam.follow(force, springs, 0.1 * springs, 0.004)
    stiffness = np.array([30.0, 0.02]) / 0.2
    expected = force / (stiffness + gain)
    np.testing.assert_allclose(beam.conjugates(), expected, rtol=1e-3)
    np.testing.assert_allclose(beam.inputs, stiffness * expected, rtol=1e-3)


def test_hysteresis_has_a_loop_that_its_widest_play_bounds():
    hysteresis = Hysteresis(0.2, [1.0])
    up = [hysteresis.acting(np.array([x]))[0] for x in np.linspace(0.0, 5.0, 51)]
    down = [hysteresis.acting(np.array([x]))[0] for x in np.linspace(5.0, 0.0, 51)][::-1]
    # plays of radii 0.1, 0.2, ... 1.0 trail by their radius: 0.2 times the mean of these
    assert up[-1] == pytest.approx(5.0 - 0.2 * 0.55)
    assert down[0] == pytest.approx(0.2 * 0.55)
    assert np.subtract(down, up).max() == pytest.approx(0.4 * 0.55)
    still = Hysteresis(0.0, [1.0])
    assert still.acting(np.array([3.0])) == pytest.approx([3.0])


def test_what_acts_in_a_loop_trails_behind_its_inputs():
    beam = rod(hysteresis=Hysteresis(0.5, [10.0, 10.0]))
    for _ in range(20):
        beam.follow(np.array([1.0, 0.0]), np.zeros((2, 2)), np.zeros((2, 2)), 0.004)
    assert beam.inputs[0] == pytest.approx(1.0)
    assert beam.acting[0] == pytest.approx(0.5)  # all plays are wider

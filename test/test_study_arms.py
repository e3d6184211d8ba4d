"""The study of an arm of two segments: short runs of its cases, and what is computed from one."""

from dataclasses import replace

import numpy as np
import pytest

from softcr_models import CosseratRod, load_robot
from softcr_models.rod_model.rows import interval_counts
from softcr_studies.control import arms
from softcr_studies.frame.cell import Cell


def figures(result):
    found = {each.quantity: each.of(result) for each in arms.STUDY.metrics if not each.timing}
    return {name: value for name, value in found.items() if value is not None}


def ran(case, duration):
    cell = Cell(replace(case, duration=duration), arms.GRADIENT_MPC, 0, arms.STUDY.settings())
    return arms.run(cell)


def test_a_pose_is_judged_by_place_and_axis():
    result = ran(arms.POSES, 2.5)
    found = figures(result)
    assert set(found) >= {arms.TIP, arms.AXIS, arms.TURN}
    assert arms.GAP not in found
    assert found[arms.TIP] < 1.0
    assert found[arms.AXIS] < 2.0
    assert found[arms.TURN] >= found[arms.AXIS] - 1e-9
    begin = result["poses"][0][:, 2] @ result["wanted_orientation"][:, 2]
    assert np.degrees(np.arccos(begin)) > found[arms.AXIS] + 1.0
    assert result["error"][0] > 5e-3


def test_gaps_are_those_of_the_thickest_point_that_is_nearest():
    """The arm straight beside the ball: its axis is the z axis."""
    robot = load_robot(arms.ROBOT)
    rows = sum(interval_counts(CosseratRod(robot, arms.PLANT_INTERVALS))) + len(robot.segments)
    places = np.zeros((1, rows, 3))
    places[0, :, 2] = np.linspace(0.0, 0.192, rows)
    # ball: centre (0.075, 0.010, 0.190), radius 0.035; the distal segment is 15 mm thick
    assert arms._gaps(robot, places)[0] == pytest.approx(np.hypot(0.075, 0.01) - 0.05, abs=1e-4)


def test_a_ball_is_gone_round():
    found = figures(ran(arms.ROUND, 2.2))
    assert set(found) >= {arms.GAP}
    assert arms.TIP not in found
    assert 4.0 < found[arms.GAP] < 6.0

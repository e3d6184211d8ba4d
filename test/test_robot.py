"""Robots as data: what a file may say, in the form of today and in the old one."""

import math

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kit.refusals import line_about

from softcr_models import UserError, available_robots, load_robot
from softcr_models.files.config import config_directory
from softcr_models.robots.robot import kind_of

FILE = config_directory() / "robots" / "licher2025.yaml"


@pytest.fixture
def content():
    return yaml.safe_load(FILE.read_text())


def test_shipped_robot_has_the_papers_numbers():
    robot = load_robot("licher2025")
    assert robot.cross_section_area == pytest.approx(6.667e-4, rel=1e-3)
    bending_stiffness, axial_stiffness = 1 / robot.compliances[3], 1 / robot.compliances[2]
    assert bending_stiffness == pytest.approx(0.02004, rel=1e-3)
    assert axial_stiffness == pytest.approx(169.5, rel=1e-3)
    mass = robot.density * robot.cross_section_area * robot.length + robot.tip_mass
    assert robot.gravity * mass == pytest.approx(1.529, abs=1e-3)


def test_pressure_wrench_is_force_along_z_and_moment_of_the_lever():
    robot = load_robot("licher2025")
    # eq. (7) written with numpy's cross product
    wrenches = []
    for chamber in robot.chambers:
        place = chamber.lever_arm * np.array([math.cos(chamber.angle), math.sin(chamber.angle), 0])
        moment = np.cross(place, [0, 0, 1])
        wrenches.append(chamber.area * np.concatenate(([0, 0, 1], moment)))
    assert np.allclose(robot.actuation_matrix, np.array(wrenches).T, rtol=1e-14)


# --- files; mistakes in them stand in test_bad_input.py and test_segments.py --------------------


def test_chambers_that_leave_no_material_are_refused(tmp_path, content):
    content["actuators"][0]["area"] = 0.1
    assert "areas leave no material" in line_about(load_robot, tmp_path / "arm.yaml", content)


def test_robots_of_both_kinds_are_known_by_the_type_of_their_file():
    assert {"four_chambers", "licher2025", "two_segments"} <= set(available_robots())
    assert available_robots(("arm",)) == ["dalenberg_robot1", "dalenberg_robot2"]
    assert kind_of("licher2025") == "rod"
    assert kind_of("dalenberg_robot1") == "arm"
    line = r"is an arm driven by tendons, must be a rod .* licher2025"
    with pytest.raises(UserError, match=line):
        load_robot("dalenberg_robot1")


def test_actuators_come_in_the_order_of_the_file(content, tmp_path):
    content["actuators"].reverse()
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(content))
    mine, shipped = load_robot(path), load_robot("licher2025")
    names = ("chamber_3", "chamber_2", "chamber_1")
    assert mine.actuator_names == mine.chamber_names == names
    assert mine.chambers == mine.actuators == shipped.actuators[::-1]
    assert np.array_equal(mine.actuation_matrix, shipped.actuation_matrix[:, ::-1])


@given(st.floats(1.0, 500.0))
def test_replace_validates_and_leaves_the_original(value):
    robot = load_robot("licher2025")
    changed = robot.replace(bending_compliance=value)
    assert changed.bending_compliance == value
    assert changed.compliances[3] == value
    assert robot.bending_compliance == 49.9

"""Robots as data: what a file may say, and what one hears about mistakes in it."""

import math

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from softcr_models import UserError, available_robots, load_robot
from softcr_models.config import config_directory
from softcr_models.robot import Robot

FILE = config_directory() / "robots" / "licher2025.yaml"


@pytest.fixture
def content():
    return yaml.safe_load(FILE.read_text())


def problem(tmp_path, content):
    path = tmp_path / "arm.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(UserError) as caught:
        load_robot(path)
    line = str(caught.value)
    assert "\n" not in line
    assert str(path) in line
    return line


def test_shipped_robot_has_the_papers_numbers():
    robot = load_robot("licher2025")
    assert robot.cross_section_area == pytest.approx(6.667e-4, rel=1e-3)
    bending_stiffness, axial_stiffness = 1 / robot.compliances[3], 1 / robot.compliances[2]
    assert bending_stiffness == pytest.approx(0.02004, rel=1e-3)
    assert axial_stiffness == pytest.approx(169.5, rel=1e-3)
    weight = robot.gravity * (
        robot.density * robot.cross_section_area * robot.length + robot.tip_mass
    )
    assert weight == pytest.approx(1.529, abs=1e-3)


def test_pressure_wrench_is_force_along_z_and_moment_of_the_lever():
    robot = load_robot("licher2025")
    # eq. (7) written with numpy's cross product
    wrenches = []
    for chamber in robot.chambers:
        place = chamber.lever_arm * np.array([math.cos(chamber.angle), math.sin(chamber.angle), 0])
        moment = np.cross(place, [0, 0, 1])
        wrenches.append(chamber.area * np.concatenate(([0, 0, 1], moment)))
    assert np.allclose(robot.actuation_matrix, np.array(wrenches).T, rtol=1e-14)


@pytest.mark.parametrize("field", ["length", "chambers", "pressure_lag"])
def test_missing_field_is_named(tmp_path, content, field):
    del content[field]
    line = problem(tmp_path, content)
    assert field in line
    assert "missing" in line


def test_misspelt_field_is_named_with_what_is_allowed(tmp_path, content):
    content["lenght"] = content.pop("length")
    line = problem(tmp_path, content)
    assert "lenght" in line or "length" in line
    content["length"] = 0.1
    line = problem(tmp_path, content)
    assert "lenght: unknown field" in line
    assert "length" in line


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "long", None])
def test_bad_number_is_named_with_value_and_range(tmp_path, content, value):
    content["length"] = value
    line = problem(tmp_path, content)
    assert "length" in line
    assert repr(value) in line or str(value) in line


def test_nested_fields_are_named_by_path(tmp_path, content):
    content["chambers"][1]["area"] = -1.0
    assert "chambers.1.area: -1.0" in problem(tmp_path, content)
    content["chambers"][1]["area"] = 1e-4
    content["pressure_lag"]["poles"] = 3
    line = problem(tmp_path, content)
    assert "pressure_lag.poles: unknown field" in line
    assert "pole" in line


def test_contradictions_are_refused(tmp_path, content):
    content["inner_diameter"] = 0.05
    assert "inner_diameter 0.05 must be below" in problem(tmp_path, content)
    content["inner_diameter"] = 0.007
    content["chambers"][1]["name"] = "chamber_1"
    assert "names must differ" in problem(tmp_path, content)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a: [1", "line"), ("- 1\n- 2", "mapping"), ("\x00", "")],
)
def test_what_is_no_robot_file_says_so_in_one_line(tmp_path, text, expected):
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=str(path)) as caught:
        load_robot(path)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_robot_lists_the_known_ones():
    with pytest.raises(UserError, match="licher2025"):
        load_robot("nemo")
    with pytest.raises(UserError, match="no such file"):
        load_robot("nowhere/nemo.yaml")
    assert "licher2025" in available_robots()


@given(st.floats(1.0, 500.0))
def test_replace_validates_and_leaves_the_original(value):
    robot = load_robot("licher2025")
    changed = robot.replace(bending_compliance=value)
    assert changed.bending_compliance == value
    assert changed.compliances[3] == value
    assert robot.bending_compliance == 49.9


def test_replace_refuses_nonsense():
    robot = load_robot("licher2025")
    with pytest.raises(UserError, match=r"bending_compliance: -1\.0"):
        robot.replace(bending_compliance=-1.0)
    with pytest.raises(UserError, match="stiffness: unknown field"):
        robot.replace(stiffness=1.0)


def test_a_robot_survives_its_own_dump():
    robot = load_robot("licher2025")
    assert Robot.model_validate_json(robot.model_dump_json()) == robot

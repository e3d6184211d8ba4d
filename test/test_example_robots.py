"""The shipped robots of several segments and tendons: their files hold the numbers of their papers.

The boundary value problem of each file's content is solved without softcr and compared with what is
known of the robot.
"""

import numpy as np
import pytest
import yaml
from oracles import cases, statics
from oracles.files import arm_of

from softcr_models import load_robot
from softcr_models.files.config import config_directory
from softcr_models.robots.short_form import SEGMENT_FIELDS

KPA = 1e3

KNOWN = [
    ("two_segments", (40 * KPA, 10 * KPA, 0, 0, 35 * KPA, 5 * KPA), "B", {}),
    ("till_tendon", (15, 0, 0, 0), "Till 15 N", {}),
    ("till_tendon", (5, 3, 0, 0), "Till 5 and 3 N", {}),
    ("rao_two_segments", (4, 0, 0, 0, 2, 0), "Rao", {}),
    ("tendon_arm", (0.5, 0, 0, 0), "soft rod 0.5 N", {"gravity": 0.0}),
]
"""Robot, inputs [Pa] or [N], the case with the known tip, fields that the case has otherwise."""


def long_form(name):
    """The content of a shipped file, its segments listed and named."""
    content = yaml.safe_load((config_directory() / "robots" / f"{name}.yaml").read_text())
    if "segments" not in content:
        content["segments"] = [{field: content[field] for field in SEGMENT_FIELDS & content.keys()}]
    segments = [{"name": f"segment_{k}"} | each for k, each in enumerate(content["segments"])]
    return content | {"segments": segments}


@pytest.mark.parametrize(("name", "inputs", "case", "changes"), KNOWN)
def test_the_rest_of_a_shipped_robot_is_the_known_one(name, inputs, case, changes):
    found = statics.collocation(arm_of(long_form(name) | changes, inputs))
    want = cases.SOLUTIONS[case]
    assert np.abs(found.tip - want.tip).max() < 1e-7
    if want.force is not None:
        assert np.abs(found.base[:3] - want.force).max() < 1e-6


SHIPPED = {
    "two_segments": (2, 6, "pressure"), "three_segments": (3, 9, "pressure"),
    "tendon_arm": (1, 4, "tension"), "till_tendon": (1, 4, "tension"),
    "rao_two_segments": (2, 6, "tension"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_robots_of_segments_and_tendons_load(name):
    robot, (segments, inputs, unit) = load_robot(name), SHIPPED[name]
    assert (len(robot.segments), len(robot.actuators)) == (segments, inputs)
    assert {sensor.type for sensor in robot.sensors} >= {unit, "base_wrench", "tip_pose"}
    assert robot.description


def test_material_follows_from_the_figures_of_the_papers():
    """Young's modulus, shear modulus, radius and shear factor in, compliances out."""
    for name, young, shear, radius in (
        ("tendon_arm", 1e6, 0.33e6, 0.005),
        ("till_tendon", 200e9, 80e9, 0.001),
        ("rao_two_segments", 54e9, 54e9 / 2.6, 0.0007),
    ):
        area, moment = np.pi * radius**2, np.pi / 4 * radius**4
        stiffness = [shear * area, shear * area, young * area, young * moment, young * moment,
                     2.0 * shear * moment]  # fmt: skip
        for compliances in load_robot(name).segment_compliances:
            assert compliances * stiffness == pytest.approx(np.ones(6), rel=1e-8)

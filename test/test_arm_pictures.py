"""Pictures of arms: each segment with its own radius, connectors, payload, tendons."""

from unittest.mock import Mock
from xml.etree import ElementTree

import numpy as np
import pytest

from softcr_control.reference.planning import Plan
from softcr_models import load_robot
from softcr_runtime.wire.frames import Frames
from softcr_tools import plan
from softcr_tools.viewer.body import most_parts, parts_of, tendon_lines
from softcr_tools.viewer.drawing import markers_message
from softcr_tools.viewer.picture import Picture
from softcr_tools.viewer.shape import Shape
from softcr_tools.visuals.urdf import robot_description, straight_tip

ARM = load_robot("two_segments")


def straight(robot, turn=(0.0, 0.0, 0.0, 1.0)):
    heights, at = [0.0], 0.0
    for segment in robot.segments:
        heights += [at, at + 0.5 * segment.length, at + segment.length]
        at = heights[-1] + (segment.connector.offset[2] if segment.connector else 0.0)
    positions = np.zeros((len(heights), 3))
    positions[:, 2] = heights
    turns = np.tile(turn, (len(heights), 1))
    return Shape(7, positions, turns, (2,) * len(robot.segments))


def test_a_payload_is_drawn_round_its_centre_of_mass():
    quarter = np.array([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])  # x of the frame is y of the base
    parts = parts_of(ARM, straight(ARM, quarter), 0.02)
    assert [part.rigid for part in parts] == [False, False, True, True]
    assert len(parts) == most_parts(ARM)
    assert parts[3].positions.mean(axis=0) == pytest.approx([0.0, 0.004, 0.192 + 0.010])
    assert np.ptp(parts[3].positions[:, 2]) == pytest.approx(0.020)  # begins at the segment's end
    bare = ARM.replace(payload=None)
    assert len(parts_of(bare, straight(bare), 0.02)) == 3
    robot = ARM.replace(payload={"mass": 0.02})  # one without a lever still has a length
    assert np.ptp(parts_of(robot, straight(robot), 0.02)[-1].positions[:, 2]) > 0.01


def test_markers_have_the_radius_of_each_part(monkeypatch):
    pytest.importorskip("visualization_msgs")

    def body_of(estimate):
        monkeypatch.setattr(Picture, "estimate", property(lambda _: estimate))
        markers = markers_message(Picture(ARM), 0.02).markers
        return [each for each in markers if each.ns.startswith("rod")]

    body = body_of(straight(ARM))
    assert [each.ns for each in body] == ["rod", "rod 1", "rod 2", "rod 3"]
    assert [each.scale.x for each in body] == pytest.approx([0.040, 0.030, 0.024, 0.018])
    assert [len(each.points) for each in body] == [3, 3, 2, 2]
    assert [each.action for each in body_of(None)] == [2, 2, 2, 2]  # DELETE


def test_the_description_ends_where_the_straight_arm_does():
    turned = [each.model_dump() for each in ARM.segments]
    turned[0]["connector"]["rotation"] = [0.0, 0.5 * np.pi, 0.0]
    robot = ARM.replace(segments=turned, tip_cap_length=0.01)
    assert straight_tip(ARM)[:3, 3] == pytest.approx([0.0, 0.0, 0.192])
    assert straight_tip(robot)[:3, 3] == pytest.approx([0.09, 0.0, 0.112])
    assert straight_tip(robot)[:3, 2] == pytest.approx([1.0, 0.0, 0.0])
    urdf = ElementTree.fromstring(robot_description(robot, Frames(""), np.eye(4)))
    (joint,) = (each for each in urdf.iter("joint") if each.get("type") == "floating")
    numbers = [float(value) for value in joint.find("origin").get("xyz").split()]
    assert numbers == pytest.approx([0.09, 0.0, 0.112])
    tip = next(each for each in urdf.iter("link") if each.get("name").endswith("tip"))
    assert float(tip.find("visual/geometry/cylinder").get("radius")) == pytest.approx(0.015)
    (ball,) = (each for each in tip.iter("visual") if each.find("geometry/sphere") is not None)
    assert ball.find("origin").get("xyz") == "0.004 0 0"


def test_a_plan_is_drawn_and_written_in_the_units_of_its_inputs(tmp_path, monkeypatch):
    tendons = load_robot("tendon_arm")
    tips, tensions = np.zeros((5, 3)), np.full((5, 4), 0.2)
    planned = Plan(1 / 70, tensions, np.zeros((5, 1)), tips, tips)
    panels = Mock(wraps=plan.panels)
    monkeypatch.setattr(plan, "panels", panels)
    plan.draw(planned, tmp_path / "plan.png", tendons.shown_inputs)
    assert panels.call_args.args[1][2:] == ["tension [N]"]
    assert (tmp_path / "plan.png").stat().st_size > 10_000
    plan.write_inputs(tmp_path / "plan.npz", planned.pressures, planned.period, "tension")
    with np.load(tmp_path / "plan.npz") as content:
        assert sorted(content) == ["tensions", "time"]


def test_a_tendon_ends_with_its_segment_and_a_cloud_without_segments_shows_none():
    content = load_robot("rao_two_segments")
    lines = tendon_lines(content, straight(content))
    ends = {name: line[-1, 2] for name, line in lines.items()}
    assert sorted(set(np.round(list(ends.values()), 6))) == [0.2, 0.4]
    assert not tendon_lines(content, straight(content)._replace(counts=()))

"""Robots of several segments as data: what a file may say of segments, tendons and payloads."""

import json
import math

import numpy as np
import pinocchio as pin
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kit.refusals import line_about
from oracles.robot_files import TENSIONS, tendon, two_segments

from softcr_models import UserError, load_robot
from softcr_models.files.config import config_directory
from softcr_models.robots.robot import Robot
from softcr_models.robots.segments import Connector, Payload
from softcr_papers.mehl2024.dynamics import ConstantCurvatureModel

PROXIMAL, DISTAL = (0, 1, 2), (4, 5, 6)  # places of the chambers in a vector of inputs
STRAIGHT, HELIX, TAPER = 3, 7, 8  # places of the tendons
SENSORS = [
    {"type": "pressure", "noise": 0.0},
    {"type": "tension", "noise": 0.1},
    {"type": "base_wrench", "force_noise": 0.02, "moment_noise": 5e-4},
    {"type": "tip_pose", "noise": 2e-4},
    {"type": "pose", "name": "mid", "segment": "proximal", "at": 1.0, "noise": 2e-4},
]


def content():
    """Two segments with a connector, chambers of their own, and a tendon of each routing; as read
    from a file."""
    more = TENSIONS | {"sensors": SENSORS, "tip_mass": 0.01}
    file = json.loads(json.dumps(two_segments(relaxation=(0.005, 0.003)) | more))
    proximal, distal = file["segments"]
    proximal["intervals"], distal["bending_compliance"] = 5, [120.0, 100.0]
    del distal["shear_compliance"], distal["torsion_compliance"]
    for chamber in file["actuators"]:
        del chamber["from" if chamber["to"] == "proximal" else "to"]
    helical = {"kind": "helical", "pitch": 0.3}
    tapered = {"kind": "tapered", "end_lever_arm": 0.006}
    file["actuators"][3:3] = [tendon("t1", 0.5, 0.009, "distal")]
    file["actuators"] += [
        tendon("t2", 0.2, 0.009, "distal", routing=helical),
        tendon("t3", 1.3, 0.016, "proximal", routing=tapered),
    ]
    return file


@pytest.fixture(scope="module")
def robot():
    return Robot.model_validate(content())


def cantilever(**changes):
    """One segment, and a tendon in place of chambers."""
    file = content()
    file["segments"] = [{**file["segments"][1], "name": "only"}]
    file["actuators"] = [{"type": "tendon", "name": "t", "angle": 0.0, "lever_arm": 0.01}]
    for field in ("pressure_limits", "pressure_lag", "sensors", "payload"):
        del file[field]
    return file | changes


# --- the short form, of one segment -------------------------------------------------------------


@pytest.mark.parametrize("name", ["licher2025", "four_chambers"])
def test_one_plain_segment_is_the_robot_of_the_short_form(name):
    path = config_directory() / "robots" / f"{name}.yaml"
    short = yaml.safe_load(path.read_text())
    robot = load_robot(name)
    (segment,) = robot.segments
    of_segment = {name for name in short if hasattr(segment, name) and name != "name"}
    assert {"length", "relaxation_times", "bending_compliance"} <= of_segment
    long = {key: value for key, value in short.items() if key not in of_segment}
    long["segments"] = [{key: short[key] for key in of_segment}]
    same = Robot.model_validate(long)
    assert same == robot
    assert same.model_dump_json() == robot.model_dump_json()
    assert "segments" not in robot.model_dump()
    # what the file says stands in the dump, field by field, and nothing of today's features
    dumped = robot.model_dump(mode="json")
    chain = short.pop("pressure_chain", {})  # the elements that are on, of all
    assert chain.items() <= (dumped.pop("pressure_chain", None) or {}).items()
    assert {key: dumped[key] for key in short} == short
    more = {"shear_compliance", "torsion_compliance", "shear_correction"}
    assert dumped.keys() - short.keys() == more


def test_the_numbers_of_one_segment_are_those_of_the_robot():
    robot = load_robot("licher2025")
    assert np.array_equal(robot.segment_compliances, robot.compliances[None])
    assert np.array_equal(robot.segment_actuation, robot.actuation_matrix[None])
    assert np.array_equal(robot.segment_areas, [robot.cross_section_area])
    assert np.array_equal(robot.segment_ends, [0.0, robot.length])
    assert robot.segment_names == ("segment_1",)
    places = np.linspace(0.0, robot.length, 4)
    assert np.array_equal(robot.actuation_at(0, places), np.repeat(robot.segment_actuation, 4, 0))
    assert not robot.has_varying_actuation


def test_replacing_a_segments_field_needs_to_say_of_which_segment(robot):
    line = "density: belongs to each of its segments proximal, distal; replace segments instead$"
    with pytest.raises(UserError, match=f"^robot two: {line}"):
        robot.replace(density=900.0)
    first, second = robot.segments
    lighter = second.model_copy(update={"density": 900.0})
    changed = robot.replace(segments=(first, lighter))
    assert changed.segments[1].density == 900.0
    assert changed.replace(segments=robot.segments) == robot
    alone = first.model_copy(update={"connector": None, "name": None})
    assert load_robot("licher2025").replace(segments=(alone,)).length == first.length


# --- several segments ---------------------------------------------------------------------------


def test_a_robot_of_several_segments_survives_its_own_dump(robot, tmp_path):
    assert Robot.model_validate_json(robot.model_dump_json()) == robot
    path = tmp_path / "two.yaml"
    path.write_text(yaml.safe_dump(robot.model_dump(mode="json", exclude_none=True)))
    assert load_robot(path) == robot
    assert robot.model_dump()["actuators"][0]["to"] == "proximal"
    assert "from" not in robot.model_dump()["actuators"][0]


def test_chambers_take_area_only_from_the_segments_they_run_through(robot):
    assert robot.segment_areas == pytest.approx([7.280972e-4, 4.165929e-4], rel=1e-6)
    assert robot.segment_second_moments == pytest.approx([1.251728e-7, 3.955972e-8], rel=1e-6)
    densities = np.array([segment.density for segment in robot.segments])
    assert densities * robot.segment_areas == pytest.approx([0.7790641, 0.4457544], rel=1e-6)
    file = content()
    file["actuators"][0].pop("to")
    through = Robot.model_validate(file)
    assert through.segment_areas == pytest.approx(robot.segment_areas - [0.0, 1.5e-4])


def test_sections_of_a_robot_of_several_segments(robot):
    first, second = robot.segment_compliances
    assert first == pytest.approx([0.02, 0.02, 0.006, 40.0, 40.0, 35.0])
    area, moment = robot.segment_areas[1], robot.segment_second_moments[1]
    modulus = 1.0 / (0.011 * area) / 3.0  # incompressible
    shear = 1.0 / (5.0 / 6.0 * modulus * area)
    expected = [shear, shear, 0.011, 120.0, 100.0, 1.0 / (modulus * 2.0 * moment)]
    assert second == pytest.approx(expected, rel=1e-12)
    assert robot.segment_relaxation_times.tolist() == [[0.005] * 6, [0.003] * 6]
    assert robot.length == pytest.approx(0.18)
    assert robot.segment_ends == pytest.approx([0.0, 0.10, 0.18])
    assert robot.bending_compliance == 40.0


def test_an_actuator_acts_on_the_segments_that_it_runs_through(robot):
    acts = np.any(robot.segment_actuation != 0.0, axis=1)
    assert acts[:, PROXIMAL].tolist() == [[True] * 3, [False] * 3]
    assert acts[:, DISTAL].tolist() == [[False] * 3, [True] * 3]
    assert acts[:, STRAIGHT].tolist() == [True, True]
    assert robot.tendon_inputs.tolist() == [STRAIGHT, HELIX, TAPER]
    assert robot.tendon_reaches.tolist() == [1, 1, 0]
    assert robot.chamber_names == ("p1", "p2", "p3", "d1", "d2", "d3")
    assert [tendon.name for tendon in robot.tendons] == ["t1", "t2", "t3"]


def test_a_straight_tendon_pulls_where_a_chamber_pushes(robot):
    place = 0.009 * np.array([math.cos(0.5), math.sin(0.5), 0.0])
    along = np.array([0.0, 0.0, 1.0])
    column = -np.concatenate((along, np.cross(place, along)))
    for matrix in robot.segment_actuation:
        assert matrix[:, STRAIGHT] == pytest.approx(column)
    assert np.array_equal(robot.segment_actuation[:, :, [HELIX, TAPER]], np.zeros((2, 6, 2)))
    assert robot.has_varying_actuation


@pytest.mark.parametrize(("segment", "places"), [(0, [0.0, 0.03, 0.1]), (1, [0.1, 0.14, 0.18])])
def test_routings_pull_along_their_own_direction(robot, segment, places):
    angles = [0.2 + 2 * math.pi * s / 0.3 for s in places]
    helix = [[0.009 * math.cos(angle), 0.009 * math.sin(angle), 0.0] for angle in angles]
    outward = np.array([math.cos(1.3), math.sin(1.3), 0.0])
    taper = [(0.016 - 0.010 * s / 0.1) * outward for s in places]
    offsets = robot.tendon_offsets(segment, np.array(places))
    assert offsets.shape == (3, 3, 2, 3)
    assert offsets[:, 1, 0] == pytest.approx(np.array(helix))
    assert offsets[:, 2, 0] == pytest.approx(np.array(taper))
    # the derivative of the place, by differences
    step = 1e-6
    beside = [robot.tendon_offsets(segment, np.array(places) + sign * step) for sign in (1, -1)]
    slope = (beside[0][:, :, 0] - beside[1][:, :, 0]) / (2 * step)
    assert offsets[:, :, 1] == pytest.approx(slope, abs=1e-8)
    matrices = robot.actuation_at(segment, np.array(places))
    for j in range(3):
        for order, place in enumerate((STRAIGHT, HELIX, TAPER)):
            r, r_s = offsets[j, order]
            along = np.array([0.0, 0.0, 1.0]) + r_s
            along /= math.hypot(*along)
            column = -np.concatenate((along, np.cross(r, along)))
            ends_before = place == TAPER and segment == 1
            assert matrices[j, :, place] == pytest.approx(0.0 * column if ends_before else column)
        for place in (*PROXIMAL, *DISTAL):
            of_segment = robot.segment_actuation[segment, :, place]
            assert np.array_equal(matrices[j, :, place], of_segment)


def test_a_robot_of_tendons_alone_needs_nothing_of_chambers():
    robot = Robot.model_validate(cantilever())
    assert [sensor.type for sensor in robot.sensors] == ["base_wrench", "tip_pose"]
    assert robot.tension_limits.maximum == 20.0
    assert robot.tendon_model == "constant"
    with pytest.raises(UserError, match="robot two: has no chambers, hence no pressure_limits"):
        _ = robot.pressure_limits
    with pytest.raises(UserError, match="has no tendons, hence no tension_limits"):
        _ = load_robot("licher2025").tension_limits
    assert Robot.model_validate_json(robot.model_dump_json()) == robot
    exact = Robot.model_validate(cantilever(tendon_model="exact"))
    assert exact.model_dump()["tendon_model"] == "exact"


def test_a_short_file_may_have_tendons_and_a_payload():
    file = cantilever(payload={"mass": 0.1})
    (segment,) = file.pop("segments")
    del segment["name"]
    robot = Robot.model_validate(file | segment)
    assert robot.bending_compliance == 110.0  # the mean of those about x and y
    assert robot.payload.mass == 0.1
    assert "segments" not in robot.model_dump()
    assert Robot.model_validate_json(robot.model_dump_json()) == robot


def test_a_plant_that_differs_has_all_its_segments_scaled(robot):
    softer = robot.scaled(bending=1.1, damping=0.5, tip_mass=2.0)
    factors = softer.segment_compliances / robot.segment_compliances
    assert factors == pytest.approx(np.array([[1, 1, 1, 1.1, 1.1, 1]] * 2))
    assert softer.segment_relaxation_times == pytest.approx(0.5 * robot.segment_relaxation_times)
    assert softer.tip_mass == pytest.approx(0.02)
    inertia = robot.payload.spatial_inertia
    assert softer.payload.spatial_inertia == pytest.approx(2.0 * inertia)
    assert softer.segments[0].connector == robot.segments[0].connector
    with pytest.raises(UserError, match=r"bending_compliance: -40\.0 is not allowed"):
        robot.scaled(bending=-1.0)
    one = load_robot("licher2025")
    assert one.scaled() == one
    assert one.scaled(bending=0.95, tip_mass=1.1) == one.replace(
        bending_compliance=one.bending_compliance * 0.95, tip_mass=one.tip_mass * 1.1
    )


def test_models_of_one_segment_refuse_other_robots(robot):
    line = "is for one segment with chambers; this robot has 2 segments, a payload, tendons$"
    with pytest.raises(UserError, match=f"^robot two: constant curvature {line}"):
        ConstantCurvatureModel.of_robot(robot)
    with pytest.raises(UserError, match="this robot has tendons"):
        Robot.model_validate(cantilever()).require_one_segment_of_chambers("it")


# --- rigid parts --------------------------------------------------------------------------------


numbers = st.floats(-0.1, 0.1)


@given(st.tuples(numbers, numbers, numbers), st.floats(0.0, 2.0, exclude_min=True))
def test_the_inertia_of_a_payload_is_that_of_a_rigid_body(centre, mass):
    payload = Payload(mass=mass, centre_of_mass=centre, inertia=(5e-6, 6e-6, 8e-6))
    body = pin.Inertia(mass, np.array(centre), np.diag([5e-6, 6e-6, 8e-6]))
    assert payload.spatial_inertia == pytest.approx(body.matrix(), abs=1e-15)


def test_a_connector_leads_from_one_segment_to_the_next():
    plain = Connector(length=0.012, mass=0.03)
    assert plain.offset == pytest.approx([0.0, 0.0, 0.012])
    assert plain.centre == pytest.approx([0.0, 0.0, 0.006])
    assert np.array_equal(plain.rotation_matrix, np.eye(3))
    turned = Connector(length=0.3, mass=0.0, rotation=(0.1, -0.4, 0.9), translation=(0.1, 0.2, 0.3))
    expected = pin.rpy.rpyToMatrix(0.1, -0.4, 0.9)
    assert turned.rotation_matrix == pytest.approx(expected, abs=1e-15)
    assert turned.offset.tolist() == [0.1, 0.2, 0.3]


# --- mistakes -----------------------------------------------------------------------------------


CONNECTOR, SECOND = ("segments", 0, "connector"), ("segments", 1)
ANGLES = "must be three angles, roll, pitch, yaw, from -2 pi to 2 pi [rad]"
NO_CHAMBERS = ("actuators",), content()["actuators"][:3]

# What fields say of each other; the line begins with the first, then come places and values, and
# None takes a field away.
MISTAKES = [
    ("actuators: p1: no segment is called 'middle'; there are proximal, distal",
     ("actuators", 0, "to"), "middle"),
    ("actuators: p1 runs from distal to proximal, which is nearer to the base",
     ("actuators", 0, "from"), "distal"),
    ("segments.1: inner_diameter 0.03 must be below outer_diameter 0.03",
     (*SECOND, "inner_diameter"), 0.03),
    ("segments.0.connector: translation [0.0, 0.0, 0.5]: the segments do not meet, its z must "
     "be the length 0.012", (*CONNECTOR, "translation"), [0.0, 0.0, 0.5]),
    (f"segments.0.connector.rotation: [1, 0, 0, 0] is not allowed: {ANGLES}",
     (*CONNECTOR, "rotation"), [1, 0, 0, 0]),
    (f"segments.0.connector.rotation: [0.0, 0.0, nan] is not allowed: {ANGLES}",
     (*CONNECTOR, "rotation"), [0.0, 0.0, math.nan]),
    ("segments.0.connector: inertia [1e-06, 1e-06, 1e-06]: a body of mass 0 has none",
     (*CONNECTOR, "inertia"), [1e-6, 1e-6, 1e-6], (*CONNECTOR, "mass"), 0.0),
    ("payload: inertia [1.0, 1.0, 3.0] is that of no body: none may exceed the sum of the",
     ("payload", "inertia"), [1.0, 1.0, 3.0]),
    ("segments: distal: the last one has no connector; what its end carries is the robot's",
     (*SECOND, "connector"), {"length": 0.01, "mass": 0.0}),
    ("segments: names must differ, found ['proximal', 'proximal']", (*SECOND, "name"), "proximal"),
    ("segments: [{", ("segments",), [content()["segments"][1]] * 9),
    ("segments: 65 intervals in all are not allowed: at most 64", (*SECOND, "intervals"), 60),
    ("density: with segments, this field stands in each of them and not at the top level",
     ("density",), 1000.0),
    ("segments: distal: the chambers' areas leave no material", ("actuators", 4, "area"), 5e-4),
    ("actuators: t1 runs 0.016 m from the centre line of distal, beyond its outer radius of "
     "0.015 m; where discs hold tendons farther out, the segment's routing_radius says how far",
     ("actuators", 3, "lever_arm"), 0.016),
    ("actuators: t1 runs 0.0201 m from the centre line of proximal, beyond its outer radius",
     (*SECOND, "routing_radius"), 0.02, ("actuators", 3, "lever_arm"), 0.0201),
    ("actuators.7.routing.pitch: missing; this field is required",
     ("actuators", 7, "routing"), "helical"),
    ("actuators.7.routing: pitch must not be 0", ("actuators", 7, "routing", "pitch"), 0.0),
    ("tension_limits: missing; a robot with tendons needs this field", ("tension_limits",), None),
    ("pressure_limits: missing; a robot with chambers needs this field",
     ("pressure_limits",), None),
    ("pressure_lag: missing; a robot with chambers needs this field", ("pressure_lag",), None),
    ("tension_limits: minimum 20.0 must be below maximum 20.0",
     ("tension_limits", "minimum"), 20.0),
    ("tension_lag: not allowed: this robot has no tendons", *NO_CHAMBERS,
     ("tension_limits",), None, ("sensors", 1), None, ("tension_lag",), {"gain": 1.0, "pole": 1.0}),
    ("sensors: must be pressure, base_wrench, tip_pose, each once, found ['pressure', 'tension'",
     *NO_CHAMBERS, ("tension_limits",), None),
    ("sensors: mid: no segment is called 'middle'; there are proximal, distal",
     ("sensors", 4, "segment"), "middle"),
    ("sensors: 'tip' is a name of every robot; take another one", ("sensors", 4, "name"), "tip"),
    ("sensors: names must differ, found ['mid', 'mid']",
     ("sensors",), [*content()["sensors"], content()["sensors"][4]]),
]  # fmt: skip


def refused(tmp_path, file):
    """The one line that loading this content ends with, without the file's name."""
    path = tmp_path / "mine.yaml"
    return line_about(load_robot, path, file).removeprefix(f"{path}: ")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[0][:40])
def test_a_mistake_is_one_line_with_its_place(tmp_path, mistake):
    (says, *steps), file = mistake, content()
    for place, value in zip(steps[::2], steps[1::2], strict=True):
        inside = file
        for part in place[:-1]:
            inside = inside[part]
        if value is None:
            del inside[place[-1]]
        else:
            inside[place[-1]] = value
    assert refused(tmp_path, file).startswith(says)


def test_limits_and_sensors_of_absent_chambers_are_refused(tmp_path):
    line = refused(tmp_path, cantilever(pressure_limits=content()["pressure_limits"]))
    assert line.startswith("pressure_limits: not allowed: this robot has no chambers")
    says = "sensors: must be base_wrench, tip_pose, each once, tension and tendon_length at most"
    line = refused(tmp_path, cantilever(sensors=[*SENSORS[:1], *SENSORS[2:4]]))
    assert line.startswith(f"{says} once, found ['press")


def test_mistakes_in_a_short_file_are_told_where_they_stand_in_it(tmp_path):
    file = yaml.safe_load((config_directory() / "robots/licher2025.yaml").read_text())
    connected = {"connector": {"length": 0.1, "mass": 0.1}}
    for mistake, says in (
        ({"inner_diameter": 0.1}, "inner_diameter 0.1 must be below outer_diameter 0.0424"),
        (connected, "connector: unknown field; allowed are type,"),
    ):
        assert refused(tmp_path, file | mistake).startswith(says)


def test_robots_are_equal_by_their_fields_whatever_was_computed_of_them():
    one, other = Robot.model_validate(content()), Robot.model_validate(content())
    _ = one.segment_actuation
    assert one == other
    assert hash(one) == hash(other)
    assert one != other.replace(gravity=1.0)
    assert one != "two"


def test_more_actuators_than_the_kernels_have_room_for_are_refused():
    robot = load_robot("licher2025")
    first = robot.actuators[0].model_dump() | {"area": 1e-6}
    many = [first | {"name": f"chamber_{number}"} for number in range(33)]
    assert len(robot.replace(actuators=many[:32]).actuators) == 32
    with pytest.raises(UserError, match="actuators: 33 are not allowed: at most 32"):
        robot.replace(actuators=many)

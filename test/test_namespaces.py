"""Names that tell the robots of one ROS domain apart."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

pytest.importorskip("rclpy")

import rclpy
from rclpy.exceptions import InvalidNamespaceException
from rclpy.parameter import Parameter
from rclpy.validate_namespace import validate_namespace

from softcr_models.errors import UserError
from softcr_models.robot import load_robot
from softcr_runtime import namespaces
from softcr_runtime.bags.message_bytes import cdr_of
from softcr_runtime.bags.own_messages import is_of, is_shared
from softcr_runtime.bags.recorder_node import RecorderNode
from softcr_runtime.codecs import codec, expected_of
from softcr_runtime.diagnostics import DiagnosticReport, diagnostics_to_message
from softcr_tools.hardware_system import HardwareOptions, hardware_system
from softcr_tools.run_options import SimulationOptions
from softcr_tools.systems import simulation_system

DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"
LEVEL = st.text("ab_1/ -", max_size=8)


def allowed_by_ros(namespace):
    try:
        return bool(validate_namespace("/" + namespace))
    except InvalidNamespaceException:
        return False


@given(LEVEL)
def test_what_is_allowed_is_what_ros_allows(text):
    """One slash before and one behind are how people write it; they are taken off."""
    bare = text.removeprefix("/").removesuffix("/")
    try:
        found = namespaces.plain(text)
    except ValueError:
        found = None
    assert (found is not None) == (not bare or allowed_by_ros(bare))
    assert found in (None, bare)


@given(st.lists(st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True), max_size=3))
def test_a_full_name_is_split_again(levels):
    namespace = "/".join(levels)
    assert namespaces.split(namespaces.full_name(namespace, "node")) == (namespace, "node")
    assert namespaces.split(namespaces.absolute(namespace, "node")) == (namespace, "node")


@pytest.mark.parametrize("wrong", ["1a", "a b", "a//b", "ä", "a" * 161, "~"])
def test_a_wrong_namespace_is_told_with_what_is_allowed(wrong):
    with pytest.raises(ValidationError, match="letters, digits and _ between slashes"):
        TypeAdapter(namespaces.Namespace).validate_python(wrong)
    with pytest.raises(UserError, match=r"option namespace = .*: must be letters, digits and _"):
        SimulationOptions.of_options({"namespace": wrong})


# --- whose messages ----------------------------------------------------------------------------


def diagnostics_of(*names):
    reports = [DiagnosticReport(f"{name}: loop", 0, "", "", {}) for name in names]
    return cdr_of(diagnostics_to_message(reports, 1))


@pytest.mark.parametrize("mine", ["", "robot1", "robot10", "lab/robot1"])
def test_a_status_is_of_the_namespace_of_its_node_alone(mine):
    others = {"", "robot1", "robot10", "lab/robot1"} - {mine}
    own = namespaces.full_name(mine, "estimator")
    assert is_of(mine, diagnostics_of(own), DIAGNOSTICS)
    for other in others:
        theirs = namespaces.full_name(other, "estimator")
        assert not is_of(mine, diagnostics_of(theirs), DIAGNOSTICS)
        assert is_of(mine, diagnostics_of(theirs, own), DIAGNOSTICS)


def test_logs_and_parameter_events_are_of_their_node():
    from rcl_interfaces.msg import Log, ParameterEvent

    log, event = Log(name="robot1.estimator"), ParameterEvent(node="/robot1/estimator")
    for message, type_ in ((log, "rcl_interfaces/msg/Log"),
                           (event, "rcl_interfaces/msg/ParameterEvent")):  # fmt: skip
        payload = cdr_of(message)
        assert is_of("robot1", payload, type_)
        assert not is_of("", payload, type_)
        assert not is_of("robot2", payload, type_)
    assert is_of("", cdr_of(Log(name="estimator")), "rcl_interfaces/msg/Log")


def test_what_nobody_can_read_is_kept():
    assert is_of("robot1", b"\x00\x01\x00\x00garbage", DIAGNOSTICS)
    assert is_of("robot1", diagnostics_of(), DIAGNOSTICS)


def test_only_absolute_topics_are_shared():
    assert is_shared("/diagnostics", DIAGNOSTICS)
    assert not is_shared("/robot1/diagnostics", DIAGNOSTICS)
    assert not is_shared("/configuration", DIAGNOSTICS), "is relative: of the robot at the root"
    assert not is_shared("/clock", "rosgraph_msgs/msg/Clock")


# --- frames ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "told", "prefix"),
    [
        ({}, None, ""),
        ({"namespace": "lab/robot1/"}, None, "lab/robot1/"),
        ({"namespace": "robot1", "frame_prefix": "left_"}, "left_", "left_"),
        ({"namespace": "robot1", "frame_prefix": "/"}, "", ""),
        ({"namespace": "robot1", "frame_prefix": ""}, "", ""),
        ({"frame_prefix": "left_"}, "left_", "left_"),
    ],
)
def test_every_node_is_told_the_prefix_of_its_robots_frames(tmp_path, given, told, prefix):
    """What is not given, a node derives from its namespace by the same rule."""
    for options, system_of in ((SimulationOptions, simulation_system),
                               (HardwareOptions, hardware_system)):  # fmt: skip
        chosen = options.of_options(given)
        system = system_of(chosen, tmp_path)
        assert {part.parameters.get("frame_prefix") for part in system.parts} == {told}
        assert system.namespace == given.get("namespace", "").strip("/")
        assert chosen.prefix == prefix


@pytest.mark.parametrize(
    ("namespace", "overrides", "prefix"),
    [
        ("/", {}, ""),
        ("/lab/robot1", {}, "lab/robot1/"),
        ("/robot1", {"frame_prefix": "left_"}, "left_"),
        ("/robot1", {"frame_prefix": ""}, ""),
    ],
)
def test_a_node_has_the_frames_of_its_namespace(namespace, overrides, prefix):
    context = rclpy.Context()
    rclpy.init(context=context)
    try:
        given = [Parameter(name, value=value) for name, value in overrides.items()]
        node = RecorderNode(context=context, namespace=namespace, parameter_overrides=given)
        assert node.frame("base") == prefix + "base"
        assert node.get_parameter("frame_prefix").value == prefix
        report = node._diagnostic_report()
        assert report.node == (namespace.strip("/"), "recorder")
        assert report.hardware_id == namespaces.full_name(namespace, "licher2025")
        node.destroy_node()
    finally:
        context.shutdown()


def test_messages_name_the_prefixed_frames():
    import numpy as np

    expected = expected_of(load_robot("licher2025"), frame_prefix="robot1/")
    wrench = codec("force_torque/wrench", expected).encode(np.zeros(6), 1)
    assert wrench.header.frame_id == "robot1/force_torque"
    pose = codec("mocap/tip/pose", expected).encode(np.eye(4), 1)
    assert pose.header.frame_id == "robot1/base"
    arm = expected_of(load_robot("dalenberg_robot1", ("arm",)), frame_prefix="robot1/")
    assert arm.frame == "world", "the world is everybody's"


def test_options_of_a_namespace_are_recorded_as_they_are():
    options = SimulationOptions.of_options({"namespace": "/robot1"})
    assert json.loads(options.model_dump_json())["namespace"] == "robot1"

"""Names that tell the robots of one ROS domain apart."""

from itertools import count

import numpy as np
import pytest
from domains import fresh_domain
from hypothesis import given
from hypothesis import strategies as st
from kit.processes import Peer, ros, until
from pydantic import TypeAdapter, ValidationError

pytest.importorskip("rclpy")

import rclpy
from rclpy.exceptions import InvalidNamespaceException
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.validate_namespace import validate_namespace
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from softcr_hardware.nodes.commander import Commander
from softcr_models.errors import UserError
from softcr_models.robots.robot import load_robot
from softcr_runtime.bags.message_bytes import cdr_of
from softcr_runtime.bags.offline_bag import OfflineBag
from softcr_runtime.bags.own_messages import is_of, is_shared
from softcr_runtime.bags.recorder_node import RecorderNode
from softcr_runtime.ros.run_blocks import node_class
from softcr_runtime.wire import namespaces
from softcr_runtime.wire.codecs import codec, expected_of
from softcr_runtime.wire.diagnostics import DiagnosticReport, diagnostics_to_message
from softcr_runtime.wire.messages import clock_to_message, from_stamp, pressures_to_message
from softcr_runtime.wire.topics import TOPICS, qos
from softcr_tools import cli
from softcr_tools.ros.executables import NODES
from softcr_tools.running.hardware_system import HardwareOptions, hardware_system
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

STATE = "/pressure/state"
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


def test_logs_and_parameter_events_are_of_their_node_and_what_nobody_can_read_is_kept():
    from rcl_interfaces.msg import Log, ParameterEvent

    log, event = Log(name="robot1.estimator"), ParameterEvent(node="/robot1/estimator")
    for message in (log, event):
        told = cdr_of(message), f"rcl_interfaces/msg/{type(message).__name__}"
        assert [is_of(mine, *told) for mine in ("robot1", "", "robot2")] == [True, False, False]
    assert is_of("", cdr_of(Log(name="estimator")), "rcl_interfaces/msg/Log")
    assert is_of("robot1", b"\x00\x01\x00\x00garbage", DIAGNOSTICS)
    assert is_of("robot1", diagnostics_of(), DIAGNOSTICS)


def test_only_absolute_topics_are_shared():
    assert is_shared("/diagnostics", DIAGNOSTICS)
    assert not is_shared("/robot1/diagnostics", DIAGNOSTICS)
    assert not is_shared("/configuration", DIAGNOSTICS), "is relative: of the robot at the root"
    assert not is_shared("/clock", "rosgraph_msgs/msg/Clock")


def test_the_valves_count_who_commands_them_in_their_namespace_alone(monkeypatch):
    """Beside two others who command other robots there is one commander; a second one is told."""
    monkeypatch.setenv("ROS_DOMAIN_ID", fresh_domain())
    with ros() as context:
        spaces = ("/robot1", "/robot2", "/")
        nodes = [rclpy.create_node("mpc", namespace=each, context=context) for each in spaces]
        for each in nodes:
            each.create_publisher(JointTrajectory, "pressure/plan", 1)
        valves = rclpy.create_node("valves", namespace="/robot1", context=context)
        topics = {"pressure/plan": JointTrajectory, "pressure/command": JointState}
        hear = valves.create_subscription
        commander = Commander(valves, [hear(topics[each], each, print, 1) for each in topics])
        moments = count()

        def look():
            commander.look(float(next(moments)), enabled=False)

        until(lambda: commander.owner == "/robot1/mpc", "the commander", again=look)
        assert commander.several == ""
        nodes[0].create_publisher(JointState, "pressure/command", 1)
        until(lambda: commander.several == "/robot1/mpc twice", "the second one", again=look)


@pytest.mark.parametrize("namespace", ["", "robot1"])
def test_the_time_of_a_namespace_is_its_own(monkeypatch, namespace):
    """Two clocks run in one domain, and a node on simulated time hears that of its namespace."""
    monkeypatch.setenv("ROS_DOMAIN_ID", fresh_domain())
    told = {"/clock": 7 * 10**9, "/robot1/clock": 3 * 10**9}
    words = [*namespaces.in_namespace(namespace), "-p", "use_sim_time:=true"]
    with ros(args=["--ros-args", *words]) as context, ros() as other:
        node = rclpy.create_node("node", context=context)
        speaker = rclpy.create_node("speaker", context=other)
        clocks = {topic: speaker.create_publisher(Clock, topic, 10) for topic in told}
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)

        def now():
            for topic, clock in clocks.items():
                clock.publish(clock_to_message(told[topic]))
            executor.spin_once(timeout_sec=0.05)
            return node.get_clock().now().nanoseconds

        heard = {until(now, "the clock")} | {now() for _ in range(5)}  # and nobody else's
        assert heard == {told[namespaces.absolute(namespace, "clock")]}
        executor.shutdown()


def test_a_replay_speaks_in_the_namespace_that_is_named(monkeypatch, tmp_path):
    """Inputs and time of one robot, and nothing at the root, where it was recorded."""
    monkeypatch.setenv("ROS_DOMAIN_ID", fresh_domain())
    bag, stamps = OfflineBag(), [10**9 + 10**7 * tick for tick in range(30)]
    for stamp in stamps:
        message = pressures_to_message(np.full(3, 1e3), ("a", "b", "c"), stamp)
        bag.add("pressure/state", stamp, message)
    bag.write(tmp_path / "bag")
    peer = Peer("listener")
    heard = {f"{space}{topic}": [] for space in ("", "/robot1") for topic in ("/clock", STATE)}
    for topic, stamped in heard.items():
        kind = Clock if topic.endswith("clock") else JointState
        profile = qos(topic.removeprefix("/robot1").lstrip("/") if kind is JointState else "/clock")
        profile.depth = 100
        peer.node.create_subscription(kind, topic, stamped.append, profile)
    peer.start()
    try:
        words = ["--online", "--wait", "30", "--namespace", "/robot1"]
        assert cli.main(["replay", str(tmp_path / "bag"), *words]) == 0
    finally:
        peer.close()
    assert not heard["/clock"]
    assert not heard[STATE]
    received = [from_stamp(message, STATE) for message in heard["/robot1" + STATE]]
    assert set(received) <= set(stamps)
    assert len(received) > len(stamps) / 2
    times = [each.clock.sec * 10**9 + each.clock.nanosec for each in heard["/robot1/clock"]]
    assert times == sorted(times)
    assert times


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
    systems = {SimulationOptions: simulation_system, HardwareOptions: hardware_system}
    for options, system_of in systems.items():
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
    with ros() as context:
        given = [Parameter(name, value=value) for name, value in overrides.items()]
        node = RecorderNode(context=context, namespace=namespace, parameter_overrides=given)
        assert node.frame("base") == prefix + "base"
        assert node.get_parameter("frame_prefix").value == prefix
        report = node._diagnostic_report()
        assert report.node == (namespace.strip("/"), "recorder")
        assert report.hardware_id == namespaces.full_name(namespace, "licher2025")
        node.destroy_node()


def test_messages_name_the_prefixed_frames():
    expected = expected_of(load_robot("licher2025"), frame_prefix="robot1/")
    wrench = codec("force_torque/wrench", expected).encode(np.zeros(6), 1)
    assert wrench.header.frame_id == "robot1/force_torque"
    pose = codec("mocap/tip/pose", expected).encode(np.eye(4), 1)
    assert pose.header.frame_id == "robot1/base"
    arm = expected_of(load_robot("dalenberg_robot1", ("arm",)), frame_prefix="robot1/")
    assert arm.frame == "world", "the world is everybody's"


def test_every_node_honours_remapped_topics(monkeypatch, tmp_path):
    """As `--ros-args -r` and launch files say them: no topic of the table keeps its name."""
    monkeypatch.setenv("ROS_DOMAIN_ID", fresh_domain())
    there = [f"{topic}:=/elsewhere/{topic.lstrip('/')}" for topic in TOPICS]
    with ros(args=["--ros-args", *(word for rule in there for word in ("-r", rule))]) as context:
        for name, said in NODES.items():
            bag = [Parameter("bag", value=str(tmp_path / "bag"))] * (name == "recorder")
            module, *words = said.split()  # of a block: what runs it, and the block
            kind = node_class(words[0] if words else module, name)
            node = kind(context=context, parameter_overrides=bag)
            if name != "valves":  # without a bus they have those that they are made with
                assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS, name
            found = [each.topic_name for each in (*node.publishers, *node.subscriptions)]
            found = [topic for topic in found if not topic.endswith("/transition_event")]
            assert len(found) > 3, name
            assert all(topic.startswith("/elsewhere/") for topic in found), (name, found)
            node.finish()
            node.destroy_node()

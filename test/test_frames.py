"""Frames: transforms as computed, tf2_msgs with and without its package, the URDF."""

import sys
from types import ModuleType

import numpy as np
import pinocchio as pin
import pytest
from domains import fresh_domain
from kit.processes import Peer
from rosbags.typesys import Stores, get_typestore

from softcr_hardware.optitrack.calibration import load_calibration
from softcr_models import CosseratRod, load_robot
from softcr_runtime.bags.message_bytes import cdr_of
from softcr_runtime.bags.own_messages import has_frames_of
from softcr_runtime.blocks.values import Pose
from softcr_runtime.wire import tf_types as wire_types
from softcr_runtime.wire.frames import (
    Frames,
    Transform,
    base_in_world,
    static_transforms,
    transform_messages,
)
from softcr_runtime.wire.tf_types import NoWireType, tf_message, tf_message_class, tf_transforms
from softcr_runtime.wire.topics import TOPICS
from softcr_tools.doctor.finding import OK, WARN
from softcr_tools.doctor.software import check_frames
from softcr_tools.visuals.urdf import robot_description

HASH_OF_TF_MESSAGE = "RIHS01_e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087"
"""As ROS 2 tells it of tf2_msgs/msg/TFMessage since Iron (`ros2 topic info -v /tf`)."""


def chained(transforms):
    """(4, 4) poses in the root of all children, by name, from TransformStamped messages."""
    poses = {}
    for each in transforms:
        t, q = each.transform.translation, each.transform.rotation
        pose = pin.XYZQUATToSE3(np.array([t.x, t.y, t.z, q.x, q.y, q.z, q.w])).homogeneous
        poses[each.child_frame_id] = poses.get(each.header.frame_id, np.eye(4)) @ pose
    return poses


def test_a_tip_seen_by_the_cameras_comes_back_through_the_frames():
    pytest.importorskip("rclpy")
    calibration = load_calibration("licher2025")
    base = calibration.base_in_world.pose
    found = chained(transform_messages(static_transforms(Frames("robot1/"), base, 5)))
    assert list(found) == ["robot1/base", "robot1/force_torque"]
    body = pin.SE3(pin.rpy.rpyToMatrix(0.3, -0.2, 1.1), np.array([0.31, 0.7, -0.25])).homogeneous
    in_base = calibration.tip(body)
    np.testing.assert_allclose(
        found["robot1/base"] @ in_base, body @ calibration.tip_in_body.pose, atol=1e-9
    )
    np.testing.assert_array_equal(found["robot1/force_torque"], found["robot1/base"])


@pytest.mark.parametrize("name", ["licher2025", "dalenberg_robot1"])
def test_without_cameras_the_base_hangs_or_stands_as_the_file_says(name):
    robot = load_robot(name, ("rod", "arm"))
    base = base_in_world(robot)
    turned = pin.rpy.matrixToRpy(base[:3, :3])
    np.testing.assert_allclose(
        pin.rpy.rpyToMatrix(*robot.base_orientation), pin.rpy.rpyToMatrix(turned), atol=1e-12
    )
    assert not base[:3, 3].any()


@pytest.mark.parametrize(("name", "prefix"), [("licher2025", ""), ("dalenberg_robot1", "left/")])
def test_pinocchio_reads_the_urdf_and_finds_the_straight_tip(name, prefix):
    """Another program's reader of URDF, and the rod's own equations for where the tip is."""
    robot, frames = load_robot(name, ("rod", "arm")), Frames(prefix)
    base = base_in_world(robot)
    text = robot_description(robot, frames, base)
    model = pin.buildModelFromXML(text.encode())
    names = {frame.name for frame in model.frames if frame.type == pin.FrameType.BODY}
    assert {frames.world, frames.base, frames.tip} <= names
    assert (frames.force_torque in names) == (name == "licher2025")
    (joint,) = list(model.joints)[1:]  # base to tip: fixed ones have none
    assert joint.nq == 7
    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    tip = data.oMf[model.getFrameId(frames.tip)].homogeneous
    if name == "licher2025":
        rod = CosseratRod(robot.replace(gravity=0.0), intervals=5)
        straight = base @ rod.tip_pose(rod.equilibrium(np.zeros(3)))
    else:
        straight = robot.chain.pose(
            np.zeros(3 * len(robot.bodies)), robot.rest_lengths, np.ones((1, len(robot.bodies)))
        )[0]
    np.testing.assert_allclose(tip[:3, 3], straight[:3, 3], atol=1e-6)


def test_the_doctor_says_how_to_get_frames():
    assert check_frames("").level == OK
    finding = check_frames("MarkerArray is told as something else")
    assert finding.level == WARN
    assert "tf2_msgs is missing" in finding.found
    assert "ros-$ROS_DISTRO-tf2-msgs" in finding.mend


def test_the_real_package_is_used_where_it_is(monkeypatch):
    class TFMessage:
        def __init__(self, transforms):
            self.transforms = transforms

    module = ModuleType("tf2_msgs.msg")
    module.TFMessage = TFMessage
    monkeypatch.setitem(sys.modules, "tf2_msgs.msg", module)
    monkeypatch.setitem(sys.modules, "tf2_msgs", ModuleType("tf2_msgs"))
    monkeypatch.setattr(wire_types, "is_installed", lambda: True)
    tf_message_class.cache_clear()
    try:
        message = tf_message(["one"])
        assert isinstance(message, TFMessage)
        assert tf_transforms(message) == ["one"]
        assert TOPICS["/tf"].message_class() is TFMessage
    finally:
        tf_message_class.cache_clear()


@pytest.mark.skipif(wire_types.is_installed(), reason="tf2_msgs is installed here")
def test_an_unknown_ros_is_refused_before_anything_of_it_is_used(monkeypatch):
    pytest.importorskip("rclpy")

    def other(*_):
        raise NoWireType("visualization_msgs/MarkerArray is told as (b'new',)")

    monkeypatch.setattr(wire_types, "_check", other)
    tf_message_class.cache_clear()
    try:
        assert not TOPICS["/tf"].is_available()
        assert TOPICS["markers"].is_available()
        with pytest.raises(NoWireType, match="told as"):
            tf_message([])
    finally:
        tf_message_class.cache_clear()


@pytest.mark.skipif(wire_types.is_installed(), reason="tf2_msgs is installed here")
def test_others_hear_the_real_type_by_name_hash_description_and_bytes(monkeypatch):
    rclpy = pytest.importorskip("rclpy")
    from type_description_interfaces.srv import GetTypeDescription

    monkeypatch.setenv("ROS_DOMAIN_ID", fresh_domain())
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    peer = Peer("talker")
    listener = rclpy.create_node("listener", context=peer.context)
    peer.executor.add_node(listener)
    try:
        kind, heard = tf_message_class(), []
        publisher = peer.node.create_publisher(kind, "/tf", 10)
        listener.create_subscription(kind, "/tf", heard.append, 10, raw=True)
        base = pin.SE3(pin.rpy.rpyToMatrix(0.3, -0.2, 1.1), np.array([1.0, 2.0, 3.0])).homogeneous
        told = transform_messages(static_transforms(Frames("r/"), base, 7_000_000_008))
        peer.until(lambda: heard, "a message", lambda: publisher.publish(tf_message(told)))
        store = get_typestore(Stores.ROS2_JAZZY)
        read = store.deserialize_cdr(heard[0], "tf2_msgs/msg/TFMessage").transforms
        names = [[each.child_frame_id for each in of] for of in (read, tf_transforms(heard[0]))]
        assert names == [["r/base", "r/force_torque"]] * 2
        assert [(each.header.stamp.sec, each.header.stamp.nanosec) for each in read] == [(7, 8)] * 2
        np.testing.assert_allclose(chained(read)["r/base"], base, atol=1e-12)
        (seen,) = listener.get_publishers_info_by_topic("/tf")
        assert seen.topic_type == "tf2_msgs/msg/TFMessage"
        assert str(seen.topic_type_hash) == HASH_OF_TF_MESSAGE
        request = GetTypeDescription.Request(
            type_name="tf2_msgs/msg/TFMessage", type_hash=HASH_OF_TF_MESSAGE
        )
        answer = peer.ask(GetTypeDescription, "/talker/get_type_description", request)
        described = answer.type_description
        (field,) = described.type_description.fields
        assert field.name == "transforms"
        assert field.type.nested_type_name == "geometry_msgs/msg/TransformStamped"
        others = [each.type_name for each in described.referenced_type_descriptions]
        assert others == sorted(others)
        assert "geometry_msgs/msg/Quaternion" in others
        with pytest.raises(TypeError):  # refused, instead of read as what it is not
            publisher.publish(kind(told))
    finally:
        listener.destroy_node()
        peer.close()


@pytest.mark.parametrize(
    ("prefix", "own", "foreign"),
    [("", "base", "r1/base"), ("r1/", "r1/base", "r10/base"), ("left_", "left_tip", "base")],
)
def test_a_bag_holds_the_frames_of_its_robot_alone(prefix, own, foreign):
    pytest.importorskip("rclpy")

    def payload(*children):
        told = [Transform("world", child, Pose.of(np.eye(4)), 1) for child in children]
        return cdr_of(tf_message_class()(transforms=transform_messages(told)))

    assert has_frames_of(prefix, payload(own))
    assert not has_frames_of(prefix, payload(own, foreign))
    assert has_frames_of(prefix, b"\x00\x01\x00\x00garbage")

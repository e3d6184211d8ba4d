"""The node that shows a robot to other programs: frames, URDF, shape, markers, parameters."""

import numpy as np
import pinocchio as pin
import pytest
from domains import fresh_domain
from kit.processes import Peer

rclpy = pytest.importorskip("rclpy")

from rclpy.parameter import Parameter  # noqa: E402

from softcr_hardware.optitrack.calibration import load_calibration  # noqa: E402
from softcr_models import CosseratRod, load_robot  # noqa: E402
from softcr_models.robots.obstacle_files import load_obstacles  # noqa: E402
from softcr_runtime.wire import tf_types as wire_types  # noqa: E402
from softcr_runtime.wire.diagnostics import DiagnosticReport, diagnostics_to_message  # noqa: E402
from softcr_runtime.wire.messages import pose_with_covariance_to_message  # noqa: E402
from softcr_runtime.wire.rod_clouds import rod_cloud_message  # noqa: E402
from softcr_runtime.wire.tf_types import tf_transforms  # noqa: E402
from softcr_tools.nodes.visuals import VisualsNode  # noqa: E402
from softcr_tools.running.run_options import SimulationOptions  # noqa: E402
from softcr_tools.running.systems import simulation_system  # noqa: E402
from softcr_tools.visuals.part import with_visuals  # noqa: E402

ROBOT = load_robot("licher2025")
TOLD = ("estimate/shape", "markers", "estimate/parameters", "robot_description", "/tf_static",
        "/tf")  # fmt: skip
IS_RAW = not wire_types.is_installed()


def obstacles_in(message):
    return [each for each in message.markers if each.ns.startswith("obstacle")]


@pytest.fixture(scope="module")
def shown():
    """What an active node with a calibration says of a rod at rest, by topic."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", fresh_domain())
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        other = Peer("other")
    calibration = Parameter("calibration", value="licher2025")
    node = VisualsNode(context=other.context, parameter_overrides=[calibration])
    heard = {topic: [] for topic in TOLD}
    node.trigger_configure()
    node.trigger_activate()
    for topic in TOLD:  # late: what is latched comes nevertheless
        other.hear(topic, heard[topic].append, raw=IS_RAW and topic.startswith("/tf"))
    around = load_obstacles("ball").model_dump(mode="json")
    simulator = DiagnosticReport("simulator: loop", 0, "", ROBOT.name, {"obstacles": around})
    another = DiagnosticReport("r2/simulator: loop", 0, "", ROBOT.name, {"obstacles": []})
    rod = CosseratRod(ROBOT, intervals=5)
    state = rod.rest_state()
    tip, nodes = rod.tip_pose(state), rod.node_poses(state)
    poses = np.concatenate((nodes[:1], nodes))

    def say():
        stamp = other.now()
        covariance = pose_with_covariance_to_message(tip, 1e-8 * np.eye(3), stamp)
        other.publisher("estimate/tip/pose").publish(covariance)
        # of several nodes, not in order
        for report, age in ((simulator, 0), (another, 10**9)):
            message = diagnostics_to_message([report], stamp - age)
            other.publisher("/diagnostics").publish(message)
        found = {"bending_compliance": 47.5}, {"bending_compliance": 0.4}
        other.publisher("estimate/rod").publish(rod_cloud_message(state, poses, *found, stamp))

    def all_is_shown():
        return all(heard.values()) and obstacles_in(heard["markers"][-1])

    try:
        other.until(all_is_shown, "a message on each topic, with obstacles", say)
        yield {topic: messages[-1] for topic, messages in heard.items()} | {"tip": tip}
    finally:
        node.finish()
        node.destroy_node()
        other.close()


def test_frames_lead_from_the_cameras_world_to_the_tip(shown):
    static = tf_transforms(shown["/tf_static"])
    (moving,) = tf_transforms(shown["/tf"])
    edges = [(each.header.frame_id, each.child_frame_id) for each in (*static, moving)]
    assert edges == [("world", "base"), ("base", "force_torque"), ("base", "tip")]

    def pose(message):
        t, q = message.transform.translation, message.transform.rotation
        return pin.XYZQUATToSE3(np.array([t.x, t.y, t.z, q.x, q.y, q.z, q.w])).homogeneous

    calibration = load_calibration("licher2025")
    body = pose(static[0]) @ pose(moving)  # its tip_in_body is none
    np.testing.assert_allclose(calibration.tip(body), shown["tip"], atol=1e-9)


def test_description_shape_markers_obstacles_and_parameters_are_told(shown):
    """The description to who comes late, obstacles by the simulator of this robot."""
    model = pin.buildModelFromXML(shown["robot_description"].data.encode())
    assert model.existFrame("force_torque")
    path = shown["estimate/shape"]
    assert (path.header.frame_id, len(path.poses)) == ("base", 7)
    namespaces = {marker.ns for marker in shown["markers"].markers}
    assert {"rod", "reference", "trail", "tip"} <= namespaces
    (ball,) = obstacles_in(shown["markers"])
    assert (ball.ns, ball.header.frame_id) == ("obstacle ball", "base")
    assert ball.scale.x == pytest.approx(0.07)
    message = shown["estimate/parameters"]
    told = list(message.name), list(message.position), list(message.effort)
    assert told == (["bending_compliance"], [47.5], [0.4])


def test_a_run_has_the_node_unless_it_is_told_not_to(tmp_path):
    options = SimulationOptions.of_options({"controller": "rod_mpc"})
    plain = simulation_system(options, tmp_path)
    system = with_visuals(plain, options)
    assert [part.name for part in system.parts[:2]] == ["recorder", "visuals"]
    assert system.part("visuals").spare
    assert not any(part.spare for part in plain.parts)
    without = options.model_copy(update={"visuals": "off"})
    assert with_visuals(plain, without) is plain
    # bags of lock-step stay equal to the bit without pictures
    options = SimulationOptions.of_options({"controller": "rod_mpc", "mode": "lockstep"})
    plain = simulation_system(options, tmp_path)
    assert with_visuals(plain, options) is plain
    wanted = options.model_copy(update={"visuals": "on"})
    assert with_visuals(plain, wanted).part("visuals").parameters["mode"] == "lockstep"

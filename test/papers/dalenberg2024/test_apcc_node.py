"""The A-PCC node in lock-step: it steers a kinematic arm, holds, calibrates, refuses."""

import itertools
import threading
import time

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from softcr_papers.constant_curvature.kinematics import coverage_of  # noqa: E402
from softcr_papers.dalenberg2024.apcc.block import ESTIMATE, PLAN, POSES, SETPOINT, ApccBlock  # noqa: E402
from softcr_papers.dalenberg2024.arm import load_arm  # noqa: E402
from softcr_runtime.ros.block_node import block_node_class  # noqa: E402
from softcr_runtime.ros.process import SupervisedExecutor  # noqa: E402
from softcr_runtime.wire.body_messages import (  # noqa: E402
    pose_values_from_message,
    poses_to_message,
    tendons_from_message,
    tendons_to_message,
)
from softcr_runtime.wire.goal_messages import tip_from_message, tip_to_message  # noqa: E402
from softcr_runtime.wire.messages import MessageError, from_stamp, plan_from_message  # noqa: E402
from softcr_runtime.wire.topics import TOPICS, qos  # noqa: E402

TIMEOUT = 60.0  # of what will come, on a busy machine [s]
PERIOD = 0.02
ARM = load_arm("dalenberg_robot1")
NAMES = [f"tendon_{number}" for number in range(1, 10)]
SENSORS = np.array(ARM.racks)
GOAL = np.array([0.08, 0.05, -0.56])


def lengths(message):
    """(a,) tendon lengths of the first command of a plan [m]."""
    return plan_from_message(message, NAMES, PLAN, "positions").commands[0]


class World:
    """An arm of the model's sections that goes where its tendons are told."""

    def __init__(self, context):
        self._node = rclpy.create_node("world", context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self._node)
        self._publishers = {
            topic: self._node.create_publisher(
                TOPICS[topic].message_class(), topic, qos(topic, lockstep=True)
            )
            for topic in (POSES, SETPOINT)
        }
        self.heard = {PLAN: {}, ESTIMATE: {}}
        for topic, messages in self.heard.items():
            self._node.create_subscription(
                TOPICS[topic].message_class(),
                topic,
                lambda message, into=messages: into.update({from_stamp(message, ""): message}),
                qos(topic, lockstep=True),
            )
        self._client = self._node.create_client(Trigger, "apcc_controller/calibrate_zero")
        self._stamps = itertools.count(10**9, round(PERIOD * 1e9))

    def show(self, q):
        """The poses of a shape (9,); returns the tendons (9,) the node then wants [m]."""
        coverage = coverage_of(SENSORS, ARM.model_lengths)
        return self.send(ARM.model.pose(q, ARM.model_lengths, coverage))

    def send(self, poses):
        stamp = next(self._stamps)
        self._publishers[POSES].publish(poses_to_message(poses, stamp))
        self._spin(lambda: stamp in self.heard[PLAN], f"no command at {stamp}")
        self.last_stamp = stamp
        return lengths(self.heard[PLAN][stamp])

    def estimate(self):
        """The newest one."""
        heard = self.heard[ESTIMATE]
        self._spin(lambda: self.last_stamp in heard, f"no estimate at {self.last_stamp}")
        return heard[self.last_stamp]

    def ask(self, goal):
        self._publishers[SETPOINT].publish(tip_to_message(goal, next(self._stamps), "world"))

    def calibrate(self):
        self._spin(self._client.service_is_ready, "no service")
        future = self._client.call_async(Trigger.Request())
        self._spin(future.done, "no answer")
        return future.result()

    def _spin(self, until, complaint):
        deadline = time.monotonic() + TIMEOUT
        while not until():
            assert time.monotonic() < deadline, complaint
            self._executor.spin_once(timeout_sec=0.01)

    def close(self):
        self._executor.shutdown()
        self._node.destroy_node()


@pytest.fixture
def world():
    """A world with an active node in lock-step."""
    context = rclpy.Context()
    rclpy.init(context=context)
    overrides = [Parameter("mode", value="lockstep"), Parameter("largest_error", value=0.3)]
    node = block_node_class(ApccBlock)(context=context, parameter_overrides=overrides)
    executor = SupervisedExecutor(node)
    spinning = threading.Thread(target=executor.spin)
    node.trigger_configure()
    node.trigger_activate()
    spinning.start()
    outside = World(context)
    yield outside, node
    executor.stop()
    spinning.join()
    outside.close()
    node.finish()
    node.destroy_node()
    rclpy.try_shutdown(context=context)


def test_the_node_steers_holds_and_calibrates(world):
    outside, node = world
    straight = np.zeros(9)
    assert not outside.show(straight).any()
    assert node.diagnostic_values()["holding"] == "no setpoint"
    assert node.diagnostic_warnings() == []

    # the arm's shape follows its tendons: q = B^-T y
    outside.ask(GOAL)
    shape_of = np.linalg.inv(ARM.tendons().actuation(ARM.model_lengths).T)
    q = straight
    for _ in range(150):
        q = shape_of @ outside.show(q)
    tip = ARM.model.position(q, ARM.model_lengths)
    assert np.linalg.norm(tip - GOAL) < 5e-3
    assert node.diagnostic_values()["holding"] == ""
    fields = [field.name for field in outside.estimate().fields]
    told = {f"parameter.{name}" for name in ("rest_length_3", "distance_3", "angle_1")}
    assert {"state.coordinates", *told} <= set(fields)

    # a bent arm is no zero state
    answer = outside.calibrate()
    assert not answer.success
    assert "m aside of the base's z axis" in answer.message

    # a tip far away: tendons stay as they are
    outside.ask(np.array([0.5, 0.0, -0.2]))
    deadline = time.monotonic() + TIMEOUT
    while node.diagnostic_values()["holding"] != "tip lost":  # until it has heard of it
        held = outside.show(q)
        assert time.monotonic() < deadline
    np.testing.assert_array_equal(outside.show(q), held)
    assert node.diagnostic_warnings() == ["tip lost: tendons held"]

    # straight again, with other lengths: the zero state is taken anew and the tendons let go
    others = np.array([0.110, 0.250, 0.230])
    poses = ARM.model.pose(straight, others, np.tri(3))
    for _ in range(25):
        outside.send(poses)
    answer = outside.calibrate()
    assert answer.success, answer.message
    assert "section lengths [0.11, 0.25, 0.23] m" in answer.message
    assert not outside.send(poses).any()
    np.testing.assert_allclose(node.diagnostic_values()["rest_lengths"], others, atol=1e-6)


def test_stale_poses_hold_the_last_command():
    context = rclpy.Context()
    rclpy.init(context=context)
    node = block_node_class(ApccBlock)(context=context)
    sent = []
    try:
        node.trigger_configure()
        node._speakers[PLAN].publisher.publish = sent.append
        node.trigger_activate()
        deadline = time.monotonic() + TIMEOUT
        while len(sent) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert node.diagnostic_values()["holding"] == "no poses"
        assert node.diagnostic_warnings() == ["no poses: tendons held"]
        assert not lengths(sent[-1]).any()
        stamps = [from_stamp(message, PLAN) for message in sent[:3]]
        assert sorted(set(stamps)) == stamps
    finally:
        node.finish()
        node.destroy_node()
        rclpy.try_shutdown(context=context)


def test_foreign_messages_are_refused():
    poses = ARM.model.pose(np.zeros(9), ARM.model_lengths, np.tri(3))
    there = [
        each.matrix for each in pose_values_from_message(poses_to_message(poses, 10**9), POSES, 3)
    ]
    np.testing.assert_allclose(there, poses, atol=1e-15)
    with pytest.raises(MessageError, match="2 poses, must be 3"):
        pose_values_from_message(poses_to_message(poses[:2], 10**9), POSES, 3)
    broken = poses.copy()
    broken[1, 0, 3] = np.nan
    with pytest.raises(MessageError, match=r"position.x = nan must be finite"):
        pose_values_from_message(poses_to_message(broken, 10**9), POSES, 3)
    setpoint = tip_to_message(GOAL, 1, "world")
    np.testing.assert_array_equal(tip_from_message(setpoint, SETPOINT, "world"), GOAL)
    with pytest.raises(MessageError, match=r"position\.x = inf must be finite"):
        tip_from_message(tip_to_message([np.inf, 0.0, 0.0], 1, "world"), SETPOINT, "world")
    with pytest.raises(MessageError, match="must be finite"):
        tendons_from_message(tendons_to_message([np.nan], ["a"], 1), "tendon/command", ["a"])
    with pytest.raises(MessageError, match=r"name \['a'\] must be \['b'\]"):
        tendons_from_message(tendons_to_message([0.0], ["a"], 1), "tendon/command", ["b"])

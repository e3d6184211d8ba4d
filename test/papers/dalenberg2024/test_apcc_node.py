"""The A-PCC node in lock-step: it steers a kinematic arm, holds, calibrates, refuses."""

import itertools
import time

import numpy as np
import pytest
from kit.loops import TIMEOUT, lockstep_node
from kit.processes import ros, until

pytest.importorskip("rclpy")

from std_srvs.srv import Trigger

from softcr_papers.constant_curvature.kinematics import coverage_of
from softcr_papers.dalenberg2024.apcc.block import ESTIMATE, PLAN, POSES, SETPOINT, ApccBlock
from softcr_papers.dalenberg2024.arm import load_arm
from softcr_runtime.ros.block_node import block_node_class
from softcr_runtime.wire.body_messages import poses_to_message
from softcr_runtime.wire.goal_messages import tip_to_message
from softcr_runtime.wire.messages import from_stamp, plan_from_message

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

    def __init__(self, outside):
        self._outside, self._heard = outside, outside.heard
        self._client = outside.node.create_client(Trigger, "apcc_controller/calibrate_zero")
        self._stamps = itertools.count(10**9, round(PERIOD * 1e9))

    def show(self, q):
        """The poses of a shape (9,); returns the tendons (9,) the node then wants [m]."""
        coverage = coverage_of(SENSORS, ARM.model_lengths)
        return self.send(ARM.model.pose(q, ARM.model_lengths, coverage))

    def send(self, poses):
        stamp = self.last_stamp = next(self._stamps)
        self._outside.publishers[POSES].publish(poses_to_message(poses, stamp))
        return lengths(self._answer(PLAN))

    def _answer(self, topic):
        heard, stamp = self._heard[topic], self.last_stamp
        self._outside.spin(lambda: stamp in heard, f"nothing on {topic} at {stamp}")
        return heard[stamp]

    def estimate(self):
        return self._answer(ESTIMATE)

    def ask(self, goal):
        message = tip_to_message(goal, next(self._stamps), "world")
        self._outside.publishers[SETPOINT].publish(message)

    def calibrate(self):
        self._outside.spin(self._client.service_is_ready, "no service")
        future = self._client.call_async(Trigger.Request())
        self._outside.spin(future.done, "no answer")
        return future.result()


@pytest.fixture
def world():
    about = (POSES, SETPOINT), (PLAN, ESTIMATE)
    with lockstep_node(ApccBlock, *about, largest_error=0.3) as (outside, node):
        yield World(outside), node


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
    sent = []
    with ros() as context:
        node = block_node_class(ApccBlock)(context=context)
        try:
            node.trigger_configure()
            node._speakers[PLAN].publisher.publish = sent.append
            node.trigger_activate()
            until(lambda: len(sent) >= 3, "three commands")
            assert node.diagnostic_values()["holding"] == "no poses"
            assert node.diagnostic_warnings() == ["no poses: tendons held"]
            assert not lengths(sent[-1]).any()
            stamps = [from_stamp(message, PLAN) for message in sent[:3]]
            assert sorted(set(stamps)) == stamps
        finally:
            node.finish()
            node.destroy_node()

"""The base-sensor estimator as a node: wrenches and pressures of a simulated rod over real DDS."""

import itertools
import threading
import time

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402

from softcr_models import CosseratRod, load_robot  # noqa: E402
from softcr_models.prediction import RodPrediction  # noqa: E402
from softcr_papers.mehl2024.cc_block import CcEstimatorBlock  # noqa: E402
from softcr_runtime.ros.block_node import block_node_class  # noqa: E402
from softcr_runtime.ros.process import SupervisedExecutor  # noqa: E402
from softcr_runtime.wire.messages import (  # noqa: E402
    from_stamp,
    pose_with_covariance_from_message,
    pressures_to_message,
    wrench_to_message,
)
from softcr_runtime.wire.topics import TOPICS, qos  # noqa: E402

TIMEOUT = 60.0  # of what will come, on a busy machine [s]
PERIOD = 1 / 70
INPUTS = ("pressure/state", "force_torque/wrench")
OUTPUTS = ("estimate/constant_curvature", "estimate/tip/pose")


class World:
    """Sends what pressure sensors and force-torque sensor say, hears the estimates."""

    def __init__(self, context):
        self._node = rclpy.create_node("world", context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self._node)
        self._publishers = {
            topic: self._node.create_publisher(
                TOPICS[topic].message_class(), topic, qos(topic, lockstep=True)
            )
            for topic in INPUTS
        }
        self.heard = {topic: {} for topic in OUTPUTS}
        for topic, messages in self.heard.items():
            self._node.create_subscription(
                TOPICS[topic].message_class(),
                topic,
                lambda message, into=messages: into.update({from_stamp(message, ""): message}),
                qos(topic, lockstep=True),
            )

    def exchange(self, pressures, wrench, stamp, answered=True):
        """One cycle of lock-step."""
        chambers = load_robot("licher2025").chamber_names
        pressure, force = (self._publishers[topic] for topic in INPUTS)
        pressure.publish(pressures_to_message(pressures, chambers, stamp))
        if wrench is not None:
            force.publish(wrench_to_message(wrench, stamp))
        deadline = time.monotonic() + TIMEOUT
        while answered and not all(stamp in messages for messages in self.heard.values()):
            assert time.monotonic() < deadline, f"no estimate of {stamp}"
            self._executor.spin_once(timeout_sec=0.01)

    def close(self):
        self._executor.shutdown()
        self._node.destroy_node()


@pytest.fixture
def world():
    """A world with an active node in lock-step."""
    context = rclpy.Context()
    rclpy.init(context=context)
    node = block_node_class(CcEstimatorBlock)(
        context=context, parameter_overrides=[Parameter("mode", value="lockstep")]
    )
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


def rod_motion():
    """Pressures (T, 3), wrenches (T, 6) and tips (T, 3) of two seconds of a rod."""
    rod = CosseratRod(load_robot("licher2025"), 10)
    times = PERIOD * np.arange(140)
    phases = 2 * np.pi * np.multiply.outer(times, [0.5, 0.6, 0.7])
    pressures = 1e4 * (1.0 - np.cos(phases + 1.0))
    start = rod.equilibrium(pressures[0])
    prediction = RodPrediction(rod, substeps=8, single_precision=False)
    states = prediction.rollout(start, pressures[None], rod.nominal_parameters, PERIOD)[0]
    states = [start, *states]
    wrenches = [rod.base_wrench(*sample) for sample in zip(states, pressures, strict=True)]
    return pressures, np.array(wrenches), np.array([rod.tip_pose(x)[:3, 3] for x in states])


def numbers(message):
    """Field -> value of a cloud of one point."""
    values = np.frombuffer(bytes(message.data), "<f8")
    return dict(zip([field.name for field in message.fields], values, strict=True))


def test_the_node_sees_a_rod_and_says_when_its_sensor_is_silent(world):
    outside, node = world
    pressures, wrenches, tips = rod_motion()
    stamps = itertools.count(10**9, round(PERIOD * 1e9))
    for pressure, wrench in zip(pressures, wrenches, strict=True):
        stamp = next(stamps)
        outside.exchange(pressure, wrench, stamp)
    pose, covariance = pose_with_covariance_from_message(
        outside.heard["estimate/tip/pose"][stamp], "estimate/tip/pose"
    )
    # the robot file's numbers, nothing identified
    assert np.linalg.norm(pose[:3, 3] - tips[-1]) < 0.010
    assert np.linalg.norm(tips[-1] - tips[0]) > 0.005
    assert np.linalg.eigvalsh(covariance[:3, :3]).min() > 0.0
    arc = numbers(outside.heard["estimate/constant_curvature"][stamp])
    assert {"delta_x", "elongation_rate", "bending_stiffness", "bending_stiffness_std"} <= set(arc)
    assert 150.0 < arc["bending_stiffness"] < 600.0
    assert 0.0 < arc["delta_x_std"] < 0.01
    assert node.diagnostic_values()["restarts"] == 0
    assert node.diagnostic_warnings() == []

    for _ in range(3):
        outside.exchange(pressures[-1], None, next(stamps))
    assert node.diagnostic_warnings() == ["no wrenches: predicting only"]
    assert node.diagnostic_values()["predicted_only"] == 3

"""The base-sensor estimator as a node: wrenches and pressures of a simulated rod over real DDS."""

import itertools

import numpy as np
import pytest
from kit.loops import lockstep_node

rclpy = pytest.importorskip("rclpy")

from softcr_models import CosseratRod, load_robot  # noqa: E402
from softcr_models.prediction import RodPrediction  # noqa: E402
from softcr_papers.mehl2024.cc_block import CcEstimatorBlock  # noqa: E402
from softcr_runtime.wire.messages import (  # noqa: E402
    pose_with_covariance_from_message,
    pressures_to_message,
    wrench_to_message,
)

PERIOD = 1 / 70
INPUTS = ("pressure/state", "force_torque/wrench")
OUTPUTS = ("estimate/constant_curvature", "estimate/tip/pose")


def exchange(outside, pressures, wrench, stamp):
    chambers = load_robot("licher2025").chamber_names
    pressure, force = (outside.publishers[topic] for topic in INPUTS)
    pressure.publish(pressures_to_message(pressures, chambers, stamp))
    if wrench is not None:
        force.publish(wrench_to_message(wrench, stamp))
    heard = outside.heard.values()
    outside.spin(lambda: all(stamp in each for each in heard), f"no estimate of {stamp}")


@pytest.fixture
def world():
    """What is around an active node in lock-step."""
    with lockstep_node(CcEstimatorBlock, INPUTS, OUTPUTS) as around:
        yield around


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
        exchange(outside, pressure, wrench, stamp)
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
        exchange(outside, pressures[-1], None, next(stamps))
    assert node.diagnostic_warnings() == ["no wrenches: predicting only"]
    assert node.diagnostic_values()["predicted_only"] == 3

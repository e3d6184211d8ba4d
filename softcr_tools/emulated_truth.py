"""The truth about the emulated rod on ROS, for a recorder beside the emulators."""

import os
import threading
import time

from softcr_hardware.actuator import EmulatedActuator
from softcr_hardware.plant import Measurement

_TOPIC = "simulation/truth/tip/pose"


def publish_truth(actuator: EmulatedActuator, stop: threading.Event) -> None:
    """Publish the true tip at each exposure of the cameras, until `stop`."""
    import rclpy

    from softcr_runtime.messages import pose_to_message
    from softcr_runtime.ros_context import ros_context
    from softcr_runtime.topics import TOPICS, qos

    with ros_context():
        node = rclpy.create_node(f"softcr_emulated_bench_{os.getpid()}")
        publisher = node.create_publisher(TOPICS[_TOPIC].message_class(), _TOPIC, qos(_TOPIC))

        def tell(measured: Measurement) -> None:
            stamp = time.time_ns() - (time.monotonic_ns() - measured.stamp)
            publisher.publish(pose_to_message(measured.true_tip_pose, stamp))

        actuator.on_seen = tell
        stop.wait()
        actuator.on_seen = None
        node.destroy_node()

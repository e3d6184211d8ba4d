"""What other programs show of a robot, as a node: frames, markers, the centre line, parameters.

It computes nothing that a loop needs and nobody waits for it: what is only looked at gives way
first. Its process has a low priority, a cycle that took long is followed by a longer pause,
and where nobody but a recorder listens it draws seldom. Frames and the URDF are for RViz,
`markers` and `estimate/shape` for RViz and Foxglove, `estimate/parameters` for PlotJuggler. `softcr
view` draws for itself and leaves these topics to this node where both run.
"""

import threading
import time
from array import array
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from pydantic import Field
from std_msgs.msg import String

from softcr_hardware.optitrack.calibration import load_calibration
from softcr_runtime.bags.recorder_node import RecorderNode
from softcr_runtime.bags.signals import decoder
from softcr_runtime.blocks.values import Pose
from softcr_runtime.ros.node import LoopNode
from softcr_runtime.ros.process import leave, run
from softcr_runtime.ros.realtime import give_way
from softcr_runtime.settings.node_settings import Hertz, NodeSettings
from softcr_runtime.wire.codecs import expected_of
from softcr_runtime.wire.diagnostics import DiagnosticReport, diagnostics_from_message
from softcr_runtime.wire.frames import (
    MOVING_TOPIC,
    STATIC_TOPIC,
    WORLD,
    Frames,
    Transform,
    base_in_world,
    static_transforms,
    transform_messages,
)
from softcr_runtime.wire.messages import header
from softcr_runtime.wire.tf_types import NoWireType, tf_message, tf_message_class
from softcr_runtime.wire.topics import TOPICS, TRUTH, topics_of
from softcr_tools.viewer.drawing import markers_message, path_message
from softcr_tools.viewer.picture import Picture
from softcr_tools.visuals.urdf import robot_description


def parameters_message(parameters: Mapping[str, tuple[float, float]], stamp: int) -> Any:
    """sensor_msgs/JointState: name, position = value, effort = standard deviation; stamp [ns]."""
    from sensor_msgs.msg import JointState

    return JointState(
        header=header(stamp, ""),
        name=list(parameters),
        position=array("d", [value for value, _ in parameters.values()]),
        effort=array("d", [deviation for _, deviation in parameters.values()]),
    )


_TIP, _SHAPE, _MARKERS, _PARAMETERS, _DESCRIPTION = (
    "estimate/tip/pose", "estimate/shape", "markers", "estimate/parameters", "robot_description",
)  # fmt: skip
RECEIVED = (
    "estimate/rod", "estimate/state", "estimate/constant_curvature", _TIP,
    "reference/rod", "reference/output", "reference/tip", "mocap/tip/pose", "mocap/body/poses",
    TRUTH, "simulation/truth/rod", "simulation/truth/loads",
    "simulation/truth/contact/points", "/diagnostics",
)  # fmt: skip


_LOOK_PERIOD = 1.0  # for who listens [s]
_MOST_USED = 0.05
"""Of a core, on average: after a cycle that cost more the pause is longer."""
_PICTURES = (_SHAPE, _MARKERS, _PARAMETERS, _DESCRIPTION)
ADVERTISED = (*_PICTURES, STATIC_TOPIC, MOVING_TOPIC)


class VisualsSettings(NodeSettings):
    """Whose frames, and how often."""

    rate_hz: Hertz = Field(
        30.0,
        ge=1.0,
        le=200.0,
        description="highest rate of frames and pictures while somebody looks",
    )
    recorded_hz: Hertz = Field(
        5.0, ge=0.5, le=200.0, description="highest rate of both while only a recorder listens"
    )
    drawing_hz: Hertz = Field(
        10.0, ge=0.5, le=60.0, description="highest rate of markers and the centre line"
    )
    calibration: str = Field(
        "",
        description="calibration that places the base in the world: a file of config/optitrack, "
        "or a YAML file; empty: at the world's origin, turned as the robot file says",
    )


class VisualsNode(LoopNode):
    """Publishes frames, markers, the centre line and estimated parameters for other programs."""

    default_name = "visuals"
    Settings = VisualsSettings
    kinds = None
    settings: VisualsSettings
    gives_way: ClassVar[bool] = False
    """Whether it may lower the priority of its process, being alone in it."""

    def on_configure_node(self) -> None:
        robot = self.any_robot
        self._frames = frames = Frames(self.settings.frame_prefix)
        self._parent = WORLD if robot.in_world else frames.base  # the frame of estimates
        calibration = self.settings.calibration
        self._base = (
            load_calibration(calibration).base_in_world.pose
            if calibration
            else base_in_world(robot)
        )
        self._has_sensor = "force_torque/wrench" in topics_of(robot.type)
        self._picture = Picture(robot)
        self._picture.frame = self._parent
        self._radius = robot.radius
        self._decoders: dict[str, Callable[[Any], Any]] = {}
        for topic in topics_of(robot.type).keys() & {*RECEIVED}:
            if topic == "/diagnostics":  # raw: of several nodes, whose stamps come in any order
                self.receive(topic, self._reports, raw=True)
            else:
                # what was not looked at is replaced, and nobody's message is held back for it
                self.receive(topic, partial(self._decoded, topic), depth=1)
        self._out = {topic: self.advertise(topic) for topic in _PICTURES}
        try:
            tf_message_class()
            self._out |= {topic: self.advertise(topic) for topic in (STATIC_TOPIC, MOVING_TOPIC)}
        except NoWireType as error:
            self.get_logger().info(
                f"no /tf and /tf_static: the package tf2_msgs is missing, and {error}; "
                "apt install ros-$ROS_DISTRO-tf2-msgs in a ROS installation"
            )

    def on_activate_node(self) -> None:
        if self.gives_way:  # from here on: configuring may be waited for
            give_way()
        self._drawn = self._looked = 0.0
        self._watched = False
        self._last: dict[str, int] = {}
        text = robot_description(self.any_robot, self._frames, self._base)
        self._out[_DESCRIPTION].publish(String(data=text))
        self._send(
            STATIC_TOPIC,
            static_transforms(self._frames, self._base, max(self.now(), 1), self._has_sensor),
        )

    def loop(self, stop: threading.Event) -> None:
        pause = self.settings.period
        while not stop.wait(pause):
            began, used = time.monotonic(), time.thread_time()
            self._look_for_watchers(began)
            self._hear()
            if self._picture.stamp:
                self._tell_tip()
                if began - self._drawn >= 1.0 / self.settings.drawing_hz:
                    self._drawn = began
                    self._draw()
            spent, used = time.monotonic() - began, time.thread_time() - used
            self.statistics.add(spent)  # a late picture is none that is missed
            period = self.settings.period if self._watched else 1.0 / self.settings.recorded_hz
            pause = max(period - spent, used / _MOST_USED, spent)

    def _look_for_watchers(self, now: float) -> None:
        """Once a second, whether anybody but recorders hears what is published here."""
        if now - self._looked < _LOOK_PERIOD:
            return
        self._looked = now
        self._watched = any(
            each.node_name != RecorderNode.default_name
            for topic, publisher in self._out.items()
            if topic != _DESCRIPTION and publisher.get_subscription_count()
            for each in self.get_subscriptions_info_by_topic(publisher.topic_name)
        )

    # --- in ---

    def _decoded(self, topic: str, message: Any) -> Any:
        if topic not in self._decoders:  # the first message of a state tells what it holds
            self._decoders[topic] = decoder(topic, message, expected_of(self._robot_file))
        return self._decoders[topic](message)

    def _reports(self, payload: bytes) -> list[DiagnosticReport]:
        """What the robot's own nodes say of themselves: a simulator tells its obstacles there."""
        from rclpy.serialization import deserialize_message

        said = diagnostics_from_message(
            deserialize_message(payload, TOPICS["/diagnostics"].message_class())
        )
        return [each for each in said if each.node[0] == self.get_namespace().strip("/")]

    def _hear(self) -> None:
        arrived = iter(partial(self.inbox.get, timeout=0.0), None)
        for sample in sorted(arrived, key=lambda sample: sample.stamp):
            self._picture.hear(sample.topic, sample.stamp, sample.value, sample.received)
        self._picture.sample()

    # --- out ---

    def _tell_tip(self) -> None:
        picture = self._picture
        if picture.present(_TIP) is not None:
            stamp, told = picture.newest(_TIP)
            pose = told.pose()
        elif picture.estimate is not None:
            shape = picture.estimate
            stamp, pose = shape.stamp, Pose(shape.positions[-1], shape.quaternions[-1])
        else:
            return
        if self._is_new(MOVING_TOPIC, stamp):
            self._send(MOVING_TOPIC, [Transform(self._parent, self._frames.tip, pose, stamp)])

    def _draw(self) -> None:
        picture = self._picture
        self._out[_MARKERS].publish(markers_message(picture, self._radius))
        shape = picture.estimate
        if shape is not None and self._is_new(_SHAPE, shape.stamp):
            self._out[_SHAPE].publish(path_message(shape, picture.frame))
        parameters = picture.parameters
        if parameters and self._is_new(_PARAMETERS, picture.stamp):
            self._out[_PARAMETERS].publish(parameters_message(parameters, picture.stamp))

    def _is_new(self, topic: str, stamp: int) -> bool:
        """Whether nothing of this stamp [ns] was told on a topic."""
        before, self._last[topic] = self._last.get(topic, 0), stamp
        return stamp != before

    def _send(self, topic: str, transforms: list[Transform]) -> None:
        if topic in self._out:
            self._out[topic].publish(tf_message(transform_messages(transforms)))


def main() -> int:
    """Entry point of `softcr run visuals`."""
    VisualsNode.gives_way = True
    return run(VisualsNode)


if __name__ == "__main__":
    leave(main())

"""How the value of each topic becomes a message and back; a codec belongs to a topic, never to a
block. On virtual time nothing is encoded unless it is recorded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from softcr_models.model import Layout
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import pose_sensors
from softcr_models.rod.state import intervals_of
from softcr_runtime.blocks.values import StateEstimate, TipEstimate
from softcr_runtime.wire.arm_messages import (
    arm_cloud_from_message,
    arm_cloud_message,
    pose_values_from_message,
    poses_to_message,
    tendon_state_from_message,
    tendons_from_message,
    tendons_to_message,
)
from softcr_runtime.wire.force_clouds import forces_from_message, forces_message
from softcr_runtime.wire.goal_messages import (
    goal_from_message,
    goal_state_to_message,
    goal_to_message,
    path_from_message,
    path_to_message,
    tip_from_message,
    tip_to_message,
)
from softcr_runtime.wire.messages import (
    clock_to_message,
    fields_of_inputs,
    named_numbers_from_message,
    named_numbers_message,
    plan_from_message,
    plan_to_message,
    pose_to_message,
    pose_value_from_message,
    pose_with_covariance_to_message,
    pose_with_covariance_value,
    pressures_from_message,
    pressures_to_message,
    wrench_from_message,
    wrench_to_message,
)
from softcr_runtime.wire.rod_clouds import (
    reference_cloud_from_message,
    reference_cloud_message,
    rod_cloud_from_message,
    rod_cloud_message,
)
from softcr_runtime.wire.state_clouds import (
    reference_from_message,
    reference_message,
    state_from_message,
    state_message,
)


@dataclass(frozen=True)
class Codec:
    """Both ways of one topic.

    Attributes:
        encode: (value, stamp [ns]) -> message.
        decode: message -> value; raises MessageError. What is only ever published has none.
    """

    encode: Callable[[Any, int], Any]
    decode: Callable[[Any], Any]


@dataclass(frozen=True)
class Expected:
    """What the messages of a block are about.

    Attributes:
        actuators: names, in the order of every input vector.
        intervals: of rods whose states are received, of each segment on average; None for any.
        tendons: names of a rod's tendons.
        racks: poses in a frame of an arm's cameras, of the sensors along a rod, or of markers.
        sections: of an arm.
        frame: of poses: the base's, or "world" for an arm.
        frame_prefix: before the names of the robot's own frames; the world is everybody's.
        layout: of the states of a model that is no rod; None where none are exchanged.
        rod: whose states are exchanged; None: any of one segment.
    """

    actuators: tuple[str, ...]
    intervals: int | None = None
    tendons: tuple[str, ...] = ()
    racks: int = 0
    sections: int | None = None
    frame: str = "base"
    layout: Layout | None = None
    frame_prefix: str = ""
    rod: Robot | None = None

    @property
    def counts(self) -> tuple[int, ...] | None:
        """Numbers of intervals of the segments of rods whose states are received."""
        if self.intervals is None:
            return None
        return (self.intervals,) if self.rod is None else self._shared(self.intervals)

    def counts_of(self, size: int) -> tuple[int, ...]:
        """Likewise of the rod with so many states."""
        segments = 1 if self.rod is None else len(self.rod.segments)
        total = intervals_of(size, segments)
        return (total,) if self.rod is None else self._shared(total // segments)

    def _shared(self, intervals: int) -> tuple[int, ...]:
        assert self.rod is not None
        from softcr_models.rod.discretise import share_intervals  # brings kernels with it

        return tuple(share_intervals(self.rod, intervals))


def expected_of(
    robot: Any, intervals: int | None = None, layout: Layout | None = None, frame_prefix: str = ""
) -> Expected:
    """What the messages of a robot's blocks are about.

    Args:
        robot: as loaded from its file.
        intervals: of rods whose states are received; None for any.
        layout: of the states of a model that is no rod.
        frame_prefix: before the names of the robot's own frames.
    """
    if hasattr(robot, "racks"):
        return Expected(
            robot.tendon_names,
            intervals,
            racks=len(robot.racks),
            frame="world",
            layout=layout,
            frame_prefix=frame_prefix,
        )
    if hasattr(robot, "markers"):
        return Expected(
            robot.actuator_names,
            racks=robot.markers,
            frame=f"{frame_prefix}base",
            layout=layout,
            frame_prefix=frame_prefix,
        )
    return Expected(
        robot.actuator_names,
        intervals,
        tendons=tuple(each.name for each in robot.actuators if each.type == "tendon"),
        racks=len(pose_sensors(robot)),
        frame=f"{frame_prefix}base",
        layout=layout,
        frame_prefix=frame_prefix,
        rod=robot if len(robot.segments) > 1 else None,
    )


def codec(topic: str, expected: Expected) -> Codec:
    """The codec of a topic of the table.

    Raises:
        KeyError: values of this topic are not exchanged between blocks.
    """
    return _CODECS[topic](topic, expected)


def _efforts(topic: str, expected: Expected) -> Codec:
    names: Sequence[str] = expected.actuators
    return Codec(
        lambda value, stamp: pressures_to_message(value, names, stamp),
        lambda message: pressures_from_message(message, names, topic),
    )


def _plan(topic: str, expected: Expected) -> Codec:
    names: Sequence[str] = expected.actuators
    field = "positions" if topic.startswith("tendon/") else "effort"
    return Codec(
        lambda value, stamp: plan_to_message(value, names, stamp, field),
        lambda message: plan_from_message(message, names, topic, field),
    )


def _pose(topic: str, expected: Expected) -> Codec:
    return Codec(
        lambda value, stamp: pose_to_message(value, stamp, expected.frame),
        lambda message: pose_value_from_message(message, topic),
    )


def _wrench(topic: str, expected: Expected) -> Codec:
    frame = f"{expected.frame_prefix}force_torque"
    return Codec(
        lambda value, stamp: wrench_to_message(value, stamp, frame),
        lambda message: wrench_from_message(message, topic),
    )


def _rod(topic: str, expected: Expected) -> Codec:
    names = expected.actuators

    def encode(value: StateEstimate, stamp: int) -> Any:
        assert value.poses is not None  # whoever publishes a rod knows where it is
        return rod_cloud_message(
            value.state, value.poses(), value.parameters, value.parameters_std, stamp,
            frame=expected.frame, inputs=fields_of_inputs(value.inputs, names),
            counts=expected.counts_of(len(value.state)),
        )  # fmt: skip

    return Codec(
        encode,
        lambda message: rod_cloud_from_message(message, topic, expected.counts, names),
    )


def _tip_estimate(topic: str, expected: Expected) -> Codec:
    def encode(value: TipEstimate, stamp: int) -> Any:
        return pose_with_covariance_to_message(
            value.pose(), value.position_covariance, stamp, expected.frame
        )

    def decode(message: Any) -> TipEstimate:
        pose, covariance = pose_with_covariance_value(message, topic)
        return TipEstimate(lambda: pose, covariance[:3, :3])

    return Codec(encode, decode)


def _reference_rod(topic: str, expected: Expected) -> Codec:
    def encode(value: Any, stamp: int) -> Any:
        return reference_cloud_message(
            value.states, value.poses(), value.tip_positions, stamp, value.period, expected.frame,
            expected.counts_of(value.states.shape[1]), value.tip_orientations, value.shift,
        )  # fmt: skip

    return Codec(
        encode, lambda message: reference_cloud_from_message(message, topic, expected.counts)
    )


def _state(topic: str, expected: Expected) -> Codec:
    layout, names = expected.layout, expected.actuators
    assert layout is not None  # of the block's model
    return Codec(
        lambda value, stamp: state_message(value, layout, names, stamp, expected.frame),
        lambda message: state_from_message(message, topic, layout, names),
    )


def _reference_output(topic: str, expected: Expected) -> Codec:
    layout = expected.layout
    return Codec(
        lambda value, stamp: reference_message(value, layout, stamp, expected.frame),
        lambda message: reference_from_message(message, topic, layout),
    )


def _forces(topic: str, expected: Expected) -> Codec:
    return Codec(
        lambda value, stamp: forces_message(value, stamp, expected.frame),
        lambda message: forces_from_message(message, topic),
    )


def _numbers(topic: str, expected: Expected) -> Codec:
    return Codec(
        lambda value, stamp: named_numbers_message(value, stamp, expected.frame),
        lambda message: named_numbers_from_message(message, topic),
    )


def _arm_poses(topic: str, expected: Expected) -> Codec:
    return Codec(
        poses_to_message, lambda message: pose_values_from_message(message, topic, expected.racks)
    )


def _body_poses(topic: str, expected: Expected) -> Codec:
    return Codec(
        lambda value, stamp: poses_to_message(value, stamp, expected.frame),
        lambda message: pose_values_from_message(message, topic, expected.racks),
    )


def _tip_setpoint(topic: str, expected: Expected) -> Codec:
    frame = expected.frame
    turns = frame != "world"  # an arm's controller follows positions alone
    return Codec(
        lambda value, stamp: tip_to_message(value, stamp, frame),
        lambda message: tip_from_message(message, topic, frame, turns),
    )


def _goal_pose(topic: str, expected: Expected) -> Codec:
    return Codec(goal_to_message, lambda message: goal_from_message(message, topic))


def _goal_path(topic: str, expected: Expected) -> Codec:
    return Codec(path_to_message, lambda message: path_from_message(message, topic))


def _goal_state(topic: str, expected: Expected) -> Codec:
    return Codec(goal_state_to_message, lambda message: message)


def _tendon_lengths(topic: str, expected: Expected) -> Codec:
    return _tendon_positions(topic, expected.tendons)


def _tendon_command(topic: str, expected: Expected) -> Codec:
    return _tendon_positions(topic, expected.actuators)


def _tendon_positions(topic: str, names: Sequence[str]) -> Codec:
    return Codec(
        lambda value, stamp: tendons_to_message(value, names, stamp),
        lambda message: tendons_from_message(message, topic, names),
    )


def _tendon_state(topic: str, expected: Expected) -> Codec:
    names = expected.actuators
    return Codec(
        lambda value, stamp: tendons_to_message(value[0], names, stamp, value[1]),
        lambda message: tendon_state_from_message(message, topic, names),
    )


def _arm(topic: str, expected: Expected) -> Codec:
    def encode(value: Any, stamp: int) -> Any:
        return arm_cloud_message(value.q, value.rest_lengths, stamp, value.distances, value.angles)

    return Codec(encode, lambda message: arm_cloud_from_message(message, topic, expected.sections))


def _clock(topic: str, expected: Expected) -> Codec:
    return Codec(lambda value, stamp: clock_to_message(stamp), lambda message: message)


_CODECS: dict[str, Callable[[str, Expected], Codec]] = {
    "pressure/command": _efforts,
    "pressure/state": _efforts,
    "pressure/sent": _efforts,
    "pressure/plan": _plan,
    "tendon/plan": _plan,
    "torque/plan": _plan,
    "tendon/sent": _tendon_command,
    "torque/sent": _efforts,
    "mocap/tip/pose": _pose,
    "mocap/body/poses": _body_poses,
    "tendon/lengths": _tendon_lengths,
    "simulation/truth/tip/pose": _pose,
    "force_torque/wrench": _wrench,
    "estimate/rod": _rod,
    "simulation/truth/rod": _rod,
    "simulation/truth/loads": _forces,
    "simulation/truth/contact/points": _forces,
    "simulation/truth/contact/wrench": _wrench,
    "estimate/tip/pose": _tip_estimate,
    "estimate/constant_curvature": _numbers,
    "reference/rod": _reference_rod,
    "estimate/state": _state,
    "reference/output": _reference_output,
    "mocap/arm/poses": _arm_poses,
    "reference/tip": _tip_setpoint,
    "tendon/command": _tendon_command,
    "tendon/state": _tendon_state,
    "torque/command": _efforts,
    "torque/state": _efforts,
    "simulation/truth/strains": _numbers,
    "estimate/arm": _arm,
    "simulation/truth/arm": _arm,
    "goal/pose": _goal_pose,
    "goal/path": _goal_path,
    "goal/state": _goal_state,
    "/clock": _clock,
}

EXCHANGED = tuple(topic for topic in _CODECS if topic != "/clock" and not topic.startswith("goal/"))
"""Topics whose values have a stamp and a codec, and are signals over time."""

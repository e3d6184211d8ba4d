"""How the value of each topic becomes a message and back; a codec belongs to a topic, never to a
block. On virtual time nothing is encoded unless it is recorded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from softcr_models.model import Layout
from softcr_models.robots.kinds import AnyRobot
from softcr_models.robots.robot import Robot
from softcr_models.rod.state import intervals_of
from softcr_runtime.blocks.values import StateEstimate, TipEstimate
from softcr_runtime.wire.body_messages import (
    pose_values_from_message,
    poses_to_message,
    tendon_state_from_message,
    tendons_from_message,
    tendons_to_message,
)
from softcr_runtime.wire.frames import WORLD
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
    forces_from_message,
    forces_message,
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
from softcr_runtime.wire.topics import ACTUATOR_TOPICS, carries_packets


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
        bodies: poses in a frame of the cameras beside the tip's.
        frame: of poses: the base's, or the world's.
        frame_prefix: before the names of the robot's own frames; the world is everybody's.
        layout: of the states of a model that is no rod; None where none are exchanged.
        rod: whose states are exchanged; None: any of one segment.
    """

    actuators: tuple[str, ...]
    intervals: int | None = None
    tendons: tuple[str, ...] = ()
    bodies: int = 0
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
    robot: AnyRobot,
    intervals: int | None = None,
    layout: Layout | None = None,
    frame_prefix: str = "",
) -> Expected:
    """What the messages of a robot's blocks are about.

    Args:
        robot: as loaded from its file.
        intervals: of rods whose states are received; None for any.
        layout: of the states of a model that is no rod.
        frame_prefix: before the names of the robot's own frames.
    """
    rod = robot if isinstance(robot, Robot) else None
    return Expected(
        robot.actuator_names,
        None if rod is None else intervals,
        tendons=() if rod is None else tuple(each.name for each in rod.tendons),
        bodies=len(robot.bodies_seen),
        frame=WORLD if robot.in_world else f"{frame_prefix}base",
        layout=layout,
        frame_prefix=frame_prefix,
        rod=rod if rod is not None and len(rod.segments) > 1 else None,
    )


def codec(topic: str, expected: Expected) -> Codec:
    """The codec of a topic of the table.

    Raises:
        KeyError: values of this topic are not exchanged between blocks.
    """
    if topic in ACTUATOR_TOPICS:
        return _of_actuators(topic, ACTUATOR_TOPICS[topic].field == "positions", expected)
    return _CODECS[topic](topic, expected)


def _of_actuators(topic: str, positions: bool, expected: Expected) -> Codec:
    if carries_packets(topic):
        return _plan(topic, "positions" if positions else "effort", expected)
    if not positions:
        return _efforts(topic, expected)
    if topic.endswith("/state"):
        return _tendon_state(topic, expected)
    return _tendon_positions(topic, expected.actuators)


def _efforts(topic: str, expected: Expected) -> Codec:
    names: Sequence[str] = expected.actuators
    return Codec(
        lambda value, stamp: pressures_to_message(value, names, stamp),
        lambda message: pressures_from_message(message, names, topic),
    )


def _plan(topic: str, field: str, expected: Expected) -> Codec:
    names: Sequence[str] = expected.actuators
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
    names = expected.actuators

    def layout(of: StateEstimate | None = None) -> Layout:
        found = expected.layout if of is None or of.layout is None else of.layout
        assert found is not None  # of the block's model
        return found

    return Codec(
        lambda value, stamp: state_message(value, layout(value), names, stamp, expected.frame),
        lambda message: state_from_message(message, topic, layout(), names),
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


def _body_poses(topic: str, expected: Expected) -> Codec:
    return Codec(
        lambda value, stamp: poses_to_message(value, stamp, expected.frame),
        lambda message: pose_values_from_message(message, topic, expected.bodies),
    )


def _tip_setpoint(topic: str, expected: Expected) -> Codec:
    frame = expected.frame
    turns = frame != WORLD  # an arm's controller follows positions alone
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


def _clock(topic: str, expected: Expected) -> Codec:
    return Codec(lambda value, stamp: clock_to_message(stamp), lambda message: message)


_CODECS: dict[str, Callable[[str, Expected], Codec]] = {
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
    "simulation/truth/state": _state,
    "reference/output": _reference_output,
    "reference/tip": _tip_setpoint,
    "goal/pose": _goal_pose,
    "goal/path": _goal_path,
    "goal/state": _goal_state,
    "/clock": _clock,
}

EXCHANGED = tuple(
    topic
    for topic in (*ACTUATOR_TOPICS, *_CODECS)
    if topic != "/clock" and not topic.startswith("goal/")
)
"""Topics whose values have a stamp and a codec, and are signals over time."""

"""A recorded run through estimator and controller again: deterministic, without a ROS graph."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from softcr_control.control_loop import ControlLoop
from softcr_estimation.estimation_loop import EstimationLoop
from softcr_estimation.rod_estimator import EstimatorError
from softcr_models.robot import Robot
from softcr_runtime.messages import (
    MessageError,
    pressures_from_message,
    pressures_to_message,
)
from softcr_runtime.rod_clouds import reference_cloud_from_message, rod_cloud_from_message
from softcr_tools.replay.message_bytes import cdr_of
from softcr_tools.replay.recorded_inputs import ByStamp, RecordedInbox, SharedReading


@dataclass(frozen=True)
class Output:
    """A message that a replayed node would have published.

    Attributes:
        topic: name in the table of topics.
        stamp: of the sample it belongs to [ns].
        bag_time: when that sample was recorded [ns].
        message: of the topic's ROS type.
        payload: its CDR bytes.
    """

    topic: str
    stamp: int
    bag_time: int
    message: Any
    payload: bytes

    @classmethod
    def of(cls, topic: str, stamp: int, bag_time: int, message: Any) -> "Output":
        return cls(topic, stamp, bag_time, message, cdr_of(message))


def replayed_estimates(
    inbox: RecordedInbox, estimation: EstimationLoop, reject: Callable[[str, str], None]
) -> Iterator[Output]:
    """What the estimator makes of the letters of an inbox: rod and tip for each sample.

    Args:
        inbox: pressures and tip poses.
        estimation: begins anew.
        reject: told topic and reason of a letter that was not used.
    """
    pairing = estimation.pairing(inbox.get, inbox.now, reject)
    estimation.forget()
    while (pressures := pairing.next_pressures()) is not None:
        pose = pairing.partner_of(pressures.stamp, estimation.patience)
        tip_pose = None if pose is None else pose.value
        try:
            estimate = estimation.tick(pressures.value, tip_pose, pressures.stamp)
        except EstimatorError as error:
            reject(pressures.topic, f"refused by the filter: {error}")
            continue
        if estimate is not None:
            rod, tip = estimation.messages(estimate, pressures.stamp)
            yield Output.of("estimate/rod", pressures.stamp, pressures.bag_time, rod)
            yield Output.of("estimate/tip/pose", pressures.stamp, pressures.bag_time, tip)


class ReplayedController:
    """The controller in open loop: it answers, and the recorded pressures go on as they were.

    It answers the estimates that the recorded controller answered, because each answer starts from
    the one before; where the run has no command at all, every estimate that has a reference.
    """

    def __init__(
        self,
        reading: SharedReading,
        robot: Robot,
        control: ControlLoop,
        lockstep: bool,
        answers_all: bool,
    ):
        """A controller that begins anew.

        Args:
            reading: of the bag.
            robot: its chambers are expected.
            control: made for the robot.
            lockstep: whether the run was.
            answers_all: whether the run has no command at all.
        """
        self._control, self._lockstep = control, lockstep
        self._chambers = robot.chamber_names
        self._answers_all = answers_all
        self._references = ByStamp(reading.messages("reference/rod"))
        self._pressures = ByStamp(reading.messages("pressure/state"))
        self._commands = ByStamp(reading.messages("pressure/command"))
        control.forget()

    def answer(self, estimate: Output) -> Output | None:
        """The command for an estimate/rod; None where there is none to give."""
        stamp = estimate.stamp
        reference, pressures = self._references.at(stamp), self._pressures.at(stamp)
        recorded = self._commands.at(stamp)
        if reference is None or pressures is None or (recorded is None and not self._answers_all):
            return None
        try:
            command = self._control.answer(
                rod_cloud_from_message(estimate.message, estimate.topic),
                reference_cloud_from_message(reference.decode(), "reference/rod"),
                pressures_from_message(pressures.decode(), self._chambers, "pressure/state"),
            )
        except MessageError:
            return None
        if recorded is not None and not self._lockstep:
            self._control.answered(1e-9 * (recorded.time - stamp))
        message = pressures_to_message(command, self._chambers, stamp)
        return Output.of("pressure/command", stamp, estimate.bag_time, message)

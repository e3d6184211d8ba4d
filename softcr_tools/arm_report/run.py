"""A recorded run of a tendon-driven arm as arrays: everything its report is computed from."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import ValidationError

from softcr_models.constant_curvature.arm import Arm
from softcr_runtime.arm_messages import (
    ArmCloud,
    arm_cloud_from_message,
    point_from_message,
    poses_from_message,
    tendon_state_from_message,
    tendons_from_message,
)
from softcr_runtime.bags.reading import Bag
from softcr_tools.report_run import (
    Decode,
    NamedValues,
    Received,
    RecordedSystem,
    Series,
    series_of,
    tip_of_pose,
)

POSES, SETPOINT = "mocap/arm/poses", "reference/tip"
COMMAND, STATE = "tendon/command", "tendon/state"
ESTIMATE, TRUTH, TRUE_TIP = "estimate/arm", "simulation/truth/arm", "simulation/truth/tip/pose"


@dataclass(frozen=True)
class ArmRun(RecordedSystem):
    """A recorded run of an arm. A series whose topic was not recorded is empty.

    Positions are in the frame of the arm's base with the world's axes.

    Attributes:
        true_tip, target: (T, 3) positions [m].
        measured: (T, r, 3) positions of the racks, base to tip [m].
        estimated_q, true_q: (T, 3 n) coordinates of the model's sections, of the arm's bodies [m].
        rest_lengths: (T, n) estimates of the sections' [m].
        distances, angles: (T, r) what the model leaves of the sensors' errors [m], [rad].
        commanded, lengths: (T, a) changes of tendon length [m].
        forces: (T, a) of the tendons [N], negative where they pull.
        tendons: names of the a tendons.
    """

    true_tip: Series
    target: Series
    measured: Series
    estimated_q: Series
    true_q: Series
    rest_lengths: Series
    distances: Series
    angles: Series
    commanded: Series
    lengths: Series
    forces: Series
    tendons: tuple[str, ...]

    @property
    def tip(self) -> Series:
        """The true tip, or what the cameras saw of it where there is no simulator."""
        if len(self.true_tip) or not len(self.measured):
            return self.true_tip
        return Series(self.measured.stamps, self.measured.values[:, -1])

    @cached_property
    def arm(self) -> Arm | None:
        """The arm that some node told; None when none did."""
        try:
            return Arm.model_validate(self.robot)
        except ValidationError:
            return None

    @cached_property
    def estimated_tip(self) -> Series:
        """(T, 3) tip of the model [m]; empty when the arm is not known."""
        stamps = self.estimated_q.stamps
        if self.arm is None or not len(stamps):
            return self.true_tip.between(1, 0)
        tips = self.arm.model.position(self.estimated_q.values, self.rest_lengths.values)
        return Series(stamps, tips)


def holds_arm(bag: Bag) -> bool:
    """Whether a bag is of an arm, not of a rod."""
    return any(bag.find(topic) for topic in (POSES, STATE, COMMAND, ESTIMATE))


def read_arm_run(bag: Bag) -> ArmRun:
    """Everything in a bag that the report uses; what is missing is said in `problems`.

    Raises:
        UserError: the bag holds the topics of more than one robot.
    """
    commands = NamedValues(_commands)
    states = NamedValues(_states)
    decoders: dict[str, Decode] = {
        POSES: _positions,
        SETPOINT: point_from_message,
        COMMAND: commands,
        STATE: states,
        ESTIMATE: arm_cloud_from_message,
        TRUTH: arm_cloud_from_message,
        TRUE_TIP: tip_of_pose,
    }
    received = Received(bag, decoders, expected=set(decoders))
    samples = received.samples

    def of_estimate(name: str) -> Series:
        return series_of(samples[ESTIMATE], (0,), lambda cloud: getattr(cloud, name))

    def of_truth(cloud: ArmCloud) -> np.ndarray:
        return cloud.q

    series: dict[str, Any] = {
        "true_tip": series_of(samples[TRUE_TIP], (3,)),
        "target": series_of(samples[SETPOINT], (3,)),
        "measured": series_of(samples[POSES], (0, 3)),
        "estimated_q": of_estimate("q"),
        "true_q": series_of(samples[TRUTH], (0,), of_truth),
        "rest_lengths": of_estimate("rest_lengths"),
        "distances": of_estimate("distances"),
        "angles": of_estimate("angles"),
        "commanded": series_of(samples[COMMAND], (0,)),
        "lengths": series_of(samples[STATE], (0,), lambda state: state[0]),
        "forces": series_of(samples[STATE], (0,), lambda state: state[1]),
    }
    tendons = states.names or commands.names
    return ArmRun(**series, **received.system(series.values()), tendons=tendons)


def _positions(message: Any, topic: str) -> np.ndarray:
    return poses_from_message(message, topic, len(message.poses))[:, :3, 3]


def _commands(message: Any, names: tuple[str, ...], topic: str) -> np.ndarray:
    return tendons_from_message(message, topic, names)


def _states(message: Any, names: tuple[str, ...], topic: str) -> tuple[np.ndarray, np.ndarray]:
    return tendon_state_from_message(message, topic, names)

"""A-PCC as a block: poses along the arm and a setpoint in, tendon lengths out.

`calibrate_zero`, while active and with the arm straight and its tendons slack, takes the places of
the sensors and the section lengths from the last poses; the arm then waits for a new setpoint. It
holds its tendons while there is no setpoint, when poses stay away, and when the tip is lost; only a
calibration or a new activation ends the last.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from pydantic import Field

from softcr_models.errors import UserError
from softcr_papers.dalenberg2024.apcc import Apcc, ApccCommand, ApccSettings, ZeroState, zero_state
from softcr_papers.dalenberg2024.arm_model import section_layout
from softcr_papers.dalenberg2024.arm_settings import ArmNodeSettings
from softcr_papers.dalenberg2024.tendons import Tendons
from softcr_runtime.blocks.block import BlockBase, Input, Output, Samples
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.values import ReferenceRows, StateEstimate
from softcr_runtime.settings.node_settings import LIVE

POSES, SETPOINT, PLAN, ESTIMATE = (
    "mocap/body/poses", "reference/tip", "tendon/plan", "estimate/state",
)  # fmt: skip
_CALIBRATION_FRAMES = 25
_IDLE = {"inputs overdue": "no poses", "stopped": "not active"}


class ApccControllerSettings(ArmNodeSettings):
    """The arm, the law, and when to hold."""

    setpoints: Literal["held", "paired"] = Field(
        "held",
        description="held: the last setpoint received applies; paired: every frame of poses has "
        "its own setpoint, and lock-step waits for it",
    )
    setpoint_topic: Literal["reference/tip", "reference/output"] = Field(
        "reference/tip", description="topic of the setpoints; of several rows, the first is used"
    )
    gain: float = Field(
        1.5,
        gt=0.0,
        le=20.0,
        description="gain K on the error of the tip",
        json_schema_extra={"unit": "1/s", **LIVE},
    )
    adaptation: float = Field(
        0.0,
        ge=0.0,
        le=100.0,
        description="adaptation gain Gamma of every section; with 0 the lengths stay as they are, "
        "otherwise they drift over many setpoints",
        json_schema_extra={"unit": "1/m", **LIVE},
    )
    null_space_gain: float = Field(
        1.0,
        ge=0.0,
        le=20.0,
        description="gain k_N with which elongations are avoided",
        json_schema_extra={"unit": "1/s", **LIVE},
    )
    feedback: Literal["pose", "position"] = Field(
        "pose", description="which part of each sensor's pose is used"
    )
    jacobian_state: Literal["inferred", "commanded"] = Field(
        "inferred", description="configuration at which the Jacobian is evaluated"
    )
    patience: float = Field(
        0.1,
        ge=0.02,
        le=5.0,
        description="time without poses after which the tendons are held",
        json_schema_extra={"unit": "s", **LIVE},
    )
    largest_error: float = Field(
        1.0,
        ge=0.01,
        le=10.0,
        description="distance between tip and setpoint beyond which the tendons are held",
        json_schema_extra={"unit": "m", **LIVE},
    )


class ApccBlock(BlockBase):
    """Steers a tendon-driven arm to setpoints by adaptive piecewise constant curvature.

    Attributes:
        command: what the last tick with a setpoint decided.
    """

    name = "apcc_controller"
    Settings = ApccControllerSettings
    kinds = ("arm",)
    outputs = (PLAN, ESTIMATE)
    actions = ("calibrate_zero",)
    _setpoint: np.ndarray | None
    _found: ZeroState | None
    _lost: bool
    _frames: tuple[np.ndarray, ...]

    def __init__(self, robot: Any, settings: Any, law: ApccSettings | None = None) -> None:
        """See BlockBase.

        Args:
            robot: see BlockBase.
            settings: see BlockBase.
            law: another one than settings say.
        """
        super().__init__(robot, settings)
        self._law = law or _law_of(settings)
        self.command: ApccCommand | None = None
        paired = settings.lockstep and settings.setpoints == "paired"
        self._wanted = wanted = settings.setpoint_topic
        setpoint = Input(wanted, "same") if paired else Input(wanted, "latest", needed=False)
        self.inputs = (Input(POSES, "lead"), setpoint)
        self.silence = settings.patience
        self.reset()

    def rehearse(self) -> None:
        lengths = self.robot.model_lengths
        straight = self.robot.model.pose(np.zeros(3 * len(lengths)), lengths, np.tri(len(lengths)))
        for stamp in (0.0, self.settings.period):
            self._controller.tick(stamp, straight, straight[-1, :3, 3])

    def prepared(self, settings: Any) -> Callable[[], None]:
        """See BlockBase; the estimated lengths stay."""
        law = _law_of(settings)

        def use() -> None:
            self.settings, self.silence = settings, settings.patience
            self._law = self._controller.settings = law

        return use

    def reset(self) -> None:
        self._holding = "no setpoint"
        self._holds = self._ticks_at_bounds = 0
        self._last_stamp = 0
        self._setpoint_stamp = -1
        self._use(np.array(self.robot.racks), self.robot.model_lengths)

    def time_jumped(self, seconds: float) -> None:
        """See BlockBase; the arm, its calibration and its setpoint are where they were."""
        self._last_stamp, self._setpoint_stamp = 0, -1
        self._controller.pause()

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """Tendon lengths for a frame of poses."""
        if self._found is not None:
            self._use(self._found.places, self._found.rest_lengths)
        poses = np.array([pose.matrix for pose in samples[POSES].value])
        self._frames = (*self._frames[1 - _CALIBRATION_FRAMES :], poses)
        setpoint = samples.get(self._wanted)
        if setpoint is not None and setpoint.stamp > self._setpoint_stamp:
            value, self._setpoint_stamp = setpoint.value, setpoint.stamp
            self._setpoint = value.tip_positions[0] if isinstance(value, ReferenceRows) else value
        if self._setpoint is None:
            return self._hold("no setpoint", now)
        if self._lost:
            return self._hold("tip lost", now)
        if (now - self._last_stamp) * 1e-9 > self.settings.patience:
            self._controller.pause()
        self.command = command = self._controller.tick(now * 1e-9, poses, self._setpoint)
        if not np.linalg.norm(command.error) < self.settings.largest_error:
            self._lost = True
            return self._hold("tip lost", now)
        self._holding = ""
        self._ticks_at_bounds += command.adaptation.projected or command.adaptation.slowed
        self._tendons, self._last_stamp = command.tendons, now
        due = now + round(1e9 * self.settings.period)
        return [self._packet(due, now), Output(ESTIMATE, now, _sections(command))]

    def idle(self, now: int, why: str) -> Iterable[Output]:
        """The lengths asked for last, again."""
        return self._hold(_IDLE.get(why, why), now)

    def act(self, action: str) -> str:
        """`calibrate_zero`: Takes the last poses as those of the straight arm, at the next tick."""
        frames = self._frames
        if len(frames) < _CALIBRATION_FRAMES:
            raise UserError(
                f"zero state: {len(frames)} frames of poses seen while active, "
                f"{_CALIBRATION_FRAMES} are needed"
            )
        if self._holding == "no poses":
            raise UserError("zero state: no poses arrive now")
        self._found = found = zero_state(np.array(frames), self.robot.base)
        places, lengths = (
            np.round(each, 4).tolist() for each in (found.places, found.rest_lengths)
        )
        return f"sensors and racks at {places} m, section lengths {lengths} m"

    def describe(self) -> dict[str, Any]:
        return {
            "role": "controller",
            "robot": self.robot.model_dump(mode="json"),
            "holding": self._holding,
            "holds": self._holds,
            "ticks_at_bounds": self._ticks_at_bounds,
            "rest_lengths": self._controller.rest_lengths.tolist(),
        }

    def warnings(self) -> list[str]:
        quiet = ("", "no setpoint", "not active")
        return [] if self._holding in quiet else [f"{self._holding}: tendons held"]

    def _hold(self, why: str, now: int) -> list[Output]:
        """Ask for the lengths asked for last, again: a command expires when it is not renewed."""
        self._holds += why not in (self._holding, "not active")
        self._holding, self._last_stamp = why, now
        return [self._packet(now, now)]

    def _packet(self, due: int, now: int) -> Output:
        """The lengths asked for last, as a packet of one that is due at a time [ns]."""
        return Output(PLAN, now, CommandPacket.single(due, self._tendons))

    def _use(self, places: np.ndarray, rest_lengths: np.ndarray) -> None:
        """Begin anew with sensors and racks at these places (n,) [m], without a setpoint."""
        nominal = self.robot.tendons()
        racks = np.array(self.robot.racks)
        moved = [
            np.interp(each, np.r_[0.0, racks], np.r_[0.0, places])
            for each in (nominal.begins, nominal.ends)
        ]
        tendons = Tendons(nominal.offsets, *moved)
        self._controller = Apcc(self.robot.model, rest_lengths, places, tendons, self._law)
        self._setpoint = None
        self._tendons = np.zeros(len(tendons))
        self._found = None
        # replaced, never changed: two threads read it
        self._frames = ()
        self._lost = False


def _law_of(settings: ApccControllerSettings) -> ApccSettings:
    return ApccSettings.model_validate(
        {
            "gain": settings.gain,
            "null_space_gain": settings.null_space_gain,
            "jacobian_state": settings.jacobian_state,
            "adaptation": {"gains": (settings.adaptation,)},
            "inference": {"feedback": settings.feedback},
        }
    )


def _sections(command: ApccCommand) -> StateEstimate:
    """The model's sections, their rest lengths [m] and what is left of each sensor's error: its
    distance [m] and angle [rad]."""
    inference = command.inference
    found = {
        f"{name}_{number}": each
        for name, values in (
            ("rest_length", command.rest_lengths), ("distance", inference.linear),
            ("angle", inference.angular),
        )
        for number, each in enumerate(values.tolist(), 1)
    }  # fmt: skip
    sections = len(command.rest_lengths)
    return StateEstimate(inference.configuration, found, layout=section_layout(sections))

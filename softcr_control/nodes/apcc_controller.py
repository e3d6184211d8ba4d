"""A-PCC as a node: poses along the arm and a setpoint in, tendon lengths out.

`~/calibrate_zero` (Trigger), while active and with the arm straight and its tendons slack, takes
the places of the sensors and the section lengths from the last poses; the arm then waits for a new
setpoint. It holds its tendons while there is no setpoint, when poses stay away, and when the tip is
lost; only a calibration or a new activation ends the last.
"""

import sys
import threading
import time
from typing import Any, Literal

import numpy as np
from pydantic import Field
from std_srvs.srv import Trigger

from softcr_control.apcc import Apcc, ApccCommand, ApccSettings, ZeroState, zero_state
from softcr_models.constant_curvature.tendons import Tendons
from softcr_models.errors import UserError
from softcr_runtime.arm_messages import (
    arm_cloud_message,
    point_from_message,
    poses_from_message,
    tendons_to_message,
)
from softcr_runtime.sample import Sample
from softcr_runtime.node import LoopNode
from softcr_runtime.process import run
from softcr_runtime.settings import ArmNodeSettings

POSES, SETPOINT, COMMAND, ESTIMATE = (
    "mocap/arm/poses", "reference/tip", "tendon/command", "estimate/arm",
)  # fmt: skip
_CALIBRATION_FRAMES = 25


class ApccControllerSettings(ArmNodeSettings):
    """The arm, the law, and when to hold."""

    setpoints: Literal["held", "paired"] = Field(
        "held",
        description="the last one heard holds; or there is one of every frame of poses, which in "
        "lock-step is waited for",
    )
    gain: float = Field(
        1.5, gt=0.0, le=20.0, description="K of the tip's error", json_schema_extra={"unit": "1/s"}
    )
    adaptation: float = Field(
        0.0,
        ge=0.0,
        le=100.0,
        description="Gamma for every section; 0 keeps the lengths as they are, with others they "
        "drift over many setpoints",
        json_schema_extra={"unit": "1/m"},
    )
    null_space_gain: float = Field(
        1.0,
        ge=0.0,
        le=20.0,
        description="k_N, how hard elongations are avoided",
        json_schema_extra={"unit": "1/s"},
    )
    feedback: Literal["pose", "position"] = Field("pose", description="what of a sensor is used")
    jacobian_state: Literal["inferred", "commanded"] = Field(
        "inferred", description="configuration at which the Jacobian is taken"
    )
    patience: float = Field(
        0.1,
        ge=0.02,
        le=5.0,
        description="without poses for so long the tendons are held",
        json_schema_extra={"unit": "s"},
    )
    largest_error: float = Field(
        1.0,
        ge=0.01,
        le=10.0,
        description="a tip farther from its setpoint is lost, and the tendons are held",
        json_schema_extra={"unit": "m"},
    )


class ApccController(LoopNode):
    """Steers a tendon-driven arm to setpoints by adaptive piecewise constant curvature."""

    default_name = "apcc_controller"
    Settings = ApccControllerSettings
    kinds = ("arm",)
    settings: ApccControllerSettings
    _controller: Apcc | None = None
    _setpoint: np.ndarray | None
    _tendons: np.ndarray
    _found: ZeroState | None
    _frames: tuple[np.ndarray, ...]  # replaced, never changed: two threads read it
    _lost: bool
    _holding = "no setpoint"
    _holds = _ticks_at_bounds = 0

    def __init__(self, **node_options: Any):
        super().__init__(**node_options)
        self.create_service(Trigger, "~/calibrate_zero", self._serve_calibrate_zero)

    def on_configure_node(self) -> None:
        self._load_kernels()
        self._use(np.array(self.arm.racks), self.arm.model_lengths)
        self._command = self.advertise(COMMAND)
        self._estimate = self.advertise(ESTIMATE)
        count = len(self.arm.racks)
        self.receive(POSES, lambda message: poses_from_message(message, POSES, count))
        self.receive(SETPOINT, lambda message: point_from_message(message, SETPOINT))

    def on_activate_node(self) -> None:
        self._use(np.array(self.arm.racks), self.arm.model_lengths)
        self._holds = self._ticks_at_bounds = 0
        self._last_stamp = self._setpoint_stamp = 0

    def loop(self, stop: threading.Event) -> None:
        poses: Sample | None = None
        while not stop.is_set():
            letter = self._next_letter()
            if stop.is_set():
                return
            if letter is None:
                self._hold("no poses")
            elif letter.topic == SETPOINT:
                self._setpoint, self._setpoint_stamp = letter.value, letter.stamp
            else:
                poses = letter
            if poses is not None and not self._waits_for_setpoint(poses.stamp):
                self._answer(poses)
                poses = None

    def on_deactivate_node(self) -> None:
        self._hold("not active")

    def diagnostic_values(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "robot": self.arm.model_dump(mode="json"),
            "holding": self._holding,
            "holds": self._holds,
            "ticks_at_bounds": self._ticks_at_bounds,
        }
        if self._controller is not None:
            values["rest_lengths"] = self._controller.rest_lengths.tolist()
        return values

    def diagnostic_warnings(self) -> list[str]:
        quiet = ("", "no setpoint", "not active")
        return [] if self._holding in quiet else [f"{self._holding}: tendons held"]

    # --- a tick -----------------------------------------------------------------------------

    def _next_letter(self) -> Sample | None:
        # in lock-step the arm waits for us, so nothing is overdue
        return self.inbox.get(timeout=None if self.settings.lockstep else self.settings.patience)

    def _waits_for_setpoint(self, stamp: int) -> bool:
        paired = self.settings.lockstep and self.settings.setpoints == "paired"
        return paired and self._setpoint_stamp < stamp

    def _answer(self, letter: Sample) -> None:
        if self._found is not None:
            self._use(self._found.places, self._found.rest_lengths)
        self._frames = (*self._frames[1 - _CALIBRATION_FRAMES :], letter.value)
        self._frame_received = letter.received
        if self._setpoint is None:
            self._hold("no setpoint", letter.stamp)
            return
        if self._lost:
            self._hold("tip lost", letter.stamp)
            return
        controller = self._configured
        if (letter.stamp - self._last_stamp) * 1e-9 > self.settings.patience:
            controller.pause()
        command = controller.tick(letter.stamp * 1e-9, letter.value, self._setpoint)
        if not np.linalg.norm(command.error) < self.settings.largest_error:
            self._lost = True
            self._hold("tip lost", letter.stamp)
            return
        self._holding = ""
        self._ticks_at_bounds += command.adaptation.projected or command.adaptation.slowed
        self._tendons = command.tendons
        self._publish(letter.stamp)
        self._publish_estimate(command, letter.stamp)
        self.finish_tick(letter.received, letter.stamp)

    def _hold(self, why: str, stamp: int | None = None) -> None:
        """Ask for the lengths asked for last, again: a command expires when it is not renewed."""
        self._holds += why not in (self._holding, "not active")
        self._holding = why
        if stamp is None:
            # in lock-step the stamp continues simulated time, so that runs are equal to the bit
            stamp = self._last_stamp + 1 if self.settings.lockstep else self.now()
        self._publish(stamp)

    def _publish(self, stamp: int) -> None:
        self._last_stamp = stamp
        self._command.publish(tendons_to_message(self._tendons, self.arm.tendon_names, stamp))

    def _publish_estimate(self, command: ApccCommand, stamp: int) -> None:
        inference = command.inference
        message = arm_cloud_message(
            inference.configuration,
            command.rest_lengths,
            stamp,
            inference.linear,
            inference.angular,
        )
        self._estimate.publish(message)

    # --- zero state -------------------------------------------------------------------------

    def _serve_calibrate_zero(
        self, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        try:
            response.message = self._calibrate_zero()
            response.success = True
        except UserError as error:
            response.success, response.message = False, str(error)
        return response

    def _calibrate_zero(self) -> str:
        frames = self._frames if self.active else ()
        if len(frames) < _CALIBRATION_FRAMES:
            raise UserError(
                f"zero state: {len(frames)} frames of poses seen while active, "
                f"{_CALIBRATION_FRAMES} are needed"
            )
        age = time.monotonic() - self._frame_received
        if not self.settings.lockstep and age > self.settings.patience:
            raise UserError(f"zero state: the last poses came {age:.1f} s ago")
        found = zero_state(np.array(frames), self.arm.base)
        self._use(found.places, found.rest_lengths)
        places, lengths = (
            np.round(each, 4).tolist() for each in (found.places, found.rest_lengths)
        )
        return f"sensors and racks at {places} m, section lengths {lengths} m"

    def _load_kernels(self) -> None:
        """Everything a tick calls, before anybody waits for one."""
        lengths = self.arm.model_lengths
        self._use(np.array(self.arm.racks), lengths)
        straight = self.arm.model.pose(np.zeros(3 * len(lengths)), lengths, np.tri(len(lengths)))
        for stamp in (0.0, self.settings.period):
            self._configured.tick(stamp, straight, straight[-1, :3, 3])

    # --- the controller ---------------------------------------------------------------------

    @property
    def _configured(self) -> Apcc:
        assert self._controller is not None  # made by configure
        return self._controller

    def _use(self, places: np.ndarray, rest_lengths: np.ndarray) -> None:
        """Begin anew with sensors and racks at these places (n,) [m], without a setpoint."""
        settings, nominal = self.settings, self.arm.tendons()
        law = ApccSettings.model_validate(
            {
                "gain": settings.gain,
                "null_space_gain": settings.null_space_gain,
                "jacobian_state": settings.jacobian_state,
                "adaptation": {"gains": (settings.adaptation,)},
                "inference": {"feedback": settings.feedback},
            }
        )
        racks = np.array(self.arm.racks)
        moved = [
            np.interp(each, np.r_[0.0, racks], np.r_[0.0, places])
            for each in (nominal.begins, nominal.ends)
        ]
        tendons = Tendons(nominal.offsets, *moved)
        self._controller = Apcc(self.arm.model, rest_lengths, places, tendons, law)
        self._setpoint = None
        self._tendons = np.zeros(len(tendons))
        self._found = None
        self._frames = ()
        self._frame_received = -np.inf
        self._lost = False


def main() -> int:
    """Entry point of `ros2 run softcr apcc_controller`."""
    return run(ApccController)


if __name__ == "__main__":
    sys.exit(main())

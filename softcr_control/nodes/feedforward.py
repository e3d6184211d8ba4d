"""Open loop: the pressures that the reference's motion was made of, whatever the rod does.

What Mehl et al. move their actuator with while a filter watches: smooth periodic pressures per
chamber, without feedback. Commands lead by what the valves lag behind.
"""

import sys
import threading
from typing import Any, Literal

import numpy as np
from pydantic import Field

from softcr_control.reference_settings import ReferenceSettings
from softcr_runtime.sample import Sample
from softcr_runtime.messages import pressures_to_message
from softcr_runtime.node import LoopNode
from softcr_runtime.process import run
from softcr_runtime.settings import NodeSettings

_ESTIMATE, _REFERENCE = "estimate/tip/pose", "reference/rod"


class FeedforwardSettings(NodeSettings):
    """Which motion; the numbers of `reference`, so that both mean the same one."""

    reference: Literal["setpoint", "circle", "chirp_circle", "trajectory"] = Field(
        "trajectory", description="motion that is made of pressures"
    )
    duration: float = Field(
        120.0,
        gt=0.0,
        le=3600.0,
        description="after which the pressures stand still",
        json_schema_extra={"unit": "s"},
    )


class Feedforward(LoopNode):
    """Commands the pressures of the reference's motion without looking at the rod.

    Each reference is answered; in lock-step when the estimate of its stamp is there, too, so that
    no estimator is left behind.
    """

    default_name = "feedforward"
    Settings = FeedforwardSettings
    settings: FeedforwardSettings
    _start: int | None = None

    def on_configure_node(self) -> None:
        settings = self.settings
        chosen = ReferenceSettings(kind=settings.reference, duration=settings.duration)
        pressures = chosen.pressure_samples(settings.period, len(self.robot.chambers))
        # an answer is followed from the next cycle on, and the motion ends standing
        wanted = np.concatenate((pressures[1:], pressures[-1:], pressures[-1:]))
        commands = self.robot.pressure_lag.commands_along(wanted, settings.period)
        limits = self.robot.pressure_limits
        self._commands = np.clip(commands, limits.minimum, limits.maximum)
        self._command = self.advertise("pressure/command")
        self.receive(_REFERENCE, lambda message: message)
        if settings.lockstep:
            self.receive(_ESTIMATE, lambda message: message)

    def on_activate_node(self) -> None:
        self._start = None
        self._heard: dict[str, Sample] = {}

    def loop(self, stop: threading.Event) -> None:
        topics = {_REFERENCE, _ESTIMATE} if self.settings.lockstep else {_REFERENCE}
        while not stop.is_set():
            letter = self.inbox.get()
            if letter is None:
                continue
            self._heard[letter.topic] = letter
            stamps = {each.stamp for each in self._heard.values()}
            if self._heard.keys() == topics and len(stamps) == 1:
                self._answer(letter.stamp)
                self.finish_tick(letter.received, letter.stamp)

    def on_deactivate_node(self) -> None:
        chambers = self.robot.chamber_names
        self._send(np.zeros(len(chambers)), self._last_stamp + 1 if self._start else self.now())

    def _answer(self, stamp: int) -> None:
        if self._start is None:
            self._start = stamp
        row = round((stamp - self._start) * 1e-9 / self.settings.period)
        self._send(self._commands[min(row, len(self._commands) - 1)], stamp)

    def _send(self, pressures: np.ndarray, stamp: int) -> None:
        self._last_stamp = stamp
        self._command.publish(pressures_to_message(pressures, self.robot.chamber_names, stamp))

    def diagnostic_values(self) -> dict[str, Any]:
        return {"reference": self.settings.reference, "duration": self.settings.duration}


def main() -> int:
    """Entry point of `ros2 run softcr feedforward`."""
    return run(Feedforward)


if __name__ == "__main__":
    sys.exit(main())

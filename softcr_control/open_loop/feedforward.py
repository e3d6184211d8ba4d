"""Open loop: the inputs that the reference's motion was made of, whatever the rod does.

What Mehl et al. move their actuator with while a filter watches: smooth periodic inputs, without
feedback. Commands lead by what the inputs lag behind.
"""

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from pydantic import Field

from softcr_control.reference.settings import ReferenceSettings
from softcr_models.rod.description import rod_inputs
from softcr_runtime.blocks.block import BlockBase, Input, Output, Samples
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.settings.node_settings import NodeSettings


class FeedforwardSettings(NodeSettings):
    """Which motion; the numbers of `reference`, so that both mean the same one."""

    reference: Literal["setpoint", "circle", "chirp_circle", "trajectory"] = Field(
        "trajectory", description="motion that is defined by inputs"
    )
    duration: float = Field(
        120.0,
        gt=0.0,
        le=3600.0,
        description="time after which the inputs stay constant",
        json_schema_extra={"unit": "s"},
    )


class Feedforward(BlockBase):
    """Commands the inputs of the reference's motion without looking at the rod.

    Each reference is answered; in lock-step when the estimate of its stamp is there, too, so that
    no estimator is left behind.
    """

    name = "feedforward"
    Settings = FeedforwardSettings
    outputs = ("pressure/plan",)

    def __init__(self, robot: Any, settings: Any) -> None:
        super().__init__(robot, settings)
        chosen = ReferenceSettings(kind=settings.reference, duration=settings.duration)
        inputs = rod_inputs(robot)
        pressures = chosen.input_samples(settings.period, inputs)
        # an answer is followed from the next cycle on, and the motion ends standing
        wanted = np.concatenate((pressures[1:], pressures[-1:], pressures[-1:]))
        lag = inputs.lag
        commands = lag.commands_along(wanted, settings.period) if lag else wanted[1:]
        self._commands = np.clip(commands, inputs.low, inputs.high)
        awaited = (Input("estimate/tip/pose", "same"),) if settings.lockstep else ()
        self.inputs = (Input("reference/rod", "lead"), *awaited)
        self._start: int | None = None

    def reset(self) -> None:
        self._start = None

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The inputs of the motion at `now`."""
        if self._start is None:
            self._start = now
        row = round((now - self._start) * 1e-9 / self.settings.period)
        due = now + round(1e9 * self.settings.period)
        command = self._commands[min(row, len(self._commands) - 1)]
        return [Output("pressure/plan", now, CommandPacket.single(due, command))]

    def idle(self, now: int, why: str) -> Iterable[Output]:
        """No pressure, no tension."""
        rest = np.zeros(len(self.robot.actuators))
        return [Output("pressure/plan", now, CommandPacket.single(now, rest))]

    def describe(self) -> dict[str, Any]:
        return {
            "role": "controller",
            "reference": self.settings.reference,
            "duration": self.settings.duration,
        }

"""The reference of a tendon-driven arm as a node: at every frame of poses, where its tip should be.

A person steers by hand without it: `ros2 topic pub reference/tip ...`, with `setpoints: held` at
the controller.
"""

import sys
import threading
from typing import Any

from pydantic import Field

from softcr_control.tip_references import TipReferenceKind, TipReferenceSettings, tip_reference
from softcr_models.errors import UserError
from softcr_runtime.arm_messages import point_to_message
from softcr_runtime.sample import Sample
from softcr_runtime.node import LoopNode
from softcr_runtime.process import run
from softcr_runtime.settings import ArmNodeSettings


class TipReferenceNodeSettings(ArmNodeSettings):
    """What the tip should do."""

    reference: TipReferenceKind = Field(
        "trajectory", description="one setpoint, a series of them, a circle or a file"
    )
    file: str = Field("", description="CSV or NPZ with the reference 'file'")
    duration: float = Field(
        120.0,
        gt=0.0,
        le=3600.0,
        description="after which it stands still",
        json_schema_extra={"unit": "s"},
    )
    dwell: float = Field(
        6.0,
        gt=0.0,
        le=3600.0,
        description="time at each setpoint",
        json_schema_extra={"unit": "s"},
    )


class TipReferenceNode(LoopNode):
    """Tells where an arm's tip should be."""

    default_name = "tip_reference"
    Settings = TipReferenceNodeSettings
    kinds = ("arm",)
    settings: TipReferenceNodeSettings
    _start: int | None = None

    def on_configure_node(self) -> None:
        settings = self.settings
        if settings.reference == "file" and not settings.file:
            raise UserError("parameter file = '': a path is needed with reference = file")
        chosen = TipReferenceSettings(
            kind=settings.reference,
            file=settings.file,
            duration=settings.duration,
            dwell=settings.dwell,
        )
        self._source = tip_reference(chosen, self.arm)
        self._reference = self.advertise("reference/tip")
        self.receive("mocap/arm/poses", lambda message: message)

    def on_activate_node(self) -> None:
        self._start = None

    def loop(self, stop: threading.Event) -> None:
        while not stop.is_set():
            letter = self.inbox.get()
            if letter is not None:
                self._tell(letter)

    def diagnostic_values(self) -> dict[str, Any]:
        return {
            "reference": self.settings.reference,
            "duration": self.settings.duration,
            "start_stamp": self._start,
        }

    def _tell(self, frame: Sample) -> None:
        """The target at the time of a frame of poses; the motion begins with the first one."""
        if self._start is None:
            self._start = frame.stamp
        tip = self._source.at((frame.stamp - self._start) * 1e-9)
        self._reference.publish(point_to_message(tip, frame.stamp))
        self.finish_tick(frame.received, frame.stamp)


def main() -> int:
    """Entry point of `ros2 run softcr tip_reference`."""
    return run(TipReferenceNode)


if __name__ == "__main__":
    sys.exit(main())

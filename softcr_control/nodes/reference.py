"""The reference as a node: at every pressure sample, on the bench at every tick, where the rod
should be from then on."""

import sys
import threading
import time
from typing import Any, Literal

import numpy as np
from pydantic import Field
from std_srvs.srv import Trigger

from softcr_control.horizon import MAXIMUM_DELAY
from softcr_control.reference_messages import ReferenceMessages
from softcr_control.reference_settings import ReferenceSettings
from softcr_control.references import SampledReference, at_nodes
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.kernel import MAX_INTERVALS
from softcr_runtime.messages import pressures_from_message
from softcr_runtime.node import LoopNode
from softcr_runtime.process import run
from softcr_runtime.settings import SampledNodeSettings
from softcr_runtime.tick_grid import TickGrid


class ReferenceNodeSettings(SampledNodeSettings):
    """What the rod should do, and for how many periods ahead this is told."""

    reference: Literal["setpoint", "circle", "chirp_circle", "trajectory", "tip_circle", "file"] = (
        Field("trajectory", description="what the rod should do")
    )
    file: str = Field("", description="CSV or NPZ with the reference 'file'")
    start: Literal["first sample", "service"] = Field(
        "first sample",
        description="when the motion begins; at its beginning it stands still until then, for "
        "~/start (std_srvs/srv/Trigger) to be called",
    )
    horizon: int = Field(8, ge=1, le=200, description="of the controller, in periods")
    intervals: int = Field(
        5, ge=2, le=MAX_INTERVALS, description="intervals of the rod that states are told for"
    )
    trajectory_intervals: int = Field(
        10, ge=2, le=MAX_INTERVALS, description="intervals of the rod that makes the motion"
    )
    duration: float = Field(
        120.0,
        gt=0.0,
        le=3600.0,
        description="after which it stands still",
        json_schema_extra={"unit": "s"},
    )
    frequency: float = Field(
        0.5, gt=0.0, le=20.0, description="of a circle", json_schema_extra={"unit": "Hz"}
    )
    mean: float = Field(
        35e3, ge=0.0, le=1e6, description="mean pressure", json_schema_extra={"unit": "Pa"}
    )
    amplitude: float = Field(
        20e3, ge=0.0, le=1e6, description="of the pressures", json_schema_extra={"unit": "Pa"}
    )


_BEFORE = -1e3  # [s] when all rows of the horizon are the first


class ReferenceNode(LoopNode):
    """Tells where the rod should be, over the controller's horizon."""

    default_name = "reference"
    Settings = ReferenceNodeSettings
    settings: ReferenceNodeSettings
    _start: int | None = None
    _asked = False

    def __init__(self, **node_options: Any):
        """See LoopNode; the service exists in every state."""
        super().__init__(**node_options)
        self.create_service(Trigger, "~/start", self._serve_start)

    def on_configure_node(self) -> None:
        settings = self.settings
        if settings.reference == "file" and not settings.file:
            raise UserError("parameter file = '': a path is needed with reference = file")
        rod = CosseratRod(self.robot, settings.intervals)
        self._source = self._made_source()
        self._messages = ReferenceMessages(rod, self._source)
        self._message(0.0, 1)
        self._reference = self.advertise("reference/rod")
        if not self.settings.resampled:
            self.receive("pressure/state", self._decoded_pressures)

    def on_activate_node(self) -> None:
        self._start = None
        self._asked = self.settings.start == "first sample"

    def loop(self, stop: threading.Event) -> None:
        if self.settings.resampled:
            self._loop_on_the_grid(stop)
            return
        while not stop.is_set():
            letter = self.inbox.get()
            if letter is not None:
                self._tell(letter.stamp, letter.received)

    def _loop_on_the_grid(self, stop: threading.Event) -> None:
        """At the ticks of the bench, which need no message to be known."""
        grid, before = TickGrid(self.settings.period), self.now()
        while not stop.is_set():
            now = self.now()
            for tick in grid.after(before, now)[-1:]:
                self._tell(tick, time.monotonic() - (now - tick) * 1e-9)
            before = now
            left = grid.after(now, now + grid.period)[0] - self.now()
            stop.wait(max(left, 0) * 1e-9)

    def _tell(self, stamp: int, due: float) -> None:
        if self._start is None and self._asked:
            self._start = stamp
        since = _BEFORE if self._start is None else (stamp - self._start) * 1e-9
        self._reference.publish(self._message(since, stamp))
        self.finish_tick(due, stamp)

    def diagnostic_values(self) -> dict[str, Any]:
        return {
            "reference": self.settings.reference,
            "duration": self.settings.duration,
            "start_stamp": self._start,
        }

    def _serve_start(self, _: Any, response: Any) -> Any:
        response.success = self.active
        response.message = "started" if self.active else "activate the node first"
        self._asked |= self.active
        return response

    def _made_source(self) -> SampledReference:
        settings = self.settings
        chosen = ReferenceSettings(
            kind=settings.reference,
            file=settings.file,
            duration=settings.duration,
            frequency=settings.frequency,
            mean=settings.mean,
            amplitude=settings.amplitude,
        )
        fine = CosseratRod(self.robot, settings.trajectory_intervals)
        made = chosen.source(RodPrediction(fine, substeps=3), settings.period)
        return at_nodes(made, settings.intervals)

    def _message(self, time: float, stamp: int) -> Any:
        return self._messages.at(time, self.settings.horizon + 1 + MAXIMUM_DELAY, stamp)

    def _decoded_pressures(self, message: Any) -> np.ndarray:
        return pressures_from_message(message, self.robot.chamber_names, "pressure/state")


def main() -> int:
    """Entry point of `ros2 run softcr reference`."""
    return run(ReferenceNode)


if __name__ == "__main__":
    sys.exit(main())

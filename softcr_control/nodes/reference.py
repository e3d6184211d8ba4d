"""The reference as a node: at every pressure sample, where the rod should be from then on."""

import sys
import threading
from typing import Any, Literal

import numpy as np
from pydantic import Field

from softcr_control.horizon import MAXIMUM_DELAY
from softcr_control.reference_settings import ReferenceSettings
from softcr_control.references import SampledReference
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.kernel import MAX_INTERVALS
from softcr_models.rod.state import restrict_to_nodes
from softcr_models.runtime.messages import pressures_from_message, reference_cloud_message
from softcr_models.runtime.node import LoopNode, run
from softcr_models.runtime.settings import NodeSettings


class ReferenceNodeSettings(NodeSettings):
    """What the rod should do, and for how many periods ahead this is told."""

    reference: Literal["setpoint", "circle", "chirp_circle", "trajectory", "tip_circle", "file"] = (
        Field("trajectory", description="what the rod should do")
    )
    file: str = Field("", description="CSV or NPZ with the reference 'file'")
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


class ReferenceNode(LoopNode):
    """Tells where the rod should be, over the controller's horizon."""

    default_name = "reference"
    Settings = ReferenceNodeSettings
    settings: ReferenceNodeSettings

    def on_configure_node(self) -> None:
        settings = self.settings
        if settings.reference == "file" and not settings.file:
            raise UserError("parameter file = '': a path is needed with reference = file")
        self._rod = CosseratRod(self.robot, settings.intervals)
        self._source = self._made_source()
        self._poses = self._known_poses()
        self._message(0.0, 1)
        self._start: int | None = None
        self._reference = self.advertise("reference/rod")
        self.receive("pressure/state", self._decoded_pressures)

    def on_activate_node(self) -> None:
        self._start = None

    def loop(self, stop: threading.Event) -> None:
        while not stop.is_set():
            letter = self.inbox.get()
            if letter is None:
                continue
            if self._start is None:
                self._start = letter.stamp
            time = (letter.stamp - self._start) * 1e-9
            self._reference.publish(self._message(time, letter.stamp))
            self.finish_tick(letter.received, letter.stamp)

    def diagnostic_values(self) -> dict[str, Any]:
        return {"reference": self.settings.reference, "duration": self.settings.duration}

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
        states = restrict_to_nodes(made.states, settings.intervals)
        return SampledReference(made.period, states, made.tip_positions)

    def _known_poses(self) -> np.ndarray | None:
        """(T, n + 2, 4, 4) of every row, computed beforehand; None if only tips are known."""
        states = self._source.states
        if not np.isfinite(states).all():
            return None
        nodes = np.stack([self._rod.node_poses(state) for state in states])
        return np.concatenate((nodes[:, :1], nodes), axis=1)

    def _message(self, time: float, stamp: int) -> Any:
        """States and tips are interpolated in time; poses, for viewers, are of the nearest rows."""
        rows = self.settings.horizon + 1 + MAXIMUM_DELAY
        window = self._source.window(time, rows)
        poses = None
        if self._poses is not None:
            first = round(time / window.period)
            poses = self._poses[np.clip(np.arange(first, first + rows), 0, len(self._poses) - 1)]
        return reference_cloud_message(
            window.states, poses, window.tip_positions, stamp, window.period
        )

    def _decoded_pressures(self, message: Any) -> np.ndarray:
        return pressures_from_message(message, self.robot.chamber_names, "pressure/state")


def main() -> int:
    """Entry point of `ros2 run softcr reference`."""
    return run(ReferenceNode)


if __name__ == "__main__":
    sys.exit(main())

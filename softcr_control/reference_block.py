"""The reference: where the robot should be from now on, over the controller's horizon.

In simulation it answers every sample of the actuators; on the bench it speaks at every tick of the
grid, which needs no message to be known.
"""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from softcr_control.horizon import MAXIMUM_DELAY
from softcr_control.reference_rows import ReferenceSource
from softcr_control.reference_settings import ReferenceSettings
from softcr_control.references import SampledReference, at_nodes
from softcr_models.errors import UserError
from softcr_models.models import make_model, model_class
from softcr_models.prediction import RodPrediction
from softcr_models.robot import kind_of
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.kernel import MAX_INTERVALS
from softcr_models.rod_model import RodModel
from softcr_runtime.block import CLOCK, BlockBase, Input, Output, Samples
from softcr_runtime.robot_topics import robot_topics
from softcr_runtime.settings import SampledNodeSettings

_BEFORE = -1e3  # [s] when all rows of the horizon are the first


class ReferenceBlockSettings(SampledNodeSettings):
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
    model: str = Field(
        "",
        description="that the controller predicts with, and that makes the motion where it is no "
        "rod; empty: the exact one of the robot's kind",
    )
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
    radius: float = Field(
        0.05, ge=0.0, le=10.0, description="of a tip circle", json_schema_extra={"unit": "m"}
    )
    height: float = Field(
        0.13, ge=-10.0, le=10.0, description="z of a tip circle", json_schema_extra={"unit": "m"}
    )


class ReferenceBlock(BlockBase):
    """Tells where the rod should be, over the controller's horizon."""

    name = "reference"
    Settings = ReferenceBlockSettings
    kinds = ("rod", "arm")
    actions = ("start",)

    def __init__(self, robot: Any, settings: Any, motion: SampledReference | None = None) -> None:
        """See BlockBase.

        Args:
            robot: see BlockBase.
            settings: see BlockBase.
            motion: made by hand, for the rod of `intervals`; None: the one that settings describe.
        """
        super().__init__(robot, settings)
        if settings.reference == "file" and not settings.file:
            raise UserError("parameter file = '': a path is needed with reference = file")
        self.on_grid = settings.resampled
        lead = CLOCK if settings.resampled else robot_topics(robot).state
        self.inputs = (Input(lead, "lead"),)
        name = settings.model or kind_of(settings.robot)
        if issubclass(model_class(name), RodModel):
            self._topic = "reference/rod"
            rod = CosseratRod(robot, settings.intervals)
            self._source = ReferenceSource(motion or self._motion_of_a_rod(), rod)
        else:
            self._topic = "reference/output"
            model = make_model(name, robot)
            self._source = ReferenceSource(self._chosen().source(model, settings.period))
        self.outputs = (self._topic,)
        self.reset()

    def reset(self) -> None:
        """See BlockBase."""
        self._start: int | None = None
        self._asked = self.settings.start == "first sample"

    def rehearse(self) -> None:
        """See BlockBase; poses of the whole motion are computed once."""
        self._source.at(0.0, 1, 1).poses()

    def act(self, action: str) -> str:
        """`start`: the motion begins with the next tick."""
        self._asked = True
        return "started"

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The rows from now on."""
        if self._start is None and self._asked:
            self._start = now
        since = _BEFORE if self._start is None else (now - self._start) * 1e-9
        rows = self.settings.horizon + 1 + MAXIMUM_DELAY
        return [Output(self._topic, now, self._source.at(since, rows, now))]

    def describe(self) -> dict[str, Any]:
        """See BlockBase."""
        return {
            "reference": self.settings.reference,
            "duration": self.settings.duration,
            "start_stamp": self._start,
        }

    def _motion_of_a_rod(self) -> SampledReference:
        """States at the nodes of the controller's rod, of a motion that a finer one makes."""
        fine = CosseratRod(self.robot, self.settings.trajectory_intervals)
        made = self._chosen().source(RodPrediction(fine, substeps=3), self.settings.period)
        return at_nodes(made, self.settings.intervals)

    def _chosen(self) -> ReferenceSettings:
        settings = self.settings
        return ReferenceSettings(
            kind=settings.reference,
            file=settings.file,
            duration=settings.duration,
            frequency=settings.frequency,
            mean=settings.mean,
            amplitude=settings.amplitude,
            radius=settings.radius,
            height=settings.height,
        )

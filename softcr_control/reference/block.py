"""The reference: where the robot should be from now on, over the controller's horizon.

In simulation it answers every sample of the actuators; on the bench it speaks at every tick of the
grid, which needs no message to be known.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from softcr_control.observation import ControlContext
from softcr_control.predictive.horizon import BRIDGED, MAXIMUM_DELAY
from softcr_control.predictive.learned_motion import LearnedMotion
from softcr_control.reference.motion import BoundedMotion
from softcr_control.reference.references import SampledReference, at_nodes
from softcr_control.reference.rows import ReferenceSource
from softcr_control.reference.settings import ReferenceSettings
from softcr_models.errors import UserError
from softcr_models.model import Model
from softcr_models.models import make_model, model_class
from softcr_models.plugins import Place, made
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import kind_of
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.section import MAX_INTERVALS
from softcr_models.rod_model.rod_model import RodModel
from softcr_models.rod_model.rows import with_matching_nodes
from softcr_runtime.blocks.block import CLOCK, BlockBase, Input, Output, Samples
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import NodeSettings, SampledNodeSettings, setting_values
from softcr_runtime.settings.plugin_settings import plugin_settings, with_plugin
from softcr_runtime.wire.robot_topics import robot_topics

USUAL_HORIZON = 8
"""As far as any shipped controller looks ahead [periods]."""

_BEFORE = -1e3  # [s] when all rows of the horizon are the first
_INPUTS_EVERY = 8  # ticks, in which they do not change: they are told for so much longer


class RowsSettings(SampledNodeSettings):
    """When a reference begins, and for how many periods ahead it is told."""

    start: Literal["first sample", "service"] = Field(
        "first sample",
        description="when the motion begins; at its beginning it stands still until ~/start "
        "(std_srvs/srv/Trigger) is called",
    )
    horizon: int = Field(
        USUAL_HORIZON, ge=1, le=200, description="horizon of the controller, in periods"
    )
    model: str = Field(
        "",
        description="model with which the controller predicts, and which makes the motion if it is "
        "not a rod; empty: the exact one of the robot's kind",
    )
    intervals: int = Field(
        5,
        ge=2,
        le=MAX_INTERVALS,
        description="number of intervals of the rod whose states are given",
    )
    duration: float = Field(
        120.0,
        gt=0.0,
        le=3600.0,
        description="time after which the reference stands still",
        json_schema_extra={"unit": "s"},
    )


class AnyReferenceSettings(RowsSettings):
    """Which motion."""

    reference: Place = Field(
        "trajectory",
        description=f"motion of the rod: {', '.join(registry.MOTIONS)}; or "
        "package.module:Class, or path/file.py:Class",
    )
    learned: str = Field(
        "",
        description="file of `softcr learn motion`: what earlier repetitions of the motion taught; "
        "empty: none",
        json_schema_extra={"folder": ""},
    )

    def motion(self) -> dict[str, Any]:
        """What makes the motion: settings by name."""
        return motion_of(setting_values(self))


_BESIDE_THE_MOTION = {*RowsSettings.model_fields, "learned"} - {"duration"}


class ReferenceBlockSettings(AnyReferenceSettings):
    """Numbers of the known motions beside it."""

    file: str = Field(
        "",
        description="CSV or NPZ file for the reference 'file'",
        json_schema_extra={"folder": ""},
    )
    trajectory_intervals: int = Field(
        10,
        ge=2,
        le=MAX_INTERVALS,
        description="number of intervals of the rod that makes the motion",
    )
    frequency: float = Field(
        0.5, gt=0.0, le=20.0, description="frequency of a circle", json_schema_extra={"unit": "Hz"}
    )
    mean: float = Field(
        35e3, ge=0.0, le=1e6, description="mean of the pressures", json_schema_extra={"unit": "Pa"}
    )
    amplitude: float = Field(
        20e3,
        ge=0.0,
        le=1e6,
        description="amplitude of the pressures",
        json_schema_extra={"unit": "Pa"},
    )
    radius: float = Field(
        0.05, ge=0.0, le=10.0, description="radius of a tip circle", json_schema_extra={"unit": "m"}
    )
    height: float = Field(
        0.13,
        ge=-10.0,
        le=10.0,
        description="height z of a tip circle",
        json_schema_extra={"unit": "m"},
    )


def motion_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Of all settings of a reference, by name, those that make its motion."""
    return {name: value for name, value in settings.items() if name not in _BESIDE_THE_MOTION}


class ReferenceBlock(BlockBase):
    """Publishes where the rod should be over the controller's horizon."""

    name = "reference"
    Settings = ReferenceBlockSettings
    kinds = None
    actions = ("start",)

    def __init__(
        self,
        robot: Any,
        settings: Any,
        motion: SampledReference | None = None,
        learned: LearnedMotion | None = None,
    ) -> None:
        """See BlockBase.

        Args:
            robot: see BlockBase.
            settings: see BlockBase.
            motion: made by hand, for the rod of `intervals`; None: the one that settings describe.
            learned: of repetitions of it; None: what the file of the settings holds.
        """
        super().__init__(robot, settings)
        self.on_grid = settings.resampled
        lead = CLOCK if settings.resampled else robot_topics(robot).state
        self.inputs = (Input(lead, "lead"),)
        self._title = type(self).__name__
        name = settings.model or kind_of(settings.robot)
        of_class = settings.reference not in registry.MOTIONS
        learned = learned or self._learned()
        if issubclass(model_class(name), RodModel):
            self._topic = "reference/rod"
            rod = CosseratRod(robot, settings.intervals)
            made_by_settings = self._motion_of_class if of_class else self._motion_of_a_rod
            chosen = motion or made_by_settings(RodPrediction(rod))
            self._source = ReferenceSource(chosen, rod, learned)
        else:
            self._topic = "reference/output"
            self.model = make_model(name, robot)
            made_by_settings = self._motion_of_class if of_class else self._motion_of_a_model
            self._source = ReferenceSource(made_by_settings(self.model), learned=learned)
        self._inputs_topic = robot_topics(robot).reference
        # in lock-step every answer is waited for, and nothing has to reach beyond a horizon
        self._tells_inputs = not settings.lockstep and self._source.knows_inputs
        self.outputs = (self._topic, *(self._inputs_topic,) * self._tells_inputs)
        self.reset()

    @classmethod
    def settings_model(cls, given: Mapping[str, Any]) -> type[NodeSettings]:
        """See BlockBase; a class brings its own settings in place of the known motions' numbers.

        Raises:
            UserError: neither a known motion nor a class that can be used.
        """
        named = str(given.get("reference", cls.Settings.model_fields["reference"].default))
        if named in registry.MOTIONS:
            return cls.Settings
        return with_plugin(AnyReferenceSettings, registry.resolve("reference", named))

    @property
    def title(self) -> str:
        return self._title

    @property
    def summary(self) -> str:
        settings = self.settings
        source = f" of {settings.file}" if getattr(settings, "file", "") else ""
        begins = "when it is asked to start" if settings.start == "service" else "at once"
        return (
            f"motion {settings.reference}{source} for {settings.robot}, {settings.duration:g} s, "
            f"begins {begins}, published {settings.horizon} periods ahead"
        )

    def reset(self) -> None:
        self._start: int | None = None
        self._asked = self.settings.start == "first sample"
        self._ticks = 0  # since the inputs were told

    def rehearse(self) -> None:
        """See BlockBase; poses of the whole motion are computed once."""
        self._source.at(0.0, 1, 1).poses()

    def act(self, action: str) -> str:
        """`start`: Begins the motion with the next tick."""
        self._asked = True
        return "started"

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The rows from now on; of inputs far more of them, and more rarely."""
        if self._start is None and self._asked:
            self._start, self._ticks = now, 0
        since = _BEFORE if self._start is None else (now - self._start) * 1e-9
        rows = self.settings.horizon + 1 + MAXIMUM_DELAY
        told = [Output(self._topic, now, self._source.at(since, rows, now))]
        inputs = self._inputs_at(since) if self._tells_inputs and self._ticks == 0 else None
        if inputs is not None:
            packet = CommandPacket.regular(now, round(1e9 * self.settings.period), inputs)
            told.append(Output(self._inputs_topic, now, packet))
        self._ticks = (self._ticks + 1) % _INPUTS_EVERY
        return told

    def describe(self) -> dict[str, Any]:
        return {
            "reference": self.settings.reference,
            "duration": self.settings.duration,
            "start_stamp": self._start,
        }

    def _inputs_at(self, since: float) -> np.ndarray | None:
        """(K, m) as far as a controller may plan with them, from a time of the motion [s] on."""
        rows = self.settings.horizon + 1 + MAXIMUM_DELAY + BRIDGED + _INPUTS_EVERY
        return self._source.inputs_at(since, rows)

    def _learned(self) -> LearnedMotion | None:
        """What repetitions have taught, where a file of it is named."""
        file = getattr(self.settings, "learned", "")
        if not file:
            return None
        learned = LearnedMotion.load(Path(file))
        learned.refuse_others(Path(file), self.robot.name, self.settings.motion())
        return learned

    def _motion_of_class(self, model: Model) -> BoundedMotion:
        settings = self.settings
        kind = registry.resolve("reference", settings.reference)
        self._title = kind.__name__
        context = ControlContext(self.robot, model, settings.period, settings.seed)
        motion = made(kind, context, plugin_settings(settings, kind))
        return BoundedMotion(motion, settings.duration, model.state.size)

    def _motion_of_a_rod(self, model: Model) -> SampledReference:
        """States at the nodes of the controller's rod, of a motion that a finer one makes."""
        coarse = CosseratRod(self.robot, self.settings.intervals)
        divided = with_matching_nodes(self.robot, self.settings.intervals)
        fine = CosseratRod(divided, self.settings.trajectory_intervals)
        model = RodPrediction(fine, substeps=3)
        made = self._chosen(model).source(model, self.settings.period)
        return at_nodes(made, fine, coarse)

    def _motion_of_a_model(self, model: Model) -> SampledReference:
        return self._chosen(model).source(model, self.settings.period)

    def _chosen(self, model: Model) -> ReferenceSettings:
        settings = self.settings
        if settings.reference == "file" and not settings.file:
            raise UserError("parameter file = '': a path is needed with reference = file")
        return ReferenceSettings(
            kind=settings.reference,
            file=settings.file,
            duration=settings.duration,
            frequency=settings.frequency,
            mean=self._of_inputs("mean", model),
            amplitude=self._of_inputs("amplitude", model),
            radius=settings.radius,
            height=settings.height,
        )

    def _of_inputs(self, name: str, model: Model) -> float | None:
        """A setting of the inputs; None, a share of their range, where it is left at a default that
        is one of pressures and the inputs are not."""
        value: float = getattr(self.settings, name)
        default = type(self.settings).model_fields[name].default
        return None if value == default and model.inputs.unit != "Pa" else value

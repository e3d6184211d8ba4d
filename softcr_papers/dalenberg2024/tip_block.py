"""The reference of a tendon-driven arm: at every frame of poses, where its tip should be.

A person steers by hand without it: who publishes `reference/tip` sets the controller's setpoint,
with `setpoints: held`.
"""

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from softcr_models.errors import UserError
from softcr_papers.dalenberg2024.arm_settings import ArmNodeSettings
from softcr_papers.dalenberg2024.tip_references import (
    TipReference,
    TipReferenceKind,
    TipReferenceSettings,
    tip_reference,
)
from softcr_runtime.blocks.block import BlockBase, Input, Output, Samples


class TipReferenceBlockSettings(ArmNodeSettings):
    """What the tip should do."""

    reference: TipReferenceKind = Field(
        "trajectory", description="one setpoint, a series of them, a circle or a file"
    )
    file: str = Field(
        "",
        description="CSV or NPZ file for the reference 'file'",
        json_schema_extra={"folder": ""},
    )
    duration: float = Field(
        120.0,
        gt=0.0,
        le=3600.0,
        description="time after which the reference stands still",
        json_schema_extra={"unit": "s"},
    )
    dwell: float = Field(
        6.0,
        gt=0.0,
        le=3600.0,
        description="time at each setpoint",
        json_schema_extra={"unit": "s"},
    )


class TipReferenceBlock(BlockBase):
    """Publishes where an arm's tip should be."""

    name = "tip_reference"
    Settings = TipReferenceBlockSettings
    kinds = ("arm",)
    inputs = (Input("mocap/body/poses", "lead"),)
    outputs = ("reference/tip",)

    def __init__(self, robot: Any, settings: Any, source: TipReference | None = None) -> None:
        """See BlockBase; `source` in place of the one that settings name."""
        super().__init__(robot, settings)
        if settings.reference == "file" and not settings.file:
            raise UserError("parameter file = '': a path is needed with reference = file")
        chosen = TipReferenceSettings(
            kind=settings.reference,
            file=settings.file,
            duration=settings.duration,
            dwell=settings.dwell,
        )
        self._source = source or tip_reference(chosen, robot)
        self._start: int | None = None

    def reset(self) -> None:
        self._start = None

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The target at the time of a frame of poses; the motion begins with the first one."""
        if self._start is None:
            self._start = now
        return [Output("reference/tip", now, self._source.at((now - self._start) * 1e-9))]

    def describe(self) -> dict[str, Any]:
        return {
            "reference": self.settings.reference,
            "duration": self.settings.duration,
            "start_stamp": self._start,
        }

"""Settings of the reference that is told its goals."""

from pydantic import Field

from softcr_control.goals.motion import Limits
from softcr_control.reference_block import RowsSettings
from softcr_runtime.settings import LIVE


class GoalSettings(RowsSettings):
    """How fast the tip may move, and how exactly a goal must be reached."""

    speed: float = Field(
        0.05,
        gt=0.0,
        le=2.0,
        description="of the tip at most",
        json_schema_extra={"unit": "m/s", **LIVE},
    )
    acceleration: float = Field(
        0.25,
        gt=0.0,
        le=50.0,
        description="of the tip at most",
        json_schema_extra={"unit": "m/s^2", **LIVE},
    )
    tolerance: float = Field(
        1e-3,
        gt=0.0,
        le=0.5,
        description="how far from a goal a tip that stands still may be",
        json_schema_extra={"unit": "m"},
    )
    turn_tolerance: float = Field(
        0.1,
        gt=0.0,
        le=3.2,
        description="how far the tip may be turned from an orientation that a goal asks for; of a "
        "robot with more inputs than coordinates of a tip its axis counts; (0, 0, 0, 1) asks none",
        json_schema_extra={"unit": "rad"},
    )
    turn_speed: float = Field(
        0.5,
        gt=0.0,
        le=20.0,
        description="at which an orientation that is asked for changes at most",
        json_schema_extra={"unit": "rad/s", **LIVE},
    )
    spacing: float = Field(
        5e-3,
        gt=0.0,
        le=1.0,
        description="between points of a way that are looked for in the workspace",
        json_schema_extra={"unit": "m"},
    )
    patience: float = Field(
        0.2,
        gt=0.0,
        le=10.0,
        description="a stream that is silent for so long lets the tip stand",
        json_schema_extra={"unit": "s", **LIVE},
    )

    @property
    def limits(self) -> Limits:
        """Of motions."""
        return Limits(self.speed, self.acceleration, self.period)

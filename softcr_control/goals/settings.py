"""Settings of the reference that is told its goals."""

from pydantic import Field

from softcr_control.goals.motion import Limits
from softcr_control.reference.block import RowsSettings
from softcr_runtime.settings.node_settings import LIVE


class GoalSettings(RowsSettings):
    """How fast the tip may move, and how exactly a goal must be reached."""

    speed: float = Field(
        0.05,
        gt=0.0,
        le=2.0,
        description="highest speed of the tip",
        json_schema_extra={"unit": "m/s", **LIVE},
    )
    acceleration: float = Field(
        0.25,
        gt=0.0,
        le=50.0,
        description="highest acceleration of the tip",
        json_schema_extra={"unit": "m/s^2", **LIVE},
    )
    tolerance: float = Field(
        1e-3,
        gt=0.0,
        le=0.5,
        description="largest distance from the goal of a tip that stands still",
        json_schema_extra={"unit": "m"},
    )
    turn_tolerance: float = Field(
        0.1,
        gt=0.0,
        le=3.2,
        description="largest angle between the tip and an orientation that a goal asks for; for "
        "robots with more inputs than coordinates of the tip, only its axis counts; (0, "
        "0, 0, 1) asks for none",
        json_schema_extra={"unit": "rad"},
    )
    turn_speed: float = Field(
        0.5,
        gt=0.0,
        le=20.0,
        description="highest rate at which a requested orientation changes",
        json_schema_extra={"unit": "rad/s", **LIVE},
    )
    spacing: float = Field(
        5e-3,
        gt=0.0,
        le=1.0,
        description="distance between points of a path at which the workspace is searched",
        json_schema_extra={"unit": "m"},
    )
    patience: float = Field(
        0.2,
        gt=0.0,
        le=10.0,
        description="silence of a stream of goals after which the tip stops",
        json_schema_extra={"unit": "s", **LIVE},
    )

    @property
    def limits(self) -> Limits:
        """Of motions."""
        return Limits(self.speed, self.acceleration, self.period)

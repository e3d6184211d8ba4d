"""Robot and files of a bench, as commands that work on one take them."""

from pydantic import BaseModel, ConfigDict, Field

from softcr_models.files.yaml_files import available


class BenchFiles(BaseModel):
    """The bench and its files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    robot: str = Field(
        "licher2025",
        description="name or file of the robot",
        json_schema_extra={"known": list(available("robots"))},
    )
    station: str = Field(
        "", description="name or file of the valve station; empty: the robot's name"
    )
    calibration: str = Field(
        "", description="name or file of the cameras' calibration; empty: the robot's name"
    )
    mounting: str = Field(
        "",
        description="name or file of the force-torque sensor's mounting; empty: the robot's name",
    )

"""What every node of a tendon-driven arm can be told."""

from pydantic import Field

from softcr_runtime.settings.node_settings import Hertz, NodeSettings


class ArmNodeSettings(NodeSettings):
    """What the nodes of a tendon-driven arm can be told."""

    robot: str = Field(
        "dalenberg_robot1",
        min_length=1,
        description="an arm of config/robots, or a YAML file",
        json_schema_extra={"folder": "robots"},
    )
    rate_hz: Hertz = Field(50.0, ge=1.0, le=1000.0, description="rate of the cameras' frames")

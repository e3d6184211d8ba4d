"""What the command line says of the bench that is commissioned."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from softcr_hardware.force_torque.client import HTTP_PORT, RDT_PORT
from softcr_hardware.optitrack.protocol import COMMAND_PORT
from softcr_models.yaml_files import available


class BenchOptions(BaseModel):
    """The bench and its files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    robot: str = Field(
        "licher2025",
        description="name or file",
        json_schema_extra={"known": list(available("robots"))},
    )
    station: str = Field("", description="of the valves, name or file; empty: the robot's name")
    calibration: str = Field("", description="of the cameras, likewise")
    mounting: str = Field("", description="of the force-torque sensor, likewise")
    interface: str = Field("eth1", min_length=1, description="network interface of the terminals")
    optitrack: str = Field("", description="IP address of Motive's machine; empty: no cameras")
    optitrack_port: int = Field(COMMAND_PORT, ge=1, le=65535, description="its command port")
    local: str = Field("0.0.0.0", min_length=1, description="IP address of our interface to it")
    body: str = Field("tip", min_length=1, description="the tip's rigid body, name or id")
    force_torque: str = Field("", description="IP address of the Net F/T box; empty: none")
    force_torque_port: int = Field(RDT_PORT, ge=1, le=65535, description="of its records (UDP)")
    force_torque_http_port: int = Field(
        HTTP_PORT, ge=1, le=65535, description="of its settings (TCP)"
    )
    deadman: Literal["keyboard", "none"] = Field(
        "keyboard", description="the space bar of this terminal is held while there is air"
    )
    virtual: bool = Field(False, description="a bench on virtual time instead, for practice")
    mistakes: str = Field(
        "", description="of the virtual bench: a YAML file, or a seed for six of them"
    )
    seed: int = Field(0, ge=0, description="of the virtual bench: what the files have not told yet")

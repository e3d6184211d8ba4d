"""What the command line says of the bench that is commissioned."""

from typing import Literal

from pydantic import Field

from softcr_hardware.bench_files import BenchFiles
from softcr_hardware.force_torque.client import HTTP_PORT, RDT_PORT
from softcr_hardware.optitrack.protocol import COMMAND_PORT


class BenchOptions(BenchFiles):
    """The bench, its files and its devices."""

    interface: str = Field("eth1", min_length=1, description="network interface of the terminals")
    optitrack: str = Field("", description="IP address of Motive's machine; empty: no cameras")
    optitrack_port: int = Field(COMMAND_PORT, ge=1, le=65535, description="command port of Motive")
    local: str = Field(
        "0.0.0.0", min_length=1, description="IP address of this machine's interface towards Motive"
    )
    body: str = Field("tip", min_length=1, description="name or id of the tip's rigid body")
    force_torque: str = Field("", description="IP address of the Net F/T box; empty: none")
    force_torque_port: int = Field(
        RDT_PORT, ge=1, le=65535, description="UDP port of the box's records"
    )
    force_torque_http_port: int = Field(
        HTTP_PORT, ge=1, le=65535, description="TCP port of the box's settings"
    )
    deadman: Literal["keyboard", "none"] = Field(
        "keyboard",
        description="whether the space bar of this terminal must be held while there is air",
    )
    virtual: bool = Field(False, description="use a bench on virtual time instead, for practice")
    mistakes: str = Field(
        "",
        description="mistakes of the virtual bench: a YAML file, or a seed that draws six of them",
    )
    seed: int = Field(
        0, ge=0, description="seed of the virtual bench's properties that the files do not give yet"
    )

"""`softcr commission`: the command and its options."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from pydantic import BaseModel, ConfigDict, Field

from softcr_hardware.force_torque.client import HTTP_PORT, RDT_PORT
from softcr_hardware.optitrack.protocol import COMMAND_PORT
from softcr_runtime.command_line import command


class BenchOptions(BaseModel):
    """The bench and its files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    robot: str = Field("licher2025", description="name or file")
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


@command
def commission(
    options: BenchOptions,
    *,
    output: Path = Path("commissioning"),
    daily: bool = False,
    begin: Annotated[str, Parameter(name="--from")] = "",
    yes: bool = False,
    answers: Path | None = None,
    serials: str = "",
) -> int:
    """Commission a bench: find what is wired or mounted wrong, measure it, write its files.

    Leads through the steps, on the real bench or with --virtual on one in memory. What each step
    found is kept in the output directory: the same command goes on where it ended. The last step
    writes station, calibration and mounting files; files that were there are kept under another
    name. The exit code is 1 while something is to be mended by hand.

    Args:
        output: directory of the record and of the written files.
        daily: check the files of the output directory against the bench in two minutes; nothing is
            written but the record of the day.
        begin: step to begin at: devices, zero, sensors, exhaust, survey, wiring, slope, leak, flow,
            base, force_torque, watchdog or deadman; empty for the first that is not done.
        yes: answer every question with yes, and hold no switch: on a bench where nobody is near.
        answers: YAML file with answers: gauge (kPa by chamber of the output), refuse (questions).
        serials: of the parts, in words, for the record.

    Raises:
        UserError: files or devices that cannot be used.
    """
    from softcr_tools.commission.whole import Asked, commissioned  # brings kernels with it

    asked = Asked(output, daily, begin, yes, answers, serials)
    return commissioned(options, asked)

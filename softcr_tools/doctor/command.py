"""`softcr doctor`: the command, the checks in the order a person would mend things, the table."""

import json as json_format
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from pydantic import Field
from rich.console import Console
from rich.table import Table
from rich.text import Text

from softcr_hardware.bench_files import BenchFiles
from softcr_runtime.console.terminal import FAILED
from softcr_runtime.settings.command_line import command
from softcr_runtime.wire.namespaces import Namespace
from softcr_tools.doctor import machine, network, sensors, software, supply
from softcr_tools.doctor.finding import FAIL, WARN, Finding, Level
from softcr_tools.viewer.command import PORT

INTERFACE = "eth1"
"""As the valves node has it by default."""

_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}


class Patient(BenchFiles):
    """The files, addresses and places of a system."""

    interface: str = Field(INTERFACE, description="network adapter of the EtherCAT terminals")
    optitrack: str = Field("", description="address of Motive's machine; if given, it is queried")
    force_torque: str = Field(
        "", description="address of the Net F/T box, as HOST or HOST:PORT; if given, it is queried"
    )
    view_port: int = Field(PORT, ge=1, le=65535, description="port of the live view")
    results: Path = Field(Path("results"), description="directory that runs are recorded to")
    namespace: Namespace = Field(
        "", description="namespace of the robot that is to run; empty: the root"
    )


@command
def doctor(
    system: Literal["hardware", "simulation"] = "hardware",
    /,
    *,
    patient: Patient,
    json: bool = False,
) -> int:
    """Find what would prevent a run, and name the command that fixes it.

    This checks packages, compiled kernels, disk space, clocks, real-time privileges, ROS discovery,
    ports and, for the bench, network adapter, devices and calibration files. It changes nothing.
    The exit code is 1 if a check fails, but not for warnings.

    Args:
        system: system that is to run.
        json: print JSON, for programs.

    Raises:
        UserError: --force-torque is no address.
    """
    if patient.force_torque:
        sensors.host_and_port(patient.force_torque)
    with Console(stderr=True).status("looking ..."):
        findings = list(examine(patient, hardware=system == "hardware"))
    if json:
        print(as_json(findings))
    else:
        console = Console()
        console.print(as_table(findings))
        console.print(verdict(findings), markup=False, highlight=False)
    return FAILED if any(finding.level is Level.FAIL for finding in findings) else 0


def examine(patient: Patient, hardware: bool) -> Iterator[Finding]:
    """Every check, of the bench too if it is `hardware`; one that fails to run is a finding."""
    for subject, look in _looks(patient, hardware):
        try:
            yield from look()
        except Exception as error:
            yield Finding(
                subject, FAIL, f"cannot be checked: {type(error).__name__}: {error}",
                "see the message; if it is an error in softcr, report it",
            )  # fmt: skip


def _looks(patient: Patient, hardware: bool) -> list[tuple[str, Callable[[], list[Finding]]]]:
    station, view = patient.station or patient.robot, patient.view_port
    mend = f"softcr view --port {view + 1}, unless a view runs there already"
    looks: list[tuple[str, Callable[[], list[Finding]]]] = [
        ("packages", lambda: software.packages(hardware)),
        ("compiled kernels", lambda: [software.compiled_kernels()]),
        ("robot", lambda: [software.robot(patient.robot)]),
        ("space", lambda: machine.space(patient.results)),
        ("clocks", machine.clocks),
        ("real time", machine.realtime),
        ("discovery", lambda: network.discovery(patient.namespace)),
        ("ports", lambda: [network.port("live view", "127.0.0.1", "tcp", view, WARN, mend)]),
        (
            "EtherCAT",
            lambda: [
                *network.ethercat(patient.interface, station),
                software.station(station, patient.robot),
                supply.air_supply(station, patient.robot),
            ],
        ),
        ("OptiTrack", lambda: _optitrack(patient)),
        ("force and torque", lambda: _force_torque(patient)),
    ]
    return looks if hardware else looks[:-3]


def _optitrack(patient: Patient) -> list[Finding]:
    from softcr_hardware.optitrack.protocol import DATA_PORT as data

    mend = f"stop the program that uses it (ss -ulpn | grep {data}), or let Motive send unicast"
    return [
        *sensors.optitrack(patient.optitrack),
        network.port("OptiTrack multicast", "0.0.0.0", "udp", data, WARN, mend),
        software.cameras(patient.calibration or patient.robot),
    ]


def _force_torque(patient: Patient) -> list[Finding]:
    mounting = patient.mounting or patient.robot
    asked = sensors.force_torque(patient.force_torque, mounting=mounting)
    return [*asked, software.mounting(mounting)]


def as_table(findings: Iterable[Finding]) -> Table:
    """The findings as rows; under what is not OK stands what mends it."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        style = _STYLES[finding.level]
        said = Text(finding.found)
        if finding.mend:
            said.append(f"\n-> {finding.mend}", style=style)
        table.add_row(Text(finding.level.name, style=style), Text(finding.subject), said)
    return table


def as_json(findings: Sequence[Finding]) -> str:
    """The findings for programs: `ok`, and a list with subject, level, found, mend."""
    rows = [asdict(finding) | {"level": finding.level.name} for finding in findings]
    ok = all(finding.level is not Level.FAIL for finding in findings)
    return json_format.dumps({"ok": ok, "findings": rows}, indent=2)


def verdict(findings: Sequence[Finding]) -> str:
    """One line: what to do first."""
    counts = {level: sum(found.level is level for found in findings) for level in Level}
    worst = max(findings, key=lambda finding: finding.level)  # the first of the worst
    counted = f"{counts[Level.OK]} OK, {counts[Level.WARN]} WARN, {counts[Level.FAIL]} FAIL"
    if worst.level is Level.FAIL:
        return f"{counted}; first: {worst.subject}: {worst.mend}"
    return f"{counted}; no problems found"

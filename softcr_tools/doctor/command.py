"""`softcr doctor`: the command line and the table."""

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from softcr_runtime.console import FAILED
from softcr_tools.doctor.finding import Finding, Level
from softcr_tools.viewer.command import PORT

INTERFACE = "eth1"
"""As the valves node has it by default."""

_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr doctor`; returns 1 if anything fails, else 0."""
    given = _parser().parse_args(arguments)
    from softcr_tools.doctor.examination import Patient, examine

    patient = Patient(
        hardware=given.system == "hardware",
        robot=given.robot,
        station=given.station or given.robot,
        calibration=given.calibration or given.robot,
        interface=given.interface,
        optitrack=given.optitrack,
        force_torque=given.force_torque,
        view_port=given.view_port,
        results=given.results,
    )
    with Console(stderr=True).status("looking ..."):
        findings = list(examine(patient))
    if given.json:
        print(as_json(findings))
    else:
        console = Console()
        console.print(as_table(findings))
        console.print(verdict(findings), markup=False, highlight=False)
    return FAILED if any(finding.level is Level.FAIL for finding in findings) else 0


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
    rows = [
        {
            "subject": finding.subject,
            "level": finding.level.name,
            "found": finding.found,
            "mend": finding.mend,
        }
        for finding in findings
    ]
    ok = all(finding.level is not Level.FAIL for finding in findings)
    return json.dumps({"ok": ok, "findings": rows}, indent=2)


def verdict(findings: Sequence[Finding]) -> str:
    """One line: what to do first."""
    counts = {level: sum(found.level is level for found in findings) for level in Level}
    worst = max(findings, key=lambda finding: finding.level)  # the first of the worst
    counted = f"{counts[Level.OK]} OK, {counts[Level.WARN]} WARN, {counts[Level.FAIL]} FAIL"
    if worst.level is Level.FAIL:
        return f"{counted}; first: {worst.subject}: {worst.mend}"
    return f"{counted}; nothing stands in the way"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr doctor",
        description="Looks for what stands in the way of a run, and says what mends it: packages, "
        "compiled kernels, space, clocks, real-time privileges, ROS's discovery, ports and, for "
        "the bench, adapter, devices and calibration files. Changes nothing. Exit code 1 if "
        "anything fails; a warning is none.",
    )
    parser.add_argument(
        "system", nargs="?", choices=("hardware", "simulation"), default="hardware",
        help="what is to run (default %(default)s)",
    )  # fmt: skip
    for name, default, what in (
        ("robot", "licher2025", "robot, name or file"),
        ("station", "", "valve station, name or file (default: the robot's name)"),
        ("calibration", "", "of the cameras, name or file (default: the robot's name)"),
        ("interface", INTERFACE, "network adapter of the EtherCAT terminals"),
        ("optitrack", "", "address of Motive's machine, to ask it"),
        ("force-torque", "", "address of the Net F/T box, as HOST or HOST:PORT, to ask it"),
    ):
        more = f" (default {default})" if default else ""
        parser.add_argument(f"--{name}", default=default, metavar="X", help=what + more)
    parser.add_argument(
        "--view-port", type=int, choices=range(1, 65536), default=PORT, metavar="1..65535",
        help="of the live view (default %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIRECTORY",
        help="where runs are recorded to (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser

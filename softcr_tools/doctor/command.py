"""`softcr doctor`: the command line and the table."""

import json as json_format
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from softcr_runtime.command_line import command
from softcr_runtime.console import FAILED
from softcr_tools.doctor.examination import Patient, examine
from softcr_tools.doctor.finding import Finding, Level

_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}


@command
def doctor(
    system: Literal["hardware", "simulation"] = "hardware",
    /,
    *,
    patient: Patient,
    json: bool = False,
) -> int:
    """Say what stands in the way of a run, and what mends it.

    Packages, compiled kernels, space, clocks, real-time privileges, ROS's discovery, ports and, for
    the bench, adapter, devices and calibration files. Changes nothing. The exit code is 1 if
    anything fails; a warning is none.

    Args:
        system: what is to run.
        json: for programs.
    """
    with Console(stderr=True).status("looking ..."):
        findings = list(examine(patient, hardware=system == "hardware"))
    if json:
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
    return f"{counted}; nothing stands in the way"

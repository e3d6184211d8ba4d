"""The record of a commissioning: what each step found, kept after every step to go on there."""

import datetime as dt
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from softcr_hardware.commissioning.findings import Finding
from softcr_models.files.yaml_files import read_mapping, validated
from softcr_runtime.bags.whole_files import write_whole


class StepRecord(BaseModel):
    """What one step found.

    Attributes:
        done: date and time.
        findings: what is wrong.
        lines: what a person should see.
        values: what later steps and the files need.
    """

    model_config = ConfigDict(extra="forbid")

    done: str = ""
    findings: tuple[Finding, ...] = ()
    lines: tuple[str, ...] = ()
    values: dict[str, Any] = Field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether nothing is left to be mended by hand."""
        return all(finding.mend == "file" for finding in self.findings)


class Record(BaseModel):
    """The file.

    Attributes:
        robot, station, calibration, mounting: names of the files that are commissioned.
        softcr: version.
        started: date and time.
        serials: of the parts, as the operator told them.
        devices: who they are, as they told it.
        steps: by name, in the order in which they were done.
    """

    model_config = ConfigDict(extra="forbid")

    robot: str
    station: str
    calibration: str
    mounting: str = ""
    softcr: str = ""
    started: str = ""
    serials: str = ""
    devices: dict[str, str] = Field(default_factory=dict)
    steps: dict[str, StepRecord] = Field(default_factory=dict)

    def findings(self) -> list[Finding]:
        """Of all steps."""
        return [finding for step in self.steps.values() for finding in step.findings]

    def save(self, path: Path) -> None:
        """Write it, at once or not at all.

        Raises:
            UserError: it cannot be written.
        """
        content = yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, width=100)
        write_whole(path, content)


def load_record(path: Path) -> Record | None:
    """The record of a file; None where there is none.

    Raises:
        UserError: it is none, in one line.
    """
    if not path.exists():
        return None
    return validated(Record, read_mapping(path, "commissioning record"), path)


def now_words() -> str:
    """Date and time, to the second."""
    return dt.datetime.now().astimezone().isoformat(timespec="seconds")

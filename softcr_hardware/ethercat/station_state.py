"""What a station must not forget when its process ends: a held latch, and the zeros of its sensors.

Small YAML files in a directory of this machine's state, beside ROS's own: `$ROS_HOME/softcr`, or
`~/.ros/softcr`. They are written to a draft that takes the file's place, so that a reader finds the
old one or the new one.
"""

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field

from softcr_models.errors import UserError
from softcr_models.files.yaml_files import read_mapping, validated
from softcr_runtime.bags.whole_files import write_whole

_SAME_VOLTS = 1e-9


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    date: str = Field(min_length=1, description="when it was written, UTC")


class HeldLatch(_Kept):
    """Why the valves must pass a check before they are enabled again."""

    cause: str = Field(min_length=1)


class KeptZero(_Kept):
    """Zeros of the sensors in use, and those of the station file that they were found beside."""

    zero: tuple[float, ...] = Field(min_length=1, description="[V]")
    nominal: tuple[float, ...] = Field(min_length=1, description="[V]")


class StationState:
    """The files of one station.

    Attributes:
        latch_file, zero_file: where they are.
    """

    def __init__(self, station: str | Path, directory: str | Path = ""):
        """Of a station by its name or the path of its file; touches nothing.

        Args:
            station: which.
            directory: that the files are in; empty for this machine's.
        """
        home = Path(os.environ.get("ROS_HOME") or Path.home() / ".ros")
        folder, name = Path(directory) if directory else home / "softcr", Path(station).stem
        self.latch_file = folder / f"{name}.latch.yaml"
        self.zero_file = folder / f"{name}.zero.yaml"

    def held(self) -> str:
        """Cause of the held latch; empty for none. A file that cannot be read counts as one."""
        if not self.latch_file.exists():
            return ""
        try:
            kept = validated(HeldLatch, read_mapping(self.latch_file, "latch"), self.latch_file)
        except UserError as error:
            problems = "; ".join(str(error).splitlines())
            return f"the file of the held latch cannot be read: {problems}"
        return f"{kept.cause} ({kept.date})"

    def hold(self, cause: str) -> None:
        """Keep a latch until `forget_latch`.

        Raises:
            UserError: the file cannot be written.
        """
        _write(self.latch_file, {"date": _now(), "cause": cause})

    def forget_latch(self) -> None:
        """A daily check or a commissioning has passed."""
        self.latch_file.unlink(missing_ok=True)

    def zero(self, nominal: np.ndarray) -> tuple[np.ndarray | None, str]:
        """Zeros (m,) [V] that were kept, or None; and a line about them, empty for no file.

        Args:
            nominal: (m,) of the station file [V]; zeros found beside others are not used.
        """
        if not self.zero_file.exists():
            return None, ""
        try:
            kept = validated(KeptZero, read_mapping(self.zero_file, "zeros"), self.zero_file)
        except UserError as error:
            return None, f"zeros of the station file are used: {error}"
        file = np.array(kept.nominal)
        if len(kept.zero) != len(nominal) or file.shape != nominal.shape:
            return None, f"{self.zero_file}: of another station; its zeros are used"
        if np.abs(file - nominal).max() > _SAME_VOLTS:
            return None, (
                f"{self.zero_file}: found beside other zeros than the station file has now, "
                "which are used"
            )
        return np.array(kept.zero), f"zeros of {kept.date} are used: {self.zero_file}"

    def keep_zero(self, zero: np.ndarray, nominal: np.ndarray) -> None:
        """Keep zeros (m,) [V], found beside those of the station file, `nominal` (m,) [V].

        Raises:
            UserError: the file cannot be written.
        """
        told = {"zero": zero.round(5).tolist(), "nominal": nominal.tolist()}
        _write(self.zero_file, {"date": _now()} | told)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _write(path: Path, content: dict[str, Any]) -> None:
    write_whole(path, yaml.safe_dump(content, sort_keys=False))

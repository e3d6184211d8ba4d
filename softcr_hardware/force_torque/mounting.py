"""How the force-torque sensor sits below the base, and its bias: a file of config/force_torque.

    wrench in the base frame = rotation * (reading - bias)

for force and moment alike: how far the sensor lies below the rod's base stands in the robot file.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pinocchio as pin
import yaml
from pydantic import BaseModel, ConfigDict, Field

from softcr_hardware.force_torque.box import BoxSettings
from softcr_hardware.unit_quaternion import UnitQuaternion
from softcr_models.files.number_types import Finite
from softcr_models.files.yaml_files import load_yaml
from softcr_runtime.bags.whole_files import write_whole

Wrench = Annotated[tuple[Finite, ...], Field(min_length=6, max_length=6)]
Counts = Annotated[tuple[int, ...], Field(min_length=6, max_length=6)]
BiasTo = Literal["rest", "zero"]


class KeptBias(BaseModel):
    """What the vented rod's readings were off, when, and with which settings of the box."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    wrench: Wrench = Field(
        description="subtracted from readings, in the sensor's axes: force [N], moment [N m]"
    )
    taken: datetime = Field(description="date and time of the bias")
    to: BiasTo = Field(
        default="rest",
        description="what the vented rod reads with this bias: the model's wrench, or 0",
    )
    calibration_serial: str = Field(
        default="", description="serial of the sensor's calibration at that time"
    )
    software_bias: Counts | None = Field(
        default=None,
        description="bias of the strain gages that the box itself subtracted at that time",
    )

    def problem(self, box: BoxSettings, to: BiasTo) -> str:
        """Why it does not hold for a box, in a line; empty if it does."""
        when = f"the bias of {self.taken:%Y-%m-%d} was taken"
        if self.to != to:
            return f"{when} with bias_to {self.to}, now it is {to}"
        known, serial = self.calibration_serial, box.calibration_serial
        if known and serial and known != serial:
            return f"{when} with calibration {known}, the box has {serial}"
        if None not in (self.software_bias, box.software_bias) and (
            self.software_bias != box.software_bias
        ):
            return f"{when} with another software bias in the box"
        return ""


class Mounting(BaseModel):
    """The file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str = ""
    quaternion: UnitQuaternion = Field(
        default=(0.0, 0.0, 0.0, 1.0),
        description="orientation of the sensor's axes in the base frame; x, y, z, w",
    )
    calibration_serial: str = Field(
        default="",
        description="serial of the sensor's calibration, as the box reports it; empty: any",
    )
    bias: KeptBias | None = Field(default=None, description="bias that ~/bias measured")

    @property
    def rotation(self) -> np.ndarray:
        """(3, 3) from the sensor's axes to the base frame."""
        return np.array(pin.Quaternion(np.array(self.quaternion)).normalized().toRotationMatrix())

    def refusal(self, box: BoxSettings, name: str) -> str:
        """Why no reading of a box is in the frame, or of the sensor, that the file of this name
        tells of, in a line; empty if they are."""
        if box.is_transformed:
            return (
                f"the box has a tool transform ({box.transform_words}), must be 0: set it to 0 on "
                f"its page Configurations, and how the sensor is mounted in {name}"
            )
        known, serial = self.calibration_serial, box.calibration_serial
        if known and serial != known:
            return f"the box has calibration {serial or 'unknown'}, {name} is of {known}"
        return ""


def load_mounting(name_or_path: str | Path) -> Mounting:
    """`config/force_torque/NAME.yaml`, or the YAML file at a path.

    Raises:
        UserError: one line with the file, the field, the value found and what is allowed.
    """
    return load_yaml(name_or_path, "force_torque", Mounting, "mounting")


def save_mounting(path: Path, mounting: Mounting) -> None:
    """Write a mounting where `load_mounting` finds it.

    Raises:
        UserError: the file cannot be written.
    """
    content = mounting.model_dump(mode="json")
    write_whole(path, yaml.safe_dump(content, sort_keys=False))


def kept_bias(wrench: np.ndarray, to: BiasTo, box: BoxSettings | None) -> KeptBias:
    """A bias (6,) of now, in the sensor's axes, with what the box says of itself."""
    box = box or BoxSettings()
    return KeptBias(
        wrench=tuple(wrench.round(6).tolist()),
        taken=datetime.now(UTC).replace(microsecond=0),
        to=to,
        calibration_serial=box.calibration_serial,
        software_bias=box.software_bias,
    )

"""`softcr learn strain`: a robot file from the motion of a robot's shape."""

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, Field, ValidationError
from rich import box
from rich.console import Console
from rich.table import Table

from softcr_models.errors import UserError
from softcr_models.files.yaml_files import is_path
from softcr_papers.valadas2024.learning.fusion import FusionSettings
from softcr_papers.valadas2024.learning.learn import Learned, LearnSettings, learn
from softcr_papers.valadas2024.learning.recordings import DEFAULT_LENGTH, read_motion
from softcr_papers.valadas2024.learning.shape_fit import PoseNoise, shape_errors
from softcr_papers.valadas2024.learning.smoothing import Smoothing
from softcr_papers.valadas2024.learning.sparsification import Stiffest
from softcr_runtime.console.terminal import say
from softcr_runtime.settings.command_line import command

_NOT_SURE = 0.2  # a relative standard error above this is told


class Recipe(BaseModel):
    """How a motion is learned from."""

    length: float = Field(
        DEFAULT_LENGTH, gt=0.0, lt=100.0, description="length of the unloaded robot from the "
        "first to the last marker; for a bag, by default that of the run's robot",
        json_schema_extra={"unit": "m"},
    )  # fmt: skip
    threshold: float = Field(
        0.2,
        gt=0.0,
        le=100.0,
        description="neighbours whose strains are closer than this become one segment",
    )
    scale: Literal["percentile", "minmax", "constants"] = Field(
        "percentile", description="scale by which strains are divided before that"
    )
    denoise: int = Field(
        0,
        ge=0,
        le=101,
        description="number of frames in the window from which the markers' noise is estimated; 0: "
        "none",
    )
    noise_mm: float = Field(
        0.1,
        gt=0.0,
        le=100.0,
        description="standard deviation of a marker's position",
        json_schema_extra={"unit": "mm"},
    )
    noise_deg: float = Field(
        0.5,
        gt=0.0,
        le=90.0,
        description="standard deviation of a marker's angle",
        json_schema_extra={"unit": "deg"},
    )
    window: int = Field(
        11, ge=5, le=201, description="number of frames over which positions are smoothed, odd"
    )
    half_width: int = Field(
        20, ge=2, le=1000, description="half the length of a regression window, in frames"
    )
    radius: float = Field(
        0.02,
        gt=0.0,
        lt=10.0,
        description="radius of the cross-section",
        json_schema_extra={"unit": "m"},
    )
    youngs_modulus: float = Field(
        1e8, gt=0.0, description="strains stiffer than this are dropped",
        json_schema_extra={"unit": "Pa"},
    )  # fmt: skip
    shear_modulus: float = Field(
        1e5, gt=0.0, description="shear stiffer than this is dropped",
        json_schema_extra={"unit": "Pa"},
    )  # fmt: skip
    gravity: float = Field(
        9.81, ge=-100.0, le=100.0, description="gravity along the straight robot from base to tip",
        json_schema_extra={"unit": "m/s^2"},
    )  # fmt: skip


@command
def strain(
    recordings: list[Path], /, recipe: Recipe, *, output: Path = Path("learned.yaml")
) -> int:
    """Learn a planar robot of constant-strain segments, and write its robot file.

    Each CSV file is one trajectory, with a line of column names and a line per frame, in SI units:
    time; x_1, y_1, theta_1 ... of evenly spaced markers from the base to the tip, in the base
    frame, whose y axis is along the straight robot; and torque_bending_1, torque_shear_1,
    torque_axial_1 ... of each segment, held until the next frame. A bag of a strain robot, or the
    directory of its run, is a trajectory too: it contains the poses of the markers and the torques.

    Args:
        recordings: CSV files, bags, directories of runs.
        output: the robot file to write.

    Raises:
        UserError: a recording cannot be used; the line says what to record instead.
    """
    if not is_path(output) or output.suffix not in (".yaml", ".yml"):
        raise UserError(f"--output {output}: must end in .yaml")
    given = recipe.length if "length" in recipe.model_fields_set else None
    console, motion = Console(), read_motion(recordings, given)
    found = learn(motion, _settings(recipe))
    largest = np.abs(motion.torques).max(axis=(0, 1)).reshape(-1, 3).max(axis=0)
    limits = np.where(largest > 0.0, largest, 1.0)
    sources = ", ".join(str(path) for path in recordings)
    try:
        arm = found.arm(output.stem, limits.tolist(), f"learned by softcr from {sources}")
    except ValidationError:
        raise UserError(
            "what was found is not physical (see masses and moments of inertia); record faster "
            "motions of all strains"
        ) from None
    distance, angle = shape_errors(motion, found.lengths, found.strains)
    say(console, f"{len(found.lengths)} segments: "
        f"{', '.join(f'{1e3 * length:.2f}' for length in found.lengths)} mm; their shapes are "
        f"{1e3 * distance:.3g} mm and {angle:.3g} rad off")  # fmt: skip
    for removal in found.sparsified.removed:
        say(console, f"{removal.name} is dropped: its stiffness {removal.stiffness:.4g} exceeds "
            f"{removal.largest:.4g}")  # fmt: skip
    console.print(_table(found))
    for name, value, error in _unsure(found):
        say(
            console,
            f"{name} = {value:.3g} +- {error:.3g}: the motion says little about it",
            "yellow",
        )
    try:
        arm.save(output)
    except OSError as error:
        raise UserError(f"--output {output}: {error.strerror or error}") from None
    say(console, f"robot file: {output}")
    return 0


def _settings(recipe: Recipe) -> LearnSettings:
    return LearnSettings(
        fusion=FusionSettings(recipe.threshold, recipe.scale, recipe.denoise),
        noise=PoseNoise(1e-3 * recipe.noise_mm, float(np.deg2rad(recipe.noise_deg))),
        smoothing=Smoothing(recipe.window),
        half_width=recipe.half_width,
        gravity=(0.0, recipe.gravity),
        limits=Stiffest(recipe.radius, recipe.youngs_modulus, recipe.shear_modulus),
    )


def _table(found: Learned) -> Table:
    regression = found.regression
    table = Table("parameter", "value", "standard error", "unit", box=box.SIMPLE_HEAD)
    for row in zip(
        regression.names, regression.values, regression.errors, regression.basis.units, strict=True
    ):
        name, value, error, unit = row
        table.add_row(name, f"{value:.5g}", f"{error:.2g}" if error >= 0 else "at its bound", unit)
    return table


def _unsure(found: Learned) -> list[tuple[str, float, float]]:
    """Values whose standard error is large beside them, or that stand at a bound."""
    regression = found.regression
    rows = zip(regression.names, regression.values, regression.errors, strict=True)
    return [row for row in rows if not row[2] < _NOT_SURE * abs(row[1])]

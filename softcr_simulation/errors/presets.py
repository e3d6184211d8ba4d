"""Presets of plant errors, for any rod: what a robot has none of is left out, and told."""

from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softcr_models.files.yaml_files import is_path
from softcr_models.robots.robot import Robot
from softcr_simulation.errors.plant_errors import (
    PlantErrors,
    about_field,
    load_plant_errors,
    meaningless_fields,
    require_meaning,
)


class ErrorsOf(NamedTuple):
    """Errors that a robot can have.

    Attributes:
        errors: of the plant.
        left_out: fields of the preset that say nothing to the robot, and why.
    """

    errors: PlantErrors
    left_out: dict[str, str]

    @property
    def told(self) -> str:
        """What was left out in one line; empty without."""
        fields = defaultdict(list)
        for name, why in self.left_out.items():
            fields[why].append(name)
        return "; ".join(f"{', '.join(names)}: {why}" for why, names in fields.items())


def errors_of(robot: Robot, name_or_path: str | Path) -> ErrorsOf:
    """The errors of a preset as far as a robot has what they are about, or all of a file at a path.

    A preset's list is repeated for a robot of more actuators, to as many as it has.

    Raises:
        UserError: no such preset or file, or a file with what the robot cannot have.
    """
    errors = load_plant_errors(name_or_path)
    if is_path(name_or_path):
        require_meaning(errors, robot)
        return ErrorsOf(errors, {})
    meaningless, kept = meaningless_fields(robot), dict[str, Any]()
    for name, value in errors.changed().items():
        if name not in meaningless:
            of_inputs = about_field(name).each == "input"
            kept[name] = np.resize(value, len(robot.actuators)).tolist() if of_inputs else value
    left_out = {name: meaningless[name] for name in errors.changed() if name in meaningless}
    return ErrorsOf(PlantErrors(**kept), left_out)

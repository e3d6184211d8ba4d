"""Presets of plant errors, for any rod: what a robot has none of is left out, and told."""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softcr_models.errors import UserError
from softcr_models.files.yaml_files import is_path, validated
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


_ERROR = re.compile(r"\s*(\w+)\s*=\s*(\[[^\]]*\]|[^,\[\]]+?)\s*(?:,|$)")


def errors_in_text(text: str) -> dict[str, Any]:
    """Name -> value of what stands as NAME=VALUE,...; a value is a number, or numbers in brackets.

    Raises:
        UserError: it stands otherwise, or a name stands twice.
    """
    found, place = dict[str, Any](), 0
    while place < len(text):
        match = _ERROR.match(text, place)
        try:
            if match is None or match[1] in found:
                raise ValueError
            found[match[1]] = json.loads(match[2])
        except ValueError:
            raise UserError(
                f"errors: {text[place:]!r} is not allowed: must be NAME=VALUE,NAME=VALUE,..., each "
                "name once, such as bending_factor=0.95,lever_factor=[1.05,1,1]"
            ) from None
        place = match.end()
    return found


def errors_of(robot: Robot, name_or_path: str | Path, others: str = "") -> ErrorsOf:
    """The errors of a preset as far as a robot has what they are about, or all of a file at a path.

    A preset's list is repeated for a robot of more actuators, to as many as it has.

    Args:
        robot: that has them.
        name_or_path: of the preset or file; empty: no errors.
        others: that replace those of the preset or file, see `errors_in_text`.

    Raises:
        UserError: no such preset or file, or one with what the robot cannot have, or such others.
    """
    found = _errors_of(robot, name_or_path) if name_or_path else ErrorsOf(PlantErrors(), {})
    if not others:
        return found
    content = found.errors.changed() | errors_in_text(others)
    errors = validated(PlantErrors, content, "plant errors")
    require_meaning(errors, robot)
    return found._replace(errors=errors)


def _errors_of(robot: Robot, name_or_path: str | Path) -> ErrorsOf:
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

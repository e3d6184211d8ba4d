"""What tip error to expect on a recorded arm: loops on plants as wrong as the recording shows.

A rod that was fitted to a recording predicts it with an error that no value of its parameters
removes. Plants are drawn at random, and each one's errors are scaled until its tip, without any
feedback, is as far from the fitted rod's as the recorded one was. Filter and controller then know
the fitted rod alone. What the errors of a real arm look like nobody knows, so the spread over the
plants is the answer, not one of them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import Field

from softcr_control.reference.settings import ReferenceSettings
from softcr_estimation.errors import EstimatorError
from softcr_models import Robot, load_robot
from softcr_models.errors import UserError
from softcr_models.rod.description import rod_inputs
from softcr_runtime.blocks.block import Output
from softcr_runtime.blocks.virtual_run import run_blocks
from softcr_runtime.settings.registry import NEMPC
from softcr_simulation.errors.plant_errors import MODEL_ERRORS, Group, PlantErrors, about_field
from softcr_studies.frame.results import Results
from softcr_studies.frame.study import Cell, Metric, Result, Seeds, Study, StudySettings
from softcr_studies.loops.closed_loop import followed, mean_error_mm, open_loop
from softcr_studies.loops.tracking_loop import (
    RATE_HZ,
    SETTLED,
    Case,
    loop_blocks,
    plant_of,
    reference_of,
)

TRUE_TIP = "simulation/truth/tip/pose"
GROUPS: tuple[Group, ...] = ("body", "actuation", "pressure")
_CLOSE = 0.05  # share of the wanted error that is near enough
_ROUNDS = 8
_INTERVALS = 2  # of each of several segments
_CASE = "random plants"


class Settings(StudySettings):
    """Which arm, and how far its fit is off."""

    seeds: Seeds = 5
    robot: str = Field("", description="robot file that was found in the recording, or its name")
    error_mm: float = Field(
        0.0,
        ge=0.0,
        le=1e3,
        description="mean error of the tip over whole trials that were held out, without feedback",
        json_schema_extra={"unit": "mm"},
    )
    duration: float = Field(
        10.0, gt=SETTLED, le=600.0, description="of a run", json_schema_extra={"unit": "s"}
    )


def case_of(robot: Robot, duration: float, errors: PlantErrors) -> Case:
    """A motion of all inputs by a plant with errors.

    Tendons of motors have no beam: such a plant has the model's equations with other numbers.
    """
    segments = len(robot.segments)
    return Case(
        _CASE,
        ReferenceSettings(kind="trajectory"),
        duration,
        errors,
        plant_intervals=20 if segments == 1 else 2 * _INTERVALS,
        beam=has_beam(robot),
        model_intervals=5 if segments == 1 else _INTERVALS,
    )


def has_beam(robot: Robot) -> bool:
    """Whether plants of another structure than the model's can be made of a robot."""
    return "angle" not in robot.quantities


def drawn(robot: Robot, random: np.random.Generator) -> PlantErrors:
    """Errors of body, actuation and inputs, as far as such a plant has them."""
    found = PlantErrors.draw(random, robot, GROUPS).changed()
    if not has_beam(robot):
        found = {name: value for name, value in found.items() if name in MODEL_ERRORS}
    return PlantErrors(**found)


def scaled(robot: Robot, errors: PlantErrors, factor: float) -> PlantErrors:
    """Errors so many times as large, within what is allowed; noises, times and radii stay."""
    of_file = {"tip_mass_fraction": robot.tip_mass_fraction}
    changed: dict[str, Any] = {}
    for name, value in errors.changed().items():
        about = about_field(name)
        default = of_file.get(name, type(errors).model_fields[name].default)
        if name == "hose_pole":  # none: at once
            changed[name] = float(np.clip(value / max(factor, 1e-9), about.low, about.high))
            continue
        if default is None or about.unit == "s" or "radius" in name:
            changed[name] = value
            continue
        given = np.atleast_1d(np.asarray(value, dtype=float))
        none = np.broadcast_to(default if np.size(default) else 0.0, given.shape)
        moved = np.clip(none + factor * (given - none), about.low, about.high)
        changed[name] = tuple(moved.tolist()) if isinstance(value, tuple) else float(moved[0])
    return PlantErrors(**changed)


def without_feedback(robot: Robot, case: Case) -> np.ndarray:
    """(T, 3) true tips [m] of a case's plant that is commanded the inputs of the case's motion."""
    inputs = robot_inputs(robot, case)
    tips: list[np.ndarray] = []

    def told(node: str, output: Output) -> None:
        if output.topic == TRUE_TIP:
            tips.append(output.value.position)

    loop = open_loop(robot, plant_of(robot, case, 0), inputs, len(inputs), RATE_HZ, 0)
    run_blocks(loop, told)
    return np.array(tips)


def robot_inputs(robot: Robot, case: Case) -> np.ndarray:
    """(T, m) inputs of the case's motion."""
    moving = case.reference.model_copy(update={"duration": case.duration})
    return moving.input_samples(case.period, rod_inputs(robot))


def as_wrong(
    robot: Robot, duration: float, errors: PlantErrors, wanted: float
) -> tuple[Case, float]:
    """The case whose plant is so far off without feedback [m], and how far it is.

    Raises:
        UserError: errors of the kind that was drawn cannot be so large.
    """
    exact = without_feedback(robot, case_of(robot, duration, PlantErrors()))
    settled = slice(round(SETTLED * RATE_HZ), None)
    factor, apart = 1.0, 0.0
    for _ in range(_ROUNDS):
        case = case_of(robot, duration, scaled(robot, errors, factor))
        off = without_feedback(robot, case) - exact
        apart = float(np.linalg.norm(off[settled], axis=1).mean())
        if abs(apart - wanted) < _CLOSE * wanted:
            return case, apart
        factor *= float(np.clip(wanted / max(apart, 1e-9), 0.2, 3.0))
    raise UserError(
        f"robot {robot.name}: plants that are {1e3 * wanted:.3g} mm off cannot be made: their "
        f"errors at the ends of what is allowed make {1e3 * apart:.3g} mm"
    )


def run(cell: Cell) -> Result:
    """One plant, and a loop on it.

    Returns:
        As `followed`, and of the plant how far it is off without feedback [mm].
    """
    settings: Settings = cell.settings
    robot = load_robot(settings.robot)
    random = np.random.default_rng(cell.stream("plant"))
    case, apart = as_wrong(robot, settings.duration, drawn(robot, random), 1e-3 * settings.error_mm)
    source = reference_of(robot, case)
    seeds = tuple(int(each) for each in random.integers(0, 2**31, 2))
    blocks = loop_blocks(robot, case, source, cell.method, (seeds[0], seeds[1]))
    changed = ", ".join(f"{name} {_short(value)}" for name, value in case.errors.changed().items())
    content = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in case.errors.changed().items()
    }
    option = "--plant.plant-errors" if case.beam else "--plant.errors"
    result: dict[str, Any] = {
        "without_mm": 1e3 * apart, "note": changed, "errors": yaml.safe_dump(content),
        "option": option,
    }  # fmt: skip
    try:
        found = followed(blocks, bag=cell.bag)
    except (ArithmeticError, EstimatorError):
        return result | {"lost": 1.0}
    return {**result, **found, "lost": 0.0}


def _write_plants(results: Results, directory: Path) -> None:
    """The plants as files for `softcr up simulation`, where they meet other controllers."""
    for number, cell in enumerate(results.cells, 1):
        found, file = results[cell], directory / f"plant_{number}.yaml"
        told = file.name
        if found["option"] == "--plant.errors":  # of motors, whose plant no file describes
            errors = yaml.safe_load(found["errors"]).items()
            told = ",".join(f"{name}={value}" for name, value in errors).replace(" ", "")
        command = f"softcr up simulation --robot {results.settings.robot} {found['option']} {told}"
        head = f"# {found['without_mm']:.3g} mm off without feedback: {command}\n"
        file.write_text(head + found["errors"], encoding="utf-8")


def _short(value: Any) -> str:
    return " ".join(f"{each:.2g}" for each in np.atleast_1d(value))


STUDY = Study(
    name="recordings/forecast",
    source="",
    summary="what tip error to expect on a recorded arm, from how far its fit is off",
    run=run,
    cases=(_CASE,),
    methods=(NEMPC,),
    settings=Settings,
    metrics=(
        Metric("tip, without feedback", "mm", "without_mm"),
        Metric(
            "tip, in the loop",
            "mm",
            lambda result: mean_error_mm(result, SETTLED) if "error" in result else None,
        ),
        Metric("lost runs", "-", "lost"),
    ),
    needs=("robot", "error_mm"),
    draw=_write_plants,
    exact="Filter and controller know the fitted rod. Plants are chains of beam elements with an "
    "integrator of their own and drawn errors of body, actuation and inputs; of motors, the "
    "model's equations with other numbers and a finer grid. Sensors have the noise of the robot "
    "file and are where the model has them. Errors count from 2 s on.",
)

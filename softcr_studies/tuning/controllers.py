"""What can be tuned of a controller, and its cost: what it does with the plant.

Controllers with state weights are judged by the state, as in the paper (RMSE of normalised states);
those without by the tip, and a little by their calm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from softcr_control.controller_file import (
    ControllerFile,
    as_content,
    load_controller,
    named_settings,
)
from softcr_control.reference.settings import ReferenceSettings
from softcr_models import Robot, load_robot
from softcr_runtime.settings.node_settings import setting_values
from softcr_studies.frame.search import SearchSettings
from softcr_studies.frame.study import Cell, Result, Study
from softcr_studies.loops.koopman_baseline import VALIDATION
from softcr_studies.loops.tracking_loop import (
    FAST,
    PERIOD,
    Case,
    reference_of,
    run_loop,
    with_errors,
)
from softcr_studies.tuning.parameters import NEMPC, WEIGHTS, Parameter, Values, published_values
from softcr_studies.tuning.tuned import SHIPPED, TUNED, Tuning, streams

SCORED_FROM = 1.0  # before that every controller is on its way from the vented rod [s]
CALM = 1e-4  # of two that are equally good the calmer one [mm / (kPa/s)]
POPULATION = 1000  # of an NEMPC at full effort
PUBLISHED = "Table VII"
FIGURES = {"tip error": "mm", "state error": "1e-3", "command travel": "kPa/s"}
(_MOTION, _), (_SETPOINT, _) = VALIDATION
# In no experiment: motion and setpoint on the usual plant, a faster motion on a plant farther off.
SEARCH = (
    Case("motion", _MOTION, 3.0),
    Case("setpoint", _SETPOINT, 2.0),
    Case(
        "motion to 1.4 Hz, soft and heavy",
        ReferenceSettings(kind="trajectory", frequencies=(0.4, 0.9, 1.4)),
        3.0,
        errors=with_errors(bending_factor=1.08, tip_mass_factor=1.3, damping_factor=0.85),
    ),
)
FAR = with_errors(bending_factor=1.15, tip_mass_factor=1.5, damping_factor=0.7)
LEVER = with_errors(lever_factor=(1.05, 1.0, 1.0))
SETPOINT = Case("setpoint (45, 25, 15) kPa", ReferenceSettings(kind="setpoint"), 2.5)
SHORT = replace(FAST, duration=4.0)
# Experiments of the paper, shortened, two of them on other plants: no search sees them.
HELD_OUT = (
    SHORT,
    SETPOINT,
    Case("circle 1 Hz", ReferenceSettings(kind="circle", frequency=1.0), 3.0),
    replace(SHORT, name="4a, lever of chamber 1 +5 %", errors=LEVER),
    replace(SHORT, name="4a, compliance +15, mass +50, damping -30 %", errors=FAR),
)

Beginning = Annotated[str, Field(description="controller to begin with: a name or a YAML file")]
Against = Annotated[str, Field(description="controller that is judged beside the tuned one")]


class ControllerTuning(SearchSettings):
    """See SearchSettings."""

    robot: str = Field("licher2025", description="name or YAML file of a robot")
    controller: Beginning = "nempc"
    against: Against = "nempc"
    population: int = Field(
        256, ge=8, le=100_000, description="number of candidates of an NEMPC during the search"
    )


def controller_study(
    name: str, file: str, kind: str, space: tuple[Parameter, ...], settings: type[ControllerTuning],
    summary: str, source: str = "",
) -> Study:  # fmt: skip
    """The study that tunes numbers of a controller; `kind` is its name in the registry."""

    def began(chosen: ControllerTuning) -> ControllerFile:
        return loaded(chosen.controller, kind)

    def against(chosen: ControllerTuning) -> ControllerFile:
        return loaded(chosen.against, kind)

    def costs(cell: Cell, values: Values, longer: float) -> np.ndarray:
        chosen, robot = cell.settings, load_robot(cell.settings.robot)
        file_, seeds = changed(began(chosen), values), streams(cell, longer)
        population = chosen.population if longer == 1.0 else POPULATION
        cases = [replace(case, duration=longer * case.duration) for case in SEARCH]
        runs = [follow(robot, case, file_, seeds, population) for case in cases]
        return np.array([cost_of(run, follows_states(file_)) for run in runs])

    def judge(cell: Cell, contender: str, task: Case, values: Values) -> Result:
        chosen, robot = cell.settings, load_robot(cell.settings.robot)
        told = published_values((*NEMPC, *WEIGHTS)) if contender == PUBLISHED else values
        file_ = against(chosen) if contender == SHIPPED else changed(began(chosen), told)
        return follow(robot, task, file_, streams(cell), POPULATION)

    def content(chosen: ControllerTuning, values: Values) -> Mapping[str, Any]:
        file_ = changed(began(chosen), values)
        return as_content(kind, file_.description, named_settings(kind, file_))

    def contenders(chosen: ControllerTuning) -> Sequence[str]:
        published = [PUBLISHED] if follows_states(began(chosen)) else []
        return (*published, SHIPPED, TUNED)

    names = [each.name for each in space]
    tuning = Tuning(
        name, file, space,
        start=lambda chosen: values_of(began(chosen), names),
        shipped=lambda chosen: values_of(against(chosen), names),
        costs=costs,
        tasks=HELD_OUT,
        judge=judge,
        figures=FIGURES,
        contenders=contenders,
        content=content,
        depends_on=lambda chosen: repr((load_robot(chosen.robot), began(chosen), against(chosen))),
    )  # fmt: skip
    return tuning.study(settings, summary=summary, source=source)


def cost_of(run: Result, by_state: bool) -> float:
    """What a run costs; infinite if it diverged."""
    by_tip = run["tip error"] + CALM * run["command travel"]
    cost = float(1e-3 * run["state error"] if by_state else by_tip)
    return cost if np.isfinite(cost) else float("inf")


source_of = cache(reference_of)


def follow(
    robot: Robot, case: Case, file: ControllerFile, seeds: tuple[int, int], population: int
) -> Result:
    """One run of a controller, the shipped filter before it; `seeds` of plant and controller.

    Returns:
        FIGURES from SCORED_FROM on: mean tip error [mm], root mean square of (true - wanted state)
        / state scale over nodes and time [1e-3], how far the commands move per second, all
        chambers [kPa/s]; NaN if the simulated plant diverged.
    """
    told: dict[str, Any] = {"controller": file.type}
    told |= setting_values(named_settings(file.type, file))
    told |= {"population": population} if "population" in told else {}
    try:
        trace = run_loop(robot, case, source_of(robot, case), file.type, seeds, parameters=told)
    except ArithmeticError:
        return dict.fromkeys(FIGURES, np.nan)
    scored = trace["times"] >= SCORED_FROM
    steps = np.abs(np.diff(trace["commands"][scored], axis=0)).sum(axis=1)
    figures = (
        1e3 * trace["error"][scored].mean(),
        1e3 * np.sqrt(np.mean(trace["state_error"][scored] ** 2)),
        1e-3 * steps.mean() / PERIOD,
    )
    return dict(zip(FIGURES, map(float, figures), strict=True))


def loaded(name_or_path: str, kind: str) -> ControllerFile:
    """A controller's file of a type, with what it leaves out.

    Raises:
        UserError: it cannot be used.
    """
    return changed(load_controller(name_or_path, kind), {})


def follows_states(file: ControllerFile) -> bool:
    """Whether a controller's cost looks at states."""
    return bool(named_settings(file.type, file).costs.follows_states)


def changed(file: ControllerFile, values: Values) -> ControllerFile:
    """The file with other values ("section.setting" -> value)."""
    state: dict[str, Any] = {}
    costs: dict[str, Any] = {"state": state}
    given: dict[str, Any] = {"costs": costs}
    of_state = {each.name for each in WEIGHTS}
    for path, value in values.items():
        section, name = path.split(".")
        told = [int(k) for k in value.split()] if name == "knots" else value
        place = state if path in of_state else costs if section == "costs" else given
        place[name] = told
    settings = named_settings(file.type, file, given)
    return replace(file, values=settings.model_dump(mode="json", by_alias=True))


def values_of(file: ControllerFile, names: Sequence[str]) -> dict[str, Any]:
    """What a file says for names of the form "section.setting"."""
    content = named_settings(file.type, file).model_dump(mode="json")
    values = {}
    for path in names:
        section, name = path.split(".")
        costs = content["costs"]["state"] | content["costs"]
        value = (costs if section == "costs" else content)[name]
        values[path] = " ".join(map(str, value)) if name == "knots" else value
    return values

"""The cost of a controller's numbers: what it does with the plant, not what it minimises itself."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softcr_control.controller_file import (
    ControllerFile,
    as_content,
    load_controller,
    named_settings,
)
from softcr_control.references import SampledReference
from softcr_models import CosseratRod, Robot
from softcr_models.prediction import RodPrediction
from softcr_models.rod.state import restrict_to_nodes
from softcr_runtime.settings import setting_values
from softcr_studies.cell import Result
from softcr_studies.closed_loop import mean_error_mm
from softcr_studies.tracking_loop import (
    MODEL_INTERVALS,
    PERIOD,
    Case,
    run_loop,
    sampled_reference,
)
from softcr_studies.virtual_runs import Log
from softcr_tools.experiments.tuning.space import Values

SCORED_FROM = 1.0  # before that every controller is on its way from the vented rod [s]
CALM = 1e-4  # of two that are equally good the calmer one [mm / (kPa/s)]


@dataclass(frozen=True, eq=False)
class Task:
    """A reference, and the run along it."""

    case: Case
    source: SampledReference


@dataclass(frozen=True)
class Followed:
    """What a run came to, from SCORED_FROM on.

    Attributes:
        tip: mean tip error [mm].
        state: root mean square of (true - wanted state) / state scale over nodes and time [-].
        travel: how far the commands move per second, all chambers [kPa/s].
    """

    tip: float
    state: float
    travel: float


@dataclass(frozen=True, eq=False)
class ControllerCost:
    """Mean over tasks and seeds.

    Controllers with state weights are judged by the state, as in the paper (RMSE of normalised
    states); those without by the tip, and a little by their calm.

    Attributes:
        robot: that filter and controller believe in.
        file: the controller, but for what is tuned.
        tasks, seeds: what it is judged on.
        population: of an NEMPC.
    """

    robot: Robot
    file: ControllerFile
    tasks: Sequence[Task]
    seeds: Sequence[int]
    population: int

    def __call__(self, values: Values) -> float:
        """The cost of a controller that differs from the file in `values`."""
        file = changed(self.file, values)
        try:
            runs = [
                follow(self.robot, task, file, seed, self.population)
                for task in self.tasks
                for seed in self.seeds
            ]
        except ArithmeticError:  # the simulated plant diverged
            return float("inf")
        if follows_states(self.file):
            return float(np.mean([run.state for run in runs]))
        return float(np.mean([run.tip + CALM * run.travel for run in runs]))


def task_of(robot: Robot, case: Case) -> Task:
    """The case with its reference."""
    settings = case.reference.model_copy(update={"duration": case.duration + 1.0})
    return Task(case, sampled_reference(robot, settings, case.period))


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
    given: dict[str, Any] = {"costs": {}}
    for path, value in values.items():
        section, name = path.split(".")
        told = [int(k) for k in value.split()] if name == "knots" else value
        (given["costs"] if section == "costs" else given)[name] = told
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


def follow(
    robot: Robot,
    task: Task,
    file: ControllerFile,
    seed: int,
    population: int,
) -> Followed:
    """One run of a controller on one thread, the shipped filter before it.

    Raises:
        ArithmeticError: the simulated plant diverged.
    """
    log = Log("simulation/truth/rod", "reference/rod")
    told: dict[str, Any] = {"controller": file.type, "intervals": MODEL_INTERVALS, "threads": 1}
    told |= setting_values(named_settings(file.type, file))
    told |= {"population": population} if "population" in told else {}
    trace = run_loop(
        robot, task.case, task.source, file.type, (seed, seed), parameters=told, observe=log
    )  # fmt: skip
    scale = RodPrediction(CosseratRod(robot, MODEL_INTERVALS)).state_scale
    true = np.array([rod.state for rod in log.values("simulation/truth/rod")])
    wanted = np.array([rows.states[0] for rows in log.values("reference/rod")])
    astray = np.mean(((restrict_to_nodes(true, MODEL_INTERVALS) - wanted) / scale) ** 2, axis=1)
    scored = trace["times"] >= SCORED_FROM
    steps = np.abs(np.diff(trace["commands"][scored], axis=0)).sum(axis=1)
    return Followed(
        tip=tip_error_mm(trace),
        state=float(np.sqrt(np.mean(astray[scored]))),
        travel=float(1e-3 * steps.mean() / PERIOD),
    )


def content_of(file: ControllerFile) -> dict[str, Any]:
    """What such a file says, with what it left out."""
    return as_content(file.type, file.description, named_settings(file.type, file))


def tip_error_mm(trace: Result) -> float:
    """Mean tip error from SCORED_FROM on [mm]."""
    return mean_error_mm(trace, SCORED_FROM)

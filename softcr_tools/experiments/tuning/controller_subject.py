"""What can be tuned of a controller: an NEMPC, its state weights, a gradient MPC."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from softcr_control.controller_file import ControllerFile
from softcr_control.reference_settings import ReferenceSettings
from softcr_hardware.plant import Mismatch
from softcr_models import Robot
from softcr_runtime.registry import GRADIENT_MPC
from softcr_studies.different_plant import Difference
from softcr_studies.koopman_baseline import VALIDATION
from softcr_studies.tracking_loop import Case
from softcr_tools.experiments.tuning.controller_cost import (
    ControllerCost,
    Followed,
    Task,
    changed,
    content_of,
    follow,
    follows_states,
    loaded,
    task_of,
    values_of,
)
from softcr_tools.experiments.tuning.space import (
    NEMPC,
    ROD_MPC,
    WEIGHTS,
    Values,
    published_values,
)
from softcr_tools.experiments.tuning.subject import (
    FINAL_SEEDS,
    SEARCH_SEED,
    Effort,
    Errors,
    Subject,
    held_out,
    write_yaml,
)

POPULATION = 1000  # of an NEMPC that is judged
(_MOTION, _), (_SETPOINT, _) = VALIDATION
# In no experiment: motion and setpoint on the usual plant, a faster motion on a plant farther off.
SEARCH = (
    Case("motion", _MOTION, 3.0),
    Case("setpoint", _SETPOINT, 2.0),
    Case(
        "motion to 1.4 Hz, soft and heavy",
        ReferenceSettings(kind="trajectory", frequencies=(0.4, 0.9, 1.4)),
        3.0,
        difference=Difference(Mismatch(1.08, 1.3, 0.85)),
    ),
)
HELD_OUT = (
    held_out("trajectory to 1.5 Hz", 4.0),
    held_out("setpoint (45, 25, 15) kPa", 2.5),
    held_out("circle 1 Hz", 3.0),
    replace(
        held_out("trajectory to 1.5 Hz", 4.0, Difference(lever_factor=1.05)),
        name="4a, lever of chamber 1 +5 %",
    ),
    replace(
        held_out("trajectory to 1.5 Hz", 4.0, Difference(Mismatch(1.15, 1.5, 0.7))),
        name="4a, compliance +15, mass +50, damping -30 %",
    ),
)


def controller_subject(
    robot: Robot, kind: str, controller: str, against: str, effort: Effort
) -> Subject:
    """An NEMPC's numbers ("nempc"), its state weights ("weights"), or a gradient MPC's.

    Args:
        controller: name or file to begin with.
        against: name or file that the tuned one is compared with.

    Raises:
        UserError: a file that cannot be used.
    """
    type_, space = {
        "nempc": ("nempc", NEMPC),
        "weights": ("nempc", WEIGHTS),
        GRADIENT_MPC: (GRADIENT_MPC, ROD_MPC),
    }[kind]
    file, shipped = loaded(controller, type_), loaded(against, type_)
    names = [parameter.name for parameter in space]
    tasks = [task_of(robot, case) for case in HELD_OUT]

    def contenders(values: Values) -> dict[str, ControllerFile]:
        ours = {"shipped": shipped, "tuned": changed(file, values)}
        if not follows_states(file):
            return ours
        return {"Table VII": changed(file, published_values((*NEMPC, *WEIGHTS))), **ours}

    def judge(
        candidate: ControllerFile, seeds: Sequence[int], progress: Callable[[], None]
    ) -> Errors:
        errors: dict[tuple[str, str], list[float]] = {}
        for seed, task in itertools.product(seeds, tasks):
            try:
                run = follow(robot, task, candidate, seed, POPULATION)
            except ArithmeticError:  # the simulated plant diverged
                run = Followed(np.nan, np.nan, np.nan)
            for quantity, error in (
                ("tip error [mm]", run.tip),
                ("state error [1e-3]", 1e3 * run.state),
                ("command travel [kPa/s]", run.travel),
            ):
                errors.setdefault((task.case.name, quantity), []).append(error)
            progress()
        return errors

    cost = ControllerCost(
        robot, file, _search_tasks(robot, effort.search), (SEARCH_SEED,), effort.population
    )
    return Subject(
        space=space,
        start=values_of(file, names),
        swarm=False,
        described={
            "begins with": content_of(file),
            "seconds": {case.name: effort.search * case.duration for case in SEARCH},
            "population": effort.population,
        },
        cost=cost,
        final_cost=ControllerCost(
            robot, file, _search_tasks(robot, effort.final), FINAL_SEEDS, POPULATION
        ),
        shipped=values_of(shipped, names),
        contenders=contenders,
        judge=judge,
        runs=len(tasks),
        write=lambda values, path: write_yaml(content_of(changed(file, values)), path),
    )


def _search_tasks(robot: Robot, longer: float) -> list[Task]:
    """Those of the search, so many times as long."""
    return [task_of(robot, replace(case, duration=longer * case.duration)) for case in SEARCH]

"""Policies for robots whose pressures lag, beside the predictive controllers on the same plant.

One kind of policy learns on rods of random compliance, damping and tip mass. Policies of licher2025
are judged on plants that differ by 10 %, too.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from pydantic import Field

from softcr_models import load_robot
from softcr_papers.pawlowski2019.studies.learned_policies import (
    ABOUT,
    CIRCLES,
    EXACT,
    GOALS,
    Task,
    judged,
    learned,
    plant_of,
)
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
from softcr_studies.frame.study import Cell, Metric, Result, Seeds, Study, StudySettings

SPREADS = {"TD3": 0.0, "TD3, random rods": 0.1}
STIFFER = {"bending_factor": 1.0 / 1.05}
OTHERS: dict[str, dict[str, float]] = {
    "as the model": {},
    "stiffness -10 %": {"bending_factor": 1.0 / 0.9},
    "stiffness +10 %": {"bending_factor": 1.0 / 1.1},
    "tip mass -10 %": {"tip_mass_factor": 0.9},
    "tip mass +10 %": {"tip_mass_factor": 1.1},
}
"""Plants on which the policies of TRIED are judged, too."""
TRIED = Task("licher2025", CIRCLES)


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 3
    samples: int = Field(30_000, ge=100, description="number of samples of a training")
    goals: int = Field(3, ge=1, le=100, description="number of goals, which differ for every seed")


def run(cell: Cell) -> Result:
    """Trains where there is something to train, and runs the loop."""
    own, task, robot = cell.settings, cell.case, load_robot(cell.case.robot)
    if cell.method not in SPREADS:
        return judged(cell, task, cell.method, plant_of(robot, **STIFFER), own.goals)
    path, found = learned(cell, task, own.samples, SPREADS[cell.method])
    policy = f"policy:{path}"
    found |= judged(cell, task, policy, plant_of(robot, **STIFFER), own.goals)
    for name, factors in OTHERS.items() if task == TRIED else ():
        other = judged(cell, task, policy, plant_of(robot, **factors), own.goals)
        found[name] = other["error"]
    return found


def _methods(task: Task) -> tuple[str, ...]:
    policies = tuple(SPREADS) if task == TRIED else tuple(SPREADS)[:1]
    return (*policies, GRADIENT_MPC, NEMPC)


def _tick_ms(percentile: float) -> Callable[[Result], float]:
    return lambda result: float(1e3 * np.percentile(result["ticks"], percentile))


def _mm(name: str, result: Result) -> float | None:
    return 1e3 * result[name] if name in result else None


STUDY = Study(
    name="pawlowski2019/learned-robots",
    source="",
    summary="policies for two pneumatic robots beside predictive controllers, on other plants",
    run=run,
    cases=tuple(Task(robot, kind) for robot in ("licher2025", "two_segments")
                for kind in (GOALS, CIRCLES)),
    methods=_methods,
    settings=Settings,
    metrics=(
        Metric("tip error", "mm", partial(_mm, "error")),
        *(Metric(f"tip error, plant {name}", "mm", partial(_mm, name)) for name in OTHERS),
        Metric("filter's tip error", "mm", partial(_mm, "filter")),
        Metric("tick, median", "ms", _tick_ms(50.0), timing=True),
        Metric("tick, 90 %", "ms", _tick_ms(90.0), timing=True),
        Metric("tick, 99 %", "ms", _tick_ms(99.0), timing=True),
        Metric("distance in training", "% of L", "trained"),
        Metric("samples", "-", "samples"),
        Metric("processor time of the training", "s", "seconds", timing=True),
    ),
    exact=EXACT + "The plant is 5 % stiffer in bending than the model, where nothing else is said. "
    "Random rods: compliance, damping and tip mass of every run of the training are drawn within "
    "10 % of the file's; the distance in training is then one on such rods. Ticks are of processor "
    "time. A policy decides every 50 ms and holds in between, so that its median tick is one "
    "without a decision; 28 % of its ticks decide. Algorithms that use derivatives of the rods do "
    "not know inputs that lag, and so do not learn for these robots.",
    about=ABOUT,
)  # fmt: skip

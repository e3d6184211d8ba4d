"""What the studies of learned policies share: training, and the closed loop they are judged in."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from softcr_control.reference.references import SampledReference
from softcr_control.reference.settings import ReferenceSettings
from softcr_models import CosseratRod, Robot, load_robot
from softcr_papers.pawlowski2019.learning.judging import Judging
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.plant_settings import PlantSettings
from softcr_papers.pawlowski2019.learning.task_settings import TaskSettings
from softcr_papers.pawlowski2019.learning.training import train
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings
from softcr_papers.pawlowski2019.policy.policy_file import save_policy
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_studies.frame.cell import Cell, Result
from softcr_studies.loops.tracking_loop import (
    FAST,
    MODEL_INTERVALS,
    PERIOD,
    USUAL,
    Case,
    reference_of,
    run_loop,
)

GOALS, CIRCLES = "goals", "circles"
SETTLED = 2.0  # of a circle: what counts begins here [s]
LAST = 1.0  # of a run to a goal: what counts [s]
PLANT_INTERVALS = 20  # of a robot of one segment; half as many in each of several
FREQUENCY = 0.6  # of the circle [Hz]

_SHARES = 0.05, 0.7  # of the range of the inputs that goals are made of
_RUNS = 64  # fresh ones of every judgement while it learns
_EVERY = 5000  # samples between them
_OF_GOALS: dict[str, Any] = {"beta": 1.0, "discount": 0.95, "noise": 0.3, "batch": 128}
_OF_CIRCLES: dict[str, Any] = {"discount": 0.9, "noise": 0.2, "batch": 128}
"""What differs from the defaults of TD3; of several trials on licher2025, with seed 0."""


@dataclass(frozen=True)
class Task:
    """A case: a robot, and what it is to do.

    Attributes:
        robot: name of it.
        kind: GOALS or CIRCLES.
    """

    robot: str
    kind: str

    @property
    def name(self) -> str:
        """Of the case."""
        return f"{self.robot}, {self.kind}"


def learned(cell: Cell, task: Task, samples: int, spread: float) -> tuple[Path, dict[str, Any]]:
    """Trains a policy with TD3 on a rod of 10 intervals.

    Args:
        cell: whose seed and folder it has.
        task: what it learns.
        samples: of the environment.
        spread: of the rods' parameters, see `PlantSettings`.

    Returns:
        Where the policy lies, and samples, seconds of processor time and mean distance to fresh
        goals on the training's grid [% of L].
    """
    plant = Plant(load_robot(task.robot), PlantSettings(spread=spread))
    told: dict[str, Any]
    if task.kind == GOALS:
        told, given = {"task": "reach", "goals": "steady", "steps": 80}, _OF_GOALS
    else:
        told, given = {"task": "circle"}, _OF_CIRCLES
    asked = TaskSettings.model_validate(told).made(plant)
    settings = TrainingSettings.of("td3", samples=samples, seed=cell.seed, **given)
    judging = Judging(plant, asked, _EVERY, _RUNS, better=lambda new, old: new.mean < old.mean)
    trained = train(plant, asked, settings, judging)
    path = cell.folder / f"{task.robot}_{task.kind}_{spread:g}_{cell.seed}"
    save_policy(trained.policy, path)
    last = trained.history[-1]
    best = min(each.figures.mean for each in trained.history)
    return path, {"samples": last.samples, "seconds": last.seconds, "trained": 100.0 * best}


def plant_of(robot: Robot, **errors: float) -> Case:
    """A case whose plant is finer than the model, and has plant errors by name."""
    several = len(robot.segments) > 1
    noise = PlantErrors.noiseless(tip_noise=USUAL.tip_noise, **errors)
    intervals = PLANT_INTERVALS // (2 if several else 1)
    return replace(FAST, errors=noise, plant_intervals=intervals)


def judged(cell: Cell, task: Task, controller: str, plant: Case, goals: int) -> dict[str, Any]:
    """A controller in the whole loop, on virtual time.

    Args:
        cell: whose random streams are drawn from.
        task: that is asked.
        controller: name of the registry.
        plant: in what it differs from the model.
        goals: how many, one after the other, each from the vented rod.

    Returns:
        error: mean distance of the true tip from the wanted one, where it counts [m]; filter: of
        the estimated one from the true one [m]; ticks (T,) of the controller, of
        processor time [s].
    """
    robot = load_robot(task.robot)
    seeds = cell.stream("plant"), cell.stream("controller")
    if task.kind == CIRCLES:
        circle = ReferenceSettings(kind="circle", frequency=FREQUENCY)
        case = replace(plant, name=task.name, reference=circle, duration=8.0)
        source = reference_of(robot, case)
        run = run_loop(robot, case, source, controller, seeds, clock=time.thread_time)
        return _counted([run], SETTLED)
    held = ReferenceSettings(kind="setpoint")
    case = replace(plant, name=task.name, reference=held, duration=4.0)
    sources = _goals(robot, plant, goals, cell.random("goals"))
    runs = [
        run_loop(robot, case, source, controller, seeds, clock=time.thread_time)
        for source in sources
    ]
    return _counted(runs, case.duration - LAST)


def _goals(
    robot: Robot, plant: Case, count: int, random: np.random.Generator
) -> list[SampledReference]:
    """Tips of equilibria of the nominal rod on the plant's grid."""
    rod, limits = CosseratRod(robot, plant.plant_intervals), robot.pressure_limits
    shares = random.uniform(*_SHARES, (count, rod.input_size))
    held = limits.minimum + shares * (limits.maximum - limits.minimum)
    tips = [rod.tip_pose(rod.equilibrium(each))[None, :3, 3] for each in held]
    return [SampledReference(PERIOD, None, tip) for tip in tips]


def _counted(runs: Sequence[Result], since: float) -> dict[str, Any]:
    """What counts of runs, from a time on [s]."""
    late = [run["times"] >= since for run in runs]
    apart = [run["estimated"][rows] - run["tips"][rows]
             for run, rows in zip(runs, late, strict=True)]  # fmt: skip
    return {
        "error": np.mean([run["error"][rows].mean() for run, rows in zip(runs, late, strict=True)]),
        "filter": np.linalg.norm(np.concatenate(apart), axis=1).mean(),
        "ticks": np.concatenate([run["ticks"][10:] for run in runs]),
    }


EXACT = (
    "Policies learn with TD3 of stable-baselines3 on a rod of 10 intervals, told its state without "
    "noise. They are judged in the whole loop at 70 Hz on virtual time, as `softcr up simulation` "
    "runs it: the plant is finer than the model of filter and controllers (20 intervals in each of "
    "one segment, 10 in each of two, against 5), the tip is measured with 0.2 mm of noise in each "
    "coordinate, pressures without, state and compliance are the filter's estimate, and a command "
    "acts one tick after its sample. Plant and model share equations, material law, pressure lag "
    "and geometry. Goals are tips of steady states of the nominal rod under random pressures from "
    "5 to 70 % of their range, each approached from the vented rod; the error is the mean of the "
    "last second of four. The circle is that of `--reference circle` at 0.6 Hz; the error is the "
    "mean from 2 s to 8 s. "
)
ABOUT = {
    "circle_hz": FREQUENCY, "model_intervals": MODEL_INTERVALS, "rate_hz": round(1.0 / PERIOD),
}  # fmt: skip

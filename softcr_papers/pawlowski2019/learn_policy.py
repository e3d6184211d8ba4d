"""`softcr learn policy`: a policy for a robot, learned on many simulated rods at a time."""

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from softcr_models.errors import UserError
from softcr_models.files.problems import first_problem
from softcr_models.robots.robot import load_robot
from softcr_papers.pawlowski2019.learning.plant_settings import PlantSettings
from softcr_papers.pawlowski2019.learning.run_directory import FILES
from softcr_papers.pawlowski2019.learning.task_settings import TaskSettings
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings
from softcr_runtime.console.terminal import say
from softcr_runtime.settings.command_line import RobotName, command

if TYPE_CHECKING:
    from softcr_papers.pawlowski2019.learning.evaluation import Figures
    from softcr_papers.pawlowski2019.learning.training import Report

_FRESH = 2_000_003  # added to the seed: goals of the last judgement are no others'


class Recipe(TrainingSettings):
    """Settings of a training, whose defaults depend on the algorithm."""

    @classmethod
    def of_options(cls, values: Mapping[str, Any]) -> TrainingSettings:
        """See `command_line`."""
        try:
            return TrainingSettings.of(**({"algorithm": "td3"} | dict(values)))
        except ValidationError as error:
            raise UserError(f"option {first_problem(error, TrainingSettings)}") from None


class JudgingSettings(BaseModel):
    """When a policy is evaluated: on fresh goals, with half the grid spacing and time step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    runs: int = Field(512, ge=1, le=65536, description="number of runs of each evaluation")
    every: int = Field(
        8000, ge=0, description="number of samples between evaluations; 0: only at the end"
    )


@command
def policy(
    recipe: Recipe,
    chosen: TaskSettings,
    rods: PlantSettings,
    judging: JudgingSettings,
    *,
    robot: RobotName = "tendon_arm",
    weightless: bool = False,
    output: Path | None = None,
    fresh: bool = False,
) -> int:
    """Learn a policy that brings a rod's tip to goals, or along a goal that moves.

    A stopped training continues from its last evaluation when the same command is given again. The
    checkpoint and the policy itself (OUTPUT/policy.safetensors) contain only numbers and can be
    shared.

    Args:
        robot: name or YAML file of a rod.
        weightless: leave gravity out, as Pawlowski's thesis does.
        output: output directory, by default results/policies/ROBOT_TASK_ALGORITHM.
        fresh: start again instead of continuing from a checkpoint.

    Raises:
        UserError: the robot, a setting, a goal or the output cannot be used.
    """
    if importlib.util.find_spec("stable_baselines3") is None:
        raise UserError("learn policy: needs stable-baselines3: pip install 'softcr[policy]'")
    from softcr_papers.pawlowski2019.learning.evaluation import judge
    from softcr_papers.pawlowski2019.learning.plant import Plant
    from softcr_papers.pawlowski2019.learning.training import Judging, train

    described = load_robot(robot)
    if weightless:
        described = described.replace(gravity=0.0)
    run = output or Path("results/policies") / "_".join(
        (described.name, chosen.task, recipe.algorithm)
    )
    if fresh:
        for name in FILES:
            (run / name).unlink(missing_ok=True)
    console, plant = Console(), Plant(described, rods)
    fine = Plant(described, rods.finer())
    task = chosen.made(plant)
    say(console, f"{recipe.algorithm} learns to {chosen.task} with {described.name}: "
        f"{recipe.environments} rods of {rods.intervals} intervals")  # fmt: skip
    say(console, f"goals: {task.goals}")
    with _bars(console, recipe.samples) as show:
        found = train(
            plant, task, recipe,
            Judging(fine, task, judging.every, judging.runs, _better(chosen.task)), run, show,
        )  # fmt: skip
    for intervals, judged_on in ((rods.intervals, plant), (2 * rods.intervals, fine)):
        seed = recipe.seed + _FRESH
        figures = judge(found.policy.network, judged_on, task, judging.runs, seed).figures
        say(console, f"{judging.runs} fresh runs on {intervals} intervals: {_told(figures)}")
    say(console, f"{found.history[-1].seconds:.0f} s of processor time; {run / 'policy'}")
    if not weightless:  # no robot file says so of itself
        say(
            console,
            f"use it: softcr up simulation --robot {robot} --controller policy:{run}/policy",
        )
    return 0


def _better(task: str) -> Callable[["Figures", "Figures"], bool]:
    if task in ("track", "circle"):
        return lambda new, old: new.mean < old.mean
    return lambda new, old: (new.reached, -new.mean) > (old.reached, -old.mean)


def _told(figures: "Figures") -> str:
    told = (
        f"{100 * figures.reached:.1f} % come within 5 % of the length, distance "
        f"{100 * figures.mean:.2f} % on average, {100 * figures.least:.2f} % at the least"
    )
    return told + (f", {100 * figures.broken:.1f} % broke" if figures.broken else "")


@contextmanager
def _bars(console: Console, samples: int) -> Iterator[Callable[["Report"], None]]:
    """A bar that shows reports."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
        TimeRemainingColumn(), TextColumn("{task.fields[figures]}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as bars:
        bar = bars.add_task("samples", total=samples, figures="")

        def show(report: "Report") -> None:
            seen = "" if report.judgement is None else (
                f"best: {100 * report.figures.reached:.1f} % reached, mean "
                f"{100 * report.figures.mean:.1f} %"
            )  # fmt: skip
            bars.update(bar, completed=report.samples, figures=seen)

        yield show

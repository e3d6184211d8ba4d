"""`softcr train`: a robot file in, a network with its card out."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field, ValidationError, create_model
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from softcr_models.errors import UserError
from softcr_models.files.problems import first_problem
from softcr_models.robots.robot import load_robot
from softcr_models.surrogate.architecture import Architecture
from softcr_papers.licher2025.training.training_settings import PRESETS, TrainingSettings
from softcr_runtime.console.terminal import say
from softcr_runtime.settings.command_line import RobotName, command

if TYPE_CHECKING:
    from softcr_papers.licher2025.training.training import Progress as Report


class _Preset(BaseModel):
    """A preset of `TrainingSettings`, and what the command line replaces of it."""

    preset: Literal["softcr", "gpu", "published"] = Field(
        "softcr",
        description="our recipe, the same in large batches for a GPU, or the published one, which "
        "uses the physics loss alone",
    )

    @classmethod
    def of_options(cls, values: Mapping[str, Any]) -> TrainingSettings:
        """The settings of the training.

        Raises:
            UserError: a value is out of range; the line names the option and the range.
        """
        content = PRESETS[values.get("preset", "softcr")]().model_dump()
        for name in set(values) - {"preset"}:
            group = content["architecture"] if name in _ARCHITECTURE else content
            group[name] = values[name]
        try:
            return TrainingSettings.model_validate(content)
        except ValidationError as error:
            problem = first_problem(error, TrainingSettings)
            raise UserError(f"option {str(problem).removeprefix('architecture.')}") from None


_SETTINGS = ("iterations", "intervals", "learning_rate", "seed", "threads", "device", "physics")
_ARCHITECTURE = ("neurons", "layers", "terms")
_FIELDS: dict[str, Any] = {
    name: (field.annotation, field)
    for name, field in (TrainingSettings.model_fields | Architecture.model_fields).items()
    if name in (*_SETTINGS, *_ARCHITECTURE)
}
Recipe = create_model("Recipe", __base__=_Preset, **_FIELDS)


@command
def train(
    recipe: Recipe,  # type: ignore[valid-type]
    *,
    robot: RobotName = "licher2025",
    output: Path | None = None,
    start: Path | None = None,
    fresh: bool = False,
) -> int:
    """Train a surrogate (DD-PINN) of a robot's rod.

    A stopped training continues when the same command is given again. The defaults are those of the
    preset softcr.

    Args:
        robot: name or YAML file of the robot.
        output: path of weights and card, without ending, by default results/surrogates/ROBOT.
        start: path of a network to begin from, without ending.
        fresh: start again instead of continuing from a checkpoint.

    Raises:
        UserError: the robot, a setting or the output cannot be used.
    """
    from softcr_models.rod.cosserat_rod import CosseratRod
    from softcr_models.surrogate.files import files_of
    from softcr_papers.licher2025.training import training  # brings torch and kernels with it

    settings: TrainingSettings = recipe
    described = load_robot(robot)
    output = output or Path("results/surrogates") / described.name
    console = Console()
    say(console, f"training a surrogate of {described.name}, {settings.iterations} iterations")
    rod = CosseratRod(described, settings.intervals)
    say(console, f"inputs {', '.join(described.actuator_names)}; {rod.state_size} states")
    if training.fitting(settings, rod) != settings:
        say(console, "without the physics loss, which is for one segment without payload", "yellow")
    begun = time.monotonic()
    columns = (
        TextColumn("{task.description:24}"), BarColumn(), TaskProgressColumn(),
        TimeRemainingColumn(), TextColumn("{task.fields[figures]}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as bars:
        _, card = training.train(
            described, settings, output, _showing(bars), resume=not fresh, start=start
        )
    for name, value in card.validation.items():
        say(console, f"{name.removesuffix(' mm')}: {value:.3f} mm mean over 4 s of free running")
    say(console, f"{time.monotonic() - begun:.0f} s in all; {files_of(output)[0]}")
    say(console, f"evaluate it with: softcr verify-surrogate --robot {robot} --network {output}")
    return 0


def _showing(bars: Progress) -> Callable[["Report"], None]:
    """What shows the reports of a training on progress bars, one for each of its phases."""
    tasks: dict[str, Any] = {}

    def show(told: "Report") -> None:
        if told.phase not in tasks:
            tasks[told.phase] = bars.add_task(told.phase, total=1.0, figures="")
        figures = [f"{name} {value:.2g}" for name, value in told.losses.items()]
        figures += [
            f"{name.removesuffix(' mm')} {value:.2f} mm" for name, value in told.validation.items()
        ]
        bars.update(tasks[told.phase], completed=told.done, figures=", ".join(figures))

    return show

"""`softcr train`: a robot file in, a network with its card out."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from softcr_learning.surrogate import training
from softcr_learning.surrogate.training_settings import PRESETS, TrainingSettings
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_models.problems import first_problem
from softcr_models.surrogate.files import files_of
from softcr_runtime.console import say


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr train`; returns the exit code.

    Raises:
        UserError: the robot, a setting or the output cannot be used.
    """
    given = _parser().parse_args(arguments)
    robot = load_robot(given.robot)
    settings = chosen_settings(given)
    output = Path("results/surrogates") / robot.name if given.output is None else given.output
    console = Console()
    say(console, f"training a surrogate of {robot.name}, {settings.iterations} iterations")
    shown = _Shown(console)
    begun = time.monotonic()
    with shown.bars:
        _, card = training.train(
            robot, settings, output, shown, resume=not given.fresh, start=given.start
        )
    for name, value in card.validation.items():
        say(console, f"{name.removesuffix(' mm')}: {value:.3f} mm mean over 4 s of free running")
    say(console, f"{time.monotonic() - begun:.0f} s in all; {files_of(output)[0]}")
    say(console, f"judge it with: softcr verify-surrogate --robot {given.robot} --network {output}")
    return 0


def chosen_settings(given: argparse.Namespace) -> TrainingSettings:
    """The preset with what the command line replaces.

    Raises:
        UserError: a value is out of range; the line names the option and the range.
    """
    preset = PRESETS[given.preset]()
    replaced: dict[str, Any] = {
        name: getattr(given, name) for name in _SETTINGS if getattr(given, name, None) is not None
    }
    architecture = {
        name: getattr(given, name)
        for name in _ARCHITECTURE
        if getattr(given, name, None) is not None
    }
    content = preset.model_dump() | replaced
    content["architecture"] = preset.architecture.model_dump() | architecture
    try:
        return TrainingSettings.model_validate(content)
    except ValidationError as error:
        problem = first_problem(error, TrainingSettings)
        where = problem.field.removeprefix("architecture.")
        option = f"--{where.replace('_', '-')} " if where else ""
        raise UserError(f"{option}{problem.reason}") from None


class _Shown:
    """Progress bars of a training, called with what it reports."""

    def __init__(self, console: Console) -> None:
        self.bars = Progress(
            TextColumn("{task.description:24}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
            console=console,
        )
        self._tasks: dict[str, Any] = {}

    def __call__(self, progress: training.Progress) -> None:
        if progress.phase not in self._tasks:
            self._tasks[progress.phase] = self.bars.add_task(progress.phase, total=1.0, figures="")
        figures = [f"{name} {value:.2g}" for name, value in progress.losses.items()]
        figures += [
            f"{name.removesuffix(' mm')} {value:.2f} mm"
            for name, value in progress.validation.items()
        ]
        self.bars.update(
            self._tasks[progress.phase], completed=progress.done, figures=", ".join(figures)
        )


_SETTINGS = ("iterations", "intervals", "learning_rate", "seed", "threads", "device", "physics")
_ARCHITECTURE = ("neurons", "layers", "terms")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr train",
        description="Train a surrogate (DD-PINN) of a robot's rod. A stopped training goes on "
        "where it was when the same command is given again.",
    )
    parser.add_argument("--robot", default="licher2025", help="name or YAML file (%(default)s)")
    parser.add_argument(
        "--preset",
        default="softcr",
        choices=sorted(PRESETS),
        help="our recipe, or the published one: physics loss alone (%(default)s)",
    )
    parser.add_argument(
        "--output", type=Path, help="of weights and card, without ending (results/surrogates/ROBOT)"
    )
    parser.add_argument("--start", type=Path, help="a network to begin from, without ending")
    parser.add_argument("--fresh", action="store_true", help="do not go on from a checkpoint")
    fields = TrainingSettings.model_fields | TrainingSettings().architecture.__class__.model_fields
    for name in (*_SETTINGS, *_ARCHITECTURE):
        field = fields[name]
        kind = {"device": str, "learning_rate": float, "physics": float}.get(name, int)
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=kind,
            help=f"{field.description} (softcr: {field.default})",
        )
    return parser

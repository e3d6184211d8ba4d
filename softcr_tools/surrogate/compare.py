"""`softcr compare-surrogates`: recipes side by side after short trainings of one core each.

What of our recipe earns its place, and where the published one is after the same time.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numba
import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from softcr_learning.surrogate import training
from softcr_learning.surrogate.recipes import recipes
from softcr_learning.surrogate.timing import network_times
from softcr_learning.surrogate.verification import MOTIONS, Verification
from softcr_models import CosseratRod, load_robot
from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_studies.machine import describe_machine
from softcr_tools.experiments.results import Row, print_table, write_table

TICKS = 700  # of a motion: ten seconds
LONG = (100, 1000)  # free motions under the hardest input, and steps of each


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr compare-surrogates`; returns the exit code.

    Raises:
        UserError: the robot or the results cannot be used.
    """
    given = _parser().parse_args(arguments)
    robot = load_robot(given.robot)
    directory = new_run_directory(given.results)
    console = Console()
    rows: list[Row] = []
    columns = TextColumn("{task.description:36}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as bars:
        for recipe in recipes(given.part):
            task = bars.add_task(recipe.name, total=1.0)

            def report(progress: training.Progress, task: object = task) -> None:
                if progress.phase == "training":
                    bars.update(task, completed=progress.done)  # type: ignore[arg-type]

            path = directory / recipe.name.replace(":", "").replace(",", "").replace(" ", "-")
            network, card = training.train(robot, recipe.settings, path, report)
            numba.set_num_threads(1)
            torch.set_num_threads(1)
            rod = CosseratRod(robot, card.intervals)
            judged = Verification(rod, network, given.motions, TICKS)
            rows += judged_rows(recipe.name, judged, card.seconds["training"], card.iterations)
            write_table(directory, {"machine": describe_machine(), "part": given.part}, rows)
    point_latest_to(directory)
    print_table(console, f"recipes for {robot.name}, {given.motions} motions of 10 s a row", rows)
    say(console, f"networks, logs and numbers: {directory}")
    return 0


def judged_rows(name: str, judged: Verification, seconds: float, iterations: int) -> list[Row]:
    """Time of training and of a step, accuracy and stability of one network."""

    def row(case: str, quantity: str, mean: float, sd: float, unit: str, count: int = 1) -> Row:
        return Row(case, name, quantity, None, mean, sd, unit, count)

    rows = [
        row("training", "time of one core", seconds / 60.0, 0.0, "min"),
        row("training", "iterations", float(iterations), 0.0, "-"),
    ]
    times = network_times(judged.network, judged.rod)
    step = min((time for time in times if time.batch == 147), key=lambda time: time.median_ms)
    rows.append(row("step of 147, one thread", step.way, step.median_ms, 0.0, "ms"))
    first = None
    for family in MOTIONS:
        motions = judged.motions(family)
        first = first or motions
        mean, spread = judged.table(motions)[0].position_mm
        rows.append(row(family, "tip position", mean, spread, "mm", judged.count))
    assert first is not None
    with np.errstate(over="ignore", invalid="ignore"):  # one step may be enough to diverge
        noisy = judged.from_noisy_states(first)
    rows.append(row("one step, noisy state", "tip position", noisy, 0.0, "mm"))
    count, steps = LONG
    good, _ = judged.long_motions("raw_full_steps", count, steps)
    rows.append(row(f"{steps} hardest steps", "bounded", 100.0 * good / count, 0.0, "%", count))
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr compare-surrogates",
        description="Train a network by each recipe on one core and judge them side by side; "
        "at --part 0.3 two to five minutes each.",
    )
    parser.add_argument("--robot", default="licher2025", help="name or YAML file (%(default)s)")
    parser.add_argument(
        "--part", type=_part, default=1.0, help="of 12 000 iterations (%(default)s)"
    )
    parser.add_argument("--motions", type=int, default=20, help="of 10 s per row (%(default)s)")
    parser.add_argument(
        "--results", type=Path, default=Path("results/surrogates/comparison"),
        help="where a folder is made (%(default)s)",
    )  # fmt: skip
    return parser


def _part(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= 100.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: above 0, up to 100")
    return value

"""The command line of `softcr experiment apcc-...`."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_tools.benchmarks.machine import describe_machine
from softcr_tools.console import say
from softcr_tools.experiments.apcc import figures, kinematic
from softcr_tools.experiments.results import TABLE_WIDTH, Row, print_table, write_table
from softcr_tools.results import new_run_directory, point_latest_to


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment`, the name first; returns the exit code.

    Raises:
        UserError: a results directory that cannot be written.
    """
    given = _parser(arguments[0]).parse_args(arguments[1:])
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    directory = new_run_directory(given.results / "experiments" / arguments[0])
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    # The matrices are small: BLAS threads would only get in each other's way.
    with threadpool_limits(limits=1, user_api="blas"), Progress(*columns, console=console) as bar:
        rows = _kinematic(given, directory, bar)
    print_table(console, f"softcr experiment {arguments[0]}", rows)
    about = {key: value for key, value in vars(given).items() if key != "results"}
    path = write_table(directory, {"machine": describe_machine(), **about}, rows)
    point_latest_to(directory)
    say(console, f"results: {path}")
    return 0


def _kinematic(given: argparse.Namespace, directory: Path, bar: Progress) -> list[Row]:
    dt = 1e-3 * given.step_ms
    task = bar.add_task("readings", total=kinematic.steps_of(dt, given.seconds, given.seeds))
    traces = kinematic.run_readings(dt, given.seconds, lambda: bar.advance(task))
    bar.update(task, description="bent starts")
    adaptive, fixed = kinematic.run_bent(given.seeds, given.seconds, lambda: bar.advance(task))
    figures.draw_kinematic(
        traces[kinematic.REQUIRED], traces[kinematic.FIXED], directory / "convergence.png"
    )
    names = [f"{reading.method}; {reading.case}" for reading in kinematic.READINGS]
    figures.draw_readings(dict(zip(names, traces, strict=True)), directory / "readings.png")
    rows = kinematic.rows_of_readings(traces, given.seconds)
    return rows + kinematic.rows_of_bent(adaptive, fixed)


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"softcr experiment {name}",
        description="003, Sec. V-A: a model of three sections follows a trajectory and finds the "
        "arm's section lengths; every reading of the law, the diverging ones too. About a minute.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--seeds", type=_positive, default=3, metavar="N",
        help="random starts beside the straight one (default: 3)",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=_between(1.0, 100.0), default=20.0, metavar="S",
        help="length of a run, 1 to 100 (default: 20)",
    )  # fmt: skip
    parser.add_argument(
        "--step-ms", type=_between(0.1, 10.0), default=1.0, metavar="MS",
        help="time step of arm and controller, 0.1 to 10 (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIRECTORY",
        help=f"experiments/{name} is written below it (default: results)",
    )  # fmt: skip
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: a whole number from 1 on")
    return int(text)


def _between(low: float, high: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = np.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed: {low:g} to {high:g}")
        return value

    return number

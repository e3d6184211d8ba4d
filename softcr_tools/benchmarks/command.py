"""The command line of `softcr bench`: which rows, where to, and the order of things."""

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from threadpoolctl import threadpool_limits

from softcr_models.robot import Robot, load_robot
from softcr_runtime.console import say
from softcr_studies.machine import describe_machine
from softcr_tools.benchmarks import (
    batches,
    bus_cycle,
    controller_ticks,
    filter_ticks,
    pyelastica,
    rod_steps,
    scipy_bdf,
)
from softcr_tools.benchmarks.results_file import create_folder, write_results
from softcr_tools.benchmarks.row import Row
from softcr_tools.benchmarks.table import TABLE_WIDTH, one_line, print_table
from softcr_tools.benchmarks.timing import Effort

ROBOT = "licher2025"
GROUPS: dict[str, Callable[[Robot, Effort], Iterator[Row]]] = {
    "rod": rod_steps.rows,
    "scipy": scipy_bdf.rows,
    "batch": batches.rows,
    "filter": filter_ticks.rows,
    "controller": controller_ticks.rows,
    "bus": bus_cycle.rows,
    "pyelastica": pyelastica.rows,
}
# Above this load per core the figures say more about the neighbours than about the code.
BUSY = 0.3


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr bench`; returns the exit code.

    Raises:
        UserError: the results directory cannot be written.
    """
    given = _parser().parse_args(arguments)
    run(given.only, Effort(), given.results / "bench" / "latest.json", _console())
    return 0


def run(groups: Sequence[str], effort: Effort, path: Path, console: Console) -> list[Row]:
    """Measures groups of rows, shows them, and writes them to a JSON file.

    Raises:
        UserError: the file cannot be written.
    """
    create_folder(path.parent)
    machine = describe_machine()
    _warn_if_busy(console)
    robot = load_robot(ROBOT)
    measured: list[Row] = []
    # The matrices are small: BLAS threads would only get in each other's way.
    with threadpool_limits(limits=1, user_api="blas"):
        for group in groups:
            with console.status(f"{group} ..."):
                for row in GROUPS[group](robot, effort):
                    measured.append(row)
                    say(console, one_line(row))
    print_table(console, measured)
    write_results(path, machine, measured)
    say(console, f"results: {path}")
    return measured


def _console() -> Console:
    """The terminal as it is; a file or pipe as wide as the table."""
    console = Console()
    return console if console.is_terminal else Console(width=TABLE_WIDTH)


def _warn_if_busy(console: Console) -> None:
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > BUSY * cores:
        line = f"load average {load:.1f} on {cores} cores: others are at work, times will be long"
        say(console, line, style="yellow")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr bench",
        description="Measures rod, filter and controller beside their rivals, in one run on this "
        "machine; about four minutes.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=GROUPS,
        default=list(GROUPS),
        metavar="GROUP",
        help=f"groups of rows to measure: {', '.join(GROUPS)} (default: all)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIRECTORY",
        help="bench/latest.json is written below it (default: results)",
    )
    return parser

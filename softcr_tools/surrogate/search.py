"""`softcr search-surrogate`: which structure learns best, by asynchronous successive halving.

Licher et al. 2025, Sec. IV-B: neurons, layers, learning rate and ansatz terms; networks that fall
behind are stopped early. Workers on one machine or many share an Optuna storage; a search that was
stopped goes on when the same command is given again.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import optuna
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from softcr_learning.studies import finished
from softcr_learning.surrogate.search import fixed_settings, open_study, shipped_choice, work
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_tools.surrogate.search_report import report


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr search-surrogate`; returns the exit code.

    Raises:
        UserError: the robot or the storage cannot be used.
    """
    given = _parser().parse_args(arguments)
    robot = load_robot(given.robot)
    given.output.mkdir(parents=True, exist_ok=True)
    study = open_study(given.storage or str(given.output / "search.journal"), given.seed)
    if given.worker:
        fixed = fixed_settings(given.iterations, given.seed)
        work(study, robot, fixed, given.trials, given.output)
        return 0
    if not study.get_trials(deepcopy=False):
        study.enqueue_trial(shipped_choice())
    _run_workers(study, given)
    command = " ".join(["softcr search-surrogate", *arguments])
    report(study.get_trials(), given.output, command, Console())
    return 0


def _run_workers(study: optuna.Study, given: argparse.Namespace) -> None:
    command = [sys.executable, "-m", "softcr_tools.surrogate.search_worker", *_repeated(given)]
    workers = [subprocess.Popen(command) for _ in range(given.workers)]
    columns = TextColumn("networks"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    try:
        with Progress(*columns) as bar:
            task = bar.add_task("", total=given.trials)
            while any(worker.poll() is None for worker in workers):
                bar.update(task, completed=min(finished(study), given.trials))
                for worker in workers:
                    try:
                        worker.wait(1.0)
                    except subprocess.TimeoutExpired:
                        break
            bar.update(task, completed=min(finished(study), given.trials))
    finally:
        for worker in workers:
            worker.terminate()
    if all(worker.wait() for worker in workers):
        raise UserError("search: every worker failed; run with --workers 1 and read its output")


def _repeated(given: argparse.Namespace) -> list[str]:
    texts = ["--worker"]
    for name in ("robot", "trials", "iterations", "seed", "output", "storage"):
        texts += [f"--{name}", str(getattr(given, name))]
    return texts


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr search-surrogate",
        description="Search neurons, layers, learning rate and ansatz terms of a surrogate by "
        "asynchronous successive halving. The same command goes on with a stopped search.",
    )
    parser.add_argument("--robot", default="licher2025", help="name or YAML file (%(default)s)")
    parser.add_argument("--trials", type=int, default=72, help="networks in all (%(default)s)")
    parser.add_argument(
        "--iterations",
        type=int,
        default=6000,
        help="of a network that is not stopped (%(default)s)",
    )
    parser.add_argument("--workers", type=int, default=2, help="processes (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the search (%(default)s)")
    parser.add_argument(
        "--storage", default="", help="an Optuna storage, for many machines (a file in --output)"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("results/surrogates/search"), help="(%(default)s)"
    )
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser

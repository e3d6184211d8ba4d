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

import numpy as np
import optuna
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from softcr_models import CosseratRod, load_robot
from softcr_models.errors import UserError
from softcr_models.surrogate import training
from softcr_models.surrogate.ddpinn import Architecture
from softcr_models.surrogate.training_data import rod_data
from softcr_models.surrogate.training_settings import TrainingSettings
from softcr_tools import studies
from softcr_tools.studies import FINISHED, finished
from softcr_tools.surrogate.search_report import SHARED_TERMS, report

FEWEST_VALIDATIONS = 2  # before a network may be stopped: the paper's grace of 300 epochs
REDUCTION = 3  # of three networks one goes on


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr search-surrogate`; returns the exit code.

    Raises:
        UserError: the robot or the storage cannot be used.
    """
    given = _parser().parse_args(arguments)
    load_robot(given.robot)
    given.output.mkdir(parents=True, exist_ok=True)
    study = open_study(given.storage or str(given.output / "search.journal"), given.seed)
    if given.worker:
        work(study, given)
        return 0
    if not study.get_trials(deepcopy=False):
        study.enqueue_trial(shipped_choice())
    _run_workers(study, given)
    command = " ".join(["softcr search-surrogate", *arguments])
    report(study.get_trials(), given.output, command, Console())
    return 0


def open_study(storage: str, seed: int) -> optuna.Study:
    """The study of a storage: a journal file by default, or an Optuna URL (mysql://, ...).

    Raises:
        UserError: the storage cannot be opened.
    """
    sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    pruner = optuna.pruners.SuccessiveHalvingPruner(
        min_resource=FEWEST_VALIDATIONS, reduction_factor=REDUCTION
    )
    return studies.open_study("surrogate", storage, sampler, pruner)


def fixed_settings(iterations: int, seed: int) -> TrainingSettings:
    """What all networks of a search have in common, their data among it."""
    return TrainingSettings(
        iterations=iterations,
        trajectories=800,
        noisy_samples=100_000,
        seed=seed,
        threads=1,
        validate_every=0.1,
    )


def settings_of(trial: optuna.Trial, fixed: TrainingSettings) -> TrainingSettings:
    """What a trial trains: the paper's space, whether neurons are gated and shapes are shared."""
    gated = trial.suggest_categorical("activation", ["gated", "silu"]) == "gated"
    shared = trial.suggest_categorical("shapes", ["shared", "network"]) == "shared"
    architecture = Architecture(
        neurons=trial.suggest_int("neurons", 64, 512, log=True),
        layers=trial.suggest_int("layers", 1, 3),
        activation="gated" if gated else "silu",
        shapes="shared" if shared else "network",
        # shapes that all samples share pass through three marks
        terms=SHARED_TERMS if shared else trial.suggest_int("terms", 1, 24, log=True),
    )
    rate = trial.suggest_float("learning_rate", 3e-4, 1e-2, log=True)
    return fixed.model_copy(update={"architecture": architecture, "learning_rate": rate})


def shipped_choice() -> dict[str, str | int | float]:
    """What a training takes by default, as the search's own words: what it has to beat."""
    ours = TrainingSettings()
    choice: dict[str, str | int | float] = {"learning_rate": ours.learning_rate}
    for name in ("activation", "shapes", "neurons", "layers"):
        choice[name] = getattr(ours.architecture, name)
    return choice


def work(study: optuna.Study, given: argparse.Namespace) -> None:
    """Trains networks until the study has as many as asked for."""
    if finished(study) >= given.trials:
        return
    robot = load_robot(given.robot)
    fixed = fixed_settings(given.iterations, given.seed)
    data = rod_data(CosseratRod(robot, fixed.intervals), fixed)  # the same for every network

    def objective(trial: optuna.Trial) -> float:
        settings = settings_of(trial, fixed)
        path = given.output / f"network-{trial.number}"
        seen: list[float] = []

        def judge(progress: training.Progress) -> None:
            if progress.phase != "training" or not progress.validation:
                return
            value = _score(progress.validation)
            if seen and seen[-1] == value:
                return
            seen.append(value)
            trial.report(value, len(seen))
            if trial.should_prune():
                raise optuna.TrialPruned

        try:
            _, card = training.train(robot, settings, path, judge, resume=False, data=data)
        except optuna.TrialPruned:
            path.with_name(path.name + ".checkpoint").unlink(missing_ok=True)
            raise
        except UserError:  # its losses left the numbers: a bad choice, not the end of the search
            return float("inf")
        return _score(card.validation)

    enough = optuna.study.MaxTrialsCallback(given.trials, states=FINISHED)
    study.optimize(objective, callbacks=[enough])


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


def _score(validation: dict[str, float]) -> float:
    """Mean over the sets of validation [mm]."""
    return float(np.mean(list(validation.values())))


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

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

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import optuna
from optuna.trial import TrialState
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from softcr_models import CosseratRod, load_robot
from softcr_models.errors import UserError
from softcr_models.surrogate import training
from softcr_models.surrogate.ddpinn import Architecture
from softcr_models.surrogate.training_data import rod_data
from softcr_models.surrogate.training_settings import TrainingSettings
from softcr_tools import studies
from softcr_tools.console import say
from softcr_tools.studies import FINISHED, finished

FEWEST_VALIDATIONS = 2  # before a network may be stopped: the paper's grace of 300 epochs
REDUCTION = 3  # of three networks one goes on
BEST_SHOWN = 5


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
    _run_workers(study, given)
    report(study, given.output, Console())
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
        # shapes that all samples share pass through three marks: three terms
        terms=3 if shared else trial.suggest_int("terms", 1, 24, log=True),
    )
    rate = trial.suggest_float("learning_rate", 3e-4, 1e-2, log=True)
    return fixed.model_copy(update={"architecture": architecture, "learning_rate": rate})


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


def report(study: optuna.Study, directory: Path, console: Console) -> None:
    """Best networks as lines, and the figure of all, as Fig. 6 of the paper."""
    complete = [
        trial
        for trial in study.get_trials()
        if trial.state == TrialState.COMPLETE and trial.value is not None
    ]
    if not complete:
        say(console, "no network was trained to the end")
        return
    complete.sort(key=lambda trial: trial.value or 0.0)
    stopped = sum(trial.state == TrialState.PRUNED for trial in study.get_trials())
    say(console, f"{len(complete)} networks trained to the end, {stopped} stopped early")
    for trial in complete[:BEST_SHOWN]:
        numbers = ", ".join(f"{k} {_short(v)}" for k, v in trial.params.items())
        say(console, f"{trial.value:8.3f} mm  network-{trial.number}: {numbers}")
    draw(complete, directory / "search.png")
    say(console, f"figure: {directory / 'search.png'}")


def draw(trials: list[optuna.trial.FrozenTrial], path: Path) -> None:
    """Parallel coordinates: best in green, the next four in blue."""
    names = ["neurons", "layers", "learning_rate", "terms"]
    figure, axes = plt.subplots(figsize=(8.0, 4.5))
    columns = []
    for name in names:
        values = np.array([float(trial.params.get(name, 3)) for trial in trials])
        values = np.log10(values) if name == "learning_rate" else values
        spread = max(float(np.ptp(values)), 1e-12)
        columns.append((values - values.min()) / spread)
        low, high = values.min(), values.max()
        text = "1e{:.1f}" if name == "learning_rate" else "{:.0f}"
        at = len(columns) - 1
        axes.text(at, -0.05, text.format(low), ha="center", va="top")
        axes.text(at, 1.03, text.format(high), ha="center", va="bottom")
    scores = np.array([trial.value for trial in trials], dtype=float)
    scores = np.log10(np.minimum(scores, 1e3))
    columns.append((scores - scores.min()) / max(float(np.ptp(scores)), 1e-12))
    lines = np.array(columns).T
    for rank in reversed(range(len(trials))):
        colour = "C2" if rank == 0 else "C0" if rank < BEST_SHOWN else "0.8"
        axes.plot(lines[rank], color=colour, linewidth=2.0 if rank < BEST_SHOWN else 0.8)
    axes.set_xticks(range(len(names) + 1), [*names, "tip error (log)"])
    axes.set_yticks([])
    axes.set_ylim(-0.12, 1.1)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


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


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


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

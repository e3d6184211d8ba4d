"""The command line of `softcr experiment koopman-real`, and the order of things.

A Koopman model is identified from recordings of a real soft arm and predicts others: the outputs up
to a horizon ahead and over whole trials, knowing the commands alone. Beside it: a linear ARX model,
the same without a lift, and holding the last value. Lift, delays and ridge of both models are
chosen on the training trials only, by cross-validation. Without --score every fourth training trial
(numbers 4, 8, 12, ... from 0) is held out and scored.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_control.koopman import KoopmanModel, Lift, identified
from softcr_control.koopman_selection import Choice, grid, select
from softcr_models.errors import UserError
from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_studies.machine import describe_machine
from softcr_tools.experiments.koopman_real import figures
from softcr_tools.experiments.koopman_real.recordings import Recording, load_recordings, split
from softcr_tools.experiments.koopman_real.scores import rows_of
from softcr_tools.experiments.results import TABLE_WIDTH, Row, print_table, write_table

DATA = Path("data")
FILE = "bruder2020_train.npz"
DELAYS = (1, 2, 4, 8, 16, 24)
RIDGES = (1e-8, 1e-6, 1e-4)
CANDIDATES: dict[str, list[tuple[Lift, float]]] = {
    "koopman": grid(DELAYS, (2, 3), RIDGES),
    "linear ARX": grid(DELAYS, (1,), RIDGES),
}


@dataclass(frozen=True)
class Protocol:
    """What is run.

    Attributes:
        period: of the grid the recordings are resampled to [s].
        horizon: of the predictions, in the choice and in the table [s].
        folds: of the cross-validation, at most one per training trial.
    """

    period: float = 1 / 12
    horizon: float = 2.0
    folds: int = 5

    @property
    def steps(self) -> int:
        return max(1, round(self.horizon / self.period))


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment koopman-real`; returns the exit code.

    Raises:
        UserError: a file that is absent or unusable, or a results directory that cannot be written.
    """
    given = _parser().parse_args(arguments)
    protocol = Protocol(given.period, given.horizon)
    train_files = given.train or [given.data / FILE]
    train = [one for path in train_files for one in load_recordings(path, protocol.period)]
    score = [one for path in given.score for one in load_recordings(path, protocol.period)]
    if not score:
        train, score = split(train)
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    run(protocol, train, score, given.results / "experiments" / "koopman-real", console)
    return 0


def run(
    protocol: Protocol,
    train: Sequence[Recording],
    score: Sequence[Recording],
    results: Path,
    console: Console,
    candidates: dict[str, list[tuple[Lift, float]]] = CANDIDATES,
) -> list[Row]:
    """Chooses, identifies, predicts; shows the table, writes table and figure; returns the rows.

    Raises:
        UserError: recordings of different widths, or too short.
    """
    _check(protocol, [*train, *score], candidates)
    directory = new_run_directory(results)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with threadpool_limits(limits=1, user_api="blas"):
        with Progress(*columns, console=console) as bar:
            chosen = _chosen(protocol, train, candidates, bar)
        models = {
            name: _model(protocol, train, choice.lift, choice.ridge)
            for name, choice in chosen.items()
        }
        rows = rows_of(score, models, protocol.steps, protocol.horizon)
        figures.draw(directory / "koopman_real.png", score, models, protocol.steps)
    print_table(console, "softcr experiment koopman-real", rows)
    for name, choice in chosen.items():
        say(
            console,
            f"{name}: {choice.lift}, ridge {choice.ridge:g}, chosen by cross-validation on the "
            f"{len(train)} training trials only (mean error {choice.error:.2f} mm)",
        )
    path = write_table(directory, _about(protocol, train, score, chosen), rows)
    point_latest_to(directory)
    say(console, f"results: {path}")
    return rows


def _chosen(
    protocol: Protocol,
    train: Sequence[Recording],
    candidates: dict[str, list[tuple[Lift, float]]],
    bar: Progress,
) -> dict[str, Choice]:
    task = bar.add_task("cross-validation", total=sum(map(len, candidates.values())))
    trials = [recording.trial for recording in train]
    folds = min(protocol.folds, len(trials))
    return {
        name: select(
            trials, listed, protocol.steps, folds, protocol.period, lambda: bar.advance(task)
        )[0]
        for name, listed in candidates.items()
    }


def _model(
    protocol: Protocol, train: Sequence[Recording], lift: Lift, ridge: float
) -> KoopmanModel:
    return identified([recording.trial for recording in train], lift, ridge, protocol.period)


def _check(
    protocol: Protocol,
    recordings: Sequence[Recording],
    candidates: dict[str, list[tuple[Lift, float]]],
) -> None:
    oldest = max(lift.delays for listed in candidates.values() for lift, _ in listed)
    needed = oldest + protocol.steps + 2
    first = recordings[0]
    for recording in recordings:
        trial = recording.trial
        if len(trial.outputs) < needed:
            raise UserError(
                f"trial {recording.name}: {len(trial.outputs)} samples of {protocol.period:g} s; "
                f"at least {needed} are needed"
            )
        widths, wanted = (
            (one.outputs.shape[1], one.inputs.shape[1]) for one in (trial, first.trial)
        )
        if widths != wanted:
            raise UserError(
                f"trial {recording.name}: {widths[0]} outputs and {widths[1]} inputs, "
                f"{first.name} has {wanted[0]} and {wanted[1]}"
            )


def _about(
    protocol: Protocol,
    train: Sequence[Recording],
    score: Sequence[Recording],
    chosen: dict[str, Choice],
) -> dict[str, object]:
    return {
        "experiment": "koopman-real",
        **asdict(protocol),
        "trained_on": [recording.name for recording in train],
        "scored_on": [recording.name for recording in score],
        "chosen_on_training_trials": {name: asdict(choice) for name, choice in chosen.items()},
        "motion_mm": {recording.name: recording.motion for recording in score},
        "machine": describe_machine(),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr experiment koopman-real",
        description=__doc__,
        epilog="A FILE is an .npz with, for each trial i: t{i} (N,) [s], u{i} (N, m) commands [V], "
        "y{i} (N, p) tip [cm].",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--train", type=Path, nargs="+", metavar="FILE", help=f"default: {FILE} in the data folder"
    )
    parser.add_argument("--score", type=Path, nargs="+", metavar="FILE", default=[])
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", default=DATA, help=f"default: {DATA}"
    )
    parser.add_argument(
        "--period", type=_seconds, default=Protocol.period, help="of the grid [s] (default: 1/12)"
    )
    parser.add_argument(
        "--horizon", type=_seconds, default=Protocol.horizon, help="[s] (default: 2)"
    )
    parser.add_argument(
        "--results", type=Path, default=Path("results"), help="directory (default: results)"
    )
    return parser


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1e-3 <= value <= 1e3:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a number from 0.001 to 1000 [s]")
    return value

"""The command line of `softcr experiment apcc-...`."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_studies.machine import describe_machine
from softcr_tools.experiments.apcc import feedback, figures, kinematic, robots, robots_table
from softcr_tools.experiments.apcc.robot_run import PERIOD
from softcr_tools.experiments.results import TABLE_WIDTH, Row, print_table, write_table

_KINEMATIC, _FEEDBACK = "apcc-kinematic", "apcc-feedback"


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
        run = {_KINEMATIC: _kinematic, _FEEDBACK: _feedback}.get(arguments[0], _robots)
        rows = run(given, directory, bar)
    plant = _PLANTS[arguments[0]]
    print_table(console, f"softcr experiment {arguments[0]}: {plant}", rows)
    about = {key: value for key, value in vars(given).items() if key not in ("results", "name")}
    about = {"machine": describe_machine(), "plant": plant, **about}
    path = write_table(directory, about, rows)
    point_latest_to(directory)
    say(console, f"results: {path}")
    return 0


def _kinematic(given: argparse.Namespace, directory: Path, bar: Progress) -> list[Row]:
    dt = 1e-3 * given.step_ms
    task = bar.add_task("readings", total=kinematic.steps_of(dt, given.seconds, given.seeds))
    traces = kinematic.run_readings(dt, given.seconds, partial(bar.advance, task))
    bar.update(task, description="bent starts")
    adaptive, fixed = kinematic.run_bent(given.seeds, given.seconds, partial(bar.advance, task))
    figures.draw_kinematic(
        traces[kinematic.REQUIRED], traces[kinematic.FIXED], directory / "convergence.png"
    )
    names = [f"{reading.method}; {reading.case}" for reading in kinematic.READINGS]
    figures.draw_readings(dict(zip(names, traces, strict=True)), directory / "readings.png")
    rows = kinematic.rows_of_readings(traces, given.seconds)
    return rows + kinematic.rows_of_bent(adaptive, fixed)


def _robots(given: argparse.Namespace, directory: Path, bar: Progress) -> list[Row]:
    rows = []
    for study in robots.STUDIES[given.name]:
        settings = robots.settings_of(study, given.setpoints, given.seeds, given.seconds)
        ticks = robots.runs_of(study, settings) * round(given.seconds / PERIOD)
        task = bar.add_task(study.case, total=ticks)
        traces = robots.run_study(study, settings, partial(bar.advance, task))
        first = {name: found[0] for name, found in traces.items()}
        figures.draw_robot(first, directory / f"{study.feedback}.png")
        rows += robots_table.rows_of(study, traces, given.seeds)
    return rows


def _feedback(given: argparse.Namespace, directory: Path, bar: Progress) -> list[Row]:
    table = feedback.TABLE_ONE[: given.runs]
    task = bar.add_task("Experiment I", total=len(table) * feedback.INPUTS)
    runs = [feedback.infer_run(run, partial(bar.advance, task)) for run in table]
    rows = feedback.rows_of_inference(runs)
    for number, trial in enumerate(feedback.TRIALS, 1):
        total = len(feedback.controllers_of(trial)) * round(given.seconds / PERIOD)
        task = bar.add_task(trial.case, total=total)
        traces = feedback.run_trial(trial, given.seconds, partial(bar.advance, task))
        figures.draw_robot(traces, directory / f"experiment_2_run_{number}.png")
        rows += feedback.rows_of_trial(trial, traces, given.seconds)
    return rows


_ABOUT = {
    _KINEMATIC: "Dalenberg, Sec. V-A: a model of three sections follows a trajectory and finds the "
    "arm's section lengths; every reading of the law, the diverging ones too. About a minute.",
    "apcc-robot1": "Dalenberg, Sec. V-B on a RECONSTRUCTED Robot I: adaptive against fixed "
    "lengths, by positions and by poses. Three minutes.",
    "apcc-robot2": "Dalenberg, Appendix A, Robot II with reconstructed material: adaptive against "
    "fixed lengths. Two minutes.",
    _FEEDBACK: "Dalenberg, Sec. VI on a simulated arm: Algorithm 2 along the tendon paths of Table "
    "I, and adaptive against fixed where tendons run otherwise than the controller "
    "thinks. A minute.",
}
_PLANTS = {
    _KINEMATIC: "an arm that goes where it is told",
    "apcc-robot1": "RECONSTRUCTED arm, absolute figures mean little",
    "apcc-robot2": "arm of RECONSTRUCTED material, absolute figures mean little",
    _FEEDBACK: "SIMULATED, RECONSTRUCTED arm instead of hardware",
}
_SEEDS = {
    _KINEMATIC: "random starts beside the straight one (default: 1)",
    _FEEDBACK: "nothing is random here; `softcr experiment all` gives it to everyone",
}


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"softcr experiment {name}", description=_ABOUT[name], allow_abbrev=False
    )
    parser.set_defaults(name=name)
    parser.add_argument(
        "--seeds", type=_positive, default=1, metavar="N",
        help=_SEEDS.get(name, "draws of the setpoints the thesis does not name (default: 1)"),
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=_between(1.0, 100.0), metavar="S",
        default=20.0 if name in (_KINEMATIC, _FEEDBACK) else 10.0,
        help="length of a run, 1 to 100 (default: %(default)g)",
    )  # fmt: skip
    if name == _KINEMATIC:
        parser.add_argument(
            "--step-ms", type=_between(0.1, 10.0), default=1.0, metavar="MS",
            help="time step of arm and controller, 0.1 to 10 (default: 1)",
        )  # fmt: skip
    elif name == _FEEDBACK:
        parser.add_argument(
            "--runs", type=_positive, default=8, metavar="N",
            help="of Experiment I, at most 8 (default: 8)",
        )  # fmt: skip
    else:
        parser.add_argument(
            "--setpoints", type=_positive, default=10, metavar="N",
            help="per draw, each with three payloads (default: 10)",
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

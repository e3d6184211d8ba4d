"""The command line of `softcr experiment identification`, and the order of things.

A hidden robot, a few per cent off the robot file everywhere and finer than the model, is recorded
with noise: 42 configurations at rest, 10 s of motion (Licher et al. 2025, Sec. III-I). Statics,
damping and pressure lag are identified one after the other, by least squares and, for the statics
of the first seed, by the paper's particle swarm; the found robot is validated on a motion it has
not seen and written as a robot file.
"""

import argparse
import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_models import Robot, load_robot
from softcr_models.errors import UserError
from softcr_models.identification import (
    STATIC_PARAMETERS,
    Fit,
    identify_lag,
    identify_motion,
    identify_static,
    parameters_of,
    predicted_motion,
    static_cost,
)
from softcr_models.particle_swarm import particle_swarm
from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_studies.machine import describe_machine
from softcr_tools.experiments.identification import from_csv
from softcr_tools.experiments.identification.hidden import (
    NAMES,
    PERIOD,
    PLANT_INTERVALS,
    Recordings,
    record,
)
from softcr_tools.experiments.identification.recorded_run import run_recorded, write_robot
from softcr_tools.experiments.results import TABLE_WIDTH, Row, print_table, write_table

# Even, as the plant's: rates of the box scheme alternate from node to node, so the base wrench of a
# moving rod differs between odd and even grids, and damping found on 15 intervals is 2 % off.
MODEL_INTERVALS = 16
SEEDS = 5
SWARM = (20, 25)  # particles, iterations
SWARM_REACH = 0.3  # the box round the first guess, in logarithms

_EPILOG = (
    """\
With --bag or --csv a robot is identified from your own recordings, and --robot is the first guess:
a robot file with 95 % confidence intervals, a report that names what the recordings do not excite,
and a figure go to results/identification/latest.

Record each chamber, each pair and all of them at six levels (42 configurations), each held until
the tip has come to rest for a second; then, from rest, 10 s of 0.1, 0.5 and 1 Hz and a step to
ambient pressure. One recording may hold it all, or several may share it.

A bag needs pressure/state, mocap/tip/pose and force_torque/wrench, and for the pressure lag
pressure/sent or pressure/command: `make sim`, a bench and tracking experiments record them.
A CSV file has a line of column names and a line per sample:

"""
    + inspect.cleandoc(from_csv.__doc__ or "").partition("\n\n")[2]
    + """

  softcr experiment identification --bag results/sim/latest
  softcr experiment identification --csv statics.csv --csv motion.csv --robot my_robot.yaml
"""
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """One seed.

    Attributes:
        fits: statics, damping, lag.
        robot: with everything identified.
        validation_mm: mean tip error on the unseen motion, of the first guess and of `robot`.
        seconds: of the identification.
    """

    truth: Robot
    fits: tuple[Fit, Fit, Fit]
    robot: Robot
    validation_mm: tuple[float, float]
    seconds: float


@dataclass(frozen=True, eq=False)
class Swarm:
    """What the particle swarm made of the statics: values (P,), seconds, evaluations."""

    values: np.ndarray
    seconds: float
    evaluations: int


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment identification`; returns the exit code.

    Raises:
        UserError: an unknown robot, a recording that cannot be used, or a results directory that
            cannot be written.
    """
    given = _parser().parse_args(arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    robot = load_robot(given.robot)
    if given.bag or given.csv:
        if given.seeds is not None:
            raise UserError("--seeds: is for the hidden robot, not for --bag or --csv")
        results = given.results / "identification"
        run_recorded(robot, given.bag, given.csv, results, console, MODEL_INTERVALS)
        return 0
    results = given.results / "experiments" / "identification"
    run(robot, given.seeds or SEEDS, results, console, swarm=SWARM)
    return 0


def run(
    robot: Robot, seeds: int, results: Path, console: Console, swarm: tuple[int, int]
) -> list[Row]:
    """Runs the experiment, shows the table, writes table and robot file; returns the rows."""
    directory = new_run_directory(results)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with threadpool_limits(limits=1, user_api="blas"), Progress(*columns, console=console) as bar:
        task = bar.add_task("identifying", total=seeds)
        outcomes = []
        for seed in range(seeds):
            recordings = record(robot, seed)
            outcomes.append(_identified(robot, recordings))
            bar.advance(task)
        swarm_task = bar.add_task("particle swarm", total=swarm[0] * swarm[1])
        rival = _swarm(robot, record(robot, 0), swarm, lambda count: bar.advance(swarm_task, count))
    rows = rows_of(robot, outcomes, rival)
    print_table(console, f"softcr experiment identification, {robot.name}", rows)
    for name in sorted({name for o in outcomes for fit in o.fits for name in fit.not_excited}):
        say(console, f"the recordings do not excite {name}", "yellow")
    write_robot(outcomes[0].robot, directory / "identified.yaml")
    path = write_table(directory, _about(robot, seeds), rows)
    point_latest_to(directory)
    say(console, f"robot file of the first seed: {directory / 'identified.yaml'}")
    say(console, f"results: {path}")
    return rows


def _identified(robot: Robot, recordings: Recordings) -> Outcome:
    begin = time.perf_counter()
    static = identify_static(robot, recordings.static, MODEL_INTERVALS)
    damping = identify_motion(static.robot, recordings.motion, MODEL_INTERVALS)
    lag = identify_lag(damping.robot, recordings.commands, recordings.motion.pressures, PERIOD)
    seconds = time.perf_counter() - begin
    before, after = (
        float(1e3 * np.linalg.norm(found - recordings.unseen.tips, axis=1).mean())
        for found in (
            predicted_motion(candidate, recordings.unseen, MODEL_INTERVALS)
            for candidate in (robot, lag.robot)
        )
    )
    fits = static, damping, lag
    return Outcome(recordings.truth, fits, lag.robot, (before, after), seconds)


def _swarm(
    robot: Robot,
    recordings: Recordings,
    size: tuple[int, int],
    progress: Callable[[int], None],
) -> Swarm:
    begin = time.perf_counter()
    cost = static_cost(robot, recordings.static, MODEL_INTERVALS)
    start = np.log(parameters_of(robot, STATIC_PARAMETERS))
    best, _ = particle_swarm(cost, start - SWARM_REACH, start + SWARM_REACH, *size, 0, progress)
    return Swarm(np.exp(best), time.perf_counter() - begin, size[0] * size[1])


def rows_of(robot: Robot, outcomes: Sequence[Outcome], rival: Swarm) -> list[Row]:
    """Errors of every parameter, validation, and the swarm beside it."""
    truth = parameters_of(outcomes[0].truth, NAMES)
    errors = np.array([100 * np.abs(parameters_of(o.robot, NAMES) / truth - 1) for o in outcomes])
    widths = np.array([100 * np.concatenate([fit.intervals for fit in o.fits]) for o in outcomes])
    count, method = len(outcomes), "least squares"
    rows = [
        Row(name, method, quantity, None, float(v.mean()), float(v.std()), "%", count, *bounds)
        for name, error, width in zip(NAMES, errors.T, widths.T, strict=True)
        for quantity, v, bounds in (
            ("error", error, (2.0, 0.5)),
            ("95 % interval, half", width, ()),
        )
    ]
    validation = np.array([o.validation_mm for o in outcomes]) / (10 * outcomes[0].truth.length)
    for quantity, values, paper in (
        ("first guess", validation[:, 0], None),
        ("identified", validation[:, 1], 1.8),
    ):
        mean, sd = float(values.mean()), float(values.std())
        rows.append(
            Row("unseen motion", quantity, "tip error", paper, mean, sd, "% of length", count)
        )
    seconds = np.array([o.seconds for o in outcomes])
    rows.append(Row("all of it", method, "time", None, seconds.mean(), seconds.std(), "s", count))
    swarm_errors = 100 * np.abs(rival.values / truth[: len(STATIC_PARAMETERS)] - 1)
    rows += [
        Row(name, "particle swarm", "error", None, float(error), 0.0, "%", 1)
        for name, error in zip(STATIC_PARAMETERS, swarm_errors, strict=True)
    ]
    name = f"time, {rival.evaluations} evaluations"
    rows.append(Row("statics", "particle swarm", name, None, rival.seconds, 0.0, "s", 1))
    return rows


def _about(robot: Robot, seeds: int) -> dict[str, object]:
    return {
        "experiment": "identification",
        "robot": robot.name,
        "seeds": seeds,
        "plant_intervals": PLANT_INTERVALS,
        "model_intervals": MODEL_INTERVALS,
        "machine": describe_machine(),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr experiment identification",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--seeds", type=int, choices=range(1, 101), metavar="N",
                        help="recordings, each with its own noise (default: 5)")  # fmt: skip
    parser.add_argument("--bag", type=Path, action="append", default=[], metavar="BAG",
                        help="identify from this recording; repeatable")  # fmt: skip
    parser.add_argument("--csv", type=Path, action="append", default=[], metavar="FILE",
                        help="identify from this recording; repeatable")  # fmt: skip
    parser.add_argument("--robot", default="licher2025", help="first guess: name or YAML file")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), help="directory (default: results)"
    )
    return parser

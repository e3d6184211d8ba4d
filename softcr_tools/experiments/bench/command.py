"""`softcr experiment bench`: what the tip error owes to each figure of a bench.

Experiment 4a (tracking to 1.5 Hz; a plant of 20 intervals, bending compliance -5 %, tip mass +10 %,
0.2 mm of noise) in the simulation's loop, on the bench as it is shipped, and on benches that differ
from it in one figure. Time is virtual: equal seeds give equal runs, however slow the machine.
"""

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_control.references import SampledReference
from softcr_models import Robot, load_robot
from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_studies.machine import describe_machine
from softcr_tools.experiments.bench.setups import (
    POPULATION,
    VARIATIONS,
    Setup,
    Simulation,
    Variation,
)
from softcr_tools.experiments.bench.virtual_bench import run_bench
from softcr_tools.experiments.results import TABLE_WIDTH, Row, print_table, write_table
from softcr_tools.experiments.tracking.cases import EXPERIMENTS, SETTLED, Difference
from softcr_tools.experiments.tracking.loop import (
    PERIOD,
    controller_parameters,
    run_loop,
    sampled_reference,
)


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment bench`; returns the exit code.

    Raises:
        UserError: a bench's valves were not enabled, or the results cannot be written.
    """
    given = _parser().parse_args(arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    directory = new_run_directory(given.results / "experiments" / "bench")
    chosen = [each for each in VARIATIONS if not given.only or each.name in given.only]
    errors = _run_all(chosen, given.seeds, given.duration, console)
    rows = [row for variation in chosen for row in rows_of(variation, errors[variation.name])]
    about = {
        "experiment": "bench",
        "seeds": given.seeds,
        "duration": given.duration,
        "machine": describe_machine(),
    }
    write_table(directory, about, rows)
    point_latest_to(directory)
    print_table(console, "what a bench costs the tip", rows)
    say(console, f"numbers: {directory}")
    return 0


def _run_all(
    chosen: Sequence[Variation], seeds: int, duration: float, console: Console
) -> dict[str, list[np.ndarray]]:
    """Name of the variation -> errors (T,) [m], one run for each seed."""
    robot = load_robot("licher2025")
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    errors: dict[str, list[np.ndarray]] = {}
    with threadpool_limits(1, user_api="blas"), Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=len(chosen) * seeds * round(duration / PERIOD))
        source = motion(robot, duration)
        for variation in chosen:
            bar.update(task, description=variation.name)
            errors[variation.name] = [
                run(robot, variation.setup, source, seed, duration,
                    lambda ticks: bar.advance(task, ticks))
                for seed in range(seeds)
            ]  # fmt: skip
    return errors


def motion(robot: Robot, duration: float) -> SampledReference:
    """The reference of experiment 4a, which does not end before a run of `duration` [s]."""
    (case,) = EXPERIMENTS["4a"]
    return sampled_reference(robot, case.reference.model_copy(update={"duration": duration + 1.0}))


def run(
    robot: Robot,
    setup: Setup,
    source: SampledReference,
    seed: int,
    duration: float,
    progress: Callable[[int], None] = lambda ticks: None,
) -> np.ndarray:
    """(T,) distance of the true tip from the reference at the ticks of one run [m].

    NaN where the valves vented meanwhile: such a run has no tip error.

    Raises:
        UserError: the bench's valves were not enabled.
    """
    if not isinstance(setup, Simulation):
        trace = run_bench(robot, setup, source, seed, duration, progress)
        return trace.error if trace.enabled else np.full(len(trace.tips), np.nan)
    (case,) = EXPERIMENTS["4a"]
    later = dataclasses.replace(
        case, duration=duration, difference=Difference(latency=setup.delay - 1)
    )
    told = controller_parameters(setup.controller, later)
    told |= {"population": POPULATION} if setup.controller == "nempc" else {}
    return run_loop(
        robot, later, source, setup.controller, seed, progress=progress, parameters=told
    ).error


def rows_of(variation: Variation, errors: Sequence[np.ndarray]) -> list[Row]:
    """The tip's mean error over the whole motion, and once it has faded in."""
    case = "simulation" if isinstance(variation.setup, Simulation) else "bench"
    settled = [error[round(SETTLED / PERIOD) :] for error in errors]
    rows = []
    for quantity, parts in (("tip AED", errors), ("settled", settled)):
        means = [1e3 * float(part.mean()) for part in parts]
        mean, spread = float(np.mean(means)), float(np.std(means))
        rows.append(Row(case, variation.what, quantity, None, mean, spread, "mm", len(means)))
    return rows


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {each.name:20}{_words(each)}" for each in VARIATIONS)
    parser = argparse.ArgumentParser(
        prog="softcr experiment bench",
        description=__doc__,
        epilog=f"names:\n{listed}\n\nevery bench differs from the one as shipped in what is told.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--seeds", type=_seeds, default=3, help="runs of each (%(default)s)")
    parser.add_argument(
        "--duration", type=_duration, default=12.0, help="of a run [s] (%(default)s)"
    )
    parser.add_argument(
        "--only", nargs="+", choices=[each.name for each in VARIATIONS], metavar="NAME",
        help="these (all)",
    )  # fmt: skip
    parser.add_argument("--results", type=Path, default=Path("results"), help="(%(default)s)")
    return parser


def _words(variation: Variation) -> str:
    where = "simulation" if isinstance(variation.setup, Simulation) else "bench"
    return f"{where}: {variation.what}"


def _seeds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 1")
    return int(text)


def _duration(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not SETTLED < seconds <= 3600.0:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a number of s above {SETTLED:g}")
    return seconds

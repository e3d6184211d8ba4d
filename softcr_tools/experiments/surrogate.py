"""Experiment 2 of Licher et al. 2025, Sec. IV-C: the surrogate beside its rod, Tables IV and V.

What `softcr verify-surrogate` computes, as a table over seeds: ten-second motions that the network
runs freely, compliance +-20 % from motion to motion. The paper's measurement has no counterpart
without a bench: in its place stands a rod of 20 intervals, so "rod of 20 intervals" says how far
the rod that was learned is from a finer one. Times are of whole batches, on one thread of this
machine and on its GPU if it has one (the paper: Matlab on a laptop's CPU, PyTorch on its GPU).
"""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numba
import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from softcr_learning.surrogate import figures
from softcr_learning.surrogate.sampling import Trajectories
from softcr_learning.surrogate.timing import StepTime, step_times
from softcr_learning.surrogate.verification import MOTIONS, Deviation, Verification
from softcr_models import CosseratRod, load_robot
from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_studies.machine import describe_machine
from softcr_tools.experiments.motion_bag import write_motion_bag
from softcr_tools.experiments.results import TABLE_WIDTH, Row, print_table, write_table
from softcr_tools.surrogate.verify import (
    ASKED,
    FINER,
    HORIZONS,
    QUANTITIES,
    TICKS,
    load_network,
    positive,
)

FIRST_SEED = 200  # neither of the training nor of verify-surrogate
PUBLISHED = "smooth 70 %"  # the family that stands for the paper's trajectory
PUBLISHED_SD = {
    "tip position": 0.377,
    "tip rotation": 0.00433,
    "base force": 0.177,
    "base moment": 1.18,
}
PUBLISHED_MODEL_MM = 2.42  # simulation against measurement
# Table V: the network (batch 1: CPU; the others: GPU, printed per candidate), and ode23s
PUBLISHED_BATCH_MS = {1: 1.23, 147: 147 * 3.30e-3, 1000: 1000 * 0.802e-3}
PUBLISHED_ODE_MS = 35.9

Deviations = dict[str, list[Deviation]]  # by family, a seed each


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment 2`; returns the exit code.

    Raises:
        UserError: the robot or the network cannot be used, or the results cannot be written.
    """
    given = _parser().parse_args(arguments)
    robot = load_robot(given.robot)
    network, card = load_network(robot, given.network)
    # as verify-surrogate: small batches, on cores that others use too
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    rod = CosseratRod(robot, card.intervals)
    seeds = [
        Verification(rod, network, given.motions, TICKS, FIRST_SEED + seed)
        for seed in range(given.seeds)
    ]
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    network_is = {"network": given.network or "shipped", "iterations": card.iterations}
    run(seeds, network_is, given.results / "experiments" / "2", console)
    return 0


def run(
    seeds: Sequence[Verification], network_is: Mapping[str, object], results: Path, console: Console
) -> list[Row]:
    """Runs the experiment, shows the table, writes table, figures and bag; returns the rows.

    Args:
        seeds: one network beside its rod, each with motions of its own.
        network_is: what the table should tell of the network.
        results: where a directory is made.
        console: for progress and table.
    """
    directory = new_run_directory(results)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("motions", total=len(MOTIONS) * len(seeds))
        deviations, finer = _compared(seeds, directory, lambda: bar.advance(task))
        bar.update(task, description="time of a step")
        times = step_times(seeds[0].network, seeds[0].rod)
    rows = [*table_iv(deviations, finer), *table_v(times)]
    robot, count = seeds[0].rod.robot, seeds[0].count
    print_table(console, f"softcr experiment 2, {robot.name}", rows)
    about = {
        "experiment": "2",
        "robot": robot.name,
        "seeds": len(seeds),
        "motions": count,
        **network_is,
        "load": os.getloadavg()[0],  # of others, too: it lengthens the times
        "machine": describe_machine(),
    }
    path = write_table(directory, about, rows)
    point_latest_to(directory)
    say(console, f"results: {path}")
    return rows


def _compared(
    seeds: Sequence[Verification], directory: Path, progress: Callable[[], None]
) -> tuple[Deviations, dict[str, list[tuple[float, float]]]]:
    """Deviations, and distances from a finer rod [mm]: of the network, of its rod."""
    deviations: Deviations = {name: [] for name in MOTIONS}
    finer: dict[str, list[tuple[float, float]]] = {PUBLISHED: []}
    horizons = {}
    for number, verification in enumerate(seeds):
        for name in MOTIONS:
            motions = verification.motions(name)
            deviation, states = verification.table(motions)
            deviations[name].append(deviation)
            if name in finer:
                finer[name].append(verification.from_finer_rod(motions, states, FINER))
            if number == 0:
                horizons[name] = verification.over_horizon(motions, HORIZONS)
            if number == 0 and name == PUBLISHED:
                figures.draw_states(states[0], motions.states[0, 1:], verification, directory)
                _write_bag(directory, verification, motions, states)
            progress()
    figures.draw_horizons(HORIZONS, horizons, directory)
    return deviations, finer


def _write_bag(
    directory: Path, verification: Verification, motions: Trajectories, states: np.ndarray
) -> None:
    """The first motion: the rod as the truth, the network as the estimate."""
    write_motion_bag(
        directory / "bags" / "motion",
        verification.rod,
        motions.parameters[0],
        motions.levels.end[0, : states.shape[1]],
        motions.states[0, 1:].astype(float),
        states[0].astype(float),
        verification.network.period,
    )


def table_iv(
    deviations: Mapping[str, Sequence[Deviation]],
    finer: Mapping[str, Sequence[tuple[float, float]]],
) -> list[Row]:
    """Mean and standard deviation along the motions, each a mean over the seeds."""
    rows = []
    for name, found in deviations.items():
        for (quantity, unit, field), (paper, must, goal) in zip(
            QUANTITIES, ASKED[name], strict=True
        ):
            means, spreads = np.array([getattr(one, field) for one in found]).T
            rows.append(_row(name, "network", quantity, paper, means, unit, must, goal))
            paper_sd = PUBLISHED_SD[quantity] if name == PUBLISHED else None
            rows.append(_row(name, "network", f"{quantity}, SD", paper_sd, spreads, unit))
    for name, pairs in finer.items():
        network, rod = np.array(pairs).T
        case = f"{name}, from a rod of {FINER} intervals"
        rows.append(_row(case, "network", "tip position", None, network, "mm"))
        rows.append(_row(case, "its rod", "tip position", PUBLISHED_MODEL_MM, rod, "mm"))
    return rows


def table_v(times: Sequence[StepTime]) -> list[Row]:
    """Milliseconds of whole batches."""
    return [
        _row(f"batch {one.batch}", one.way, "median time", _published_ms(one),
             np.array([one.median_ms]), "ms")
        for one in times
    ]  # fmt: skip


def _published_ms(time: StepTime) -> float | None:
    """Of single steps: ode23s beside the exact rod, the network beside the network."""
    if time.way.startswith("exact rod, ") and time.batch == 1:
        return PUBLISHED_ODE_MS
    if time.way.startswith("network") and "steps" not in time.way:
        return PUBLISHED_BATCH_MS.get(time.batch)
    return None


def _row(
    case: str,
    method: str,
    quantity: str,
    paper: float | None,
    values: np.ndarray,
    unit: str,
    must: float | None = None,
    goal: float | None = None,
) -> Row:
    mean, spread = float(values.mean()), float(values.std())
    return Row(case, method, quantity, paper, mean, spread, unit, len(values), must, goal)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr experiment 2",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--seeds", type=positive, default=5, help="sets of motions (%(default)s)")
    parser.add_argument(
        "--motions", type=positive, default=4, help="of 10 s per family and seed (%(default)s)"
    )
    parser.add_argument("--robot", default="licher2025", help="name or YAML file (%(default)s)")
    parser.add_argument("--network", default="", help="path without ending (the robot's shipped)")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), help="directory (default: results)"
    )
    return parser

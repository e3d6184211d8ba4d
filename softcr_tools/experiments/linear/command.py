"""Experiment 1 of Licher et al. 2025, Sec. III-G: the linearised rod (31) beside the rod.

Both start vented and at rest and follow the same sequence of pressure steps, smoothed by a low-pass
of 4 Hz, at 10 to 80 kPa. The paper prints neither its sequence nor the filter's order: here every
combination of chambers is at the amplitude for a second, in an order that the seed draws, then all
are vented; the filter is of first order. The paper's Fig. 4a is a graph, so no figure stands beside
ours; its two statements can be judged: good accordance below 10 mm of deflection (the smallest
amplitude deflects about so far), and errors that grow faster than the amplitude (an exponent above
1).
"""

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from scipy.signal import cont2discrete, lfilter
from threadpoolctl import threadpool_limits

from softcr_models import CosseratRod, Robot, load_robot
from softcr_models.linear_rod import LinearRod
from softcr_models.prediction import RodPrediction
from softcr_models.rod.kernel import MAX_INTERVALS
from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_studies.machine import describe_machine
from softcr_tools.experiments.linear import figures
from softcr_tools.experiments.motion_bag import write_motion_bag
from softcr_tools.experiments.results import TABLE_WIDTH, Row, print_table, write_table

# [Pa]; the first is not the paper's
AMPLITUDES = (1.5e3, *(10e3 * number for number in range(1, 9)))
CUTOFF = 4.0  # of the low-pass [Hz]
HOLD = 1.0  # of a step [s]
PERIOD = 1 / 70
AXES = "xyz"


@dataclass(frozen=True, eq=False)
class Motions:
    """One seed; an amplitude per row.

    Attributes:
        times: (T,) [s].
        pressures: (A, T, m) [Pa].
        states, linear_states: (A, T, nx).
        tips, linear_tips: (A, T, 3) [m], base frame.
    """

    times: np.ndarray
    pressures: np.ndarray
    states: np.ndarray
    linear_states: np.ndarray
    tips: np.ndarray
    linear_tips: np.ndarray

    @property
    def errors_mm(self) -> np.ndarray:
        """(A, 3) mean absolute error of each coordinate [mm]."""
        return 1e3 * np.abs(self.linear_tips - self.tips).mean(axis=1)

    @property
    def deflections_mm(self) -> np.ndarray:
        """(A,) how far the rod's tip gets from rest [mm]."""
        away = self.tips - self.tips[:, :1]
        return 1e3 * np.linalg.norm(away, axis=2).max(axis=1)


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment 1`; returns the exit code.

    Raises:
        UserError: an unknown robot, or a results directory that cannot be written.
    """
    given = _parser().parse_args(arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    rod = CosseratRod(load_robot(given.robot), given.intervals)
    run(rod, given.seeds, given.results / "experiments" / "1", console)
    return 0


def run(rod: CosseratRod, seeds: int, results: Path, console: Console) -> list[Row]:
    """Runs the experiment, shows the table, writes table, figures and bag; returns the rows."""
    directory = new_run_directory(results)
    columns = TextColumn("sequences"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    linear = LinearRod(rod, np.zeros(rod.input_size))
    found = []
    with threadpool_limits(limits=1, user_api="blas"), Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=seeds)
        for seed in range(seeds):
            found.append(moved(linear, sequence(rod.robot, seed)))
            bar.advance(task)
    rows = rows_of(found)
    print_table(console, f"softcr experiment 1, {rod.robot.name}", rows)
    first = found[0]
    figures.draw_errors(directory / "errors.png", AMPLITUDES, [m.errors_mm for m in found])
    figures.draw_motion(
        directory / "motion.png", AMPLITUDES[-1], first.times, first.tips[-1], first.linear_tips[-1]
    )
    write_motion_bag(
        directory / "bags" / f"steps_{1e-3 * AMPLITUDES[-1]:.0f}_kpa",
        rod,
        rod.nominal_parameters,
        first.pressures[-1],
        first.states[-1],
        first.linear_states[-1],
        PERIOD,
        first.linear_tips[-1],
    )
    path = write_table(directory, _about(rod, seeds), rows)
    point_latest_to(directory)
    say(console, f"results: {path}")
    return rows


def sequence(robot: Robot, seed: int) -> np.ndarray:
    """(T, m) smoothed steps between 0 and 1, a row per PERIOD; the first row is 0."""
    masks = np.array(list(itertools.product((0, 1), repeat=len(robot.chambers))))
    order = np.random.default_rng(seed).permutation(masks[1:])
    levels = np.vstack([order, masks[:1]]).repeat(round(HOLD / PERIOD), axis=0)
    pole = 2 * np.pi * CUTOFF
    numerator, denominator, _ = cont2discrete(([pole], [1.0, pole]), PERIOD)
    smoothed: np.ndarray = lfilter(numerator.ravel(), denominator, levels.astype(float), axis=0)
    return smoothed


def moved(linear: LinearRod, shape: np.ndarray) -> Motions:
    """Rod and linear model along a sequence (T, m) at each of AMPLITUDES."""
    rod = linear.rod
    pressures = np.array(AMPLITUDES)[:, None, None] * shape
    # with eight sub-steps the time integration is far more exact than the linear model
    prediction = RodPrediction(rod, substeps=8, single_precision=False)
    later = prediction.rollout(linear.state, pressures, rod.nominal_parameters, PERIOD)
    start = np.broadcast_to(linear.state, (len(pressures), 1, len(linear.state)))
    states = np.concatenate([start, later], axis=1)
    flat = states.reshape(-1, rod.state_size)
    tips = prediction.tip_poses(flat, rod.nominal_parameters[None])[:, :, 3]
    own = np.array([linear.motion(one, PERIOD) for one in pressures])
    return Motions(
        PERIOD * np.arange(len(shape)),
        pressures,
        states,
        own,
        tips.reshape(*states.shape[:2], 3),
        linear.tips(own),
    )


def rows_of(found: Sequence[Motions]) -> list[Row]:
    """Errors by amplitude, and how fast they grow, over the seeds."""
    errors = np.array([motions.errors_mm for motions in found])
    deflections = np.array([motions.deflections_mm for motions in found])
    rows = []
    for number, amplitude in enumerate(AMPLITUDES):
        case = f"steps of {1e-3 * amplitude:g} kPa"
        rows.append(_row(case, "rod", "largest deflection", deflections[:, number], "mm"))
        rows += [
            _row(case, "linear", f"MAE {axis}", errors[:, number, column], "mm")
            for column, axis in enumerate(AXES)
        ]
    slopes = np.array([growth(one) for one in errors])
    rows += [
        _row("growth with amplitude", "linear", f"exponent of MAE {axis}", values, "-")
        for axis, values in zip(AXES, slopes.T, strict=True)
    ]
    return rows


def growth(errors: np.ndarray) -> np.ndarray:
    """(3,) exponents of the power of the amplitude that (A, 3) errors grow with."""
    slopes: np.ndarray = np.polyfit(np.log(AMPLITUDES), np.log(errors), 1)[0]
    return slopes


def _row(case: str, method: str, quantity: str, values: np.ndarray, unit: str) -> Row:
    mean, sd = float(values.mean()), float(values.std())
    return Row(case, method, quantity, None, mean, sd, unit, len(values))


def _about(rod: CosseratRod, seeds: int) -> dict[str, object]:
    return {
        "experiment": "1",
        "robot": rod.robot.name,
        "seeds": seeds,
        "intervals": rod.intervals,
        "cutoff_hz": CUTOFF,
        "machine": describe_machine(),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr experiment 1",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--seeds", type=int, choices=range(1, 101), default=5, metavar="N",
                        help="sequences of steps (default: 5)")  # fmt: skip
    parser.add_argument("--intervals", type=int, choices=range(2, MAX_INTERVALS + 1), default=5,
                        metavar="N", help="of the rod (default: 5, the paper's)")  # fmt: skip
    parser.add_argument("--robot", default="licher2025", help="name or YAML file")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), help="directory (default: results)"
    )
    return parser

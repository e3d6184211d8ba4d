"""The command line of `softcr experiment cc-ukf`, and the order of things.

Mehl et al., Sec. IV: a run of 100 s is cut into ten parts, the model is identified on the first,
every filter starts straight and at rest on every part. Part 1 is among the ten, as in the paper; it
starts straight, too, so the other nine are the harder ones.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_models import CosseratRod, Robot, load_robot
from softcr_models.constant_curvature.dynamics import ConstantCurvatureModel
from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_studies.machine import describe_machine
from softcr_tools.experiments.cc_ukf import figures
from softcr_tools.experiments.cc_ukf.contenders import CONTENDERS, REQUIRED, Contender
from softcr_tools.experiments.cc_ukf.correction import OutputCorrection
from softcr_tools.experiments.cc_ukf.identification import identified
from softcr_tools.experiments.cc_ukf.plant import (
    DT,
    SensedRun,
    deflections,
    sensed_run,
    table_one_robot,
)
from softcr_tools.experiments.cc_ukf.rod_contender import RodContender
from softcr_tools.experiments.cc_ukf.scores import Score, Seen, score
from softcr_tools.experiments.cc_ukf.table import plant_rows, rows_of
from softcr_tools.experiments.results import TABLE_WIDTH, Row, print_table, write_table


@dataclass(frozen=True)
class Protocol:
    """What is run.

    Attributes:
        robot: the plant.
        seeds: runs, each with its own frequencies and noise.
        parts: a run is cut into so many.
        seconds: of a part.
        with_rod: whether the rod filter takes part, on the first seed: it takes minutes.
    """

    robot: Robot
    seeds: int = 1
    parts: int = 10
    seconds: float = 10.0
    with_rod: bool = False


@dataclass(frozen=True, eq=False)
class Outcome:
    """One seed: its parts, and for every contender its model, what it saw and scored on them."""

    parts: list[SensedRun]
    models: list[ConstantCurvatureModel]
    seen: list[list[Seen]]
    scores: list[list[Score]]


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment cc-ukf`; returns the exit code.

    Raises:
        UserError: an unknown robot, or a results directory that cannot be written.
    """
    given = _parser().parse_args(arguments)
    robot = table_one_robot() if given.robot is None else load_robot(given.robot)
    protocol = Protocol(robot, given.seeds, given.parts, given.seconds, given.rod)
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    run(protocol, given.results / "experiments" / "cc-ukf", console)
    return 0


def run(protocol: Protocol, results: Path, console: Console) -> list[Row]:
    """Runs the experiment, shows the table, writes table and figures; returns the rows."""
    directory = new_run_directory(results)
    contenders: list[Contender | RodContender] = list(CONTENDERS)
    if protocol.with_rod:
        contenders.append(RodContender(protocol.robot))
    sendings = protocol.seeds * len(CONTENDERS) + protocol.with_rod
    total = sendings * protocol.parts * round(protocol.seconds / DT)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    outcomes = []
    # The matrices are small: BLAS threads would only get in each other's way.
    with threadpool_limits(limits=1, user_api="blas"), Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=total)
        for seed in range(protocol.seeds):
            bar.update(task, description=f"seed {seed}: plant")
            present = contenders if seed == 0 else contenders[: len(CONTENDERS)]
            outcomes.append(_outcome(protocol, seed, present, bar, task))
    rows = _rows(protocol, outcomes, contenders)
    first = outcomes[0]
    print_table(console, f"softcr experiment cc-ukf, {protocol.robot.name}", rows)
    _draw(first, contenders, directory)
    path = write_table(directory, _about(protocol, contenders, first), rows)
    point_latest_to(directory)
    say(console, f"results: {path}")
    return rows


def _outcome(
    protocol: Protocol,
    seed: int,
    contenders: Sequence[Contender | RodContender],
    bar: Progress,
    task: TaskID,
) -> Outcome:
    nominal = ConstantCurvatureModel.of_robot(protocol.robot)
    base_height = CosseratRod(protocol.robot, 1).base_height
    samples = round(protocol.seconds / DT)
    whole = sensed_run(protocol.robot, nominal, protocol.parts * protocol.seconds, seed)
    parts = [
        whole.part(number * samples + 1, (number + 1) * samples + 1)
        for number in range(protocol.parts)
    ]
    models, seen = [], []
    for contender in contenders:
        bar.update(task, description=f"seed {seed}: {contender.name}")
        model = identified(nominal, parts[0], base_height, contender.share_mass)
        models.append(model)
        found = [
            contender.see(part, model, base_height, lambda: bar.advance(task)) for part in parts
        ]
        if contender.corrected:
            correction = OutputCorrection.fitted(model, parts[0], found[0])
            found = [correction.applied(*pair) for pair in zip(parts, found, strict=True)]
        seen.append(found)
    scores = [[score(*pair) for pair in zip(parts, each, strict=True)] for each in seen]
    return Outcome(parts, models, seen, scores)


def _rows(
    protocol: Protocol,
    outcomes: Sequence[Outcome],
    contenders: Sequence[Contender | RodContender],
) -> list[Row]:
    length = protocol.robot.length
    largest = np.array(
        [
            [
                max(1e3 * deflections(part.tips, length).max() for part in outcome.parts),
                max(1e3 * np.linalg.norm(p.velocities, axis=1).max() for p in outcome.parts),
            ]
            for outcome in outcomes
        ]
    )
    rows = plant_rows(f"{protocol.parts} parts of {protocol.seconds:g} s", largest)
    for number, contender in enumerate(contenders):
        by_seed = [outcome.scores[number] for outcome in outcomes if number < len(outcome.scores)]
        rows += rows_of(contender.case, contender.name, by_seed, required=number == REQUIRED)
    return rows


def _draw(
    outcome: Outcome, contenders: Sequence[Contender | RodContender], directory: Path
) -> None:
    means = [part.nrmse.mean() for part in outcome.scores[REQUIRED]]
    worst = int(np.argmax(means))
    figures.draw_part(
        outcome.parts[worst],
        outcome.seen[REQUIRED][worst],
        f"{contenders[REQUIRED].name}, worst part {worst + 1}: mean NRMSE {means[worst]:.1f} %",
        directory / "worst_part.png",
    )
    titles = [f"{contender.name}; {contender.case}" for contender in contenders]
    figures.draw_tip_errors(
        outcome.parts, dict(zip(titles, outcome.seen, strict=True)), directory / "tip_errors.png"
    )


def _about(
    protocol: Protocol, contenders: Sequence[Contender | RodContender], outcome: Outcome
) -> dict[str, object]:
    fitted = (
        "mass", "tip_mass", "bending_stiffness", "bending_damping",
        "elongation_stiffness", "elongation_damping",
    )  # fmt: skip
    return {
        "machine": describe_machine(),
        "robot": protocol.robot.model_dump(mode="json"),
        "models_of_seed_0": {
            contender.name: {key: getattr(model, key) for key in fitted}
            for contender, model in zip(contenders, outcome.models, strict=True)
            if contender.case == contenders[REQUIRED].case
        },
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr experiment cc-ukf",
        description="Table II of Mehl et al. on our Cosserat rod: unscented and "
        "extended constant-curvature filters see its motion through the base sensor. About a "
        "minute per seed.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--seeds", type=_positive, default=3, metavar="N",
        help="runs, each with its own frequencies and noise (default: 3)",
    )  # fmt: skip
    parser.add_argument(
        "--robot", metavar="NAME",
        help="plant, a name in config/robots or a path (default: Mehl et al., Table I)",
    )  # fmt: skip
    parser.add_argument(
        "--parts", type=_positive, default=10, metavar="N", help="per run (default: 10)"
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=10.0, metavar="S", help="of a part (default: 10)"
    )
    parser.add_argument(
        "--rod",
        action="store_true",
        help="with a filter whose model is the Cosserat rod, on the first seed; minutes",
    )
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIRECTORY",
        help="experiments/cc-ukf is written below it (default: results)",
    )  # fmt: skip
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: a whole number from 1 on")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0.5 <= value <= 1000.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: 0.5 to 1000 seconds")
    return value

"""The command line of `softcr experiment 3 ... 6`, and the order of things.

The plant is never the model: 20 intervals against 5, 5 % stiffer and 10 % heavier at the tip unless
a case says otherwise, pressure lag, 0.2 mm tip noise, one cycle of delay. Every case runs with both
shipped controllers and the paper's rival, on the same seeds. The rival, a Koopman regulator, first
learns from 15 minutes of the plant itself, once (it is kept in ~/.cache/softcr/koopman). Beside
table and figures stand bags of the first seed, for `softcr report` and `softcr replay`. The map of
robustness, which takes longest, goes on where it was stopped; instead of bags it keeps its runs.
"""

import argparse
import dataclasses
import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_control.koopman_file import KoopmanDesign
from softcr_control.references import SampledReference
from softcr_models import Robot, load_robot
from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_studies.machine import describe_machine
from softcr_tools.experiments.results import TABLE_WIDTH, Row, print_table, write_table
from softcr_tools.experiments.tracking import calibration, compliance, figures, robustness
from softcr_tools.experiments.tracking.cases import (
    EXPERIMENTS,
    RATE_HZ,
    RIVAL,
    Case,
    Difference,
)
from softcr_tools.experiments.tracking.kept_runs import KeptRuns, Run
from softcr_tools.experiments.tracking.koopman import FULL, Recipe, cached, work
from softcr_tools.experiments.tracking.loop import (
    MODEL_INTERVALS,
    PERIOD,
    Trace,
    plant_of,
    run_loop,
    sampled_reference,
)
from softcr_tools.experiments.tracking.table import adaptation_rows, rows_of, settled_error_mm

COMPLIANCE, ADAPTATION, ROBUSTNESS = "3", "6", "robustness"
NAMES = (COMPLIANCE, *EXPERIMENTS, ROBUSTNESS)


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment`, the name first; returns the exit code.

    Raises:
        UserError: an unknown robot, or a results directory that cannot be written.
    """
    given = _parser(arguments[0] if arguments else "").parse_args(arguments)
    robot = load_robot(given.robot)
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    run(given.name, robot, given.seeds, given.results / "experiments" / given.name, console)
    return 0


def run(
    name: str,
    robot: Robot,
    seeds: int,
    results: Path,
    console: Console,
    shortest: float = 0.0,
    recipe: Recipe = FULL,
) -> list[Row]:
    """Runs one experiment, shows the table, writes table, figures and bags; returns the rows.

    Args:
        shortest: if above 0, runs last only so long [s]: for who wants to see that it works.
        recipe: of the rival.
    """
    directory = new_run_directory(results)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with threadpool_limits(limits=1, user_api="blas"), Progress(*columns, console=console) as bar:
        if name == COMPLIANCE:
            rows = _find_compliance(robot, seeds, shortest or compliance.DURATION, directory, bar)
        elif name == ROBUSTNESS:
            rows = _vary(robot, seeds, shortest, directory, bar, recipe)
        else:
            rows = _track(name, robot, seeds, shortest, directory, bar, recipe)
    print_table(console, f"softcr experiment {name}, {robot.name}", rows)
    path = write_table(directory, _about(name, robot, seeds), rows)
    point_latest_to(directory)
    say(console, f"results: {path}")
    return rows


def _find_compliance(
    robot: Robot, seeds: int, duration: float, directory: Path, bar: Progress
) -> list[Row]:
    task = bar.add_task("filter", total=seeds * round(duration / PERIOD))
    searches = [
        compliance.search(
            robot, seed, duration, lambda cycles: bar.advance(task, cycles),
            None if seed else directory / "bags" / "filter",
        )
        for seed in range(seeds)
    ]  # fmt: skip
    figures.draw_searches(directory / "compliance.png", searches)
    return compliance.rows_of(searches)


def _track(
    name: str,
    robot: Robot,
    seeds: int,
    shortest: float,
    directory: Path,
    bar: Progress,
    recipe: Recipe,
) -> list[Row]:
    cases = [_shortened(case, shortest) for case in EXPERIMENTS[name]]
    traces = _traces(robot, cases, seeds, bar, recipe, directory / "bags")
    for case in cases:
        shown = {controller: traces[case.name, controller][0] for controller in case.controllers}
        figures.draw_case(directory / f"{_file_name(case.name)}.png", case.name, shown)
    rows = rows_of(cases, traces)
    return [*rows, *adaptation_rows(traces)] if name == ADAPTATION else rows


def _vary(
    robot: Robot, seeds: int, shortest: float, directory: Path, bar: Progress, recipe: Recipe
) -> list[Row]:
    """The map; runs are kept beside its directories until it is whole."""
    axes = robustness.axes()
    cases = [_shortened(case, shortest) for case in robustness.cases_of(axes)]
    kept = KeptRuns(directory.parent / "unfinished.jsonl", robot)
    for run, trace in _runs(robot, cases, seeds, bar, recipe, known=kept.__contains__):
        kept.add(run, settled_error_mm(trace))
    errors = {
        (case.name, controller): [kept[case, controller, seed] for seed in range(seeds)]
        for case in cases
        for controller in case.controllers
    }
    robustness.draw(directory / calibration.FIGURE, axes, errors)
    rows = robustness.rows_of(axes, errors)
    kept.finish(directory / "runs.jsonl")
    return rows


def _traces(
    robot: Robot, cases: Sequence[Case], seeds: int, bar: Progress, recipe: Recipe, bags: Path
) -> dict[tuple[str, str], list[Trace]]:
    """(name of the case, controller) -> a trace per seed."""
    traces: dict[tuple[str, str], list[Trace]] = {}
    for (case, controller, _), trace in _runs(robot, cases, seeds, bar, recipe, bags):
        traces.setdefault((case.name, controller), []).append(trace)
    return traces


def _runs(
    robot: Robot,
    cases: Sequence[Case],
    seeds: int,
    bar: Progress,
    recipe: Recipe,
    bags: Path | None = None,
    known: Callable[[Run], bool] = lambda run: False,
) -> Iterator[tuple[Run, Trace]]:
    """Every run that is not known, seed by seed; a bag of each first one into `bags`.

    Nodes run at one rate: of cases at another no bag is kept.
    """
    rivals = _rivals(robot, cases, bar, recipe)
    cycles = sum(len(case.controllers) * round(case.duration / case.period) for case in cases)
    task = bar.add_task("", total=seeds * cycles)
    sources: dict[str, SampledReference] = {}
    for seed, case in itertools.product(range(seeds), cases):
        source = _reference(robot, case, sources)
        for controller in case.controllers:
            run = case, controller, seed
            bar.update(task, description=f"{case.name}, {controller}")
            if known(run):
                bar.advance(task, round(case.duration / case.period))
                continue
            kept = seed == 0 and bags is not None and case.rate_hz == RATE_HZ
            yield run, run_loop(
                robot, case, source, controller, seed, time.perf_counter,
                lambda cycles: bar.advance(task, cycles), rivals.get(_teacher(case)),
                bag=bags / f"{_file_name(case.name)}-{controller}" if kept and bags else None,
            )  # fmt: skip


def _rivals(
    robot: Robot, cases: Sequence[Case], bar: Progress, recipe: Recipe
) -> dict[Difference, KoopmanDesign]:
    """What the rival learned from each plant, made now or before."""
    teachers = dict.fromkeys(_teacher(case) for case in cases if RIVAL in case.controllers)
    task = bar.add_task("koopman", total=len(teachers) * work(recipe))
    rivals = {}
    for number, teacher in enumerate(teachers):

        def begun(what: str) -> None:
            bar.update(task, description=what, advance=1)

        rivals[teacher] = cached(robot, teacher, recipe, begun)
        bar.update(task, completed=(number + 1) * work(recipe))
    return rivals


def _teacher(case: Case) -> Difference:
    """The plant the rival learns from."""
    return case.difference if case.learned_on is None else case.learned_on


def _shortened(case: Case, shortest: float) -> Case:
    if not shortest:
        return case
    return dataclasses.replace(case, duration=shortest)


def _reference(robot: Robot, case: Case, made: dict[str, SampledReference]) -> SampledReference:
    """The case's reference; many cases have the same, it is made once."""
    settings = case.reference.model_copy(update={"duration": case.duration + 1.0})
    maker = plant_of(robot, case.difference, 0).rod.robot if case.from_plant else robot
    key = repr((maker, settings, case.period, case.model_intervals))
    if key not in made:
        made[key] = sampled_reference(maker, settings, case.period, case.model_intervals)
    return made[key]


def _about(name: str, robot: Robot, seeds: int) -> dict[str, object]:
    about = {"axes": robustness.described()} if name == ROBUSTNESS else {}
    return {
        **about,
        "experiment": name,
        "robot": robot.name,
        "seeds": seeds,
        "plant_intervals": Difference().intervals,
        "model_intervals": MODEL_INTERVALS,
        "tip_noise_mm": 1e3 * Difference().tip_noise,
        "rate_hz": 1.0 / PERIOD,
        "machine": describe_machine(),
    }


def _file_name(case: str) -> str:
    return re.sub(r"\W+", "_", case).strip("_")


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr experiment",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("name", choices=NAMES, help=argparse.SUPPRESS)
    parser.usage = f"softcr experiment {name} [--seeds N] [--robot ROBOT] [--results DIRECTORY]"
    parser.add_argument("--seeds", type=_count, default=5, help="runs of each (default: 5)")
    parser.add_argument("--robot", default="licher2025", help="name or YAML file")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), help="directory (default: results)"
    )
    return parser


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 1")
    return count

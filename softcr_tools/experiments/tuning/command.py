"""The command line of `softcr tune`.

filter   noises and sigma points of the UKF by particle swarm with the cost of Licher et al. (38)
nempc    quotas, mutation, segments and rate weight of an NEMPC by Bayesian optimisation
weights  the state weights of an NEMPC, likewise, once its other numbers are chosen
rod_mpc  knots, rate weight and damping of the gradient MPC, likewise
pages    page and figure of each study kept in config/studies, into docs/studies

The plant is never the model. What comes out best is tried again at full effort with what the search
began with; the better one is judged, beside the shipped values, on seeds and motions that neither
saw. No setting is changed: the values are written down for a person to take over, or not. The same
command goes on with a search that was stopped.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_learning.studies import importance
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_runtime.console import say, step
from softcr_runtime.registry import GRADIENT_MPC
from softcr_studies.machine import describe_machine
from softcr_tools.experiments.results import TABLE_WIDTH, print_table, write_table
from softcr_tools.experiments.tuning import report, study
from softcr_tools.experiments.tuning.controller_subject import controller_subject
from softcr_tools.experiments.tuning.filter_subject import filter_subject
from softcr_tools.experiments.tuning.study import Search
from softcr_tools.experiments.tuning.subject import (
    FINAL_SEEDS,
    FIRST_HELD_OUT,
    SEARCH_SEED,
    Effort,
    Subject,
    rows_of,
)

TRIALS = {"filter": 96, "nempc": 50, "weights": 50, GRADIENT_MPC: 50}
CONTROLLERS = {"nempc": "nempc", "weights": "nempc_licher2025", GRADIENT_MPC: GRADIENT_MPC}
PAGES, STUDIES = "pages", Path("config/studies")
# The best, and others whose ranks tell what the search's short runs are worth.
FINALISTS, SPREAD = 2, 2


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr tune`; returns the exit code.

    Raises:
        UserError: a robot, a controller file or a journal that cannot be used.
    """
    given = _parser().parse_args(arguments)
    if given.what == PAGES:
        return _write_pages(given.output or Path("docs/studies"))
    given.trials = given.trials or TRIALS[given.what]
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    effort = Effort(population=given.population)
    tune(given, effort, console)
    return 0


def tune(given: argparse.Namespace, effort: Effort, console: Console) -> dict[str, Any]:
    """Searches, judges, writes; returns the tuned values.

    Raises:
        UserError: see `main`, or no candidate came to its end.
    """
    output = given.output or Path("results/tuning") / given.what
    output.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1, user_api="blas"), step(console, "recording the plant"):
        subject = _subject(given, effort)
    search = _search(given, subject)
    found = study.opened(search, output / "study.journal")
    with threadpool_limits(1, user_api="blas"), _bar(console) as bar:
        _run(found, search, subject, given, bar)
        finalists = _finalists(found)
        finals = _final_costs(finalists, subject, given.workers, bar)
        best = finalists[finals.index(min(finals))]
        tuned = dict(best.params)
        rows = rows_of(_judge(subject, tuned, given.seeds, bar), given.seeds) if given.seeds else []
    about = _about(given, finalists, finals)
    about["parameters"] = report.parameter_table(
        subject.space, subject.shipped, tuned, importance(study.ranked(found))
    )
    report.print_parameters(console, f"softcr tune {given.what}", about["parameters"])
    say(console, f"ranks of the search and at full effort correlate by {about['rank correlation']}")
    if rows:
        print_table(console, f"{given.what} on seeds and motions that the search never saw", rows)
        write_table(output, about, rows)
    study.write_record(found, search, output / "study.json", about, rows)
    _write_page(output / "study.json", output)
    subject.write(tuned, output / "tuned.yaml")
    if best.number == 0:
        say(console, "nothing better was found than what the search began with")
    say(console, f"results: {output}")
    return tuned


def _about(
    given: argparse.Namespace, finalists: Sequence[FrozenTrial], finals: Sequence[float]
) -> dict[str, Any]:
    costs = {f"trial {t.number}": study.number(f) for t, f in zip(finalists, finals, strict=True)}
    return {
        "command": f"softcr tune {_told(given)}",
        "machine": describe_machine(),
        "seed of the search's runs": SEARCH_SEED,
        "seeds at full effort": list(FINAL_SEEDS),
        "first seed of the judgement": FIRST_HELD_OUT,
        "cost at full effort": costs,
        "rank correlation": report.rank_correlation([t.value or 0.0 for t in finalists], finals),
        "chosen": finalists[finals.index(min(finals))].number,
    }


def _write_pages(output: Path) -> int:
    """Page and figure of every kept study."""
    kept = sorted(STUDIES.glob("*.json"))
    if not kept:
        raise UserError(f"tune: no study in {STUDIES}: to be called where the sources are")
    output.mkdir(parents=True, exist_ok=True)
    for path in kept:
        _write_page(path, output)
        say(Console(), f"page: {output / path.stem}.md")
    return 0


def _write_page(record: Path, output: Path) -> None:
    content = json.loads(record.read_text(encoding="utf-8"))
    report.draw(output / f"{record.stem}.png", content)
    page = report.page(record.stem, content)
    (output / f"{record.stem}.md").write_text(page, encoding="utf-8")


def _subject(given: argparse.Namespace, effort: Effort) -> Subject:
    robot = load_robot(given.robot)
    if given.what == "filter":
        return filter_subject(robot, effort)
    shipped = CONTROLLERS[given.what]
    return controller_subject(
        robot, given.what, given.controller or shipped, given.against or shipped, effort
    )


def _search(given: argparse.Namespace, subject: Subject) -> Search:
    described = {"robot": given.robot, **subject.described}
    return Search(given.what, subject.space, subject.start, subject.swarm, given.seed, described)


def _run(
    found: optuna.Study, search: Search, subject: Subject, given: argparse.Namespace, bar: Progress
) -> None:
    task = bar.add_task("search", total=given.trials)
    with study.evaluator(subject.cost, given.workers) as costs:
        study.run(
            found, search, costs, given.trials, given.workers,
            lambda done: bar.update(task, completed=done),
        )  # fmt: skip


def _finalists(found: optuna.Study) -> list[FrozenTrial]:
    """The first trial, the best ones, and some of the better half."""
    ranked = study.ranked(found)
    if not ranked:
        raise UserError("tune: no candidate came to its end")
    better = ranked[FINALISTS : max(FINALISTS, len(ranked) // 2)]
    chosen = [*ranked[:FINALISTS], *better[:: max(1, len(better) // SPREAD)][:SPREAD]]
    first = [trial for trial in ranked if trial.number == 0 and trial not in chosen]
    return [*first, *chosen]


def _final_costs(
    finalists: Sequence[FrozenTrial], subject: Subject, workers: int, bar: Progress
) -> list[float]:
    task = bar.add_task("again, at full effort", total=len(finalists))
    finals = []
    with study.evaluator(subject.final_cost, workers) as costs:
        for cost in costs([trial.params for trial in finalists]):
            finals.append(cost)
            bar.advance(task)
    return finals


def _judge(subject: Subject, tuned: dict[str, Any], seeds: int, bar: Progress) -> dict[str, Any]:
    contenders = subject.contenders(tuned)
    task = bar.add_task("never seen", total=len(contenders) * seeds * subject.runs)
    held_out = range(FIRST_HELD_OUT, FIRST_HELD_OUT + seeds)

    def advance() -> None:
        bar.advance(task)

    return {
        name: subject.judge(contender, held_out, advance) for name, contender in contenders.items()
    }


def _bar(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    return Progress(*columns, console=console)


def _told(given: argparse.Namespace) -> str:
    """The command that makes the same study again."""
    parser = _parser()
    options = [
        f"--{name} {value}"
        for name, value in vars(given).items()
        if name not in ("what", "workers") and value != parser.get_default(name)
    ]
    return " ".join([given.what, *options])


def _count(lowest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            count = int(text)
        except ValueError:
            count = lowest - 1
        if count < lowest:
            raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from {lowest} on")
        return count

    return parse


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr tune",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("what", choices=(*TRIALS, PAGES), help="see above")
    parser.add_argument(
        "--controller", default="", metavar="FILE",
        help="controller to begin with: a name or a YAML file (nempc; weights: nempc_licher2025)",
    )  # fmt: skip
    parser.add_argument(
        "--against", default="", metavar="FILE",
        help="controller that is judged beside the tuned one (the shipped one)",
    )  # fmt: skip
    trials = ", ".join(f"{name} {count}" for name, count in TRIALS.items())
    parser.add_argument(
        "--trials", type=_count(1), default=0, help=f"of the search in all ({trials})"
    )
    parser.add_argument("--workers", type=_count(1), default=1, help="processes (%(default)s)")
    parser.add_argument(
        "--seeds", type=_count(0), default=5, help="of the last judgement; 0: none (%(default)s)"
    )
    parser.add_argument(
        "--population", type=_count(8), default=Effort().population,
        help="of an NEMPC during the search (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--seed", type=_count(0), default=0, help="of the search (%(default)s)")
    parser.add_argument("--robot", default="licher2025", help="name or YAML file (%(default)s)")
    parser.add_argument(
        "--output",
        type=Path,
        default=None,
        help="directory (results/tuning/WHAT; of pages docs/studies)",
    )
    return parser

"""The report of a recorded run: summary.json, report.html and figures, from the bag alone."""

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from softcr_models.errors import UserError
from softcr_models.files.small_files import content_of, parsed_json
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.recorded_files import recorded_code
from softcr_runtime.bags.robots import robot_bag
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.bags.told_values import told_of_system
from softcr_runtime.bags.whole_files import write_whole
from softcr_runtime.console.terminal import say, shown
from softcr_runtime.settings.command_line import command
from softcr_runtime.wire.namespaces import Namespace
from softcr_tools.report.figures import draw_figures
from softcr_tools.report.page import Summary
from softcr_tools.report.run import Run
from softcr_tools.report.samples import write_samples
from softcr_tools.report.sections import summarize


def build(bag: Path, output: Path, namespace: str | None = None) -> Summary:
    """Write the report of a run of any system.

    Args:
        bag: a bag directory, one of its files, or a run's directory with a bag in `bag/`.
        output: directory for summary.json, report.html and figures/*.png; made if needed.
        namespace: of the robot; None: the bag holds one alone.

    Raises:
        UserError: there is no readable bag, or `output` cannot be written.
    """
    opened = robot_bag(bag, namespace)
    run = _run_of(opened)
    summary = summarize(run)
    try:
        output.mkdir(parents=True, exist_ok=True)
        page = summary.html(draw_figures(run, output / "figures"), recorded_code(opened))
        content = json.dumps(summary.numbers, indent=2, allow_nan=False)
        # a folder that came with a bag may hold links to files of this machine
        write_whole(output / "summary.json", content + "\n")
        write_whole(output / "report.html", page)
    except OSError as error:
        raise UserError(f"cannot write the report to {output}: {error.strerror}") from None
    return summary


@command
def report(
    bag: Path,
    /,
    *,
    output: Path | None = None,
    csv: Path | None = None,
    namespace: Namespace | None = None,
) -> int:
    """Compute the report of a recorded run again.

    Args:
        bag: a bag, or the directory of a run with its bag in bag/.
        output: output directory; by default the run's directory, or NAME_report beside a bag
            NAME.
        csv: file to which samples are written instead of a report: a line for each time stamp,
            and columns, with units, of inputs, commands, measured tip, reference and estimate.
            softcr identify reads it.
        namespace: namespace of the robot, in a bag with several.

    Raises:
        UserError: there is no readable bag, or the report cannot be written.
    """
    console = Console()
    if csv is not None:
        if output is not None:
            raise UserError("options --csv and --output exclude each other: --csv makes no report")
        with shown(console, f"reading {bag}"):
            run = _run_of(robot_bag(bag, namespace))
        lines = write_samples(run, csv)
        for problem in run.bag.problems:
            say(console, f"warning: {problem}")
        say(console, f"samples: {csv}, {lines} lines")
        return 0
    output = output or _home_of(bag.resolve())
    with shown(console, f"reading {bag}"):
        summary = build(bag, output, namespace)
    console.print(summary.table())
    say(console, f"report: {output / 'report.html'}")
    return 0


def _run_of(bag: Bag) -> Run:
    return Run(read_signals(bag), _system_beside(bag.path))


def _home_of(bag: Path) -> Path:
    """The directory of the run; a bag recorded elsewhere gets a directory beside it."""
    if (bag / "bag").is_dir():
        return bag
    return bag.parent if bag.name == "bag" else bag.parent / f"{bag.stem}_report"


def _system_beside(bag: Path) -> dict[str, Any]:
    """What the supervisor wrote of the run; empty when it is not there or not readable."""
    try:
        return told_of_system(parsed_json(content_of(bag.parent / "system.json")))
    except (OSError, ValueError, UserError):
        return {}

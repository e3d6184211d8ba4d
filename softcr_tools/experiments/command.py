"""The command line of `softcr experiment`: which experiment, and its own options.

A new experiment is a package or module here with `main(arguments) -> exit code`, and a line in
EXPERIMENTS; it writes its rows with `results.write_table`.
"""

import argparse
import importlib
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Experiment:
    """What the list of experiments says.

    Attributes:
        module: below softcr_tools.experiments; imported when the experiment runs.
        summary: one line.
        arguments: what the module's command line begins with.
        needs_data: whether it needs recordings that are not in the repository, so not part of all.
    """

    module: str
    summary: str
    arguments: tuple[str, ...] = ()
    needs_data: bool = False


EXPERIMENTS = {
    "all": Experiment("collected", "every one of them, then one page", ("all",)),
    "report": Experiment("collected", "the pages of what has been run", ("report",)),
}


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment`; returns the exit code.

    Raises:
        UserError: what the experiment refuses.
    """
    chosen = _parser().parse_args(arguments)
    return run_experiment(chosen.experiment, chosen.arguments)


def run_experiment(name: str, arguments: Sequence[str]) -> int:
    """One experiment of the list with its own arguments; returns the exit code."""
    experiment = EXPERIMENTS[name]
    module = importlib.import_module(f"softcr_tools.experiments.{experiment.module}")
    code: int = module.main([*experiment.arguments, *arguments])
    return code


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:18}{entry.summary}" for name, entry in EXPERIMENTS.items())
    parser = argparse.ArgumentParser(
        prog="softcr experiment",
        description="Runs a published experiment again on our plants; tables and figures go to "
        "results/experiments/NAME/latest.",
        epilog=f"experiments:\n{listed}\n\nsoftcr experiment NAME --help tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("experiment", choices=EXPERIMENTS, metavar="NAME", help="see below")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its own")
    return parser

"""The `softcr` command: `softcr COMMAND ...`, each command with a parser of its own."""

import argparse
import importlib.metadata
import sys
from collections.abc import Callable, Sequence

from softcr_runtime.console import USER_ERROR, complain

INTERRUPTED = 130

# What a command needs is imported when it runs, so that --help answers at once.


def _up(arguments: Sequence[str]) -> int:
    """start a system of nodes, record it, report on it"""
    from softcr_tools import up

    return up.main(arguments)


def _report(arguments: Sequence[str]) -> int:
    """compute the report of a recorded run again"""
    from softcr_tools import report

    return report.main(arguments)


def _replay(arguments: Sequence[str]) -> int:
    """run estimator and controller again on a recorded run, or publish its sensors"""
    from softcr_tools import replay

    return replay.main(arguments)


def _view(arguments: Sequence[str]) -> int:
    """watch the running system on a browser page"""
    from softcr_tools import viewer

    return viewer.main(arguments)


def _hold(arguments: Sequence[str]) -> int:
    """be the deadman's switch: the space bar of this terminal"""
    from softcr_tools import hold

    return hold.main(arguments)


def _doctor(arguments: Sequence[str]) -> int:
    """say what stands in the way of a run, and what mends it"""
    from softcr_tools import doctor

    return doctor.main(arguments)


def _plan(arguments: Sequence[str]) -> int:
    """turn a tip path into a motion the rod can do"""
    from softcr_tools import plan

    return plan.main(arguments)


def _bench(arguments: Sequence[str]) -> int:
    """measure rod, filter and controller beside their rivals"""
    from softcr_tools import benchmarks

    return benchmarks.main(arguments)


def _experiment(arguments: Sequence[str]) -> int:
    """run a published experiment again on our plants"""
    from softcr_tools import experiments

    return experiments.main(arguments)


def _tune(arguments: Sequence[str]) -> int:
    """tune filter or controller on plants that are not the model"""
    from softcr_tools.experiments import tuning

    return tuning.main(arguments)


def _emulate(arguments: Sequence[str]) -> int:
    """play a device of the bench on its real protocol"""
    from softcr_tools import emulate

    return emulate.main(arguments)


def _rehearse(arguments: Sequence[str]) -> int:
    """run the bench's system on emulated devices"""
    from softcr_tools import rehearse

    return rehearse.main(arguments)


def _train(arguments: Sequence[str]) -> int:
    """train the surrogate of a robot"""
    from softcr_tools.surrogate import train

    return train.main(arguments)


def _search_surrogate(arguments: Sequence[str]) -> int:
    """search the structure of a surrogate"""
    from softcr_tools.surrogate import search

    return search.main(arguments)


def _verify_surrogate(arguments: Sequence[str]) -> int:
    """judge a surrogate beside the rod it stands for"""
    from softcr_tools.surrogate import verify

    return verify.main(arguments)


def _compare_surrogates(arguments: Sequence[str]) -> int:
    """train by every recipe for a while and compare"""
    from softcr_tools.surrogate import compare

    return compare.main(arguments)


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "up": _up,
    "report": _report,
    "replay": _replay,
    "view": _view,
    "hold": _hold,
    "doctor": _doctor,
    "plan": _plan,
    "bench": _bench,
    "emulate": _emulate,
    "rehearse": _rehearse,
    "experiment": _experiment,
    "tune": _tune,
    "train": _train,
    "search-surrogate": _search_surrogate,
    "verify-surrogate": _verify_surrogate,
    "compare-surrogates": _compare_surrogates,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0 good, 1 the run failed, 2 a mistake of the user, 130 interrupted.
    """
    chosen = _parser().parse_args(arguments)
    from softcr_models.errors import UserError

    try:
        return COMMANDS[chosen.command](chosen.arguments)
    except UserError as error:
        line = str(error)
    except OSError as error:
        line = f"{error.filename or chosen.command}: {error.strerror or error}"
    except KeyboardInterrupt:
        return INTERRUPTED
    complain(line)
    return USER_ERROR


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS)) + 2
    listed = "\n".join(f"  {name:{width}}{run.__doc__}" for name, run in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="softcr",
        description="Estimation and predictive control of soft continuum robots.",
        epilog=f"commands:\n{listed}\n\nsoftcr COMMAND --help tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = importlib.metadata.version("softcr")
    parser.add_argument("--version", action="version", version=f"softcr {version}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="see below")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its own")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""`softcr replay BAG`: what it is told, and in which order it is done."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from softcr_models.errors import UserError
from softcr_runtime.bags.reading import Bag
from softcr_runtime.console import say

_EPILOG = """\
Offline (the default) the estimator, and with --controller the controller, compute again what they
computed in the run, from its recorded inputs in recorded order, and nothing else: no ROS graph, no
clock. Unchanged they give the same bits. The new bag, comparison.json and comparison.png are in
BAG-replay beside the bag.

  softcr replay results/sim/latest
  softcr replay results/sim/latest --set filter=ekf --set intervals=8
  softcr replay results/sim/latest --controller --set controller.horizon=12

Online the recorded sensors and references are published again, with /clock, for live nodes that
run with -p use_sim_time:=true.
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr replay`; returns the exit code.

    Raises:
        UserError: the bag, a parameter or the output cannot be used.
    """
    given = _parser().parse_args(arguments)
    console = Console()
    bag = Bag(given.bag)
    if bag.damage:
        say(console, bag.damage, style="yellow")
    if given.online:
        from softcr_tools.replay.online import publish

        _refuse_offline_options(given)
        publish(bag, given.rate, given.wait, console)
        return 0
    from softcr_runtime.replay.bag_replay import ReplayTask
    from softcr_tools.replay.offline import replay

    output = given.output or _beside(bag.path)
    changes = _changes(given.set, given.controller)
    task = ReplayTask(given.controller, given.robot, changes)
    comparison = replay(bag, task, output, console)
    console.print(comparison.table())
    say(console, f"bag and comparison: {output}")
    return 0


def _refuse_offline_options(given: argparse.Namespace) -> None:
    for name in ("set", "robot", "output", "controller"):
        if getattr(given, name):
            raise UserError(f"--{name}: is for the offline replay, not for --online")


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def _changes(texts: Sequence[str], controller: bool) -> dict[str, dict[str, Any]]:
    """Changed parameters by node and name; those of no node are the estimator's."""
    from softcr_runtime import registry
    from softcr_runtime.replay.old_bags import BLOCKS

    nodes = {*BLOCKS, "controller", *(registry.nodes("controller"))}
    changes: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        node, _, parameter = name.partition(".")
        if node not in nodes:
            node, parameter = "", name
        if not equals or not parameter:
            raise UserError(
                f"--set {text!r}: must be PARAMETER=VALUE of the estimator, or "
                f"NODE.PARAMETER=VALUE with one of {', '.join(sorted(nodes))}"
            )
        if "estimator" not in node and node and not controller:
            raise UserError(f"--set {text!r}: needs --controller")
        changes.setdefault(node, {})[parameter] = _parsed(value, text)
    return changes


def _parsed(value: str, text: str) -> Any:
    try:
        parsed = yaml.safe_load(value)
    except yaml.YAMLError:
        raise UserError(f"--set {text!r}: the value must be a number, a word or a list") from None
    # 2e5 is text in YAML
    return float(parsed) if isinstance(parsed, str) and _NUMBER.fullmatch(parsed) else parsed


def _beside(bag: Path) -> Path:
    name = bag.stem if bag.is_file() else bag.name
    return bag.resolve().parent / f"{name}-replay"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr replay",
        description="Replay a recorded run.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("bag", type=Path, help="bag, or directory of a run with its bag in bag/")
    parser.add_argument(
        "--controller", action="store_true", help="the run's controller too, open loop"
    )
    parser.add_argument("--robot", metavar="FILE", help="another robot for the models")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PARAMETER=VALUE",
        help="of the estimator, or with controller. before it of the controller; repeatable",
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIRECTORY", help="of the new bag (default: BAG-replay)"
    )
    parser.add_argument("--online", action="store_true", help="publish the recorded sensors")
    parser.add_argument(
        "--rate", type=float, default=1.0, metavar="FACTOR", help="online: speed (default: 1)"
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="online: for a subscriber, at most (default: %(default)s)",
    )
    return parser

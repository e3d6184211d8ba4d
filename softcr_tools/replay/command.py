"""`softcr replay BAG`: what it is told, and in which order it is done."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from cyclopts import Parameter
from rich.console import Console

from softcr_models.errors import UserError
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.robots import namespaces_of, robot_bag
from softcr_runtime.console.terminal import say, shown
from softcr_runtime.settings.command_line import RobotName, command
from softcr_runtime.wire.namespaces import Namespace


@command
def replay(
    bag: Path,
    /,
    *,
    controller: bool = False,
    robot: RobotName = "",
    changes: Annotated[list[str] | None, Parameter(name="--set")] = None,
    output: Path | None = None,
    online: bool = False,
    rate: float = 1.0,
    wait: float = 5.0,
    trust_bag: bool = False,
    namespace: Namespace | None = None,
) -> int:
    """Replay a recorded run.

    Offline (the default), the estimator, and with --controller the controller, compute again what
    they computed in the run, from its recorded inputs in recorded order, without ROS and without a
    clock. Unchanged, they give the same bits. The new bag, comparison.json and comparison.png are
    in BAG-replay beside the bag.

    `softcr replay results/sim/latest --set filter=ekf --set intervals=8`

    `softcr replay results/sim/latest --controller --set controller.horizon=12`

    Online, the recorded sensors and references are published again, with /clock, for live nodes
    that run with -p use_sim_time:=true. In a namespace they come with its own clock, which nodes of
    softcr run --namespace follow.

    Args:
        bag: a bag, or the directory of a run with its bag in bag/.
        controller: also replay the run's controller, in open loop.
        robot: another robot for the models, by name or YAML file.
        changes: PARAMETER=VALUE of the estimator, or controller.PARAMETER=VALUE of the
            controller; estimator=PLACE and controller=PLACE name another class; repeatable.
        output: directory of the new bag, by default BAG-replay.
        online: publish the recorded sensors.
        rate: speed online, as a factor from 0.01 to 100.
        wait: longest wait online for a subscriber [s].
        trust_bag: run the code and read the files that the bag names on this machine; each is
            printed with its digest first. Code inside the bag is never run.
        namespace: namespace of the robot, in a bag with several; online also the namespace to
            publish in, if not the recorded one.

    Raises:
        UserError: the bag, a parameter or the output cannot be used.
    """
    console = Console()
    with shown(console, f"reading {bag}"):
        opened = _opened(bag, namespace, online)
    for line in filter(None, (opened.damage, opened.doubt)):
        say(console, line, style="yellow")
    if online:
        from softcr_tools.replay.online import publish

        offline = {
            "set": changes, "robot": robot, "output": output, "controller": controller,
            "trust-bag": trust_bag,
        }  # fmt: skip
        for name in [name for name, value in offline.items() if value]:
            raise UserError(f"--{name}: is for the offline replay, not for --online")
        publish(opened, rate, wait, console, namespace)
        return 0
    from softcr_runtime.replay.bag_replay import ReplayTask
    from softcr_tools.replay import offline as again

    output = output or _beside(opened.path)
    task = ReplayTask(controller, robot or None, _changes(changes or (), controller), trust_bag)
    console.print(again.replay(opened, task, output, console).table())
    say(console, f"bag and comparison: {output}")
    return 0


def _opened(path: Path, namespace: str | None, online: bool) -> Bag:
    """A bag; of several robots the named one. A single one may be published under another name."""
    bag = robot_bag(path, None)
    alone = len(namespaces_of(bag)) < 2
    return bag if namespace is None or (online and alone) else robot_bag(path, namespace)


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def _changes(texts: Sequence[str], controller: bool) -> dict[str, dict[str, Any]]:
    """Changed parameters by node and name; those of no node are the estimator's."""
    from softcr_runtime.replay.recorded_run import CONTROLLERS, ESTIMATORS

    nodes = {*ESTIMATORS, *CONTROLLERS}
    changes: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        node, dot, parameter = name.partition(".")
        if not dot and name in ("estimator", "controller"):  # the class of that role
            parameter = name
        elif node not in nodes:
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

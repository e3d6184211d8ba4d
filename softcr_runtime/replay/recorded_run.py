"""What a bag tells of the nodes that ran: their settings, and what they did in each tick."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from softcr_models.errors import UserError
from softcr_models.files.yaml_files import read_mapping
from softcr_models.plugins import load_class
from softcr_models.robots.robot import load_robot
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.recorded_files import RecordedFiles, recorded_configurations
from softcr_runtime.bags.told_values import misfits
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.blocks.tick_records import CHANGE, TICK, TickRecord
from softcr_runtime.replay.recorded_events import joined_by_time, recorded_events
from softcr_runtime.replay.trust import Trust, names_of_files
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import NodeSettings
from softcr_runtime.wire.diagnostics import DiagnosticReport, ToldSize, diagnostics_from_message

_NEEDED = "block", "settings", "before_changes"  # of what a node said, to be what it was
_ESTIMATOR = "softcr_estimation.estimator:EstimatorBlock"

ESTIMATORS = ("estimator", "cc_estimator")
CONTROLLERS = (
    *registry.nodes("controller"), "controller", "apcc_controller", "feedforward",
)  # fmt: skip
"""Nodes of shipped systems, the usual ones first; others say what they are."""


@dataclass(frozen=True)
class RecordedRun:
    """A bag, and what the nodes in it said of themselves.

    Attributes:
        bag: the bag.
        said: last values of every node's diagnostics.
        records: tick records by node; none where the run told none.
        files: that the run was configured with; none where the run told none.
    """

    bag: Bag
    said: Mapping[str, Mapping[str, Any]]
    records: Mapping[str, list[TickRecord]]
    files: RecordedFiles = field(repr=False)
    _parameters: Mapping[str, Any] = field(repr=False)
    _unusable: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, bag: Bag) -> "RecordedRun":
        """Read the diagnostics of a bag, and parameters.yaml beside it."""
        said: dict[str, dict[str, Any]] = {}
        unusable: dict[str, str] = {}
        for report in _reports(bag):
            _, node = report.node
            refused = misfits(report.values)
            if lines := [refused[name] for name in _NEEDED if name in refused]:
                unusable[node] = lines[0]
            values = {name: told for name, told in report.values.items() if name not in refused}
            said.setdefault(node, {}).update(values)
        configured = recorded_configurations(bag)
        for node, configuration in configured.items():
            if configuration.robot:
                said.setdefault(node, {}).setdefault("robot", dict(configuration.robot))
        return cls(
            bag,
            said,
            recorded_events(bag),
            RecordedFiles(configured),
            _parameters_beside(bag),
            unusable,
        )

    @property
    def estimator(self) -> str:
        """The node that estimates."""
        return self._which("estimator", ESTIMATORS)

    @property
    def controller(self) -> str:
        """The node that commands; of several the one that did first."""
        return self.controllers[0]

    @property
    def controllers(self) -> tuple[str, ...]:
        """The nodes that command, one after the other where they were exchanged in the run."""
        first = self._which("controller", CONTROLLERS)
        said = [n for n, told in self.said.items() if told.get("role") == "controller"]

        def began(node: str) -> float:
            ticks = (each.stamp for each in self.records.get(node, ()) if each.event == TICK)
            return next(ticks, math.inf)

        return tuple(sorted(said, key=began)) or (first,)

    def block(
        self, node: str, changes: Mapping[str, Any], trust: Trust
    ) -> tuple[type[BlockBase], Any, str]:
        """The block class of a node, its settings with some changed, and where these are from.

        Raises:
            UserError: the bag does not say what the node was, names code or a file that is not
                trusted, or a parameter is not allowed.
        """
        if node in self._unusable:
            raise UserError(
                f"bag {self.bag.path}: what the {node} said of itself cannot be used: "
                f"{self._unusable[node]}"
            )
        told = self.said.get(node, {})
        place = told.get("block")
        if place is None and not told and node == ESTIMATORS[0]:
            place = _ESTIMATOR  # of a bag in which no estimator speaks
        if place is None:
            raise UserError(f"bag {self.bag.path}: does not say what the node {node} ran")
        block: type[BlockBase] = load_class(str(place), "block", BlockBase)
        values: Any = told.get("settings")
        source = "its diagnostics"
        if not isinstance(values, dict):
            values, source = self._parameters.get(node), "parameters.yaml beside the bag"
        if not isinstance(values, dict):
            values, source = {}, "nowhere: the run left no parameters, defaults are used"
        # live changes are events of their own: the run began without them
        before = told.get("before_changes")
        values = values | before if isinstance(before, dict) else values
        replaced = self.files.instead(
            node, {name: value for name, value in values.items() if name not in changes}
        )
        values = values | replaced
        if "policy" in replaced:
            values["controller"], _, _ = str(values.get("controller")).partition(":")
        changed = ", ".join(f"{name} = {value}" for name, value in changes.items())
        line = f"settings of the {node} are from {source}" + f"; {changed}" * bool(changed)
        given = {*changes, *replaced}
        # by their text first: to know the settings, files are read
        trust.judge_files(node, values, given, ())
        known = block.settings_model({**values, **changes})
        trust.judge_files(node, values, given, {*names_of_files(known)})
        if told:
            return block, block.settings_of(changes, recorded=values), line
        return block, block.settings_of({**values, **changes}), line

    def events(
        self, node: str, block: BlockBase, timing_changed: bool
    ) -> tuple[list[TickRecord], str]:
        """What a node did, and why it had to be found out by times; empty where it was told."""
        if timing_changed:
            return self._with_changes(node, joined_by_time(self.bag, block)), "patience is changed"
        if node in self.records:
            return self.records[node], ""
        return joined_by_time(self.bag, block), "the run does not say what it used"

    def _with_changes(self, node: str, records: list[TickRecord]) -> list[TickRecord]:
        """Records with the live changes of the run among them."""
        changes = [each for each in self.records.get(node, []) if each.event == CHANGE]
        return sorted([*records, *changes], key=lambda each: each.stamp) if changes else records

    def _which(self, role: str, usual: tuple[str, ...]) -> str:
        says = [node for node, values in self.said.items() if values.get("role") == role]
        there = [node for node in usual if node in self.said or node in self._parameters]
        return next(iter([*says, *there, *usual]))

    def robot(
        self, settings: NodeSettings, kinds: tuple[str, ...] | None
    ) -> tuple[Any, str | None]:
        """The robot of some settings, and a line when it is not the robot of the run.

        Raises:
            UserError: it cannot be loaded.
        """
        try:
            robot = load_robot(settings.robot, kinds)
        except UserError as error:
            raise UserError(f"{error}; --robot FILE names another one") from None
        for values in self.said.values():
            told = values.get("robot")
            if isinstance(told, dict):
                other = _differing_fields(robot, told)
                differs = f"the robot is not the run's: {', '.join(other)} differ"
                return robot, differs if other else None
        return robot, None


def _differing_fields(robot: Any, told: dict[str, Any]) -> list[str]:
    """Fields in which a robot differs from what a node told of its own, in whatever form."""
    mine = robot.model_dump(mode="json")
    with suppress(ValidationError):  # of another version's form
        told = type(robot).model_validate(told).model_dump(mode="json")
    return [name for name in mine if mine[name] != told.get(name)]


def _reports(bag: Bag) -> Iterator[DiagnosticReport]:
    if bag.find("/diagnostics") is None:
        return
    size = ToldSize()
    for message in bag.messages("/diagnostics"):
        try:
            content = message.decode()
            size.take(content)
            yield from diagnostics_from_message(content)
        except ValueError:  # not a diagnostics message: it tells nothing
            continue


def _parameters_beside(bag: Bag) -> dict[str, Any]:
    """Parameters by node name, as the supervisor wrote them; empty where there are none."""
    path = bag.path.parent / "parameters.yaml"
    if not path.is_file():
        return {}
    try:
        return {
            name.rpartition("/")[2]: dict(section["ros__parameters"])
            for name, section in read_mapping(path, "ROS parameter").items()
        }
    except (AttributeError, ValueError, TypeError, KeyError):
        raise UserError(f"{path}: cannot be read as a ROS parameter file") from None

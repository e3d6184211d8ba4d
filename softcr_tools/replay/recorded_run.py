"""What a bag tells of the nodes that ran: their settings, and which inputs they used."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from softcr_models.errors import UserError
from softcr_models.robot import Robot, load_robot
from softcr_models.yaml_files import read_mapping
from softcr_runtime.diagnostics import DiagnosticReport, diagnostics_from_message
from softcr_runtime.settings import NodeSettings, build_settings
from softcr_tools.bag_reading import Bag
from softcr_tools.replay.message_bytes import header_stamp

Settings = TypeVar("Settings", bound=NodeSettings)


@dataclass(frozen=True)
class UsedInputs:
    """Which recorded inputs the estimator used, in its own words.

    On the wall clock a pose may come too late for its cycle, and a busy estimator leaves samples
    out. When that happened cannot be seen from outside to the millisecond; this tells it.

    Attributes:
        estimated: stamps [ns] it published an estimate for.
        unpaired: stamps [ns] it had no tip pose for.
    """

    estimated: frozenset[int]
    unpaired: frozenset[int]

    def has_pressures(self, stamp: int) -> bool:
        """Whether the pressure sample of a stamp was used."""
        return stamp in self.estimated or stamp in self.unpaired

    def has_pose(self, stamp: int) -> bool:
        """Whether the tip pose of a stamp was used."""
        return stamp in self.estimated and stamp not in self.unpaired


@dataclass(frozen=True)
class RecordedRun:
    """A bag, and what the nodes in it said of themselves.

    Attributes:
        bag: the bag.
        said: last values of every node's diagnostics.
        used: of the estimator; None when the run did not tell.
    """

    bag: Bag
    said: Mapping[str, Mapping[str, Any]]
    used: UsedInputs | None
    _parameters: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, bag: Bag) -> "RecordedRun":
        """Read the diagnostics of a bag, and parameters.yaml beside it."""
        said: dict[str, dict[str, Any]] = {}
        unpaired: set[int] = set()
        for report in _reports(bag):
            node = report.name.partition(":")[0]
            said.setdefault(node, {}).update(report.values)
            if node == "estimator":
                unpaired.update(report.values.get("unpaired_stamps", ()))
        estimated = frozenset(_stamps(bag, "estimate/rod"))
        told = estimated and "unpaired_stamps" in said.get("estimator", {})
        used = UsedInputs(estimated, frozenset(unpaired)) if told else None
        return cls(bag, said, used, _parameters_beside(bag))

    def which_ran(self, nodes: Iterable[str]) -> str:
        """Which of some nodes the run had; the first of them where it does not tell."""
        nodes = tuple(nodes)
        return next((n for n in nodes if n in self.said or n in self._parameters), nodes[0])

    def settings(
        self, node: str, model: type[Settings], changes: Mapping[str, Any]
    ) -> tuple[Settings, str]:
        """The settings a node had, with some changed, and one line about where they are from.

        Raises:
            UserError: a parameter is unknown or out of range.
        """
        values: Mapping[str, Any] | None = self.said.get(node, {}).get("settings")
        source = "its diagnostics"
        if not isinstance(values, dict):
            values, source = self._parameters.get(node), "parameters.yaml beside the bag"
        if not isinstance(values, dict):
            values, source = {}, "nowhere: the run left no parameters, defaults are used"
        changed = ", ".join(f"{name} = {value}" for name, value in changes.items())
        line = f"settings of the {node} are from {source}"
        return build_settings(model, {**values, **changes}), line + f"; {changed}" * bool(changed)

    def robot(self, settings: NodeSettings) -> tuple[Robot, str | None]:
        """The robot of some settings, and a line when it is not the robot of the run.

        Raises:
            UserError: it cannot be loaded.
        """
        try:
            robot = load_robot(settings.robot)
        except UserError as error:
            raise UserError(f"{error}; --robot FILE names another one") from None
        for values in self.said.values():
            told = values.get("robot")
            if isinstance(told, dict):
                other = _differing_fields(robot, told)
                differs = f"the robot is not the run's: {', '.join(other)} differ"
                return robot, differs if other else None
        return robot, None


def _differing_fields(robot: Robot, told: dict[str, Any]) -> list[str]:
    """Fields in which a robot differs from what a node told of its own, in whatever form."""
    mine = robot.model_dump(mode="json")
    with suppress(ValidationError):  # of a form that nobody knows any more
        told = Robot.model_validate(told).model_dump(mode="json")
    return [name for name in mine if mine[name] != told.get(name)]


def _reports(bag: Bag) -> Iterator[DiagnosticReport]:
    if bag.find("/diagnostics") is None:
        return
    for message in bag.messages("/diagnostics"):
        try:
            yield from diagnostics_from_message(message.decode())
        except ValueError:  # not a diagnostics message: it tells nothing
            continue


def _stamps(bag: Bag, topic: str) -> Iterator[int]:
    if bag.find(topic) is None:
        return
    for message in bag.messages(topic):
        with suppress(ValueError):
            yield header_stamp(message.payload)


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

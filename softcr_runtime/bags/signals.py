"""A bag as named signals: what the topics of `codecs` carry, as arrays over time.

A signal is named by its topic and a field of it: ("mocap/tip/pose", "position"). What serves the
same purpose on different robots (the measured tip, the commands) is found by its role.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from softcr_models.model import Group, Layout
from softcr_models.robots.kinds import KINDS, Kind
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.told_values import misfits
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.values import (
    PointForces,
    Pose,
    ReferenceRows,
    StateEstimate,
    TipEstimate,
)
from softcr_runtime.wire.codecs import EXCHANGED, Expected, codec
from softcr_runtime.wire.configuration import TOPIC as CONFIGURATION
from softcr_runtime.wire.configuration import configurations
from softcr_runtime.wire.diagnostics import DiagnosticReport, ToldSize, diagnostics_from_message
from softcr_runtime.wire.messages import INPUT, MessageError, from_stamp, pose_value_from_message
from softcr_runtime.wire.namespaces import split
from softcr_runtime.wire.rod_clouds import ReferenceCloud, RodCloud
from softcr_runtime.wire.topics import ACTUATOR_TOPICS, TRUTH

_CHANGES_TOPIC = "/parameter_events"

_VALUES = (
    "", "bool_value", "integer_value", "double_value", "string_value", "byte_array_value",
    "bool_array_value", "integer_array_value", "double_array_value", "string_array_value",
)  # fmt: skip
"""Fields of rcl_interfaces/msg/ParameterValue by its `type`."""


def changes_in(message: Any) -> Iterator[str]:
    """One line for each parameter that changed: `node: name = value`.

    Parameters that are declared, and those that are removed with their node, are no changes.

    Args:
        message: rcl_interfaces/msg/ParameterEvent.
    """
    node = split(message.node)[1]
    for parameter in message.changed_parameters:
        yield f"{node}: {parameter.name} = {_told(parameter.value)}"


def _told(value: Any) -> str:
    if not 0 < value.type < len(_VALUES):
        return "not set"
    found = getattr(value, _VALUES[value.type])
    found = found.tolist() if hasattr(found, "tolist") else found
    return f"{found:.10g}" if isinstance(found, float) else str(found)


TOPICS = (*EXCHANGED, "estimate/shape")
"""Topics that become signals; /diagnostics and safety/state are read beside them."""


def _input_of(kind: Kind) -> str:
    """The field of a kind's inputs."""
    return "length" if kind.field == "positions" else kind.quantity


def _of_actuators(*endings: str) -> tuple[tuple[str, str], ...]:
    """The inputs of every kind of robot, on topics with these endings."""
    return tuple(
        (f"{kind.quantity}/{ending}", _input_of(kind))
        for ending in endings
        for kind in KINDS.values()
    )


Role = Literal[
    "true tip", "measured tip", "estimated tip", "reference tip",
    "true shape", "estimated shape", "commands", "plans", "readings",
]  # fmt: skip
ROLES: dict[Role, tuple[tuple[str, str], ...]] = {
    "true tip": (("simulation/truth/tip/pose", "position"),),
    "measured tip": (
        ("mocap/tip/pose", "position"), ("mocap/body/poses", "tip"),
    ),
    "estimated tip": (("estimate/tip/pose", "position"),),
    "reference tip": tuple((f"reference/{name}", "tip") for name in ("rod", "output", "tip")),
    "true shape": (("simulation/truth/rod", "positions"),),
    "estimated shape": (("estimate/rod", "positions"), ("estimate/shape", "positions")),
    "commands": _of_actuators("sent", "command"),
    "plans": _of_actuators("plan"),
    "readings": _of_actuators("state"),
}  # fmt: skip
"""Signals that serve a purpose; the first that was recorded does."""

_UNITS = {
    "position": "m", "positions": "m", "tip": "m", "tips": "m", "covariance": "m^2",
    "quaternion": "-", "quaternions": "-", "period": "s", "pressure": "Pa", "length": "m",
    "force": "N", "wrench": "N, N m", "wrenches": "N, N m", "points": "m", "q": "m",
    "rest_lengths": "m", "rest_length": "m", "distances": "m", "distance": "m", "angles": "rad",
    "angle": "rad", "delta": "m", "delta_rate": "m/s", "elongation": "m", "elongation_rate": "m/s",
    "bending_stiffness": "N/m", "bending_compliance": "rad/(N m m)", "tip_mass": "kg",
    "payload": "kg", "tension": "N", "tendon_length": "m", "tip_force": "N",
    "torque": "N m, N", "bending": "rad/m", "shear": "-", "axial": "-", "factor": "-", "gain": "-",
    "hysteresis": "-", "hose": "-", "creep": "-", "curvature_stiffness": "-", "neo_hookean": "-",
    "chamber_angle": "rad", "marker_offset": "m", "tip_offset": "m",
}  # fmt: skip
_DIMENSIONS = {
    "positions": 2, "quaternions": 2, "points": 2, "wrenches": 2, "tips": 2, "covariance": 2,
    "period": 0,
}  # fmt: skip
_OF_ACTUATORS = ("force", "inputs", *map(_input_of, KINDS.values()))
_MISFITS_SHOWN = 5
_LEVELS = {1: "warning", 2: "error"}


@dataclass(frozen=True, eq=False)
class Signal:
    """Samples of one quantity at their header stamps.

    Attributes:
        stamps: (T,) ascending, none twice [ns].
        values: (T, ...) what was sampled, in `unit`.
        topic, field: where it was recorded; empty for what was computed.
        frame: that positions are in; empty where the message names none.
        unit: SI; "-" for none, empty where the message does not tell it.
        columns: names of the values' last axis, where they have any.
    """

    stamps: np.ndarray
    values: np.ndarray
    topic: str = ""
    field: str = ""
    frame: str = ""
    unit: str = ""
    columns: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.stamps)

    def between(self, start: int, end: int) -> "Signal":
        """The samples with start <= stamp <= end [ns]."""
        inside = (self.stamps >= start) & (self.stamps <= end)
        return self.like(self.stamps[inside], self.values[inside])

    def minus(self, other: "Signal") -> "Signal":
        """This minus the other, where both have a sample of the same stamp."""
        stamps, mine, theirs = np.intersect1d(
            self.stamps, other.stamps, assume_unique=True, return_indices=True
        )
        values = self.values[mine]
        return self.like(stamps, values - other.values[theirs] if len(stamps) else values)

    def sampled(self, stamps: np.ndarray, longest_hole: float) -> np.ndarray:
        """(K, ...) linear between samples at stamps (K,) [ns]; NaN in holes longer than that."""
        after = np.clip(np.searchsorted(self.stamps, stamps), 1, len(self) - 1)
        before = after - 1
        hole = self.stamps[after] - self.stamps[before]
        part = (stamps - self.stamps[before]) / hole
        known = (part >= 0.0) & (part <= 1.0) & (hole <= 1e9 * longest_hole)
        part = np.where(known, part, np.nan).reshape(-1, *[1] * (self.values.ndim - 1))
        values: np.ndarray = (1.0 - part) * self.values[before] + part * self.values[after]
        return values

    def at(self, stamps: np.ndarray, longest_hole: float) -> "Signal":
        """As `sampled`, at those stamps that lie in no such hole."""
        if len(self) < 2:
            return self.between(1, 0)
        values = self.sampled(stamps, longest_hole)
        known = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
        return self.like(stamps[known], values[known])

    def norm(self) -> "Signal":
        """Euclidean length of every sample."""
        return replace(self, values=np.linalg.norm(self.values, axis=-1), columns=())

    def like(self, stamps: np.ndarray, values: np.ndarray) -> "Signal":
        """Other samples of the same quantity."""
        return replace(self, stamps=stamps, values=values)


@dataclass
class NodeStatus:
    """What a node said of its loop in /diagnostics.

    Attributes:
        values: the last it told under each name, numbers and JSON already parsed. After its
            clean-up a node tells less: that hides nothing.
        last_heard: when that was received [ns]; 0 when it said nothing.
        alarms: WARN and ERROR lines in the order of their first, alike but for their numbers under
            one key: the last of them, how many there were, whether their numbers differed.
    """

    values: dict[str, Any] = field(default_factory=dict)
    last_heard: int = 0
    alarms: dict[str, tuple[str, int, bool]] = field(default_factory=dict)

    def hear(self, time: int, level: int, message: str, values: Mapping[str, Any]) -> None:
        """Take a status that was received at a time [ns]."""
        self.values |= values
        self.last_heard = time
        if level in _LEVELS:
            line = f"{_LEVELS[level]}: {message}"
            key = re.sub(r"\d[\d.]*", "#", line)
            last, count, differed = self.alarms.get(key, (line, 0, False))
            self.alarms[key] = line, count + 1, differed or last != line


@dataclass(frozen=True, eq=False)
class BagSignals:
    """What was read of a bag.

    Attributes:
        signals: by topic and field; only what was recorded.
        nodes: status by node name.
        safety: when safety/state said something new [ns], and what. It carries no stamp: these are
            times of reception.
        last_heard: when the last message was received [ns].
        problems: one line for damage, one where it would not be noticed, and one for each topic
            with unreadable messages.
        parameter_changes: when a parameter was changed [ns], by reception, and which, to what.
        damage: see `Bag`.
    """

    signals: Mapping[tuple[str, str], Signal]
    nodes: Mapping[str, NodeStatus]
    safety: tuple[tuple[int, str], ...]
    last_heard: int
    problems: tuple[str, ...]
    parameter_changes: tuple[tuple[int, str], ...] = ()
    damage: str | None = None

    def signal(self, topic: str, name: str) -> Signal:
        """A signal; an empty one where nothing of it was recorded."""
        found = self.signals.get((topic, name))
        if found is not None:
            return found
        shape = (0,) * (1 + _DIMENSIONS.get(name, 0 if "." in name else 1))
        return Signal(np.empty(0, np.int64), np.empty(shape), topic, name)

    def role(self, role: Role) -> Signal:
        """The first recorded signal of a role; an empty one where there is none."""
        found = (each for each in ROLES[role] if each in self.signals)
        return self.signal(*next(found, ROLES[role][0]))

    @property
    def tip(self) -> Signal:
        """(T, 3) the true tip, or what the cameras saw of it where there is no simulator [m]."""
        true = self.role("true tip")
        return true if len(true) else self.role("measured tip")

    def said(self, node: str, name: str) -> Any:
        """What a node said last under a name; None when it said nothing."""
        status = self.nodes.get(node)
        return status.values.get(name) if status else None

    def true_parameter(self, name: str) -> float | None:
        """The plant's value of a parameter; None where no simulator told it."""
        told = self.signal("simulation/truth/rod", f"parameter.{name}")
        if len(told):
            return float(told.values[-1])
        return (self.said("simulator", "true_parameters") or {}).get(name)

    @property
    def robot(self) -> dict[str, Any]:
        """The robot file's content as some node told it; empty when none did."""
        told = (self.said(node, "robot") for node in self.nodes)
        return next((robot for robot in told if isinstance(robot, dict)), {})

    @property
    def start(self) -> int:
        """Earliest stamp of any signal [ns]; 0 where there is none."""
        return min((int(each.stamps[0]) for each in self.signals.values()), default=0)

    def seconds(self, signal: Signal) -> np.ndarray:
        """(T,) time of a signal's samples since the start [s]."""
        return (signal.stamps - self.start) * 1e-9


def read_signals(bag: Bag, topics: Collection[str] = TOPICS) -> BagSignals:
    """The signals of some topics of a bag, and what its nodes and its safety said.

    A message that cannot be used is left out and counted, and so is one whose values have another
    shape than the first of its topic. Of two messages with one stamp the first counts.

    Args:
        bag: with at most one robot's topics.
        topics: of `TOPICS`.

    Raises:
        UserError: the bag holds the topics of more than one robot.
    """
    told = ("/diagnostics", "safety/state", CONFIGURATION, _CHANGES_TOPIC)
    names = {n: t for t in (*topics, *told) if (n := bag.find(t))}
    of_topic: dict[str, _OfTopic] = {}
    nodes: dict[str, NodeStatus] = defaultdict(NodeStatus)
    safety: list[tuple[int, str]] = []
    changes: list[tuple[int, str]] = []
    left_out: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    misfit: dict[str, None] = {}
    actuators: dict[str, tuple[str, ...]] = {}  # every topic of a kind has the order of the first
    last_heard = 0
    size = ToldSize()
    for message in bag.messages(*names):
        topic, last_heard = names[message.topic], max(last_heard, message.time)
        try:
            content = message.decode()
            if topic == "safety/state":
                if not safety or safety[-1][1] != content.message:
                    safety.append((message.time, content.message))
            elif topic == _CHANGES_TOPIC:
                changes += [(message.time, line) for line in changes_in(content)]
            elif topic == CONFIGURATION:
                size.take(content, files=True)
                for node, configured in configurations([content]).items():
                    if configured.robot:
                        robot = {"robot": dict(configured.robot)}
                        if not _refused(node, robot, misfit):
                            nodes[node].values.setdefault("robot", robot["robot"])
            elif topic == "/diagnostics":
                size.take(content)
                _hear(nodes, message.time, diagnostics_from_message(content), misfit)
            else:
                if topic not in of_topic:
                    named = hasattr(content, "name") or hasattr(content, "joint_names")
                    kind = topic.partition("/")[0] if named else topic
                    ordered = actuators.setdefault(kind, _actuators_of(content))
                    of_topic[topic] = _OfTopic(topic, content, ordered)
                of_topic[topic].take(content)
        except (MessageError, ValueError) as error:
            left_out[topic] += 1
            reasons.setdefault(topic, str(error))
    return BagSignals(
        {(each.topic, each.field): each for read in of_topic.values() for each in read.signals()},
        dict(nodes),
        tuple(safety),
        last_heard,
        (
            *(line for line in (bag.damage, bag.doubt) if line),
            *(
                f"left out {n} of the messages: {' '.join(reasons[topic].split())}"
                for topic, n in left_out.items()
            ),
            *list(misfit)[:_MISFITS_SHOWN],
        ),
        tuple(changes),
        bag.damage,
    )


def _hear(
    nodes: dict[str, NodeStatus],
    time: int,
    reports: Iterable[DiagnosticReport],
    misfit: dict[str, None],
) -> None:
    for report in reports:
        if report.name.partition(":")[2].strip() == "loop":
            node = report.node[1]
            refused = _refused(node, report.values, misfit)
            fit = {name: value for name, value in report.values.items() if name not in refused}
            nodes[node].hear(time, report.level, report.message, fit)


def _refused(node: str, values: Mapping[str, Any], misfit: dict[str, None]) -> Collection[str]:
    """Names of what a node said that has another type than it should; told in `misfit`."""
    found = misfits(values)
    misfit |= {f"left out what {node} said of itself: {line}": None for line in found.values()}
    return found


def _actuators_of(message: Any) -> tuple[str, ...]:
    """Of inputs, of a plan, or of those that an estimate tells it was made with."""
    told = (each.name for each in getattr(message, "fields", ()))
    inputs = (name.removeprefix(INPUT) for name in told if name.startswith(INPUT))
    return tuple(getattr(message, "name", getattr(message, "joint_names", inputs)))


class _OfTopic:
    """The decoded messages of one topic."""

    def __init__(self, topic: str, first: Any, actuators: tuple[str, ...]) -> None:
        self.topic, self._frame, self._actuators = topic, first.header.frame_id, actuators
        self._decode = decoder(topic, first, Expected(actuators))
        self._samples: dict[int, dict[str, np.ndarray]] = {}
        self._entries: tuple[str, ...] = ()

    def take(self, message: Any) -> None:
        value = self._decode(message)
        if isinstance(value, StateEstimate) and value.layout is not None:
            self._entries = tuple(
                f"{group.name}_{number}"
                for group in value.layout
                for number in range(1, 1 + len(group.indices))
            )
        self._samples.setdefault(from_stamp(message, self.topic), fields_of(self.topic, value))

    def signals(self) -> Iterable[Signal]:
        by_field: dict[str, dict[int, np.ndarray]] = defaultdict(dict)
        for stamp, values in self._samples.items():
            for name, value in values.items():
                by_field[name][stamp] = value
        for name, found in by_field.items():
            shape = next(iter(found.values())).shape
            kept = sorted(stamp for stamp, value in found.items() if value.shape == shape)
            yield Signal(
                np.array(kept, np.int64), np.stack([found[stamp] for stamp in kept]),
                self.topic, name, self._frame, unit_of(name),
                self._actuators if name in _OF_ACTUATORS
                else self._entries if name == "state" else (),
            )  # fmt: skip


def decoder(topic: str, first: Any, expected: Expected) -> Callable[[Any], Any]:
    """What decodes the messages of a topic to values of `softcr_runtime.blocks.values`, or clouds.

    Args:
        topic: of `TOPICS`.
        first: message of the topic: it tells what `expected` does not, the number of poses of
            bodies and the groups of a state.
        expected: what the messages are about, as far as it is known.
    """
    if topic == "estimate/shape":
        return lambda message: tuple(pose_value_from_message(each, topic) for each in message.poses)
    layout = _layout_of(first) if topic in ("estimate/state", TRUTH) else None
    bodies = expected.bodies or len(getattr(first, "poses", ()))
    frame = first.header.frame_id  # whichever it is, a reader takes what was recorded
    told = replace(expected, layout=layout, bodies=bodies, frame=frame)
    return codec(topic, told).decode


def _layout_of(message: Any) -> Layout:
    groups, size = [], 0
    for each in message.fields:
        if each.name.startswith("state."):
            indices = np.arange(size, size + each.count)
            groups.append(Group(each.name.removeprefix("state."), indices, ""))
            size += each.count
    return Layout(tuple(groups), np.ones(size))


def fields_of(topic: str, value: Any) -> dict[str, np.ndarray]:
    """The numbers of a decoded value by field, each an array of floats."""
    return {name: np.asarray(each, dtype=float) for name, each in _fields(topic, value).items()}


def _fields(topic: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Pose):
        return {"position": value.position, "quaternion": value.quaternion}
    if isinstance(value, PointForces):
        return {"points": value.points, "wrenches": value.wrenches}
    if isinstance(value, TipEstimate):
        return _fields(topic, value.pose()) | {"covariance": value.position_covariance}
    if isinstance(value, RodCloud | StateEstimate):
        told: dict[str, Any] = {f"parameter.{n}": v for n, v in value.parameters.items()}
        told |= {f"std.{n}": v for n, v in value.parameters_std.items()}
        if value.inputs is not None:
            told["inputs"] = value.inputs
        if isinstance(value, RodCloud):
            told |= {"positions": value.positions, "quaternions": value.quaternions}
        return {"state": value.state, **told}
    if isinstance(value, ReferenceCloud | ReferenceRows):
        tips = value.tip_positions
        told = {"tip": tips[0], "tips": tips, "period": value.period}
        told |= {} if value.shift is None else {"shift": value.shift[0]}
        states = value.states if isinstance(value, ReferenceRows) else None
        return told if states is None else told | {"state": states[0]}
    if isinstance(value, dict):
        return value
    if topic in ACTUATOR_TOPICS:
        named = _input_of(ACTUATOR_TOPICS[topic])
        if isinstance(value, tuple):
            return {named: value[0], "force": value[1]}
        return {named: value.commands[0] if isinstance(value, CommandPacket) else value}
    if isinstance(value, tuple):
        positions = [pose.position for pose in value]
        quaternions = [pose.quaternion for pose in value]
        return {"positions": positions, "quaternions": quaternions, "tip": positions[-1]}
    if topic.endswith("/wrench"):
        return {"wrench": value}
    return {"length" if topic == "tendon/lengths" else "tip": value}


def unit_of(name: str) -> str:
    """The SI unit of a field; "-" for none, empty where it is not known."""
    bare = name.removeprefix("parameter.").removeprefix("std.").removesuffix("_std")
    bare = re.sub(r"(_of)?_\d+|_[xyz](?=_|$)|_offset(?=_\d)", "", bare)  # of which part
    last = bare.rpartition("_")[2]
    return _UNITS.get(last if last in ("factor", "gain") else bare, "")

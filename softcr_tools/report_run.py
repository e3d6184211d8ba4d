"""A recorded run as arrays: everything the report is computed from."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_models.runtime.messages import (
    DiagnosticReport,
    MessageError,
    diagnostics_from_message,
    from_stamp,
    pose_from_message,
    pose_with_covariance_from_message,
    pressures_from_message,
    reference_cloud_from_message,
    rod_cloud_from_message,
    wrench_from_message,
)
from softcr_tools.bag_reading import Bag, BagMessage


@dataclass(frozen=True)
class Series:
    """Samples of one quantity at their header stamps.

    Attributes:
        stamps: (T,) ascending, none twice [ns].
        values: (T, ...) what was sampled.
    """

    stamps: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.stamps)

    def between(self, start: int, end: int) -> "Series":
        """The samples with start <= stamp <= end [ns]."""
        inside = (self.stamps >= start) & (self.stamps <= end)
        return Series(self.stamps[inside], self.values[inside])

    def minus(self, other: "Series") -> "Series":
        """This minus the other, where both have a sample of the same stamp."""
        stamps, mine, theirs = np.intersect1d(
            self.stamps, other.stamps, assume_unique=True, return_indices=True
        )
        return Series(stamps, self.values[mine] - other.values[theirs])

    def at(self, stamps: np.ndarray, longest_hole: float) -> "Series":
        """Linear between samples, at those stamps that lie in no hole longer than that [s]."""
        if len(self) < 2:
            return self.between(1, 0)
        after = np.clip(np.searchsorted(self.stamps, stamps), 1, len(self) - 1)
        before = after - 1
        hole = self.stamps[after] - self.stamps[before]
        part = (stamps - self.stamps[before]) / hole
        known = (part >= 0.0) & (part <= 1.0) & (hole <= 1e9 * longest_hole)
        part = part.reshape(-1, *[1] * (self.values.ndim - 1))
        values = (1.0 - part) * self.values[before] + part * self.values[after]
        return Series(stamps[known], values[known])

    def norm(self) -> "Series":
        """Euclidean length of every sample."""
        return Series(self.stamps, np.linalg.norm(self.values, axis=-1))


@dataclass(frozen=True)
class NodeStatus:
    """What a node said of itself in /diagnostics.

    Attributes:
        values: the last it told under each name, numbers and JSON already parsed.
        last_heard: when that was received [ns].
        alarms: how often each WARN or ERROR line came, most often first; numbers in them are "#".
    """

    values: dict[str, Any]
    last_heard: int
    alarms: dict[str, int]


@dataclass(frozen=True)
class Run:
    """A recorded run. A series whose topic was not recorded is empty.

    Attributes:
        start: earliest stamp of any series [ns].
        last_heard: when the last message was received [ns].
        truth_tip, measured_tip, estimated_tip, reference_tip: (T, 3) positions, base frame [m].
        truth_backbone, estimated_backbone: (T, points, 3) base to tip, in the base frame [m].
        true_compliance, estimated_compliance, compliance_std: (T,) [rad/(N m m)].
        commanded_pressures, measured_pressures: (T, m) gauge [Pa].
        wrench: (T, 6) force [N], then moment [N m].
        chambers: names of the m chambers.
        nodes: status by node name.
        problems: one line for everything that is missing or could not be read.
    """

    start: int
    last_heard: int
    truth_tip: Series
    measured_tip: Series
    estimated_tip: Series
    reference_tip: Series
    truth_backbone: Series
    estimated_backbone: Series
    true_compliance: Series
    estimated_compliance: Series
    compliance_std: Series
    commanded_pressures: Series
    measured_pressures: Series
    wrench: Series
    chambers: tuple[str, ...]
    nodes: dict[str, NodeStatus]
    problems: tuple[str, ...]

    @property
    def tip(self) -> Series:
        """The true tip, or what mocap saw of it where there is no simulator."""
        return self.truth_tip if len(self.truth_tip) else self.measured_tip

    @property
    def robot(self) -> dict[str, Any]:
        """The robot file's content as some node told it; empty when none did."""
        told = (self.said(node, "robot") for node in self.nodes)
        return next((robot for robot in told if isinstance(robot, dict)), {})

    def seconds(self, series: Series) -> np.ndarray:
        """(T,) time of the samples since the start of the run [s]."""
        return (series.stamps - self.start) * 1e-9

    def said(self, node: str, name: str) -> Any:
        """What a node said last under a name; None when it said nothing."""
        status = self.nodes.get(node)
        return status.values.get(name) if status else None


def read_run(bag: Bag) -> Run:
    """Everything in a bag that the report uses; what is missing is said in `problems`.

    Raises:
        UserError: the bag holds the topics of more than one robot.
    """
    received = _Received(bag)
    truth = received.samples["simulation/truth/rod"]
    estimate = received.samples["estimate/rod"]
    series = {
        "truth_tip": _series(received.samples["simulation/truth/tip/pose"], (3,)),
        "measured_tip": _series(received.samples["mocap/tip/pose"], (3,)),
        "estimated_tip": _series(received.samples["estimate/tip/pose"], (3,)),
        "reference_tip": _series(received.samples["reference/rod"], (3,)),
        "truth_backbone": _series(truth, (0, 3), lambda cloud: cloud.positions),
        "estimated_backbone": _series(estimate, (0, 3), lambda cloud: cloud.positions),
        "true_compliance": _series(truth, (), lambda cloud: cloud.parameters[_COMPLIANCE]),
        "estimated_compliance": _series(estimate, (), lambda cloud: cloud.parameters[_COMPLIANCE]),
        "compliance_std": _series(estimate, (), lambda cloud: cloud.parameters_std[_COMPLIANCE]),
        "commanded_pressures": _series(received.samples["pressure/command"], (0,)),
        "measured_pressures": _series(received.samples["pressure/state"], (0,)),
        "wrench": _series(received.samples["force_torque/wrench"], (6,)),
    }
    return Run(
        **series,
        start=min((int(s.stamps[0]) for s in series.values() if len(s)), default=0),
        last_heard=received.last_heard,
        chambers=received.chambers,
        nodes=_statuses(received.samples["/diagnostics"]),
        problems=tuple(received.problems),
    )


_COMPLIANCE = "bending_compliance"


@dataclass(frozen=True)
class _Sample:
    stamp: int
    received: int
    value: Any


class _Received:
    """The decoded messages of every topic the report uses, and what went wrong on the way."""

    def __init__(self, bag: Bag):
        self.samples: dict[str, list[_Sample]] = {topic: [] for topic in _TOPICS}
        self.chambers: tuple[str, ...] = ()
        self.problems = [bag.damage] if bag.damage else []
        self.last_heard = 0
        left_out: Counter[str] = Counter()
        reasons: dict[str, str] = {}
        topics = {name: topic for topic in _TOPICS if (name := bag.find(topic))}
        for message in bag.messages(*topics):
            topic = topics[message.topic]
            self.last_heard = max(self.last_heard, message.time)
            try:
                self.samples[topic].append(self._decoded(message, topic))
            except (MessageError, ValueError) as error:
                left_out[topic] += 1
                reasons.setdefault(topic, str(error))
        for topic, count in left_out.items():
            self.problems.append(f"left out {count} of the messages: {reasons[topic]}")
        missing = [topic for topic, samples in self.samples.items() if not samples]
        if missing:
            self.problems.append(f"nothing was recorded on {', '.join(missing)}")

    def _decoded(self, message: BagMessage, topic: str) -> _Sample:
        content = message.decode()
        if topic in _PRESSURES:
            self.chambers = self.chambers or tuple(content.name)
            value = pressures_from_message(content, self.chambers, topic)
        else:
            value = _DECODERS[topic](content, topic)
        return _Sample(from_stamp(content, topic), message.time, value)


def _tip(message: Any, topic: str) -> np.ndarray:
    return pose_from_message(message, topic)[:3, 3]


def _estimated_tip(message: Any, topic: str) -> np.ndarray:
    return pose_with_covariance_from_message(message, topic)[0][:3, 3]


def _reference_tip(message: Any, topic: str) -> np.ndarray:
    return reference_cloud_from_message(message, topic).tip_positions[0]


def _reports(message: Any, topic: str) -> list[DiagnosticReport]:
    return diagnostics_from_message(message)


_DECODERS: dict[str, Callable[[Any, str], Any]] = {
    "simulation/truth/tip/pose": _tip,
    "simulation/truth/rod": rod_cloud_from_message,
    "mocap/tip/pose": _tip,
    "estimate/tip/pose": _estimated_tip,
    "estimate/rod": rod_cloud_from_message,
    "reference/rod": _reference_tip,
    "force_torque/wrench": wrench_from_message,
    "/diagnostics": _reports,
}
_PRESSURES = ("pressure/state", "pressure/command")
_TOPICS = (*_PRESSURES, *_DECODERS)


def _series(
    samples: list[_Sample], shape: tuple[int, ...], of: Callable[[Any], Any] = lambda value: value
) -> Series:
    """Sorted by stamp, of one stamp the first. Samples of another shape than the first are dropped.

    Without a sample the series has values of shape (0, *shape).
    """
    values = [np.asarray(of(sample.value), dtype=float) for sample in samples]
    kept = [k for k, value in enumerate(values) if value.shape == values[0].shape]
    if not kept:
        return Series(np.empty(0, dtype=np.int64), np.empty((0, *shape)))
    stamps, first = np.unique([samples[k].stamp for k in kept], return_index=True)
    return Series(stamps, np.stack([values[kept[k]] for k in first]))


def _statuses(samples: list[_Sample]) -> dict[str, NodeStatus]:
    """What every node told of its loop. After its clean-up it tells less: that hides nothing."""
    values: dict[str, dict[str, Any]] = defaultdict(dict)
    last_heard: dict[str, int] = {}
    alarms: dict[str, Counter[str]] = defaultdict(Counter)
    for sample in samples:
        for report in sample.value:
            node, _, part = report.name.partition(":")
            if part.strip() != "loop":
                continue
            node = node.rpartition("/")[2]
            values[node] |= report.values
            last_heard[node] = sample.received
            if report.level in _ALARMS:
                masked = re.sub(r"\d[\d.]*", "#", report.message)
                alarms[node][f"{_ALARMS[report.level]}: {masked}"] += 1
    return {
        node: NodeStatus(values[node], last_heard[node], dict(alarms[node].most_common()))
        for node in values
    }


_ALARMS = {1: "warning", 2: "error"}

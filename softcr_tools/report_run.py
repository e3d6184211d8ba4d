"""A recorded run as arrays: everything the report is computed from."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_runtime.bags.reading import Bag
from softcr_runtime.diagnostics import DiagnosticReport, diagnostics_from_message
from softcr_runtime.messages import (
    MessageError,
    from_stamp,
    named_numbers_from_message,
    pose_from_message,
    pose_with_covariance_from_message,
    pressures_from_message,
    wrench_from_message,
)
from softcr_runtime.rod_clouds import reference_cloud_from_message, rod_cloud_from_message


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
class RecordedSystem:
    """What every recorded run has, whatever robot it was around.

    Attributes:
        start: earliest stamp of any series [ns].
        last_heard: when the last message was received [ns].
        nodes: status by node name.
        problems: one line for everything that is missing or could not be read.
    """

    start: int
    last_heard: int
    nodes: dict[str, NodeStatus]
    problems: tuple[str, ...]

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


@dataclass(frozen=True)
class Run(RecordedSystem):
    """A recorded run of a rod. A series whose topic was not recorded is empty.

    Attributes:
        truth_tip, measured_tip, estimated_tip, reference_tip: (T, 3) positions, base frame [m].
        truth_backbone, estimated_backbone: (T, points, 3) base to tip, in the base frame [m].
        true_compliance, estimated_compliance, compliance_std: (T,) [rad/(N m m)].
        commanded_pressures, measured_pressures: (T, m) gauge [Pa].
        wrench: (T, 6) force [N], then moment [N m].
        arc, arc_std: (T, 7) of the constant-curvature estimator: Delta_x, Delta_y, dL [m], their
            rates [m/s], bending stiffness [N/m]; and their standard deviations.
        chambers: names of the m chambers.
        safety: when safety said something new [ns], and what; empty without valves.
    """

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
    arc: Series
    arc_std: Series
    chambers: tuple[str, ...]
    safety: tuple[tuple[int, str], ...] = ()

    @property
    def tip(self) -> Series:
        """The true tip, or what mocap saw of it where there is no simulator."""
        return self.truth_tip if len(self.truth_tip) else self.measured_tip


def read_run(bag: Bag) -> Run:
    """Everything in a bag that the report uses; what is missing is said in `problems`.

    Raises:
        UserError: the bag holds the topics of more than one robot.
    """
    pressures = NamedValues(pressures_from_message)
    named = dict.fromkeys(("pressure/state", "pressure/command"), pressures)
    received = Received(bag, named | _DECODERS, expected=_expected(bag))
    samples = received.samples
    truth, estimate, arc = (
        samples[topic] for topic in ("simulation/truth/rod", "estimate/rod", _ARC)
    )
    series: dict[str, Any] = {
        "truth_tip": series_of(samples["simulation/truth/tip/pose"], (3,)),
        "measured_tip": series_of(samples["mocap/tip/pose"], (3,)),
        "estimated_tip": series_of(samples["estimate/tip/pose"], (3,)),
        "reference_tip": series_of(samples["reference/rod"], (3,)),
        "truth_backbone": series_of(truth, (0, 3), lambda cloud: cloud.positions),
        "estimated_backbone": series_of(estimate, (0, 3), lambda cloud: cloud.positions),
        "true_compliance": series_of(truth, (), lambda cloud: cloud.parameters[_COMPLIANCE]),
        "estimated_compliance": series_of(
            estimate, (), lambda cloud: cloud.parameters[_COMPLIANCE]
        ),
        "compliance_std": series_of(estimate, (), lambda cloud: cloud.parameters_std[_COMPLIANCE]),
        "commanded_pressures": series_of(samples["pressure/command"], (0,)),
        "measured_pressures": series_of(samples["pressure/state"], (0,)),
        "wrench": series_of(samples["force_torque/wrench"], (6,)),
        "arc": series_of(arc, (7,), lambda numbers: [numbers[name] for name in ARC]),
        "arc_std": series_of(arc, (7,), lambda numbers: [numbers[f"{n}_std"] for n in ARC]),
    }
    return Run(
        **series,
        **received.system(series.values()),
        chambers=pressures.names,
        safety=_safety_changes(bag),
    )


def _safety_changes(bag: Bag) -> tuple[tuple[int, str], ...]:
    """By the time of reception: safety's words carry no stamp."""
    changes: list[tuple[int, str]] = []
    for message in bag.messages(_SAFETY) if bag.find(_SAFETY) else ():
        with suppress(ValueError):
            said = message.decode().message
            if not changes or changes[-1][1] != said:
                changes.append((message.time, said))
    return tuple(changes)


ARC = (
    "delta_x", "delta_y", "elongation",
    "delta_x_rate", "delta_y_rate", "elongation_rate", "bending_stiffness",
)  # fmt: skip
"""What estimate/constant_curvature tells."""

_ARC = "estimate/constant_curvature"
_COMPLIANCE = "bending_compliance"
_SAFETY = "safety/state"


def _expected(bag: Bag) -> set[str]:
    """Topics whose absence is a problem; a run has one estimator or the other."""
    common = {"pressure/state", "pressure/command", *_DECODERS}
    return common - ({"estimate/rod"} if bag.find(_ARC) else {_ARC})


@dataclass(frozen=True)
class Sample:
    """A decoded message: its stamp, when it was received [ns], what it says."""

    stamp: int
    received: int
    value: Any


Decode = Callable[[Any, str], Any]


class NamedValues:
    """Decodes messages of named values; the names are those of the first message.

    Attributes:
        names: empty before there was one.
    """

    def __init__(self, decode: Callable[[Any, tuple[str, ...], str], Any]):
        self.names: tuple[str, ...] = ()
        self._decode = decode

    def __call__(self, message: Any, topic: str) -> Any:
        """The values of a message, in the order of `names`; raises MessageError."""
        self.names = self.names or tuple(message.name)
        return self._decode(message, self.names, topic)


class Received:
    """The decoded messages of every topic a report uses, and what went wrong on the way.

    Attributes:
        samples: by topic.
    """

    def __init__(self, bag: Bag, decoders: Mapping[str, Decode], expected: set[str]):
        """Read a bag.

        Args:
            bag: with at most one robot's topics.
            decoders: by topic; diagnostics are read beside them.
            expected: topics of which it is a problem that there was no message.

        Raises:
            UserError: the bag holds the topics of more than one robot.
        """
        decoders = {**decoders, "/diagnostics": _reports}
        self.samples: dict[str, list[Sample]] = {topic: [] for topic in decoders}
        self._problems = [bag.damage] if bag.damage else []
        self._last_heard = 0
        left_out: Counter[str] = Counter()
        reasons: dict[str, str] = {}
        topics = {name: topic for topic in decoders if (name := bag.find(topic))}
        for message in bag.messages(*topics):
            topic = topics[message.topic]
            self._last_heard = max(self._last_heard, message.time)
            try:
                content = message.decode()
                value = decoders[topic](content, topic)
                self.samples[topic].append(Sample(from_stamp(content, topic), message.time, value))
            except (MessageError, ValueError) as error:
                left_out[topic] += 1
                reasons.setdefault(topic, str(error))
        for topic, count in left_out.items():
            self._problems.append(f"left out {count} of the messages: {reasons[topic]}")
        missing = [
            t
            for t, samples in self.samples.items()
            if not samples and t in expected | {"/diagnostics"}
        ]
        if missing:
            self._problems.append(f"nothing was recorded on {', '.join(missing)}")

    def system(self, series: Iterable[Series]) -> dict[str, Any]:
        """The fields of a `RecordedSystem`."""
        return {
            "start": min((int(s.stamps[0]) for s in series if len(s)), default=0),
            "last_heard": self._last_heard,
            "nodes": _statuses(self.samples["/diagnostics"]),
            "problems": tuple(self._problems),
        }


def tip_of_pose(message: Any, topic: str) -> np.ndarray:
    """(3,) position [m] of a pose; raises MessageError."""
    return pose_from_message(message, topic)[:3, 3]


def _estimated_tip(message: Any, topic: str) -> np.ndarray:
    return pose_with_covariance_from_message(message, topic)[0][:3, 3]


def _reference_tip(message: Any, topic: str) -> np.ndarray:
    return reference_cloud_from_message(message, topic).tip_positions[0]


def _arc(message: Any, topic: str) -> dict[str, float]:
    numbers = named_numbers_from_message(message, topic)
    missing = [name for name in ARC if not {name, f"{name}_std"} <= numbers.keys()]
    if missing:
        raise MessageError(topic, f"fields {missing}, or their deviations, are missing")
    return numbers


def _reports(message: Any, topic: str) -> list[DiagnosticReport]:
    return diagnostics_from_message(message)


_DECODERS: dict[str, Decode] = {
    "simulation/truth/tip/pose": tip_of_pose,
    "simulation/truth/rod": rod_cloud_from_message,
    "mocap/tip/pose": tip_of_pose,
    "estimate/tip/pose": _estimated_tip,
    "estimate/rod": rod_cloud_from_message,
    _ARC: _arc,
    "reference/rod": _reference_tip,
    "force_torque/wrench": wrench_from_message,
}


def series_of(
    samples: list[Sample], shape: tuple[int, ...], of: Callable[[Any], Any] = lambda value: value
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


def _statuses(samples: list[Sample]) -> dict[str, NodeStatus]:
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

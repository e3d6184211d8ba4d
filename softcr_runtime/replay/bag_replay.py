"""A recorded run again, from one bag into another: estimator, and controller where it is asked."""

import heapq
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numba
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)

from softcr_models.errors import UserError
from softcr_runtime.bags.message_bytes import cdr_of, is_known, same_content
from softcr_runtime.bags.reading import Bag, BagMessage
from softcr_runtime.bags.recording import BagRecording, RecordedTopic
from softcr_runtime.blocks.block import CLOCK, BlockBase
from softcr_runtime.replay.recorded_events import before_time_went_back
from softcr_runtime.replay.recorded_messages import (
    ByStamp,
    RecordedSamples,
    SharedReading,
    require_topics,
)
from softcr_runtime.replay.recorded_run import RecordedRun
from softcr_runtime.replay.replayed import ReplayedBlock, ReplayExecutor, Samples, inputs_of
from softcr_runtime.replay.trust import Trust
from softcr_runtime.settings.node_settings import setting_values
from softcr_runtime.wire.codecs import codec
from softcr_runtime.wire.topics import TOPICS

_TIMING = "patience"  # the one parameter that acts on when messages came, not on what they hold
_ROLES = "estimator", "controller"  # names of changes, whatever the nodes are called


@dataclass(frozen=True)
class ReplayTask:
    """What to replay.

    Attributes:
        controller: whether the run's controller, too.
        robot: of all models; None for the run's.
        changes: parameters other than the run's, by node and name; those of the estimator stand
            under the empty name, too.
        trusted: whether code and files that the bag alone names are run and read.
    """

    controller: bool
    robot: str | None
    changes: Mapping[str, Mapping[str, Any]]
    trusted: bool = False

    def of(self, *names: str) -> dict[str, Any]:
        """What is changed of a node that has these names, the last one's changes foremost."""
        changed = {k: v for name in names for k, v in self.changes.get(name, {}).items()}
        return changed | ({"robot": self.robot} if self.robot else {})


@dataclass(frozen=True)
class Counts:
    """Messages recorded, replayed, in both at one stamp, and equal to the bit of these."""

    recorded: int
    replayed: int
    compared: int
    identical: int


class BagReplay:
    """Everything that is needed to play a bag again, made before the clock runs.

    Attributes:
        settings: by node, what it is replayed with.
        notes: a line for each thing that a person should know.
        lead_count: messages that the estimator's ticks are led by.
    """

    def __init__(
        self, bag: Bag, task: ReplayTask, say: Callable[[str], None] = lambda line: None
    ) -> None:
        """Read what the nodes of a run told of themselves, and make their blocks.

        Args:
            bag: of the run.
            task: what to replay.
            say: shows a line about each file that a trusted bag names, before it is used.

        Raises:
            UserError: a needed topic is missing, a parameter is not allowed, or the bag names code
                or files and is not trusted.
        """
        self._bag, self._task = bag, task
        self._trust = Trust(bag.path, [task.robot, task.changes], task.trusted, say)
        self._run = run = RecordedRun.of(bag)
        self.settings: dict[str, dict[str, Any]] = {}
        self.notes: list[str] = []
        nodes = [run.estimator, *(run.controllers if task.controller else ())]
        for node in task.changes.keys() - {"", *_ROLES, *nodes}:
            raise UserError(f"--set {node}...: the nodes of this replay are {', '.join(nodes)}")
        with self._trust.asking():
            self._blocks = {node: self._made(node) for node in nodes}
        if len(nodes) > 2:
            self.notes.append(
                f"{len(nodes) - 1} controllers were exchanged in the run, and are in the replay: "
                f"{', '.join(nodes[1:])}"
            )
        estimator = self._blocks[run.estimator]
        self._estimates, self._lead = estimator.outputs[0], estimator.inputs[0].topic
        self._commands = self._blocks[run.controller].outputs[0] if task.controller else None
        self._replaced = {topic: each for each in self._blocks.values() for topic in each.outputs}
        require_topics(bag, self._needed())
        self.lead_count = bag.topics[bag.find(self._lead) or ""].count
        self._reading = SharedReading(bag)
        codecs = {
            topic: codec(topic, block.expected)
            for block in self._blocks.values()
            for topic in inputs_of(block)
            if topic != CLOCK
        }
        self._samples = RecordedSamples(
            {topic: self._reading.messages(topic) for topic in codecs},
            {topic: each.decode for topic, each in codecs.items()},
        )
        self._leads = ByStamp(self._reading.messages(self._lead))
        self._executor = ReplayExecutor(
            {node: self._maker(node, block) for node, block in self._blocks.items()},
            self._samples,
        )
        self._tallies = {
            topic: _Tally(self._reading.messages(topic), self._recorded_count(topic))
            for topic in self._replaced
        }

    def play(self, directory: Path, advance: Callable[[], None]) -> float:
        """Write the new bag.

        Args:
            directory: of it.
            advance: told after each of the estimator's ticks.

        Returns:
            How many times faster than real time that was.

        Raises:
            UserError: it cannot be written.
        """
        names = {topic: self._bag.find(topic) or self._name(topic) for topic in self._replaced}
        copied = {
            name: topic.type
            for name, topic in self._bag.topics.items()
            if name not in names.values() and is_known(topic.type)
        }
        left_out = sorted(set(self._bag.topics) - copied.keys() - set(names.values()))
        if left_out:
            self.notes.append(f"not copied, their types are not known: {', '.join(left_out)}")
        topics = copied | {name: TOPICS[topic].type for topic, name in names.items()}
        recording = BagRecording(
            directory, [RecordedTopic(name, type_, _QOS) for name, type_ in topics.items()]
        )
        copies = ((m.time, m.topic, m.payload) for m in self._reading.messages(*copied))
        outputs = (
            (moment, names[topic], payload) for moment, topic, payload in self._outputs(advance)
        )
        self._reading.begin()
        began = time.monotonic()
        try:
            with self._trust.asking():
                for moment, name, payload in heapq.merge(copies, outputs, key=itemgetter(0)):
                    recording.write(name, moment, payload)
            taken = time.monotonic() - began
        finally:
            failure = recording.close().failure
        if failure is not None:
            raise UserError(failure)
        self._note_what_was_left_out()
        return self._tallies[self._estimates].duration / taken

    @property
    def estimates(self) -> Counts:
        """Of what was played."""
        return self._tallies[self._estimates].counts

    @property
    def commands(self) -> Counts | None:
        """Of what was played; None without the controller."""
        return None if self._commands is None else self._tallies[self._commands].counts

    def _made(self, node: str) -> BlockBase:
        """The block of a node, with the run's settings and the changed ones."""
        block, settings, line = self._run.block(
            node, self._task.of(*self._names(node)), self._trust
        )
        robot, difference = self._run.robot(settings, block.kinds)
        self.settings[node] = setting_values(settings)
        self.notes += [line, *(each for each in self._run.files.notes if each not in self.notes)]
        if difference and self._task.robot is None and difference not in self.notes:
            self.notes.append(difference)
        return block(robot, settings)

    def _names(self, node: str) -> tuple[str, ...]:
        """Under which changes of a node stand."""
        return (*(("", "estimator") if node == self._run.estimator else ("controller",)), node)

    def _maker(self, node: str, block: BlockBase) -> Callable[[Samples], ReplayedBlock]:
        timing_changed = any(_TIMING in changed for changed in self._task.changes.values())
        records, by_time = self._run.events(node, block, timing_changed)
        if by_time:
            self.notes.append(f"samples are joined by when they were recorded: {by_time}")
        replayed, back = before_time_went_back(records)
        if back:
            count = len(records) - len(replayed)
            self.notes.append(
                f"{node}: time went back by {back:.3f} s; the {count} events after it are not "
                "replayed"
            )
        fixed = self._task.of(*self._names(node)).keys()
        used = {topic for record in records for topic in record.used}
        if (strange := sorted(used - inputs_of(block).keys())) and not fixed:
            raise UserError(
                f"bag {self._bag.path}: the {node} used {strange[0]}, which today's does not take: "
                "the bag is of another version of softcr"
            )
        return lambda recorded: ReplayedBlock(node, block, replayed, recorded, fixed)

    def _needed(self) -> list[str]:
        inputs = (each for block in self._blocks.values() for each in block.inputs)
        # what is joined without its stamp may be missing: records say which ticks had it
        asked = (each for each in inputs if each.needed or each.rule == "same")
        return [each.topic for each in asked if each.topic not in {CLOCK, *self._replaced}]

    def _outputs(self, advance: Callable[[], None]) -> Iterator[tuple[int, str, bytes]]:
        """Time in the bag [ns], topic and bytes of everything that is replayed."""
        numba.set_num_threads(1)  # as the nodes do; a second one is waited for longer
        offset = 0
        for replayed in self._executor.run():
            output = replayed.output
            encode = codec(output.topic, self._replaced[output.topic].expected).encode
            payload = cdr_of(encode(output.value, output.stamp))
            if output.topic == self._estimates:
                recorded = self._leads.at(replayed.lead)
                if recorded is not None:
                    offset = recorded.time - replayed.lead
                    advance()
            self._tallies[output.topic].add(output.stamp, payload)
            yield replayed.lead + offset, output.topic, payload

    def _note_what_was_left_out(self) -> None:
        self.notes += [f"not used: {k}, {n} times" for k, n in self._samples.rejections.items()]
        for each in self._executor.blocks:
            self.notes += [f"{each.node}: {line}" for line in each.complaints]
            if each.changes:
                self.notes.append(
                    f"{each.node}: {each.changes} live changes of parameters replayed"
                )
            if each.missing:
                self.notes.append(
                    f"{each.node}: {each.missing} ticks used samples that the bag lacks"
                )

    def _recorded_count(self, topic: str) -> int:
        name = self._bag.find(topic)
        return self._bag.topics[name].count if name else 0

    def _name(self, topic: str) -> str:
        """An absolute name in the namespace of the estimator's inputs."""
        lead = self._lead
        return (self._bag.find(lead) or f"/{lead}").removesuffix(lead) + topic


class _Tally:
    """Counts what is replayed of a topic beside what was recorded of it."""

    def __init__(self, recorded: Iterator[BagMessage], count: int):
        self._recorded = ByStamp(recorded)
        self._of_record = count
        self._replayed = self._compared = self._identical = 0
        self._first: int | None = None
        self._last = 0

    @property
    def duration(self) -> float:
        """Between the first and the last stamp [s]."""
        return 1e-9 * (self._last - (self._first or 0))

    @property
    def counts(self) -> Counts:
        return Counts(self._of_record, self._replayed, self._compared, self._identical)

    def add(self, stamp: int, payload: bytes) -> None:
        self._replayed += 1
        self._first = stamp if self._first is None else self._first
        self._last = stamp
        recorded = self._recorded.at(stamp)
        if recorded is not None:
            self._compared += 1
            self._identical += same_content(recorded.payload, payload, recorded.type)


_QOS = Qos(
    QosHistory.KEEP_LAST, 10, QosReliability.RELIABLE, QosDurability.VOLATILE,
    QosTime(0, 0), QosTime(0, 0), QosLiveliness.AUTOMATIC, QosTime(0, 0), False,
)  # fmt: skip

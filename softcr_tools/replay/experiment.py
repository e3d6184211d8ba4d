"""One offline replay from bag to report: what is asked, what is written."""

import heapq
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
from rich.console import Console
from rich.progress import Progress
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from threadpoolctl import threadpool_limits

from softcr_models.errors import UserError
from softcr_runtime.bags.message_bytes import cdr_of, is_known, same_content
from softcr_runtime.bags.reading import Bag, BagMessage
from softcr_runtime.bags.recording import BagRecording, RecordedTopic
from softcr_runtime.block import CLOCK, BlockBase
from softcr_runtime.codecs import codec
from softcr_runtime.console import step
from softcr_runtime.replayed import ReplayedBlock, ReplayExecutor, SampleAt
from softcr_runtime.settings import setting_values
from softcr_runtime.topics import TOPICS
from softcr_tools.replay.comparison import Comparison, Counts, compare, draw
from softcr_tools.replay.recorded_inputs import ByStamp, SharedReading, require_topics
from softcr_tools.replay.recorded_run import RecordedRun
from softcr_tools.replay.sample_store import SampleStore
from softcr_tools.report_run import read_run
from softcr_tools.up import compile_kernels

_TIMING = "patience"  # the one parameter that acts on when messages came, not on what they hold


@dataclass(frozen=True)
class Experiment:
    """What to replay.

    Attributes:
        output: where to.
        controller: whether the run's controller, too.
        robot: of all models; None for the run's.
        changes: parameters other than the run's, by node and name; those of the estimator stand
            under the empty name, too.
    """

    output: Path
    controller: bool
    robot: str | None
    changes: Mapping[str, Mapping[str, Any]]

    def of(self, *names: str) -> dict[str, Any]:
        """What is changed of a node that has these names, the last one's changes foremost."""
        changed = {k: v for name in names for k, v in self.changes.get(name, {}).items()}
        return changed | ({"robot": self.robot} if self.robot else {})


def replay(bag: Bag, experiment: Experiment, console: Console) -> Comparison:
    """Replay a bag into `experiment.output`: a bag, comparison.json and comparison.png.

    Raises:
        UserError: a needed topic is missing, a parameter is not allowed, the output exists.
    """
    if experiment.output.exists():
        raise UserError(f"{experiment.output} exists already: remove it or choose another --output")
    compile_kernels(console)
    # as every node does: more threads give other bits, and the matrices are small
    threadpool_limits(limits=1, user_api="blas")
    with step(console, "reading what the run tells of itself"):
        run = RecordedRun.of(bag)
    with step(console, "preparing"):
        stage = _Stage(run, experiment)
    try:
        factor = stage.play(experiment.output, console)
        with step(console, "comparing"):
            return _reported(bag, stage, experiment.output, factor)
    except BaseException:
        shutil.rmtree(experiment.output, ignore_errors=True)
        raise


_ROLES = "estimator", "controller"  # names of changes, whatever the nodes are called


class _Stage:
    """Everything that is needed to play, made before the clock runs."""

    def __init__(self, run: RecordedRun, experiment: Experiment):
        self._bag, self._run, self._experiment = run.bag, run, experiment
        self.settings: dict[str, dict[str, Any]] = {}
        self.notes: list[str] = []
        self._rejections: Counter[str] = Counter()
        nodes = [run.estimator, *([run.controller] if experiment.controller else [])]
        for node in experiment.changes.keys() - {"", *_ROLES, *nodes}:
            raise UserError(f"--set {node}...: the nodes of this replay are {', '.join(nodes)}")
        self._blocks = {node: self._made(node) for node in nodes}
        self.estimates = self._blocks[run.estimator].outputs
        self.commands = self._blocks[run.controller].outputs[0] if experiment.controller else None
        require_topics(run.bag, self._needed())
        self._reading = SharedReading(run.bag)
        self._codecs = {
            each.topic: codec(each.topic, block.expected)
            for block in self._blocks.values()
            for each in block.inputs
            if each.topic != CLOCK
        }
        readers = {topic: self._reading.messages(topic) for topic in self._codecs}
        store = SampleStore(readers, self._decode, self._reject)
        self._leads = ByStamp(self._reading.messages(self._lead))
        self._executor = ReplayExecutor(
            {node: self._maker(node, block) for node, block in self._blocks.items()}, store.at
        )
        self._replaced = {
            topic: block for block in self._blocks.values() for topic in block.outputs
        }
        self.tallies = {
            topic: _Tally(self._reading.messages(topic), self._recorded_count(topic))
            for topic in self._replaced
        }

    def play(self, directory: Path, console: Console) -> float:
        """Write the new bag; returns how many times faster than real time that was."""
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
            (moment, names[topic], payload) for moment, topic, payload in self._outputs(console)
        )
        self._reading.begin()
        began = time.monotonic()
        try:
            for moment, name, payload in heapq.merge(copies, outputs, key=lambda entry: entry[0]):
                recording.write(name, moment, payload)
            taken = time.monotonic() - began
        finally:
            failure = recording.close().failure
        if failure is not None:
            raise UserError(failure)
        self._note_what_was_left_out()
        return self.tallies[self.estimates[0]].duration / taken

    def _made(self, node: str) -> BlockBase:
        """The block of a node, with the run's settings and the changed ones."""
        names = ("", "estimator") if node == self._run.estimator else ("controller",)
        changes = self._experiment.of(*names, node)
        block, settings, line = self._run.block(node, changes)
        robot, difference = self._run.robot(settings, block.kinds)
        self.settings[node] = setting_values(settings)
        self.notes.append(line)
        if difference and self._experiment.robot is None and difference not in self.notes:
            self.notes.append(difference)
        return block(robot, settings)

    def _maker(self, node: str, block: BlockBase) -> Callable[[SampleAt], ReplayedBlock]:
        records, by_time = self._run.events(node, block, timing_changed=self._timing_is_changed())
        if by_time:
            self.notes.append(f"samples are joined by when they were recorded: {by_time}")
        return lambda sample_at: ReplayedBlock(node, block, records, sample_at)

    def _timing_is_changed(self) -> bool:
        return any(_TIMING in changed for changed in self._experiment.changes.values())

    def _needed(self) -> list[str]:
        made = {topic for block in self._blocks.values() for topic in block.outputs}
        inputs = (each for block in self._blocks.values() for each in block.inputs)
        return [each.topic for each in inputs if each.topic not in {CLOCK, *made}]

    def _outputs(self, console: Console) -> Iterator[tuple[int, str, bytes]]:
        """Time in the bag [ns], topic and bytes of everything that is replayed."""
        numba.set_num_threads(1)  # as the nodes do; a second one is waited for longer
        total = self._bag.topics[self._bag.find(self._lead) or ""].count
        offset = 0
        with Progress(console=console) as progress:
            task = progress.add_task("replaying", total=total)
            for replayed in self._executor.run():
                output = replayed.output
                message = codec(output.topic, self._replaced[output.topic].expected).encode(
                    output.value, output.stamp
                )
                payload = cdr_of(message)
                recorded = (
                    self._leads.at(replayed.lead) if output.topic == self.estimates[0] else None
                )
                if recorded is not None:
                    offset = recorded.time - replayed.lead
                    progress.advance(task)
                self.tallies[output.topic].add(output.stamp, payload)
                yield replayed.lead + offset, output.topic, payload
            progress.update(task, completed=total)

    def _decode(self, topic: str, message: Any) -> Any:
        return self._codecs[topic].decode(message)

    def _reject(self, topic: str, reason: str) -> None:
        self._rejections[f"{topic}: {reason}"] += 1

    def _note_what_was_left_out(self) -> None:
        self.notes += [f"not used: {k}, {n} times" for k, n in self._rejections.items()]
        for each in self._executor.blocks:
            self.notes += [f"{each.node}: {line}" for line in each.complaints]
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

    @property
    def _lead(self) -> str:
        return self._blocks[self._run.estimator].inputs[0].topic


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


def _reported(bag: Bag, stage: _Stage, output: Path, factor: float) -> Comparison:
    recorded, replayed = read_run(bag), read_run(Bag(output))
    estimates = stage.tallies[stage.estimates[0]].counts
    commands = stage.tallies[stage.commands].counts if stage.commands else None
    notes = [*([bag.damage] if bag.damage else []), *stage.notes]
    if estimates.compared < estimates.recorded:
        missing = estimates.recorded - estimates.compared
        notes.append(f"{missing} recorded estimates were not replayed: their samples are missing")
    comparison = compare(recorded, replayed, estimates, commands, factor, notes)
    content = {"bag": str(bag.path), "settings": stage.settings, **comparison.to_dict()}
    try:
        (output / "comparison.json").write_text(
            json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8"
        )
        draw(recorded, replayed, output / "comparison.png")
    except OSError as error:
        raise UserError(f"cannot write the comparison to {output}: {error.strerror}") from None
    return comparison


_QOS = Qos(
    QosHistory.KEEP_LAST, 10, QosReliability.RELIABLE, QosDurability.VOLATILE,
    QosTime(0, 0), QosTime(0, 0), QosLiveliness.AUTOMATIC, QosTime(0, 0), False,
)  # fmt: skip

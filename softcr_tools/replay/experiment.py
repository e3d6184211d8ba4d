"""One offline replay from bag to report: what is asked, what is written."""

import heapq
import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
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

from softcr_control.control_loop import (
    ControllerSettings,
    ControlLoop,
    NempcControllerSettings,
    RodMpcControllerSettings,
)
from softcr_estimation.estimation_loop import EstimationLoop, EstimatorNodeSettings
from softcr_estimation.sample_pairing import POSES, PRESSURES
from softcr_models.errors import UserError
from softcr_runtime.settings import setting_values
from softcr_runtime.topics import TOPICS
from softcr_tools.bag_reading import Bag, BagMessage
from softcr_tools.console import step
from softcr_tools.recording import BagRecording, RecordedTopic
from softcr_tools.replay.comparison import Comparison, Counts, compare, draw
from softcr_tools.replay.message_bytes import is_known, same_content
from softcr_tools.replay.offline import Output, ReplayedController, replayed_estimates
from softcr_tools.replay.recorded_inputs import (
    ByStamp,
    RecordedInbox,
    SharedReading,
    estimator_letters,
    require_topics,
)
from softcr_tools.replay.recorded_run import RecordedRun
from softcr_tools.report_run import read_run

ESTIMATOR = "estimator"
CONTROLLERS: dict[str, type[ControllerSettings]] = {
    "nempc_controller": NempcControllerSettings,
    "rod_mpc": RodMpcControllerSettings,
}
"""Nodes that can be replayed, with their parameters."""

_ESTIMATES = ("estimate/rod", "estimate/tip/pose")
_COMMANDS = "pressure/command"
_TIMING = "patience"  # the one parameter that acts on when messages came, not on what they hold


@dataclass(frozen=True)
class Experiment:
    """What to replay.

    Attributes:
        output: where to.
        controller: whether the run's controller, too.
        robot: of all models; None for the run's.
        changes: parameters other than the run's, by node and name.
    """

    output: Path
    controller: bool
    robot: str | None
    changes: Mapping[str, Mapping[str, Any]]

    def of(self, node: str) -> dict[str, Any]:
        """What is changed of a node."""
        return dict(self.changes.get(node, {})) | ({"robot": self.robot} if self.robot else {})


def replay(bag: Bag, experiment: Experiment, console: Console) -> Comparison:
    """Replay a bag into `experiment.output`: a bag, comparison.json and comparison.png.

    Raises:
        UserError: a needed topic is missing, a parameter is not allowed, the output exists.
    """
    require_topics(bag, [PRESSURES, POSES, *(["reference/rod"] if experiment.controller else [])])
    if experiment.output.exists():
        raise UserError(f"{experiment.output} exists already: remove it or choose another --output")
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


class _Stage:
    """Everything that is needed to play, made before the clock runs."""

    def __init__(self, run: RecordedRun, experiment: Experiment):
        self._bag = run.bag
        changes = experiment.of(ESTIMATOR)
        settings, line = run.settings(ESTIMATOR, EstimatorNodeSettings, changes)
        robot, difference = run.robot(settings)
        self.settings = {ESTIMATOR: setting_values(settings)}
        self.notes = [line]
        if difference and experiment.robot is None:
            self.notes.append(difference)
        # what a resampled tick used is not told by the stamps of estimates
        used = None if _TIMING in changes or settings.resampled else run.used
        if used is None:
            self.notes.append(
                "poses are paired by when they were recorded: "
                + _why_by_time(settings.resampled, _TIMING in changes and run.used is not None)
            )
        self._reading = SharedReading(run.bag)
        self._rejections: Counter[str] = Counter()
        samples = self._reading.messages(PRESSURES, POSES)
        self._letters = estimator_letters(samples, robot, used, self._reject)
        self._estimation = EstimationLoop(robot, settings)
        self._controller = self._made_controller(run, experiment) if experiment.controller else None
        self._replaced = (*_ESTIMATES, *((_COMMANDS,) if self._controller else ()))
        self.tallies = {
            topic: _Tally(self._reading.messages(topic), self._recorded_count(topic))
            for topic in self._replaced
        }

    def _made_controller(self, run: RecordedRun, experiment: Experiment) -> ReplayedController:
        node = run.which_ran(CONTROLLERS)
        for other in set(CONTROLLERS) & set(experiment.changes) - {node}:
            raise UserError(f"--set {other}...: the controller of this run is {node}")
        settings, line = run.settings(node, CONTROLLERS[node], experiment.of(node))
        self.settings[node] = setting_values(settings)
        self.notes.append(line)
        robot, _ = run.robot(settings)
        return ReplayedController(
            self._reading,
            robot,
            ControlLoop(robot, settings),
            lockstep=settings.lockstep,
            answers_all=run.bag.find(_COMMANDS) is None,
        )

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
        outputs = ((o.bag_time, names[o.topic], o.payload) for o in self._outputs(console))
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
        self.notes += [f"not used: {k}, {n} times" for k, n in self._rejections.items()]
        return self.tallies[_ESTIMATES[0]].duration / taken

    def _outputs(self, console: Console) -> Iterator[Output]:
        numba.set_num_threads(1)  # as the estimator does; a second one is waited for longer
        total = self._bag.topics[self._bag.find(PRESSURES) or ""].count
        with Progress(console=console) as progress:
            task = progress.add_task("replaying", total=total)
            for output in replayed_estimates(
                RecordedInbox(self._letters), self._estimation, self._reject
            ):
                yield self._tallied(output)
                if output.topic != _ESTIMATES[0]:
                    continue
                progress.advance(task)
                command = self._controller.answer(output) if self._controller else None
                if command is not None:
                    yield self._tallied(command)
            progress.update(task, completed=total)

    def _tallied(self, output: Output) -> Output:
        self.tallies[output.topic].add(output)
        return output

    def _reject(self, topic: str, reason: str) -> None:
        self._rejections[f"{topic}: {reason}"] += 1

    def _recorded_count(self, topic: str) -> int:
        name = self._bag.find(topic)
        return self._bag.topics[name].count if name else 0

    def _name(self, topic: str) -> str:
        """An absolute name in the namespace of the pressures."""
        pressures = self._bag.find(PRESSURES) or f"/{PRESSURES}"
        return pressures.removesuffix(PRESSURES) + topic


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

    def add(self, output: Output) -> None:
        self._replayed += 1
        self._first = output.stamp if self._first is None else self._first
        self._last = output.stamp
        recorded = self._recorded.at(output.stamp)
        if recorded is not None:
            self._compared += 1
            self._identical += same_content(recorded.payload, output.payload, recorded.type)


def _why_by_time(resampled: bool, changed: bool) -> str:
    if resampled:
        return "each sensor kept its own time"
    return f"{_TIMING} is changed" if changed else "the run does not tell what it used"


def _reported(bag: Bag, stage: _Stage, output: Path, factor: float) -> Comparison:
    recorded, replayed = read_run(bag), read_run(Bag(output))
    estimates = stage.tallies["estimate/rod"].counts
    commands = stage.tallies[_COMMANDS].counts if _COMMANDS in stage.tallies else None
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

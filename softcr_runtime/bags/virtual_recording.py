"""The bag of a run on virtual time, as the nodes of its system would have left it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softcr_runtime.bags.offline_bag import OfflineBag
from softcr_runtime.blocks.block import BlockBase, Output
from softcr_runtime.blocks.tick_records import TOPIC, TickRecord, records_to_message
from softcr_runtime.blocks.virtual import VirtualExecutor
from softcr_runtime.settings.node_settings import setting_values
from softcr_runtime.wire.codecs import codec
from softcr_runtime.wire.configuration import TOPIC as CONFIGURATION
from softcr_runtime.wire.configuration import files_of
from softcr_runtime.wire.configuration import reports as configuration_reports
from softcr_runtime.wire.diagnostics import OK, WARN, DiagnosticReport, diagnostics_to_message

_RECORDS_PERIOD = 1_000_000_000  # between two messages of tick records [ns]
_UNRECORDED = ("/clock",)


class VirtualRecording:
    """Hears a `VirtualExecutor` as its observer; messages are made when all is over.

    recording = VirtualRecording()
    executor = VirtualExecutor(system, recording.observe, recording.note)
    executor.run()
    recording.write(directory, executor)
    """

    def __init__(self) -> None:
        """Nothing heard yet."""
        self._outputs: list[tuple[str, Output]] = []
        self._records: dict[str, list[TickRecord]] = {}

    def observe(self, name: str, output: Output) -> None:
        """Keep an output of a part."""
        if output.topic not in _UNRECORDED:
            self._outputs.append((name, output))

    def note(self, name: str, record: TickRecord) -> None:
        """Keep an event of a part."""
        self._records.setdefault(name, []).append(record)

    def write(self, directory: Path, executor: VirtualExecutor) -> None:
        """Write the bag (mcap): all that was sent, tick records, and what every node is.

        Args:
            directory: of the bag.
            executor: after its run.

        Raises:
            UserError: it cannot be written.
        """
        bag, blocks = OfflineBag(), executor.blocks
        first = min((output.stamp for _, output in self._outputs), default=0)
        for name, block in blocks.items():
            told = configured(name, block)
            bag.add(CONFIGURATION, first, diagnostics_to_message(told, first))
        codecs = {
            (name, topic): codec(topic, block.expected)
            for name, block in blocks.items()
            for topic in block.outputs
            if topic not in _UNRECORDED
        }
        for name, output in self._outputs:
            message = codecs[name, output.topic].encode(output.value, output.stamp)
            bag.add(output.topic, output.stamp, message)
        for name, records in self._records.items():
            topics = [each.topic for each in blocks[name].inputs]
            for some in _by_second(records):
                # who has handed over ends with a stamp of before
                last = max(each.stamp for each in some)
                bag.add(TOPIC, last, records_to_message(name, topics, some))
        bag.add_statuses(
            [
                status(
                    name,
                    block,
                    executor.tick_times[name],
                    executor.missed[name],
                    executor.refusals[name],
                )
                for name, block in blocks.items()
            ]
        )
        bag.write(directory)


def configured(name: str, block: BlockBase) -> list[DiagnosticReport]:
    """What the node of a block would tell that it was configured with.

    Raises:
        UserError: a file that its settings name cannot be read.
    """
    settings, robot = block.settings, block.robot
    files = files_of(settings)
    return configuration_reports(name, robot.name, setting_values(settings), robot, files)


def status(
    name: str,
    block: BlockBase,
    tick_times: list[float],
    missed: int,
    refusals: Mapping[str, int],
) -> DiagnosticReport:
    """What the node of a block would say of itself at the end of a run.

    Args:
        name: of the node.
        block: after the run.
        tick_times: how long its ticks took [s].
        missed: cycles that took longer than their period on virtual time, or were left out.
        refusals: mistakes of its class, and how often each came.
    """
    settings = block.settings
    told: dict[str, Any] = {
        "rate_hz": settings.rate_hz,
        "mode": "lockstep" if settings.lockstep else "virtual",
        "seed": settings.seed,
        "settings": setting_values(settings),
        "refusals": dict(refusals),
    }
    place = f"{type(block).__module__}:{type(block).__qualname__}"
    if "<" not in place:  # a class that a replay can import
        told["block"] = place
    if tick_times:
        marks = np.percentile(1e3 * np.array(tick_times), (50, 99, 100)).tolist()
        told |= dict(zip(("p50_ms", "p99_ms", "max_ms"), marks, strict=True))
        told |= {"cycles": len(tick_times), "missed_cycles": missed}
    warnings = ", ".join(block.warnings())
    return DiagnosticReport(
        f"{name}: loop", WARN if warnings else OK, warnings or "on virtual time, without ROS",
        block.robot.name, told | block.describe(),
    )  # fmt: skip


def _by_second(records: list[TickRecord]) -> list[list[TickRecord]]:
    """Records in messages as nodes send them; some of a second in each."""
    parts: list[list[TickRecord]] = []
    for record in records:
        if not parts or record.stamp - parts[-1][0].stamp >= _RECORDS_PERIOD:
            parts.append([])
        parts[-1].append(record)
    return parts

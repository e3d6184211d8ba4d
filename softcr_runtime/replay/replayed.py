"""Blocks that do again, from a bag, what their tick records say.

A tick's samples are looked up by the stamps that the record names, so nothing depends on when a
message came, and the same bits come out however starved the machine was. Outputs of a block that is
replayed before another one take the place of the recorded ones in it.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from softcr_models.errors import UserError
from softcr_runtime.blocks.block import CLOCK, OVERDUE, BlockBase, Input, Output
from softcr_runtime.blocks.budget import recorded_budget
from softcr_runtime.blocks.guard import Guard
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.tick_grid import between
from softcr_runtime.blocks.tick_records import (
    ACTION,
    CHANGE,
    END,
    IDLE,
    JUMP,
    RESET,
    TICK,
    TickRecord,
)
from softcr_runtime.settings.node_settings import (
    NodeSettings,
    build_settings,
    declared_settings,
    setting_values,
)


class Samples(Protocol):
    """What was recorded, or is made again."""

    def at(self, topic: str, stamp: int) -> Sample | None:
        """The sample of a topic and a stamp [ns]; None where there is none."""

    def stamps(self, topic: str, first: int, last: int) -> list[int]:
        """Of the samples of a topic, ascending, from one to another, both included [ns]."""


_KEPT = 4096  # outputs of replayed blocks that may still be asked for


@dataclass(frozen=True)
class Replayed:
    """One output of a replayed block.

    Attributes:
        node: that made it.
        lead: stamp of the tick it belongs to [ns].
        output: itself.
    """

    node: str
    lead: int
    output: Output


class ReplayedBlock:
    """One block, its records, and the samples they name.

    Attributes:
        missing: ticks that were left out because the bag lacks a sample that they used.
        complaints: lines about answers that nobody could use.
        changes: of live parameters that were done again.
    """

    def __init__(
        self,
        node: str,
        block: BlockBase,
        records: Iterable[TickRecord],
        recorded: Samples,
        fixed: Collection[str] = (),
    ) -> None:
        """
        Args:
            node: name of it.
            block: made from the settings of the run, or from others.
            records: of the run, in their order.
            recorded: looks up what they name.
            fixed: parameters that keep their values, whatever was changed in the run.
        """
        self.node, self.block = node, block
        self.missing = self.changes = 0
        self._fixed = frozenset(fixed)
        self.complaints: list[str] = []
        self._records = iter(records)
        self._recorded = recorded
        self._guard = Guard(block, self.complaints.append)
        self._inputs = inputs_of(block)
        block.reset()
        self._next = next(self._records, None)

    @property
    def stamp(self) -> int | None:
        """Of the next event [ns]; None at the end."""
        return None if self._next is None else self._next.stamp

    @property
    def needs(self) -> list[tuple[str, int]]:
        """Topics and stamps [ns] of the samples that the next event uses."""
        if self._next is None or self._next.event != TICK:
            return []
        used = self._next.used.items()
        return [(topic, last) for topic, (_, last) in used if topic in self._inputs]

    def advance(self) -> list[Replayed]:
        """Do the next event."""
        record, self._next = self._next, next(self._records, None)
        assert record is not None  # who asks has looked at `stamp`
        if record.event == TICK:
            outputs = self._tick(record)
        elif record.event in (IDLE, END):
            why = OVERDUE if record.event == IDLE else "stopped"
            outputs = self._guard.idle(record.stamp, why)
        elif record.event == JUMP:
            self._guard.time_jumped(record.age)
            outputs = []
        elif record.event == RESET:
            self._guard.reset()
            outputs = []
        elif record.event == CHANGE:
            self._change(record.changed)
            outputs = []
        else:
            self.block.act(self.block.actions[record.event - ACTION])
            outputs = []
        return [Replayed(self.node, record.stamp, output) for output in outputs]

    def _change(self, changed: Mapping[str, float]) -> None:
        """Live parameters as they were changed in the run."""
        settings = self.block.settings
        kind: type[NodeSettings] = type(settings)
        declared = declared_settings(kind)
        kinds = {"boolean": bool, "integer": int}
        given = {
            name: kinds.get(declared[name].kind, float)(value)
            for name, value in changed.items()
            if name in declared and name not in self._fixed
        }
        if not given:
            return
        try:
            candidate = build_settings(kind, setting_values(settings) | given)
            self.block.prepared(candidate)()
            self.changes += 1
        except UserError as error:
            self.complaints.append(f"a change of the run cannot be done again: {error}")

    def _tick(self, record: TickRecord) -> list[Output]:
        # a tick has all samples since the last one although there were none
        samples: dict[str, Any] = {t: () for t, each in self._inputs.items() if each.rule == "all"}
        for topic, (first, last) in record.used.items():
            if topic not in self._inputs:
                continue
            found = self._looked_up(self._inputs[topic], record.stamp, first, last)
            if found is None:
                self.missing += 1
                return []
            samples[topic] = found
        self.block.budget = recorded_budget(record.effort)
        outputs = self._guard.tick(record.stamp, samples)
        if math.isfinite(record.age):
            self.block.answered(record.age)
        return outputs

    def _looked_up(self, each: Input, stamp: int, first: int, last: int) -> Any:
        """A sample, or all from the first to the last; None where the bag lacks one of these."""
        if each.topic == CLOCK:
            return Sample(CLOCK, stamp, None, 1e-9 * stamp)
        if each.rule == "all":
            stamps = self._recorded.stamps(each.topic, first, last)
            found = tuple(self._recorded.at(each.topic, each_stamp) for each_stamp in stamps)
            whole = {first, last} <= set(stamps) and None not in found
            return found if whole else None
        newer = self._recorded.at(each.topic, last)
        if first == last or newer is None:
            return newer
        older = self._recorded.at(each.topic, first)
        return None if older is None else between(older, newer, stamp, each.blend)


def inputs_of(block: BlockBase) -> dict[str, Input]:
    """The inputs of a block by topic: what its records may name."""
    return {each.topic: each for each in block.inputs}


class ReplayExecutor:
    """Replays blocks side by side, each after those whose outputs it takes."""

    def __init__(
        self,
        make: Mapping[str, Callable[[Samples], ReplayedBlock]],
        recorded: Samples,
    ) -> None:
        """
        Args:
            make: node -> how its replayed block is made, those first whose outputs others take.
            recorded: looks up what is not made again.
        """
        self._recorded = recorded
        self._made: OrderedDict[tuple[str, int], Sample] = OrderedDict()
        self._replaced: set[str] = set()
        self.blocks = [each(self) for each in make.values()]
        for each in self.blocks:
            self._replaced.update(each.block.outputs)

    def run(self) -> Iterator[Replayed]:
        """All outputs; at one stamp those of the first block come first.

        A late tick may have used what another block said at a later time: that comes before it.
        """
        while True:
            waiting = [each for each in self.blocks if each.stamp is not None]
            if not waiting:
                return
            for replayed in self._due(waiting).advance():
                self._keep(replayed.output)
                yield replayed

    def _due(self, waiting: list[ReplayedBlock]) -> ReplayedBlock:
        first = min(waiting, key=lambda each: (each.stamp, self.blocks.index(each)))
        block, asked = first, [first]
        while (maker := self._maker_of_what_lacks(block, waiting)) is not None:
            if maker in asked:  # nobody will make it: the bag lacks it
                return first
            block = maker
            asked.append(maker)
        return block

    def _maker_of_what_lacks(
        self, block: ReplayedBlock, waiting: list[ReplayedBlock]
    ) -> ReplayedBlock | None:
        """Another block that may still make a sample of the block's next event."""
        for topic, stamp in block.needs:
            if topic not in self._replaced or (topic, stamp) in self._made:
                continue
            for maker in waiting:
                made_by_then = maker.stamp is not None and maker.stamp <= stamp
                if maker is not block and topic in maker.block.outputs and made_by_then:
                    return maker
        return None

    def _keep(self, output: Output) -> None:
        key = output.topic, output.stamp
        self._made[key] = Sample(output.topic, output.stamp, output.value, 1e-9 * output.stamp)
        if len(self._made) > _KEPT:
            self._made.popitem(last=False)

    def at(self, topic: str, stamp: int) -> Sample | None:
        """See Samples; what is made again counts in the place of what was recorded."""
        if topic in self._replaced:
            return self._made.get((topic, stamp))
        return self._recorded.at(topic, stamp)

    def stamps(self, topic: str, first: int, last: int) -> list[int]:
        if topic not in self._replaced:
            return self._recorded.stamps(topic, first, last)
        of_topic = (stamp for name, stamp in self._made if name == topic)
        return sorted(stamp for stamp in of_topic if first <= stamp <= last)

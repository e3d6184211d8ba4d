"""Which samples belong to one tick of a block. A join has no clock and never waits: whoever runs
the block puts samples in, and asks for the next tick and for when to ask again."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from softcr_runtime.blocks.block import Input
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.tick_grid import Resampler

MOST_WAITING = 64
"""Leads and partners of a topic that may wait; beyond, the oldest are dropped and counted."""


@dataclass(slots=True)
class Tick:
    """The inputs of one tick.

    Attributes:
        stamp: of the lead [ns].
        received: when the last of its samples came, or when waiting for one ended [s].
        samples: by topic; those of the rule "all" as a tuple.
    """

    stamp: int
    received: float
    samples: dict[str, Sample]


class Join:
    """Joins the samples of a block's inputs to ticks.

    Attributes:
        dropped: samples that belonged to no tick, by topic and reason, since the last `forget`.
    """

    def __init__(
        self, inputs: Sequence[Input], keep: Literal["every", "newest"], period: float
    ) -> None:
        """A join with nothing waiting.

        Args:
            inputs: exactly one of them leads.
            keep: see BlockBase.
            period: of the block, for inputs that are resampled [s].

        Raises:
            ValueError: no lead, or several.
        """
        leads = [each for each in inputs if each.rule == "lead"]
        if len(leads) != 1:
            raise ValueError(f"inputs: {len(leads)} of them lead, must be one")
        self._lead = leads[0]
        self._partners = tuple(each for each in inputs if each.rule in ("same", "answer"))
        self._bystanders = tuple(
            each for each in inputs if each.rule in ("newest", "latest", "all")
        )
        self._keep, self._period = keep, period
        self._inputs = {each.topic: each for each in inputs}
        self.forget()

    def forget(self) -> None:
        """Nothing has come yet."""
        self._leads: deque[Sample] = deque()
        self._waiting: dict[str, deque[Sample]] = {p.topic: deque() for p in self._partners}
        self._heard: dict[str, list[Sample]] = {b.topic: [] for b in self._bystanders}
        self._resamplers: dict[str, Resampler[Sample]] = {
            each.topic: Resampler(self._period, each.blend)
            for each in self._inputs.values()
            if each.resampled
        }
        self._reached: dict[str, int] = dict.fromkeys(self._waiting, 0)  # stamps heard of, raw
        self._last: int | None = None  # stamp of the last tick
        self.dropped: dict[tuple[str, str], int] = {}

    def put(self, sample: Sample) -> None:
        """A sample of one of the inputs, newer than those of its topic before it."""
        topic = sample.topic
        resampler = self._resamplers.get(topic)
        if topic in self._reached:
            self._reached[topic] = sample.stamp
        for each in (sample,) if resampler is None else resampler.add(sample):
            self._sort_in(topic, each)

    @property
    def waits(self) -> bool:
        """Whether there are leads that no tick was made of."""
        return bool(self._leads)

    def take(self, now: float) -> Tick | None:
        """The next tick that is complete, or for which waiting is over.

        Args:
            now: the time against which patience is counted; inf: nothing is waited for [s].
        """
        return self._every(now) if self._keep == "every" else self._newest(now)

    def wake(self) -> float:
        """When to ask `take` again although nothing came; inf: never [s]."""
        if not self._leads:
            return math.inf
        lead = self._leads[0]
        waited_for = (
            self._overdue(each, lead) for each in self._partners if self._found(each, lead) is None
        )
        return min(waited_for, default=math.inf)

    # --- in --------------------------------------------------------------------------------

    def _sort_in(self, topic: str, sample: Sample) -> None:
        if topic == self._lead.topic:
            self._append(self._leads, sample)
        elif topic in self._waiting:
            self._append(self._waiting[topic], sample)
        elif self._inputs[topic].rule == "all":
            self._heard[topic].append(sample)
        else:
            self._heard[topic] = [sample]

    def _append(self, queue: deque[Sample], sample: Sample) -> None:
        queue.append(sample)
        if len(queue) > MOST_WAITING:
            self._drop(queue.popleft(), "too many were waiting")

    def _drop(self, sample: Sample, reason: str) -> None:
        key = sample.topic, reason
        self.dropped[key] = self.dropped.get(key, 0) + 1

    # --- out -------------------------------------------------------------------------------

    def _every(self, now: float) -> Tick | None:
        """In the order of the leads: the first of them, once it need not wait."""
        while self._leads:
            found = self._joined(self._leads[0], now)
            if found is None:
                return None
            lead = self._leads.popleft()
            if isinstance(found, Tick):
                return self._taken(lead, found)
            self._drop(lead, f"without {found}")
        return None

    def _newest(self, now: float) -> Tick | None:
        """The newest of the leads that is complete; those before it are dropped."""
        for place in range(len(self._leads) - 1, -1, -1):
            found = self._joined(self._leads[place], now)
            if isinstance(found, Tick):
                for _ in range(place):
                    self._drop(self._leads.popleft(), "a newer tick was complete")
                return self._taken(self._leads.popleft(), found)
        return None

    def _joined(self, lead: Sample, now: float) -> Tick | str | None:
        """The tick of a lead; a topic that is needed and will not come; None: not yet."""
        if any(each.needed and not self._heard[each.topic] for each in self._bystanders):
            return None
        samples, received = {lead.topic: lead}, lead.received
        for each in self._partners:
            if each.rule == "answer" and self._last is None:
                continue
            sample = self._found(each, lead)
            if sample is not None:
                samples[each.topic] = sample
                received = max(received, sample.received)
                continue
            overdue = self._overdue(each, lead)
            gone = self._is_past(each, lead)
            if not gone and now < overdue:
                return None
            if each.needed:
                return each.topic if gone or math.isfinite(overdue) else None
            if not gone and math.isfinite(now):
                received = max(received, now)  # waiting is no work
        return Tick(lead.stamp, received, samples)

    def _overdue(self, partner: Input, lead: Sample) -> float:
        """When a sample that belongs to a lead is waited for no more [s]."""
        if partner.after and self._reached[partner.after] < lead.stamp:
            return math.inf
        return lead.received + partner.patience_now()

    def _found(self, partner: Input, lead: Sample) -> Sample | None:
        wanted = lead.stamp if partner.rule == "same" else self._last
        for sample in self._waiting[partner.topic]:
            if sample.stamp == wanted:
                return sample
        return None

    def _is_past(self, partner: Input, lead: Sample) -> bool:
        """Whether later samples have come, so that the one wanted never will."""
        wanted = lead.stamp if partner.rule == "same" else self._last
        return self._reached[partner.topic] > (wanted or 0)

    def _taken(self, lead: Sample, tick: Tick) -> Tick:
        self._last = tick.stamp
        for topic in self._waiting:
            self._forget_until(topic, tick)
        for each in self._bystanders:
            heard = self._heard[each.topic]
            if each.rule == "all":
                tick.samples[each.topic] = tuple(heard)  # type: ignore[assignment]
                self._heard[each.topic] = []
            elif heard:
                tick.samples[each.topic] = heard[0]
                if each.rule == "newest":
                    self._heard[each.topic] = []
        return tick

    def _forget_until(self, topic: str, tick: Tick) -> None:
        """Drop what is not newer than the tick; an answer to it may still come."""
        queue = self._waiting[topic]
        answers = self._inputs[topic].rule == "answer"
        while queue and (queue[0].stamp < tick.stamp if answers else queue[0].stamp <= tick.stamp):
            sample = queue.popleft()
            if tick.samples.get(topic) is not sample:
                self._drop(sample, "came after its cycle")


def ticks(join: Join, now: float) -> Iterator[Tick]:
    """Everything that a join can give now."""
    while (tick := join.take(now)) is not None:
        yield tick

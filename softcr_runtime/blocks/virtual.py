"""The executor of virtual time: a system of blocks in one process, as fast as it computes.

Nothing is serialised unless somebody records. At one instant clocks go first; then whatever has
arrived is joined and computed until nothing more can be; a sample that is still missing then is not
waited for in lock-step, and for the block's patience otherwise. Latency, jitter and loss belong to
wires, computing time and phases of clocks to parts: a block that computes is busy, and what comes
waits in its join. A tick of the clock at which its block is still busy is missed, as in a node.
The computing time of a part stands for its whole tick: no tick has a limited budget, and results do
not depend on the speed of this machine.
What the system is to begin with is asked for until everybody has agreed.

When something that a part computes is done, and which messages of a wire are missing.
"""

import gc
import heapq
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import numba
import numpy as np

from softcr_models.errors import UserError
from softcr_models.plugins import load_class
from softcr_models.robots.robot import load_robot
from softcr_runtime.blocks.block import CLOCK, OVERDUE, BlockBase, Output
from softcr_runtime.blocks.guard import Guard, Unguarded
from softcr_runtime.blocks.join import Join, Tick
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.system import Computing, Missing, Part, System, Wire
from softcr_runtime.blocks.tick_records import ACTION, END, IDLE, RESET, TickRecord, record_of


class Processor:
    """What a part computes with on virtual time.

    Attributes:
        stops: (begin, end) of each time during which it stands still, in order [ns].
    """

    def __init__(self, computing: Computing) -> None:
        """At the beginning of a run."""
        self._shortest, self._range = computing.shortest, 0.0
        if computing.longest is not None:
            self._range = computing.longest - computing.shortest
        self._random = np.random.default_rng(computing.seed)
        self.stops = [
            (round(1e9 * each.at), round(1e9 * (each.at + each.seconds)))
            for each in sorted(computing.stops, key=lambda stop: stop.at)
        ]

    def done(self, now: int) -> int:
        """When what begins now is done [ns]; draws how long it takes."""
        left = self._shortest
        if self._range:
            left += self._range * self._random.random()
        end = now + round(1e9 * left)
        for begin, over in self.stops:
            if now < over and begin < end:
                end += over - max(begin, now)
                now = over
        return end


class Gaps:
    """Which messages of one wire are missing; asked about each of them, in order."""

    def __init__(self, missing: tuple[Missing, ...]) -> None:
        """None of them was sent yet."""
        self._missing = missing
        self._burst = [-1] * len(missing)  # the last that has begun
        self._left = [0] * len(missing)  # of it

    def take(self, sent: int) -> bool:
        """Whether the message that was sent at a time [ns] is missing."""
        found = False
        for k, each in enumerate(self._missing):
            since = 1e-9 * sent - each.at + _ROUNDING
            if since >= 0.0:
                burst = math.floor(since / each.every) if each.every else 0
                if burst > self._burst[k]:
                    self._burst[k], self._left[k] = burst, each.count
            if self._left[k]:
                self._left[k] -= 1
                found = True
        return found


_ROUNDING = 5e-10  # half a nanosecond [s]


CORES = min(len(os.sched_getaffinity(0)), numba.config.NUMBA_NUM_THREADS)
"""That this process may use, and numba was started with."""

LONGEST_BEGINNING = 15.0
"""For all that a system begins with to agree [s]."""

Observer = Callable[[str, Output], None]
"""Told of every output, with the part that made it, at the moment it is sent."""

RecordObserver = Callable[[str, TickRecord], None]
"""Told of every event of every part."""


@dataclass(eq=False)
class Running:
    """One part at work.

    Attributes:
        part: what it is.
        block: made of it.
    """

    part: Part
    block: BlockBase
    guard: Guard | Unguarded
    join: Join
    period: int  # [ns]
    phase: int  # [ns]
    lockstep: bool
    processor: Processor
    threads: int  # of numba: what the block asks for, as far as cores and caller allow
    listeners: dict[str, list["_Cable"]] = field(default_factory=dict)
    busy_until: int = 0  # [ns]
    cycle: int = 0
    missed: int = 0  # ticks that took longer than the period, and of its clock those left out
    silent_since: int = 0  # [ns]
    silent: bool = False
    last_stamp: int = 0

    @property
    def clocked(self) -> bool:
        """Whether its lead is the clock."""
        return any(each.topic == CLOCK for each in self.block.inputs)


class _Cable:
    """A wire to one listener, with random numbers of its own."""

    def __init__(self, wire: Wire, listener: Running) -> None:
        self.listener, self._wire = listener, wire
        self._random = np.random.default_rng(wire.seed) if wire.jitter or wire.lost else None
        self._gaps = Gaps(wire.missing)
        self._last = 0  # arrival [ns]

    def arrival(self, sent: int) -> int | None:
        """Of the next message, sent at a time [ns]; None: it is lost."""
        latency, missing = self._wire.latency, self._gaps.take(sent)
        if self._random is not None:
            lost, late = self._random.random(), self._random.standard_exponential()
            if lost < self._wire.lost:
                return None
            latency += self._wire.jitter * late
        if missing:
            return None
        self._last = max(sent + round(1e9 * latency), self._last)
        return self._last


class VirtualExecutor:
    """Runs the blocks of a system on virtual time.

    Attributes:
        now: virtual time [ns].
        complaints: lines about answers that blocks made and nobody could use.
        tick_times: by part, how long its ticks took: on the given clock; without one on virtual
            time, as long as they were told to take [s].
    """

    def __init__(
        self,
        system: System,
        observe: Observer = lambda name, output: None,
        note: RecordObserver | None = None,
        make: Callable[[Part], BlockBase] | None = None,
        clock: Callable[[], float] | None = None,
        guarded: bool = True,
    ) -> None:
        """Make all blocks; nothing runs yet.

        Args:
            system: its parts that are blocks are run, in their order; nodes of their own, such as
                the recorder, are left out.
            observe: told of every output.
            note: told of every event; None: no records are made.
            make: another way to make a part's block, for who shares something between blocks.
            clock: of this machine, to measure ticks with [s]; None: they are not measured.
            guarded: whether a block's mistakes are complaints, as in a node; otherwise what a block
                raises ends the run.

        Raises:
            UserError: a block cannot be made.
        """
        self.now = 0
        self.complaints: list[str] = []
        self._clock, self._guarded = clock, guarded
        self._threads = 0  # of numba, as it was told last; 0: nothing yet
        self._observe, self._note = observe, note
        self._system = system
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        make = make or block_of
        self._parts = [self._running(part, make(part)) for part in system.parts if part.is_block]
        self.tick_times: dict[str, list[float]] = {each.part.name: [] for each in self._parts}
        self._connect()

    @property
    def blocks(self) -> dict[str, BlockBase]:
        """All blocks, by the names of their parts."""
        return {each.part.name: each.block for each in self._parts}

    @property
    def refusals(self) -> dict[str, dict[str, int]]:
        """By part, the mistakes of its class, and how often each came; see Guard."""
        return {each.part.name: getattr(each.guard, "refusals", {}) for each in self._parts}

    @property
    def missed(self) -> dict[str, int]:
        """By part, its ticks that took longer than its period on virtual time, and those of its
        clock that were left out because it was busy."""
        return {each.part.name: each.missed for each in self._parts}

    def block(self, name: str) -> BlockBase:
        """The block of a part."""
        return next(each.block for each in self._parts if each.part.name == name)

    def run(
        self, duration: float | None = None, progress: Callable[[float], bool] | None = None
    ) -> None:
        """Run from the beginning to the end, then let every block go idle.

        Args:
            duration: virtual time [s]; None for the system's, to the end of its last cycle.
            progress: told of the virtual time [s] at each instant; whether the run goes on.

        Raises:
            UserError: the system cannot begin, and who refuses.
        """
        seconds = self._system.duration if duration is None else duration
        if duration is None and self._system.simulated_time:
            seconds += 1.0  # the plant says when its last cycle is complete
        end = round(1e9 * seconds)
        with own_threads(), collector_at_rest():
            self._threads = 0
            self._begin()
            while self._events and self._events[0][0] <= end and not self._finished():
                self._advance()
                if self._to_ask:
                    self._ask_to_begin()
                if progress is not None and not progress(1e-9 * self.now):
                    break
            for each in reversed(self._parts):
                self._idle(each, "stopped")

    # --- events -----------------------------------------------------------------------------

    def _begin(self) -> None:
        running = {each.part.name for each in self._parts}
        # nodes that are left out have nothing to agree to
        self._to_ask = deque(a for a in self._system.begin if a.partition("/")[0] in running)
        for each in self._parts:
            each.guard.reset()
            self._note_event(each, RESET, 1)
            for begin, end in each.processor.stops:
                self._at(begin, self._stop(each, end))
            if each.clocked:
                self._at(each.phase + each.period, self._clock_tick(each))
            elif math.isfinite(each.block.silence) and not each.lockstep:
                self._at(round(1e9 * each.block.silence), self._silence(each))

    def _advance(self) -> None:
        """Everything that happens at the next instant."""
        self.now = self._events[0][0]
        settled = False
        while not settled:
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
            settled = not self._compute(1e-9 * self.now)
            if settled and not (self._events and self._events[0][0] <= self.now):
                settled = not self._compute(math.inf, lockstep_only=True)
            elif settled:
                settled = False
        self._ask_again()

    def _at(self, time: int, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._order), event))

    def _clock_tick(self, each: Running) -> Callable[[], None]:
        def tick() -> None:
            each.cycle += 1
            if each.busy_until > self.now and not each.lockstep:
                each.missed += 1
            else:
                each.join.put(Sample(CLOCK, self.now, None, 1e-9 * self.now))
            self._at(each.phase + (each.cycle + 1) * each.period, tick)

        return tick

    def _stop(self, each: Running, end: int) -> Callable[[], None]:
        def stop() -> None:
            each.busy_until = max(each.busy_until, end)
            each.silent_since = max(each.silent_since, end)  # who stands still waits for nothing
            self._at(end, _nothing)

        return stop

    def _ask_to_begin(self) -> None:
        """Ask for what the system begins with, in order, until somebody refuses."""
        while self._to_ask:
            name, _, action = self._to_ask[0].partition("/")
            each = next(each for each in self._parts if each.part.name == name)
            try:
                each.block.act(action)
            except UserError as refusal:
                if 1e-9 * self.now > LONGEST_BEGINNING:
                    waited = f"{LONGEST_BEGINNING:g} s"
                    raise UserError(f"{name}/{action} refused for {waited}: {refusal}") from None
                return
            number = each.block.actions.index(action)
            self._note_event(each, ACTION + number, max(each.last_stamp, 1))
            self._to_ask.popleft()

    def _compute(self, now: float, lockstep_only: bool = False) -> bool:
        """Let every block that is not busy take one tick; whether any did."""
        did = False
        for each in self._parts:
            if each.busy_until > self.now or (lockstep_only and not each.lockstep):
                continue
            tick = each.join.take(now) if each.join.waits else None
            if tick is not None:
                self._tick(each, tick)
                did = True
        return did

    def _tick(self, each: Running, tick: Tick) -> None:
        if each.threads != self._threads:
            self._threads = each.threads
            numba.set_num_threads(each.threads)
        begin = self._clock() if self._clock else 0.0
        outputs = each.guard.tick(tick.stamp, tick.samples)
        if self._clock:
            self.tick_times[each.part.name].append(self._clock() - begin)
        ready = self.now if each.block.left_out else each.processor.done(self.now)
        took = ready - self.now
        each.missed += took > each.block.every * each.period
        if not self._clock:
            self.tick_times[each.part.name].append(1e-9 * took)
        age = 1e-9 * (ready - tick.stamp)
        each.block.answered(age)
        if self._note is not None:
            self._note(each.part.name, record_of(tick, age))
        each.busy_until, each.silent, each.silent_since = ready, False, ready
        if ready == self.now:
            self._send(each, outputs)
        else:
            self._at(ready, lambda: self._send(each, outputs))

    def _send(self, each: Running, outputs: Iterable[Output]) -> None:
        for output in outputs:
            each.last_stamp = max(each.last_stamp, output.stamp)
            self._observe(each.part.name, output)
            for cable in each.listeners.get(output.topic, ()):
                self._deliver(cable, output)

    def _deliver(self, cable: _Cable, output: Output) -> None:
        arrival = cable.arrival(self.now)
        if arrival is None:
            return
        sample = Sample(output.topic, output.stamp, output.value, 1e-9 * arrival)
        if arrival == self.now:
            cable.listener.join.put(sample)
        else:
            self._at(arrival, lambda: cable.listener.join.put(sample))

    def _ask_again(self) -> None:
        """Come back when somebody's patience ends."""
        for each in self._parts:
            if each.lockstep:
                continue
            wake = each.join.wake()
            if math.isfinite(wake):
                moment = math.ceil(1e9 * wake)
                if moment > self.now:
                    self._at(moment, _nothing)

    def _silence(self, each: Running) -> Callable[[], None]:
        def look() -> None:
            due = each.silent_since + round(1e9 * each.block.silence)
            if self.now >= due and each.busy_until <= self.now:
                if not each.silent:
                    each.join.forget()
                self._idle(each, OVERDUE)
                each.silent, each.silent_since = True, self.now
                due = self.now + round(1e9 * each.block.silence)
            self._at(max(due, self.now + 1), look)

        return look

    def _idle(self, each: Running, why: str) -> None:
        stamp = each.last_stamp + 1 if each.lockstep else self.now
        outputs = each.guard.idle(stamp, why)
        self._note_event(each, IDLE if why == OVERDUE else END, stamp)
        self._send(each, outputs)

    # --- inside -----------------------------------------------------------------------------

    def _note_event(self, each: Running, event: int, stamp: int) -> None:
        if self._note is not None:
            self._note(each.part.name, TickRecord(event, stamp))

    def _running(self, part: Part, block: BlockBase) -> Running:
        def complain(line: str) -> None:
            self.complaints.append(f"{part.name}: {line}")

        period = block.settings.period
        join = Join(block.inputs, block.keep, period)
        guard = Guard(block, complain) if self._guarded else Unguarded(block)
        # of a study's worker that is one: two for each of several workers wait for each other
        threads = min(block.threads, CORES, numba.get_num_threads())
        lockstep = bool(block.settings.lockstep)
        phase, processor = round(1e9 * part.phase), Processor(part.computing)
        return Running(
            part, block, guard, join, round(1e9 * period), phase, lockstep, processor, threads
        )

    def _connect(self) -> None:
        for listener in self._parts:
            for each in listener.block.inputs:
                wire = listener.part.wires.get(each.topic, Wire())
                cable = _Cable(wire, listener)
                for speaker in self._parts:
                    if each.topic in speaker.block.outputs:
                        speaker.listeners.setdefault(each.topic, []).append(cable)

    def _finished(self) -> bool:
        return any(each.block.finished for each in self._parts)


def block_of(part: Part) -> BlockBase:
    """The block of a part, made with its robot and its validated settings.

    Raises:
        UserError: the class, a setting or the robot cannot be used.
    """
    if not part.is_block:
        raise UserError(f"part {part.name}: {part.runs} is a node of its own, not a block")
    block: type[BlockBase] = load_class(part.runs, "block", BlockBase)
    settings = block.settings_of(part.parameters)
    return block(load_robot(settings.robot, block.kinds), settings)


@contextmanager
def own_threads() -> Iterator[None]:
    """The caller's number of numba's threads comes back afterwards."""
    before = numba.get_num_threads()
    try:
        yield
    finally:
        numba.set_num_threads(before)


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """What there is needs no look of Python's garbage collector.

    A look at all that numba and others keep takes as long as 100 cycles of a run. One is taken
    before: what earlier runs left would otherwise be kept for as long as the process lives.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _nothing() -> None:
    """Only wakes the executor."""
